/*
 * Sessions that a box has from before this process was started: see aio_shell_adopt.
 */
#include <stdio.h>
#include <stdlib.h>

#include "aio_shell.h"
#include "box.h"
#include "clock.h"
#include "poison.h"

#define AUTOMATIC 20 /* characters of an id that we made */

/* A box whose sessions are all in the table. */
struct known {
	struct list link;
	char box[BOX_ID + 1];
};

static bool is_known(const struct aio_state *st, const char *box)
{
	LIST_EACH (it, &st->known)
		if (!strcmp(CONTAINER(it, struct known, link)->box, box))
			return true;
	return false;
}

void aio_shell_forget(struct aio_state *st, bool all)
{
	LIST_EACH (it, &st->known) {
		struct known *k = CONTAINER(it, struct known, link);
		if (!all && boxes_by_id(st->core, view_of(k->box)))
			continue;
		list_del(&k->link);
		free(k);
	}
}

static bool is_automatic(struct view id)
{
	for (size_t i = 0; i < id.n; i++)
		if (!((id.p[i] >= 'a' && id.p[i] <= 'z') || (id.p[i] >= '0' && id.p[i] <= '9')))
			return false;
	return id.n == AUTOMATIC;
}

static void add(struct request *r, const struct shell_info *i)
{
	struct view id = view_skip(i->name, strlen("aio."));
	char name[AIO_SHELL_NAME];
	struct aio_shell *s;

	if (!view_starts(i->name, "aio.") || !i->pid || view_to_str(i->name, name, sizeof(name)) < 0 ||
	    aio_shell_find(r->state, r->box, name))
		return;
	s = aio_shell_add(r, name, is_automatic(id));
	if (s)
		s->created_ms = s->used_ms = i->started_ms;
}

static void on_listed(struct shells_op *op, const struct shell_info *list, size_t n, const struct err *e)
{
	struct aio_adopt *a = CONTAINER(op, struct aio_adopt, op);
	struct aio_state *st = a->r->state;
	struct known *k = e ? NULL : calloc(1, sizeof(*k));

	if (e) {
		answer_fail(a->r, e);
		return;
	}
	for (size_t i = 0; i < n; i++)
		add(a->r, &list[i]);
	if (k) {
		memcpy(k->box, a->r->box, sizeof(k->box));
		list_append(&st->known, &k->link);
	}
	a->known = true;
	a->then(a->r);
}

bool aio_shell_adopt(struct request *r, struct aio_adopt *a, void (*then)(struct request *r))
{
	struct err e = { 0 };

	if (a->known || is_known(r->state, r->box))
		return true;
	a->r = r;
	a->then = then;
	a->op.done = on_listed;
	if (shells_list(r->core, &r->actor, view_of(r->box), VIEW_NONE, &a->op, &e) < 0)
		answer_fail(r, &e);
	return false;
}
