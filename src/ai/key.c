/*
 * Keys from the vault: one for each ticket of the api's, for the host that was reached.
 * When the channel is lost everything that waits for it fails; the keeper brings another.
 */
#include <errno.h>

#include "ai.h"
#include "fd.h"
#include "log.h"
#include "wire_gen.h"
#include "poison.h"

#define VALUE_MAX (128u * 1024)

static void answer(struct key_wait *w, struct view body, const struct err *e)
{
	struct arena a = { .max = VALUE_MAX, .secret = true };
	struct wire_vault_revealed m = { 0 };
	struct err bad = { 0 };

	if (!e && pb_decode(&wire_vault_revealed_msg, body, 0, &a, &m) < 0) {
		err_set(&bad, ERR_INTERNAL, "the vault's answer cannot be read");
		e = &bad;
	}
	list_del(&w->link);
	w->done(w, e ? VIEW("") : m.value, e);
	arena_done(&a);
}

static void fail_all(struct ai *h)
{
	struct err e = { 0 };

	err_set(&e, ERR_UNAVAILABLE, "the vault cannot be reached");
	while (!list_empty(&h->key_waits))
		answer(CONTAINER(h->key_waits.next, struct key_wait, link), VIEW(""), &e);
}

static void on_frame(struct link *l, const struct frame *f, int fd)
{
	struct ai *h = CONTAINER(l, struct ai, vault);
	struct err e = { 0 };

	fd_close(fd);
	if (f->kind != FRAME_REPLY && f->kind != FRAME_FAIL)
		return;
	LIST_EACH (it, &h->key_waits) {
		struct key_wait *w = CONTAINER(it, struct key_wait, link);
		if (w->stream != f->stream)
			continue;
		if (f->kind == FRAME_FAIL)
			link_read_fail(f, &e);
		answer(w, f->body, f->kind == FRAME_FAIL ? &e : NULL);
		return;
	}
}

static void on_closed(struct link *l, int error)
{
	(void)error;
	link_stop(l);
	fail_all(CONTAINER(l, struct ai, vault));
}

static const struct link_ops ops = { .on_frame = on_frame, .on_closed = on_closed };

void key_open(struct ai *h, int fd)
{
	link_stop(&h->vault);
	fail_all(h);
	int r = link_start(&h->vault, h->loop, fd, false, &ops);
	if (r < 0)
		log_error("the vault's channel: %s", strerror(-r));
	else
		h->vault.in.secret = h->vault.out.secret = true;
}

int key_ask(struct ai *h, struct key_wait *w, struct view ticket, struct view host)
{
	struct wire_vault_redeem m = { .ticket = ticket, .host = host };

	if (!link_open(&h->vault))
		return -ENOTCONN;
	w->stream = ++h->key_stream;
	int r = link_send_msg(&h->vault, WIRE_TYPE_VAULT_REDEEM, FRAME_CALL, 0, w->stream, AI_CONNECT_MS,
			      &wire_vault_redeem_msg, &m);
	if (r >= 0)
		list_append(&h->key_waits, &w->link);
	return r;
}

void key_forget(struct key_wait *w)
{
	list_del(&w->link);
}
