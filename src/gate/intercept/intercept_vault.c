/*
 * The gate's end of its channel to the vault. A call is a stream with who waits for it;
 * when the channel is lost everything that waits fails.
 */
#include <errno.h>
#include <stdlib.h>

#include "fd.h"
#include "intercept.h"
#include "log.h"
#include "wire_gen.h"
#include "poison.h"

#define ANSWER_MAX (256u * 1024)
#define WAIT_MS    10000

struct wait {
	struct list link;
	struct flow *flow; /* NULL: nobody any more */
	uint32_t stream;
	uint32_t request; /* of the flow that asked: its stream of HTTP/2, or 0 */
	uint16_t type;
	char name[PLACE_NAME + 1];
};

static void answer(struct gate *g, struct wait *w, struct view body, const struct err *e)
{
	struct arena a = { .max = ANSWER_MAX, .secret = true };
	struct err bad = { 0 };
	struct flow *f = w->flow;
	struct wire_vault_leaf_reply leaf = { 0 };
	struct wire_vault_revealed value = { 0 };
	int r = e                                 ? 0
		: w->type == WIRE_TYPE_VAULT_LEAF ? pb_decode(&wire_vault_leaf_reply_msg, body, 0, &a, &leaf)
						  : pb_decode(&wire_vault_revealed_msg, body, 0, &a, &value);

	(void)g;
	if (r < 0) {
		err_set(&bad, ERR_INTERNAL, "the vault's answer cannot be read");
		e = &bad;
	}
	list_del(&w->link);
	if (f && w->type == WIRE_TYPE_VAULT_LEAF)
		intercept_leaf(f, leaf.certificate, leaf.authority, e);
	else if (f && f->intercept && w->request)
		intercept_h2_revealed(f->intercept, w->request, w->name, value.value, e);
	else if (f && f->intercept)
		intercept_http_revealed(f->intercept, w->name, value.value, e);
	free(w);
	arena_done(&a);
}

static void fail_all(struct gate *g)
{
	struct err e = { 0 };

	err_set(&e, ERR_UNAVAILABLE, "the vault cannot be reached");
	while (!list_empty(&g->vault_waits))
		answer(g, CONTAINER(g->vault_waits.next, struct wait, link), VIEW(""), &e);
}

static void on_frame(struct link *l, const struct frame *f, int fd)
{
	struct gate *g = CONTAINER(l, struct gate, vault);
	struct err e = { 0 };

	fd_close(fd);
	if (f->kind != FRAME_REPLY && f->kind != FRAME_FAIL)
		return;
	LIST_EACH (it, &g->vault_waits) {
		struct wait *w = CONTAINER(it, struct wait, link);
		if (w->stream != f->stream)
			continue;
		if (f->kind == FRAME_FAIL)
			link_read_fail(f, &e);
		answer(g, w, f->body, f->kind == FRAME_FAIL ? &e : NULL);
		return;
	}
}

static void on_closed(struct link *l, int error)
{
	struct gate *g = CONTAINER(l, struct gate, vault);

	(void)error;
	link_stop(l);
	fail_all(g);
}

const struct link_ops intercept_vault_ops = { .on_frame = on_frame, .on_closed = on_closed };

void intercept_vault_open(struct gate *g, int fd)
{
	link_stop(&g->vault);
	fail_all(g);
	int r = link_start(&g->vault, g->loop, fd, false, &intercept_vault_ops);
	if (r < 0)
		log_error("the vault's channel: %s", strerror(-r));
	else
		g->vault.in.secret = g->vault.out.secret = true;
}

static int ask(struct flow *f, uint16_t type, uint32_t request, const char *name, const struct pb_msg *pm,
	       const void *msg)
{
	struct gate *g = f->box->gate;

	if (!link_open(&g->vault))
		return -ENOTCONN;
	struct wait *w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->flow = f;
	w->type = type;
	w->request = request;
	w->stream = ++g->vault_stream;
	(void)!view_to_str(view_of(name), w->name, sizeof(w->name));
	list_append(&g->vault_waits, &w->link);
	int r = link_send_msg(&g->vault, type, FRAME_CALL, 0, w->stream, WAIT_MS, pm, msg);
	if (r < 0) {
		list_del(&w->link);
		free(w);
	}
	return r;
}

int intercept_vault_leaf(struct flow *f, struct view public_key)
{
	struct wire_vault_leaf msg = { .box = view_of(f->box->id),
				       .host = view_of(f->name),
				       .public_key = public_key };

	return ask(f, WIRE_TYPE_VAULT_LEAF, 0, "", &wire_vault_leaf_msg, &msg);
}

int intercept_vault_reveal(struct flow *f, uint32_t stream, const char *name)
{
	struct wire_vault_reveal msg = { .box = view_of(f->box->id),
					 .host = view_of(f->name),
					 .secret = view_of(name) };

	return ask(f, WIRE_TYPE_VAULT_REVEAL, stream, name, &wire_vault_reveal_msg, &msg);
}

void intercept_vault_forget(struct flow *f)
{
	LIST_EACH (it, &f->box->gate->vault_waits) {
		struct wait *w = CONTAINER(it, struct wait, link);
		if (w->flow == f)
			w->flow = NULL;
	}
}
