/*
 * What can be asked of the vault, and by whom: the table at the end. Who asks is known
 * by the channel, which the keeper made.
 */
#include <errno.h>
#include <stdlib.h>

#include "fd.h"
#include "log.h"
#include "text.h"
#include "vault.h"
#include "wire_gen.h"
#include "poison.h"

#define CALL_MEMORY (16u * 1024 * 1024)
#define REPLY_MAX   (2u * 1024 * 1024)
#define PEERS_MAX   8
#define READ_MAX    (512u * 1024) /* of values at once: memory that is locked is scarce */

struct peer {
	struct link link;
	struct vault *vault;
	struct list node;
	int32_t role;
	struct loop_task freeing;
};

struct vault_call {
	struct vault *v;
	struct peer *peer;
	const struct frame *f;
	struct arena arena; /* secret */
};

static int reply(struct vault_call *c, const struct pb_msg *m, const void *msg)
{
	(void)!link_send_msg(&c->peer->link, c->f->type, FRAME_REPLY, FRAME_LAST, c->f->stream, 0, m, msg);
	return 0;
}

/* ---- secrets ---- */

static int check_owner(struct view tenant, struct view box, struct err *e)
{
	if (tenant.n < 1 || tenant.n > SEAL_NAME || box.n > SEAL_NAME)
		return err_set(e, ERR_INVALID, "not a tenant or not a sandbox");
	return 0;
}

static int describe(struct vault_call *c, const struct shelf_secret *s, struct wire_secret_info *ret)
{
	*ret = (struct wire_secret_info){ .name = s->name, .notes = buf_view(&s->notes) };
	ret->versions.items = arena_array(&c->arena, s->n, sizeof(*ret->versions.items));
	if (!ret->versions.items)
		return -ENOMEM;
	for (; ret->versions.n < s->n; ret->versions.n++)
		ret->versions.items[ret->versions.n] =
			(struct wire_secret_version){ s->versions[ret->versions.n].version,
						      s->versions[ret->versions.n].created_ms };
	return 0;
}

static struct wire_secret_total total_of(const struct vault_call *c, struct view tenant)
{
	const struct shelf_total has = shelf_total(&c->v->shelf, tenant);

	return (struct wire_secret_total){ .tenant = tenant, .secrets = has.secrets, .bytes = has.bytes };
}

static int call_put(struct vault_call *c, const void *msg, struct err *e)
{
	const struct wire_secret_put *m = msg;
	struct wire_secret_info info;

	if (check_owner(m->tenant, m->box, e) < 0)
		return -1;
	if (m->box.n && !grants_box(&c->v->grants, m->box))
		return err_set(e, ERR_NOT_FOUND, "no such sandbox");
	const struct shelf_total most = { .secrets = m->max_secrets, .bytes = m->max_bytes };
	const struct shelf_new w = { m->tenant, m->box, m->name, m->value, m->has_notes ? &m->notes : NULL };
	const struct shelf_secret *s = shelf_put(&c->v->shelf, &w, &most, e);
	if (!s)
		return -1;
	if (describe(c, s, &info) < 0)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "secret");
	struct wire_secret_total total = total_of(c, m->tenant);
	return reply(c, &wire_secret_put_reply_msg,
		     &(struct wire_secret_put_reply){ .info = &info, .total = &total });
}

static int by_name(const void *a, const void *b)
{
	struct view x = ((const struct wire_secret_info *)a)->name,
		    y = ((const struct wire_secret_info *)b)->name;
	int r = memcmp(x.p, y.p, MIN(x.n, y.n));
	return r ? r : x.n < y.n ? -1 : x.n > y.n;
}

