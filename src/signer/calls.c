/*
 * What can be asked of the signer, and by whom: the table. A peer is known by its channel, which the keeper
 * made. Calls are decided one after another, each before the next is read, so that no two decisions overlap;
 * answers wait for the disk (batch.c).
 */
#include <stdlib.h>

#include "fd.h"
#include "log.h"
#include "signer.h"
#include "wire_gen.h"

#include "poison.h"

#define CALL_MEMORY (8u * 1024 * 1024)
/* Whoever does not take so much of its answers asks for no more. Little: all memory is locked, of which there
 * may be 8 MiB. */
#define HOLD      (256u * 1024)
#define PEERS_MAX 16 /* of each role: no api, however many channels it opens, keeps the owner out */

struct peer {
	struct link link;
	struct signer *signer;
	struct list node;
	struct loop_task freeing;
	int32_t role;
};

enum { API = 1, OWNER = 2, BOTH = 3 };

static const struct call_type {
	const struct pb_msg *request;
	int (*fn)(struct signer_call *c, const void *msg, struct err *e);
	uint8_t who;
} calls[] = {
#define CALL(type, msg, function, roles)                                                                     \
	[SGN_SIGNER_TYPE_##type - SGN_SIGNER_TYPE_PEER] = { &sgn_##msg##_msg, function, roles }
	CALL(STATUS, status, items_call_status, BOTH),
	CALL(WALLET_LIST, wallet_list, wallets_call_list, BOTH),
	CALL(RULES_GET, rules_get, rules_call_get, BOTH),
	CALL(RULES_PUT, rules_put, rules_call_put, BOTH),
	CALL(PAUSE, pause, items_call_pause, BOTH),
	CALL(REQUEST, request, requests_call_ask, BOTH),
	CALL(GET, get, items_call_get, BOTH),
	CALL(LIST, list, items_call_list, BOTH),
	CALL(APPROVE, approve, requests_call_approve, BOTH),
	CALL(REJECT, reject, requests_call_reject, BOTH),
	CALL(CANCEL, cancel, requests_call_cancel, BOTH),
	CALL(SIGN, sign, sign_call, BOTH),
	CALL(REPORT, report, report_call, BOTH),
	CALL(SPENT, spent, report_call_spent, BOTH),
	CALL(AUDIT, audit, audit_call_list, BOTH),
	CALL(AUDIT_VERIFY, audit_verify, audit_call_verify, BOTH),
	CALL(WALLET_ADD, wallet_add, wallets_call_add, BOTH),
	CALL(WALLET_EXPORT, wallet_export, wallets_call_export, OWNER),
	CALL(WALLET_REMOVE, wallet_remove, wallets_call_remove, OWNER),
	CALL(SETTLE, settle, report_call_settle, OWNER),
	CALL(NONCE, nonce, nonces_call, OWNER),
	CALL(ABANDON, abandon, nonces_call_abandon, OWNER),
#undef CALL
};

static const struct call_type *find(uint16_t type, int32_t role)
{
	const size_t at = (size_t)type - SGN_SIGNER_TYPE_PEER;

	if (type < SGN_SIGNER_TYPE_PEER || at >= ELEMS(calls) || !calls[at].fn)
		return NULL;
	return calls[at].who & (role == SGN_SIGNER_ROLE_OWNER ? OWNER : API) ? &calls[at] : NULL;
}

int calls_reply(struct signer_call *c, const struct pb_msg *m, const void *msg)
{
	batch_answer(c->s, c->link,
		     &(struct frame){ .type = c->f->type,
				      .kind = FRAME_REPLY,
				      .flags = FRAME_LAST,
				      .stream = c->f->stream },
		     m, msg);
	return 0;
}

const char *calls_actor(const struct signer_call *c)
{
	return c->role == SGN_SIGNER_ROLE_OWNER ? "owner" : "api";
}

void calls_changed(struct signer_call *c, struct view id)
{
	const struct sgn_changed msg = { .id = id };

	LIST_EACH (it, &c->s->peers) {
		struct peer *p = CONTAINER(it, struct peer, node);
		if (p->role == SGN_SIGNER_ROLE_API && &p->link != c->link)
			batch_tell(c->s, &p->link, SGN_SIGNER_TYPE_CHANGED, &sgn_changed_msg, &msg);
	}
}

static int answer(struct signer_call *c, struct err *e)
{
	const struct call_type *t = find(c->f->type, c->role);

	if (!t)
		return err_set(e, ERR_UNSUPPORTED, "the signer does not know call %u", c->f->type);
	if (c->s->locked.code) {
		*e = c->s->locked;
		return -1;
	}
	void *msg = arena_alloc(&c->arena, t->request->size);
	if (!msg || pb_decode(t->request, c->f->body, 0, &c->arena, msg) < 0)
		return err_set(e, ERR_INVALID, "not a message of call %u", c->f->type);
	return t->fn(c, msg, e);
}

/* In the order of the calls, and after the commit: what is wrong may be so because of what is not on disk
 * yet.
 */
static void fail(struct signer_call *c, const struct err *e)
{
	const struct wire_fail msg = { .code = view_of(err_name(e->code == ERR_OK ? ERR_INTERNAL : e->code)),
				       .sys = e->sys > 0 ? (uint32_t)e->sys : 0,
				       .message = view_of(e->msg) };

	batch_answer(c->s, c->link,
		     &(struct frame){ .type = c->f->type, .kind = FRAME_FAIL, .stream = c->f->stream },
		     &wire_fail_msg, &msg);
}

static void on_frame(struct link *l, const struct frame *f, int fd)
{
	struct peer *p = CONTAINER(l, struct peer, link);
	struct signer_call c = { .s = p->signer, .role = p->role, .link = l, .f = f };
	struct err e = { 0 };

	fd_close(fd);
	if (f->kind != FRAME_CALL)
		return;
	c.arena = (struct arena){ .max = CALL_MEMORY, .secret = true };
	if (answer(&c, &e) < 0)
		fail(&c, &e);
	arena_done(&c.arena);
	batch_next(p->signer);
}

static void run_free(struct loop_task *t)
{
	free(CONTAINER(t, struct peer, freeing));
}

static void on_closed(struct link *l, int error)
{
	struct peer *p = CONTAINER(l, struct peer, link);

	if (error)
		log_warn("a peer's channel: %s", strerror(-error));
	list_del(&p->node);
	link_stop(l);
	loop_defer(p->signer->loop, &p->freeing, run_free);
}

static const struct link_ops ops = { .on_frame = on_frame, .on_closed = on_closed };

void calls_accept(struct signer *s, int32_t role, int fd)
{
	struct peer *p =
		role == SGN_SIGNER_ROLE_API || role == SGN_SIGNER_ROLE_OWNER ? calloc(1, sizeof(*p)) : NULL;
	unsigned n = 0;

	LIST_EACH (it, &s->peers)
		n += CONTAINER(it, struct peer, node)->role == role;
	if (!p || n >= PEERS_MAX) {
		log_warn("a peer was refused");
		free(p);
		fd_close(fd);
		return;
	}
	*p = (struct peer){ .signer = s, .role = role };
	list_init(&p->freeing.link);
	int r = link_start(&p->link, s->loop, fd, false, &ops);
	if (r < 0) {
		log_error("a peer's channel cannot be used: %s", strerror(-r));
		free(p);
		return;
	}
	p->link.hold = HOLD;
	p->link.in.secret = true;
	p->link.out.secret = true;
	list_append(&s->peers, &p->node);
}
