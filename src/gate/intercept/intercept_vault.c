/*
 * The gate's end of its channel to the vault: certificates, and secrets for one request.
 * When the channel is lost everything that waits for it fails; the keeper brings another.
 */
#include <errno.h>
#include <stdlib.h>

#include "fd.h"
#include "intercept_impl.h"
#include "log.h"
#include "wire_gen.h"
#include "poison.h"

#define ANSWER_MAX (256u * 1024)
#define WAIT_MS    10000

struct wait {
	struct list link; /* intercept->waits */
	struct call call;
	struct intercept *ic;
	uint32_t request; /* of the connection that asked: its stream of HTTP/2, or 0 */
	char name[PLACE_NAME + 1];
};

static void answer(struct wait *w, struct view body, const struct err *e)
{
	struct arena a = { .max = ANSWER_MAX, .secret = true };
	struct err bad = { 0 };
	struct intercept *ic = w->ic;
	struct wire_vault_leaf_reply leaf = { 0 };
	struct wire_vault_revealed value = { 0 };
	bool certificate = w->call.type == WIRE_TYPE_VAULT_LEAF;
	int r = e             ? 0
		: certificate ? mux_decode(&w->call, body, &wire_vault_leaf_reply_msg, &a, &leaf)
			      : mux_decode(&w->call, body, &wire_vault_revealed_msg, &a, &value);

	if (r < 0) {
		err_set(&bad, ERR_INTERNAL, "the vault's answer cannot be read");
		e = &bad;
	}
	list_del(&w->link);
	if (certificate)
		intercept_leaf(ic->conn, leaf.certificate, leaf.authority, e);
	else if (w->request)
		intercept_h2_revealed(ic, w->request, w->name, value.value, e);
	else
		intercept_http_revealed(ic, w->name, value.value, e);
	free(w);
	arena_done(&a);
}

static int on_reply(struct call *call, const struct frame *f, int fd)
{
	fd_close(fd);
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	answer(CONTAINER(call, struct wait, call), f->body, NULL);
	return 0;
}

static void on_fail(struct call *call, const struct err *e)
{
	answer(CONTAINER(call, struct wait, call), VIEW(""), e);
}

static const struct call_ops call_ops = { .on_reply = on_reply, .on_fail = on_fail };

static void stop(struct intercepts *all)
{
	struct err e = { 0 };

	err_set(&e, ERR_UNAVAILABLE, "the vault cannot be reached");
	mux_stop(&all->vault, &e);
}

static void on_closed(struct mux *m, const struct err *why)
{
	(void)why; /* the keeper says it */
	stop(CONTAINER(m, struct intercepts, vault));
}

/* What was not asked for is nothing to us. */
static void on_event(struct mux *m, const struct frame *f)
{
	(void)m;
	(void)f;
}

static const struct mux_ops mux_ops = { .on_event = on_event, .on_closed = on_closed };

void intercept_vault_open(struct intercepts *all, int fd)
{
	stop(all);
	int r = mux_start(&all->vault, all->loop, fd, false, &mux_ops);
	if (r < 0)
		log_error("the vault's channel: %s", strerror(-r));
	else
		mux_keep_secret(&all->vault);
}

static int ask(struct intercept *ic, uint16_t type, uint32_t request, const char *name,
	       const struct pb_msg *pm, const void *msg)
{
	struct wait *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->call.ops = &call_ops;
	w->ic = ic;
	w->request = request;
	list_init(&w->link);
	(void)!view_to_str(view_of(name), w->name, sizeof(w->name));
	int r = mux_call(&ic->all->vault, &w->call, type, WAIT_MS, 0, pm, msg);
	if (r < 0)
		free(w);
	else
		list_append(&ic->waits, &w->link);
	return r;
}

int intercept_vault_leaf(struct intercept *ic, struct view public_key)
{
	struct wire_vault_leaf msg = { .box = view_of(ic->conn->box),
				       .host = view_of(ic->conn->name),
				       .public_key = public_key };

	return ask(ic, WIRE_TYPE_VAULT_LEAF, 0, "", &wire_vault_leaf_msg, &msg);
}

int intercept_vault_reveal(struct intercept *ic, uint32_t stream, const char *name)
{
	struct wire_vault_reveal msg = { .box = view_of(ic->conn->box),
					 .host = view_of(ic->conn->name),
					 .secret = view_of(name) };

	return ask(ic, WIRE_TYPE_VAULT_REVEAL, stream, name, &wire_vault_reveal_msg, &msg);
}

void intercept_forget(struct conn *c)
{
	if (!c->intercept)
		return;
	LIST_EACH (it, &c->intercept->waits) {
		struct wait *w = CONTAINER(it, struct wait, link);
		mux_cancel(&w->call);
		list_del(&w->link);
		free(w);
	}
}