static int call_list(struct vault_call *c, const void *msg, struct err *e)
{
	const struct wire_secret_list *m = msg;
	struct wire_secret_list_reply out = { 0 };
	size_t n = 0;

	if (check_owner(m->tenant, m->box, e) < 0)
		return -1;
	for (int round = 0; round < 2; round++) {
		LIST_EACH (it, &c->v->shelf.all) {
			const struct shelf_secret *s = CONTAINER(it, struct shelf_secret, link);
			if (!view_eq(s->tenant, m->tenant) || !view_eq(s->box, m->box))
				continue;
			if (round == 0)
				n++;
			else if (describe(c, s, &out.secrets.items[out.secrets.n++]) < 0)
				return err_sys(e, ERR_INTERNAL, ENOMEM, "list of secrets");
		}
		if (round == 0)
			out.secrets.items = arena_array(&c->arena, n, sizeof(*out.secrets.items));
		if (!out.secrets.items)
			return err_sys(e, ERR_INTERNAL, ENOMEM, "list of secrets");
	}
	qsort(out.secrets.items, out.secrets.n, sizeof(*out.secrets.items), by_name);
	return reply(c, &wire_secret_list_reply_msg, &out);
}

static int unknown(struct view name, struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, "there is no secret %.*s", VIEW_ARG(view_head(name, SEAL_NAME)));
}

static int call_remove(struct vault_call *c, const void *msg, struct err *e)
{
	const struct wire_secret_remove *m = msg;
	const struct shelf_secret *s = shelf_find(&c->v->shelf, m->tenant, m->box, m->name);

	if (!s)
		return unknown(m->name, e);
	if (shelf_remove(&c->v->shelf, s, e) < 0)
		return -1;
	struct wire_secret_total total = total_of(c, m->tenant);
	return reply(c, &wire_secret_removed_msg, &(struct wire_secret_removed){ .total = &total });
}

/* The box's own before the tenant's. */
static int read_value(struct vault_call *c, struct view tenant, struct view box, struct view name,
		      uint32_t version, struct buf *out, struct err *e)
{
	const struct shelf_secret *s = box.n ? shelf_find(&c->v->shelf, tenant, box, name) : NULL;

	s = s ? s : shelf_find(&c->v->shelf, tenant, VIEW(""), name);
	return s ? shelf_read(&c->v->shelf, s, version, out, e) : unknown(name, e);
}

static int call_read(struct vault_call *c, const void *msg, struct err *e)
{
	const struct wire_secret_read *m = msg;
	struct wire_secret_read_reply out = { 0 };

	out.values.items = arena_array(&c->arena, m->wishes.n, sizeof(*out.values.items));
	if (check_owner(m->tenant, m->box, e) < 0)
		return -1;
	size_t bytes = 0;
	for (; out.values.items && out.values.n < m->wishes.n; out.values.n++) {
		const struct wire_secret_wish *w = &m->wishes.items[out.values.n];
		_cleanup_(buf_done) struct buf value = { .max = SEAL_VALUE, .secret = true };
		if (read_value(c, m->tenant, m->box, w->name, w->version, &value, e) < 0)
			return -1;
		bytes += buf_len(&value);
		struct view copy = bytes <= READ_MAX ? arena_view(&c->arena, buf_view(&value)) : VIEW_NONE;
		if (!copy.p)
			break;
		out.values.items[out.values.n] = copy;
	}
	if (out.values.n < m->wishes.n)
		return err_set(e, ERR_TOO_LARGE, "the secrets are larger than %u bytes together", READ_MAX);
	return reply(c, &wire_secret_read_reply_msg, &out);
}

/* ---- the vault itself ---- */

static int call_rotate(struct vault_call *c, const void *msg, struct err *e)
{
	char id[2 * SEAL_KEY_ID + 1];
	unsigned n;

	(void)msg;
	if (master_rotate(c->v, &n, e) < 0)
		return -1;
	text_hex(c->v->keys.key[0].id, SEAL_KEY_ID, id);
	log_info("the master key is a new one, %s; %u secrets were sealed again", id, n);
	return reply(c, &wire_vault_rotated_msg,
		     &(struct wire_vault_rotated){ .key = view_of(id), .resealed = n });
}

static int put_box(struct vault_call *c, const struct wire_vault_box *b, struct err *e)
{
	int r = b ? grants_put(&c->v->grants, b) : -EINVAL;
	return r < 0 ? err_sys(e, ERR_INVALID, r, "what a sandbox may have") : 0;
}

