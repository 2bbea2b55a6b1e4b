/*
 * Secrets: see secrets.h. Each operation is one call to the vault.
 */
#include "secrets.h"

#include <errno.h>
#include <stdlib.h>

#include "audit.h"
#include "boxes.h"
#include "core_base.h"
#include "fd.h"
#include "keys.h"
#include "labels.h"
#include "ledger.h"
#include "vault.h"
#include "wire_gen.h"
#include "poison.h"

#define REPLY_MAX (16u * 1024 * 1024)

struct op;

/* The vault's answer in the core's own form; NULL: it does not fit, or there is no memory. */
typedef const void *tell(struct arena *a, const void *msg);

struct op {
	struct job job;
	struct call call;
	const struct pb_msg *reply;
	struct core *core;
	tell *tell; /* NULL: there is nothing to tell */
};

static bool take_info(struct arena *a, const struct wire_secret_info *w, struct secret_info *ret)
{
	*ret = (struct secret_info){ .name = w->name,
				     .versions = arena_array(a, w->versions.n, sizeof(*ret->versions)) };
	for (; ret->versions && ret->n_versions < w->versions.n; ret->n_versions++)
		ret->versions[ret->n_versions] =
			(struct secret_version){ w->versions.items[ret->n_versions].version,
						 w->versions.items[ret->n_versions].created_ms };
	return ret->versions && labels_read(a, w->notes, &ret->metadata) >= 0;
}

static const void *tell_put(struct arena *a, const void *msg)
{
	const struct wire_secret_put_reply *w = msg;
	struct secret_info *info = w->info ? arena_alloc(a, sizeof(*info)) : NULL;

	return info && take_info(a, w->info, info) ? info : NULL;
}

static const void *tell_list(struct arena *a, const void *msg)
{
	const struct wire_secret_list_reply *w = msg;
	struct secret_list *l = arena_alloc(a, sizeof(*l));

	if (!l || !(l->secrets = arena_array(a, w->secrets.n, sizeof(*l->secrets))))
		return NULL;
	for (l->n = 0; l->n < w->secrets.n; l->n++)
		if (!take_info(a, &w->secrets.items[l->n], &l->secrets[l->n]))
			return NULL;
	return l;
}

static const void *tell_rotated(struct arena *a, const void *msg)
{
	const struct wire_vault_rotated *w = msg;
	struct secret_rotation *r = arena_alloc(a, sizeof(*r));

	if (r)
		*r = (struct secret_rotation){ w->key, w->resealed };
	return r;
}

static const void *tell_authority(struct arena *a, const void *msg)
{
	return &((const struct wire_vault_ca_reply *)msg)->pem;
}

static const void *tell_values(struct arena *a, const void *msg)
{
	const struct wire_secret_read_reply *w = msg;
	struct secret_values *v = arena_alloc(a, sizeof(*v));

	if (v)
		*v = (struct secret_values){ w->values.items, w->values.n };
	return v;
}

static const void *tell_lent(struct arena *a, const void *msg)
{
	return &((const struct wire_vault_lent *)msg)->ticket;
}

static int on_reply(struct call *call, const struct frame *f, int fd)
{
	struct op *op = CONTAINER(call, struct op, call);
	struct arena a = { .max = REPLY_MAX, .secret = true };
	void *msg = arena_alloc(&a, op->reply->size);
	int r = !(f->flags & FRAME_LAST) ? -EBADMSG
		: msg                    ? mux_decode(call, f->body, op->reply, &a, msg)
					 : -ENOMEM;

	fd_close(fd);
	if (r >= 0) {
		if (op->reply == &wire_secret_put_reply_msg)
			vault_total(op->core, ((const struct wire_secret_put_reply *)msg)->total);
		else if (op->reply == &wire_secret_removed_msg)
			vault_total(op->core, ((const struct wire_secret_removed *)msg)->total);
		const void *result = op->tell ? op->tell(&a, msg) : NULL;
		struct err bad = { 0 };
		if (op->tell && !result)
			err_set(&bad, ERR_INTERNAL, "the vault's answer does not fit");
		job_finish(&op->job, result, bad.code ? &bad : NULL);
		free(op);
	}
	arena_done(&a);
	return r;
}

