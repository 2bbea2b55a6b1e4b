/*
 * Fetches keys from the vault: one for each ticket of the api, for the host that was reached. When the
 * channel is lost, everything that waits for it fails; the keeper passes another channel.
 */
#include <errno.h>

#include "ai.h"
#include "fd.h"
#include "log.h"
#include "wire_gen.h"
#include "poison.h"

#define VALUE_MAX (128u * 1024)

static int on_reply(struct call *call, const struct frame *f, int fd)
{
	struct key_wait *w = CONTAINER(call, struct key_wait, call);
	struct arena a = { .max = VALUE_MAX, .secret = true };
	struct wire_vault_revealed m = { 0 };
	struct err bad = { 0 };

	fd_close(fd);
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	if (mux_reply(call, f, &wire_vault_revealed_msg, &a, &m) < 0) {
		err_set(&bad, ERR_INTERNAL, "the vault's answer cannot be read");
		w->done(w, VIEW(""), &bad);
	} else {
		w->done(w, m.value, NULL);
	}
	arena_done(&a);
	return 0;
}

static void on_fail(struct call *call, const struct err *e)
{
	struct key_wait *w = CONTAINER(call, struct key_wait, call);

	w->done(w, VIEW(""), e);
}

static const struct call_ops call_ops = { .on_reply = on_reply, .on_fail = on_fail };

static void stop(struct ai *h)
{
	struct err e = { 0 };

	err_set(&e, ERR_UNAVAILABLE, "the vault cannot be reached");
	mux_stop(&h->vault, &e);
}

static void on_closed(struct mux *m, const struct err *why)
{
	(void)why; /* the keeper says it */
	stop(CONTAINER(m, struct ai, vault));
}

/* What was not asked for is nothing to us. */
static void on_event(struct mux *m, const struct frame *f)
{
	(void)m;
	(void)f;
}

static const struct mux_ops ops = { .on_event = on_event, .on_closed = on_closed };

void key_open(struct ai *h, int fd)
{
	stop(h);
	int r = mux_start(&h->vault, h->loop, fd, false, &ops);
	if (r < 0)
		log_error("the vault's channel: %s", strerror(-r));
	else
		mux_keep_secret(&h->vault);
}

int key_ask(struct ai *h, struct key_wait *w, struct view ticket, struct view host)
{
	struct wire_vault_redeem m = { .ticket = ticket, .host = host };

	w->call.ops = &call_ops;
	return mux_call(&h->vault, &w->call, WIRE_TYPE_VAULT_REDEEM, AI_CONNECT_MS, 0, &wire_vault_redeem_msg,
			&m);
}

void key_forget(struct key_wait *w)
{
	mux_cancel(&w->call);
}