static void drop_boxes_without_grants(struct vault *v)
{
	LIST_EACH (it, &v->shelf.all) {
		const struct shelf_secret *s = CONTAINER(it, struct shelf_secret, link);
		struct err e = { 0 };
		if (s->box.n && !grants_box(&v->grants, s->box) && shelf_remove(&v->shelf, s, &e) < 0)
			log_error("%s", e.msg);
	}
}

static bool has_total(const struct wire_vault_synced *out, struct view tenant)
{
	for (size_t i = 0; i < out->totals.n; i++)
		if (view_eq(out->totals.items[i].tenant, tenant))
			return true;
	return false;
}

static int collect_totals(struct vault_call *c, struct wire_vault_synced *out)
{
	size_t n = 0;

	LIST_EACH (it, &c->v->shelf.all)
		n++;
	out->totals.items = arena_array(&c->arena, n, sizeof(*out->totals.items));
	if (!out->totals.items)
		return -ENOMEM;
	LIST_EACH (it, &c->v->shelf.all) {
		const struct shelf_secret *s = CONTAINER(it, struct shelf_secret, link);
		if (!has_total(out, s->tenant))
			out->totals.items[out->totals.n++] = total_of(c, s->tenant);
	}
	return 0;
}

static int call_sync(struct vault_call *c, const void *msg, struct err *e)
{
	const struct wire_vault_sync *m = msg;

	grants_done(&c->v->grants);
	grants_init(&c->v->grants);
	tickets_done(&c->v->tickets); /* whoever asked for them is gone */
	for (size_t i = 0; i < m->boxes.n; i++)
		if (put_box(c, &m->boxes.items[i], e) < 0)
			return -1;
	drop_boxes_without_grants(c->v);
	struct wire_vault_synced out = { 0 };
	if (collect_totals(c, &out) < 0)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "totals of secrets");
	return reply(c, &wire_vault_synced_msg, &out);
}

static int call_box(struct vault_call *c, const void *msg, struct err *e)
{
	const struct wire_vault_box_put *m = msg;

	if (put_box(c, m->box, e) < 0)
		return -1;
	return reply(c, &wire_vault_box_put_reply_msg, &(struct wire_vault_box_put_reply){ 0 });
}

/* Whose secrets the box has; VIEW_NONE: it has none. */
static struct view tenant_of(const struct shelf *s, struct view box)
{
	LIST_EACH (it, &s->all)
		if (view_eq(CONTAINER(it, struct shelf_secret, link)->box, box))
			return CONTAINER(it, struct shelf_secret, link)->tenant;
	return VIEW_NONE;
}

static int call_box_remove(struct vault_call *c, const void *msg, struct err *e)
{
	const struct wire_vault_box_remove *m = msg;

	(void)e;
	const struct view tenant = tenant_of(&c->v->shelf, m->id);
	char kept[SEAL_NAME + 1];
	bool had = tenant.p && view_to_str(tenant, kept, sizeof(kept)) >= 0; /* it goes with its secrets */
	grants_remove(&c->v->grants, m->id);
	tickets_remove_box(&c->v->tickets, m->id);
	shelf_remove_box(&c->v->shelf, m->id);
	struct wire_secret_total total = had ? total_of(c, view_of(kept)) : (struct wire_secret_total){ 0 };
	return reply(c, &wire_vault_box_removed_msg,
		     &(struct wire_vault_box_removed){ .total = had ? &total : NULL });
}

static int call_ca(struct vault_call *c, const void *msg, struct err *e)
{
	_cleanup_(buf_done) struct buf pem = BUF_INIT(REPLY_MAX);

	(void)msg;
	int r = ca_pem(&c->v->ca, &pem);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "the authority");
	return reply(c, &wire_vault_ca_reply_msg, &(struct wire_vault_ca_reply){ .pem = buf_view(&pem) });
}

/* ---- the gate ---- */

static int not_granted(struct err *e)
{
	return err_set(e, ERR_FORBIDDEN, "the policy of the sandbox does not allow this");
}