static void on_fail(struct call *call, const struct err *e)
{
	struct op *op = CONTAINER(call, struct op, call);
	job_finish(&op->job, NULL, e);
	free(op);
}

static const struct call_ops ops = { .on_reply = on_reply, .on_fail = on_fail };

/* What is asked, and the form of the answer. */
struct question {
	uint16_t type;
	const struct pb_msg *request, *reply;
	const void *msg;
	tell *tell;
};

static struct job *ask(struct core *c, const struct question *q, job_done *done, void *arg, struct err *e)
{
	struct op *op = calloc(1, sizeof(*op));

	if (!op) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "secret");
		return NULL;
	}
	op->job = (struct job){ .done = done, .arg = arg };
	op->reply = q->reply;
	op->core = c;
	op->tell = q->tell;
	op->call.ops = &ops;
	if (vault_call(c, &op->call, q->type, q->request, q->msg, e) < 0) {
		free(op);
		return NULL;
	}
	return &op->job;
}

/* Whose: the tenant's id and the box's. */
struct owner {
	struct view tenant, box;
};

static int find_owner(struct core *c, const struct actor *a, struct view ref, struct owner *ret,
		      struct err *e)
{
	if (!ref.p) {
		if (auth_permit(a, ACT_SECRETS, NULL, e) < 0)
			return -1;
		*ret = (struct owner){ view_of(a->tenant->id), VIEW("") };
		return 0;
	}
	struct box *b = boxes_find(c, a, ACT_BOX_SECRETS, ref, e);
	if (!b)
		return -1;
	*ret = (struct owner){ view_of(b->tenant->id), view_of(b->id) };
	return 0;
}

static int check_name(struct view name, struct err *e)
{
	if (!spec_secrets_is_name(name))
		return err_set(e, ERR_INVALID,
			       "a secret's name has 1 to 64 of [A-Za-z0-9_.-] and begins with a letter or an "
			       "underscore");
	return 0;
}

struct job *secrets_put(struct core *c, const struct actor *a, const struct secret_place *p,
			struct view value, job_done *done, void *arg, struct err *e)
{
	_cleanup_(buf_done) struct buf notes = BUF_INIT(LABELS_NOTES);
	struct owner o;

	if (find_owner(c, a, p->box, &o, e) < 0 || check_name(p->name, e) < 0 ||
	    (p->metadata && labels_write(p->metadata, &notes, e) < 0))
		return NULL;
	if (value.n < 1 || value.n > SECRETS_VALUE) {
		err_set(e, ERR_INVALID, "value must have 1 to %u bytes", SECRETS_VALUE);
		return NULL;
	}
	audit_about(c, a, p->name);
	if (o.box.n) /* the vault keeps secrets only for boxes that it knows */
		vault_box_changed(boxes_by_id(c, o.box));
	struct wire_secret_put msg = { .tenant = o.tenant,
				       .box = o.box,
				       .name = p->name,
				       .value = value,
				       .notes = buf_view(&notes),
				       .has_notes = p->metadata };
	const struct tenant *t = keys_tenant(c, o.tenant);
	const struct account *account = t ? ledger_account(c, t) : NULL;
	if (!account) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "secret");
		return NULL;
	}
	/* The vault has the files and compares; two that come at once cannot both take the last place. */
	msg.max_secrets = ledger_most(c, account, LEDGER_SECRETS);
	msg.max_bytes = ledger_most(c, account, LEDGER_SECRETS_KB) << 10;
	return ask(c,
		   &(struct question){ WIRE_TYPE_SECRET_PUT, &wire_secret_put_msg, &wire_secret_put_reply_msg,
				       &msg, tell_put },
		   done, arg, e);
}

