/*
 * See farewell.h.
 */
#include "farewell.h"

#include <signal.h>
#include <stdlib.h>

#include "init.h"
#include "tree.h"
#include "poison.h"

#define GRACE_MS 3000

struct farewell {
	struct list node; /* of init->farewells */
	struct loop_timer timer;
	pid_t leader;
};

static void on_over(struct loop_timer *t)
{
	struct farewell *f = CONTAINER(t, struct farewell, timer);
	tree_kill(f->leader);
	list_del(&f->node);
	free(f);
}

void farewell_begin(struct init *in, pid_t leader)
{
	struct farewell *f = calloc(1, sizeof(*f));
	if (!f) {
		tree_kill(leader);
		return;
	}
	f->leader = leader;
	list_append(&in->farewells, &f->node);
	loop_timer_start(in->loop, &f->timer, GRACE_MS, on_over);
	/* One that is stopped could not hear it. */
	(void)tree_signal(leader, SIGHUP);
	(void)tree_signal(leader, SIGCONT);
}

void farewell_stop(struct init *in)
{
	LIST_EACH (it, &in->farewells) {
		struct farewell *f = CONTAINER(it, struct farewell, node);
		loop_timer_stop(&f->timer);
		list_del(&f->node);
		free(f);
	}
}