static int call_leaf(struct vault_call *c, const void *msg, struct err *e)
{
	const struct wire_vault_leaf *m = msg;
	_cleanup_(buf_done) struct buf leaf = BUF_INIT(REPLY_MAX), authority = BUF_INIT(REPLY_MAX);

	if (ca_sign(&c->v->ca, m->host, m->public_key, &leaf, e) < 0)
		return -1;
	int r = ca_der(&c->v->ca, &authority);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "the authority");
	return reply(c, &wire_vault_leaf_reply_msg,
		     &(struct wire_vault_leaf_reply){ .certificate = buf_view(&leaf),
						      .authority = buf_view(&authority) });
}

static int call_reveal(struct vault_call *c, const void *msg, struct err *e)
{
	const struct wire_vault_reveal *m = msg;
	const struct grants_box *b = grants_box(&c->v->grants, m->box);
	_cleanup_(buf_done) struct buf value = { .max = SEAL_VALUE, .secret = true };

	if (!b || !grants_allows(b, m->secret, m->host))
		return not_granted(e);
	if (read_value(c, b->tenant, b->id, m->secret, 0, &value, e) < 0)
		return -1;
	return reply(c, &wire_vault_revealed_msg, &(struct wire_vault_revealed){ .value = buf_view(&value) });
}

/* ---- paddock-ai ---- */

/* That the secret is missing is said here, where the client hears of it; its value is read when it is
 * fetched. */
static int call_lend(struct vault_call *c, const void *msg, struct err *e)
{
	const struct wire_vault_lend *m = msg;
	const struct shelf *shelf = &c->v->shelf;
	char ticket[TICKETS_ID];

	if (check_owner(m->tenant, m->box, e) < 0)
		return -1;
	if (!shelf_find(shelf, m->tenant, m->box, m->secret) &&
	    !shelf_find(shelf, m->tenant, VIEW(""), m->secret))
		return unknown(m->secret, e);
	int r = tickets_add(&c->v->tickets, &(struct tickets_what){ m->tenant, m->box, m->secret, m->host },
			    loop_now(c->v->loop), ticket);
	if (r < 0)
		return err_sys(e, r == -EINVAL ? ERR_INVALID : ERR_UNAVAILABLE, r, "the key cannot be lent");
	return reply(c, &wire_vault_lent_msg,
		     &(struct wire_vault_lent){ .ticket = { ticket, sizeof(ticket) } });
}

static int call_redeem(struct vault_call *c, const void *msg, struct err *e)
{
	const struct wire_vault_redeem *m = msg;
	struct ticket *t = tickets_take(&c->v->tickets, m->ticket, loop_now(c->v->loop));
	_cleanup_(buf_done) struct buf value = { .max = SEAL_VALUE, .secret = true };
	int r = -1;

	/* It is used up whatever comes of it. */
	if (!t || !view_eq_nocase(t->what.host, m->host))
		err_set(e, ERR_FORBIDDEN, "the key was not lent for this");
	else
		r = read_value(c, t->what.tenant, t->what.box, t->what.secret, 0, &value, e);
	tickets_free(t);
	return r < 0 ? -1
		     : reply(c, &wire_vault_revealed_msg,
			     &(struct wire_vault_revealed){ .value = buf_view(&value) });
}