struct job *secrets_list(struct core *c, const struct actor *a, const struct secret_place *p, job_done *done,
			 void *arg, struct err *e)
{
	struct owner o;

	if (find_owner(c, a, p->box, &o, e) < 0)
		return NULL;
	struct wire_secret_list msg = { .tenant = o.tenant, .box = o.box };
	return ask(c,
		   &(struct question){ WIRE_TYPE_SECRET_LIST, &wire_secret_list_msg,
				       &wire_secret_list_reply_msg, &msg, tell_list },
		   done, arg, e);
}

struct job *secrets_remove(struct core *c, const struct actor *a, const struct secret_place *p,
			   job_done *done, void *arg, struct err *e)
{
	struct owner o;

	if (find_owner(c, a, p->box, &o, e) < 0 || check_name(p->name, e) < 0)
		return NULL;
	audit_about(c, a, p->name);
	struct wire_secret_remove msg = { .tenant = o.tenant, .box = o.box, .name = p->name };
	return ask(c,
		   &(struct question){ WIRE_TYPE_SECRET_REMOVE, &wire_secret_remove_msg,
				       &wire_secret_removed_msg, &msg },
		   done, arg, e);
}

struct job *secrets_rotate(struct core *c, const struct actor *a, job_done *done, void *arg, struct err *e)
{
	struct wire_vault_rotate msg = { 0 };

	if (auth_permit(a, ACT_VAULT, NULL, e) < 0)
		return NULL;
	return ask(c,
		   &(struct question){ WIRE_TYPE_VAULT_ROTATE, &wire_vault_rotate_msg,
				       &wire_vault_rotated_msg, &msg, tell_rotated },
		   done, arg, e);
}

struct job *secrets_authority(struct core *c, const struct actor *a, job_done *done, void *arg, struct err *e)
{
	struct wire_vault_ca msg = { 0 };

	if (a && auth_permit(a, ACT_SECRETS, NULL, e) < 0)
		return NULL;
	return ask(c,
		   &(struct question){ WIRE_TYPE_VAULT_CA, &wire_vault_ca_msg, &wire_vault_ca_reply_msg, &msg,
				       tell_authority },
		   done, arg, e);
}

static struct job *read_values(struct core *c, const struct owner *o, const struct spec_secrets *list,
			       job_done *done, void *arg, struct err *e)
{
	struct wire_secret_wish wishes[SPEC_SECRETS_MAX];
	struct wire_secret_read msg = { .tenant = o->tenant, .box = o->box, .wishes = { wishes, list->n } };

	for (size_t i = 0; i < list->n; i++)
		wishes[i] = (struct wire_secret_wish){ .name = list->items[i].name,
						       .version = list->items[i].version };
	return ask(c,
		   &(struct question){ WIRE_TYPE_SECRET_READ, &wire_secret_read_msg,
				       &wire_secret_read_reply_msg, &msg, tell_values },
		   done, arg, e);
}

struct job *secrets_read(struct core *c, const struct actor *a, struct view box,
			 const struct spec_secrets *list, job_done *done, void *arg, struct err *e)
{
	struct owner o;

	return find_owner(c, a, box, &o, e) < 0 ? NULL : read_values(c, &o, list, done, arg, e);
}

struct job *secrets_read_for(struct box *b, const struct spec_secrets *list, job_done *done, void *arg,
			     struct err *e)
{
	const struct owner o = { view_of(b->tenant->id), view_of(b->id) };

	return read_values(b->in->core, &o, list, done, arg, e);
}

struct job *secrets_lend(struct box *b, struct view name, struct view host, job_done *done, void *arg,
			 struct err *e)
{
	struct wire_vault_lend msg = {
		.tenant = view_of(b->tenant->id), .box = view_of(b->id), .secret = name, .host = host
	};

	return ask(b->in->core,
		   &(struct question){ WIRE_TYPE_VAULT_LEND, &wire_vault_lend_msg, &wire_vault_lent_msg, &msg,
				       tell_lent },
		   done, arg, e);
}
