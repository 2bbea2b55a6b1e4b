/*
 * Measures the disk usage of a box, by asking the keeper when somebody wants to see it.
 */
#include <errno.h>
#include <stdlib.h>

#include "box.h"
#include "boxes.h"
#include "core_base.h"
#include "keeper.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS 10000

struct measuring {
	struct job job;
	struct core *core;
	struct call call;
	char id[BOX_ID + 1];
};

static void finish(struct measuring *m, int64_t used)
{
	struct box *b = boxes_by_id(m->core, view_of(m->id));
	struct err e = { 0 };

	if (!b || b->state.status == BOX_DELETING) {
		boxes_unknown(&e);
		job_finish(&m->job, NULL, &e);
	} else {
		b->state.disk_used = used;
		job_finish(&m->job, b, NULL);
	}
	free(m);
}

static int on_reply(struct call *c, const struct frame *f, int fd)
{
	struct measuring *m = CONTAINER(c, struct measuring, call);
	struct arena a = ARENA_INIT(4096);
	struct wire_stats_reply reply;
	int r = mux_reply(c, f, &wire_stats_reply_msg, &a, &reply);

	arena_done(&a);
	if (r < 0)
		return r;
	finish(m, (int64_t)MIN(reply.disk_bytes, (uint64_t)INT64_MAX));
	return 0;
}

/* It can be shown all the same. */
static void on_fail(struct call *c, const struct err *e)
{
	finish(CONTAINER(c, struct measuring, call), -1);
}

static const struct call_ops ops = { .on_reply = on_reply, .on_fail = on_fail };

struct job *boxes_measure(struct core *c, const struct actor *a, struct view ref, job_done *done, void *arg,
			  struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_BOX_READ, ref, e);
	struct measuring *m = b ? calloc(1, sizeof(*m)) : NULL;
	int r = -ENOMEM;

	if (!b)
		return NULL;
	if (m) {
		struct wire_stats msg = { .id = view_of(b->id) };
		m->job = (struct job){ .done = done, .arg = arg };
		m->core = c;
		m->call.ops = &ops;
		memcpy(m->id, b->id, sizeof(m->id));
		r = keeper_call_for(c, view_of(b->spec.backend), &m->call, WIRE_TYPE_STATS, KEEPER_MS,
				    &wire_stats_msg, &msg);
	}
	if (r >= 0)
		return &m->job;
	err_sys(e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
	free(m);
	return NULL;
}