static const struct {
	const struct pb_msg *request;
	int (*fn)(struct vault_call *c, const void *msg, struct err *e);
	int32_t role;
} calls[] = {
	[WIRE_TYPE_SECRET_PUT] = { &wire_secret_put_msg, call_put, WIRE_VAULT_ROLE_API },
	[WIRE_TYPE_SECRET_LIST] = { &wire_secret_list_msg, call_list, WIRE_VAULT_ROLE_API },
	[WIRE_TYPE_SECRET_REMOVE] = { &wire_secret_remove_msg, call_remove, WIRE_VAULT_ROLE_API },
	[WIRE_TYPE_SECRET_READ] = { &wire_secret_read_msg, call_read, WIRE_VAULT_ROLE_API },
	[WIRE_TYPE_VAULT_ROTATE] = { &wire_vault_rotate_msg, call_rotate, WIRE_VAULT_ROLE_API },
	[WIRE_TYPE_VAULT_SYNC] = { &wire_vault_sync_msg, call_sync, WIRE_VAULT_ROLE_API },
	[WIRE_TYPE_VAULT_BOX] = { &wire_vault_box_put_msg, call_box, WIRE_VAULT_ROLE_API },
	[WIRE_TYPE_VAULT_BOX_REMOVE] = { &wire_vault_box_remove_msg, call_box_remove, WIRE_VAULT_ROLE_API },
	[WIRE_TYPE_VAULT_CA] = { &wire_vault_ca_msg, call_ca, WIRE_VAULT_ROLE_API },
	[WIRE_TYPE_VAULT_LEAF] = { &wire_vault_leaf_msg, call_leaf, WIRE_VAULT_ROLE_GATE },
	[WIRE_TYPE_VAULT_REVEAL] = { &wire_vault_reveal_msg, call_reveal, WIRE_VAULT_ROLE_GATE },
	[WIRE_TYPE_VAULT_LEND] = { &wire_vault_lend_msg, call_lend, WIRE_VAULT_ROLE_API },
	[WIRE_TYPE_VAULT_REDEEM] = { &wire_vault_redeem_msg, call_redeem, WIRE_VAULT_ROLE_AI },
};

/* ---- peers ---- */

static int run(struct vault_call *c, struct err *e)
{
	uint16_t type = c->f->type;
	const struct pb_msg *m =
		type < ELEMS(calls) && calls[type].role == c->peer->role ? calls[type].request : NULL;

	if (!m)
		return err_set(e, ERR_UNSUPPORTED, "the vault does not know call %u", type);
	if (c->v->locked.code) {
		*e = c->v->locked;
		return -1;
	}
	void *msg = arena_alloc(&c->arena, m->size);
	if (!msg || pb_decode(m, c->f->body, 0, &c->arena, msg) < 0)
		return err_set(e, ERR_INVALID, "not a message of call %u", type);
	return calls[type].fn(c, msg, e);
}

static void on_frame(struct link *l, const struct frame *f, int fd)
{
	struct peer *p = CONTAINER(l, struct peer, link);
	struct vault_call c = {
		.v = p->vault, .peer = p, .f = f, .arena = { .max = CALL_MEMORY, .secret = true }
	};
	struct err e = { 0 };

	fd_close(fd);
	if (f->kind != FRAME_CALL)
		return; /* CANCEL: it was answered already */
	if (run(&c, &e) < 0)
		(void)!link_fail(l, f->type, f->stream, &e);
	arena_done(&c.arena);
}

static void run_free(struct loop_task *t)
{
	free(CONTAINER(t, struct peer, freeing));
}

static void on_closed(struct link *l, int error)
{
	struct peer *p = CONTAINER(l, struct peer, link);

	(void)error;
	link_stop(l);
	list_del(&p->node);
	loop_defer(p->vault->loop, &p->freeing, run_free);
}

static const struct link_ops ops = { .on_frame = on_frame, .on_closed = on_closed };

void calls_accept(struct vault *v, int32_t role, int fd)
{
	struct peer *p = calloc(1, sizeof(*p));
	int n = 0;

	LIST_EACH (it, &v->peers)
		n++;
	if (!p || n >= PEERS_MAX || role < WIRE_VAULT_ROLE_API || role > WIRE_VAULT_ROLE_AI) {
		fd_close(fd);
		free(p);
		return;
	}
	p->vault = v;
	p->role = role;
	list_init(&p->node);
	list_init(&p->freeing.link);
	int r = link_start(&p->link, v->loop, fd, false, &ops);
	if (r < 0) {
		log_error("a peer's channel: %s", strerror(-r));
		free(p);
		return;
	}
	p->link.in.secret = p->link.out.secret = true;
	list_append(&v->peers, &p->node);
}
