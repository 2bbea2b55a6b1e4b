/*
 * Tickets: see tickets.h.
 */
#include "tickets.h"

#include <errno.h>
#include <stdlib.h>

#include "rnd.h"
#include "poison.h"

#define HOST_MAX 255
#define NAME_LEN 64

void tickets_init(struct tickets *t)
{
	*t = (struct tickets){ 0 };
	list_init(&t->all);
}

void tickets_free(struct ticket *t)
{
	free(t);
}

static void drop(struct tickets *t, struct ticket *one)
{
	list_del(&one->link);
	t->n--;
	tickets_free(one);
}

void tickets_done(struct tickets *t)
{
	LIST_EACH (it, &t->all)
		drop(t, CONTAINER(it, struct ticket, link));
}

/* They all live as long: the first are the ones that are over. */
static void drop_old(struct tickets *t, uint64_t now_ms)
{
	while (!list_empty(&t->all)) {
		struct ticket *one = CONTAINER(t->all.next, struct ticket, link);
		if (one->until_ms > now_ms)
			return;
		drop(t, one);
	}
}

static struct view put(char **at, struct view v)
{
	struct view copy = { *at, v.n };

	if (v.n)
		memcpy(*at, v.p, v.n);
	*at += v.n;
	return copy;
}

int tickets_add(struct tickets *t, const struct tickets_what *what, uint64_t now_ms, char ret_id[TICKETS_ID])
{
	if (!what->tenant.n || what->tenant.n > NAME_LEN || what->box.n > NAME_LEN || !what->secret.n ||
	    what->secret.n > NAME_LEN || !what->host.n || what->host.n > HOST_MAX)
		return -EINVAL;
	drop_old(t, now_ms);
	if (t->n >= TICKETS_MAX)
		return -ENOSPC;
	struct ticket *one =
		malloc(sizeof(*one) + what->tenant.n + what->box.n + what->secret.n + what->host.n);
	if (!one)
		return -ENOMEM;
	char *at = one->text;
	one->what = (struct tickets_what){ put(&at, what->tenant), put(&at, what->box),
					   put(&at, what->secret), put(&at, what->host) };
	one->until_ms = now_ms + TICKETS_MS;
	list_init(&one->link);
	rnd_bytes(one->id, sizeof(one->id));
	list_append(&t->all, &one->link);
	t->n++;
	memcpy(ret_id, one->id, TICKETS_ID);
	return 0;
}

struct ticket *tickets_take(struct tickets *t, struct view id, uint64_t now_ms)
{
	drop_old(t, now_ms);
	LIST_EACH (it, &t->all) {
		struct ticket *one = CONTAINER(it, struct ticket, link);
		if (id.n != TICKETS_ID || memcmp(one->id, id.p, TICKETS_ID) != 0)
			continue;
		list_del(&one->link);
		t->n--;
		return one;
	}
	return NULL;
}

void tickets_remove_box(struct tickets *t, struct view box)
{
	LIST_EACH (it, &t->all) {
		struct ticket *one = CONTAINER(it, struct ticket, link);
		if (view_eq(one->what.box, box))
			drop(t, one);
	}
}
