/*
 * Mounting secrets: see mounts.h.
 */
#include "mounts.h"

#include <errno.h>
#include <stdlib.h>

#include "boxes.h"
#include "core_base.h"
#include "fd.h"
#include "guest.h"
#include "policies.h"
#include "secrets.h"
#include "trust.h"
#include "wire_gen.h"
#include "poison.h"

#define PATIENCE_MS   10000
#define AUTHORITY_MAX (64u * 1024)

struct mounts {
	struct box *box;
	struct job *reading;
	struct call call;
	struct buf authority; /* PEM; empty: it is not to be trusted */
	void (*done)(struct box *b, const struct err *e);
	void (*trusted)(void *arg, const struct err *e); /* instead */
	void *arg;
};

static void finish(struct mounts *m, const struct err *e)
{
	struct box *b = m->box;
	const struct mounts was = *m;
	struct err copy = { 0 };

	if (e) {
		copy = *e;
		err_wrap(&copy, "secrets");
	} else if (buf_len(&m->authority))
		b->in->trusts = true;
	b->in->mounts = NULL;
	buf_done(&m->authority);
	free(m);
	if (was.trusted)
		was.trusted(was.arg, e ? &copy : NULL);
	else
		was.done(b, e ? &copy : NULL);
}

static int on_set(struct call *c, const struct frame *f, int fd)
{
	fd_close(fd);
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	finish(CONTAINER(c, struct mounts, call), NULL);
	return 0;
}

static void on_set_fail(struct call *c, const struct err *said)
{
	struct err e = { 0 };
	guest_read_fail(said, &e);
	finish(CONTAINER(c, struct mounts, call), &e);
}

static const struct call_ops set_ops = { .on_reply = on_set, .on_fail = on_set_fail };

static int hand_over(struct mounts *m, const struct secret_values *values, struct err *e)
{
	const struct spec_secrets *list = &m->box->spec.secrets;
	struct guest *g = m->box->in->guest;
	struct wire_secret_file files[SPEC_SECRETS_MAX];
	struct wire_env_var env[SPEC_SECRETS_MAX];
	struct wire_secrets_set msg = { .user = m->box->spec.user,
					.files.items = files,
					.env.items = env,
					.authority = buf_view(&m->authority) };

	if ((values ? values->n : 0) != list->n)
		return err_set(e, ERR_INTERNAL, "the vault's answer does not fit");
	for (size_t i = 0; i < list->n; i++) {
		struct view value = values->values[i];
		if (list->items[i].file.n)
			files[msg.files.n++] = (struct wire_secret_file){ list->items[i].file, value };
		else if (memchr(value.p, 0, value.n))
			return err_set(e, ERR_INVALID, "%.*s holds a NUL and cannot be a variable",
				       VIEW_ARG(list->items[i].name));
		else
			env[msg.env.n++] = (struct wire_env_var){ list->items[i].env, value };
	}
	guest_is_secret(g);
	m->call = (struct call){ .ops = &set_ops, .background = true };
	return guest_call(g, &m->call, WIRE_TYPE_SECRETS_SET, PATIENCE_MS, PATIENCE_MS, &wire_secrets_set_msg,
			  &msg, e);
}

static void on_values(void *arg, const void *result, const struct err *e)
{
	struct mounts *m = arg;
	struct err failed = { 0 };

	m->reading = NULL;
	if (e)
		failed = *e;
	else if (hand_over(m, result, &failed) == 0)
		return;
	finish(m, &failed);
}

static void read_secrets(struct mounts *m)
{
	struct err e = { 0 };

	if (m->box->spec.secrets.n) {
		m->reading = secrets_read_for(m->box, &m->box->spec.secrets, on_values, m, &e);
		if (!m->reading)
			finish(m, &e);
	} else if (hand_over(m, NULL, &e) < 0) {
		finish(m, &e);
	}
}

static void on_authority(void *arg, const void *result, const struct err *e)
{
	struct mounts *m = arg;
	const struct view *pem = result;
	struct err failed = { 0 };

	m->reading = NULL;
	if (e)
		failed = *e;
	else if (buf_add(&m->authority, *pem) < 0)
		err_sys(&failed, ERR_INTERNAL, ENOMEM, "authority");
	if (failed.code)
		finish(m, &failed);
	else
		read_secrets(m);
}

static struct mounts *begin(struct box *b)
{
	struct mounts *m = calloc(1, sizeof(*m));

	if (m) {
		*m = (struct mounts){ .box = b, .authority = BUF_INIT(AUTHORITY_MAX) };
		b->in->mounts = m;
	}
	return m;
}

static void go(struct mounts *m, bool trust)
{
	struct err e = { 0 };

	if (!trust) {
		read_secrets(m);
		return;
	}
	struct view known = trust_pem(m->box->in->core);
	if (known.n && buf_add(&m->authority, known) == 0) {
		read_secrets(m);
		return;
	}
	m->reading = secrets_authority(m->box->in->core, NULL, on_authority, m, &e);
	if (!m->reading)
		finish(m, &e);
}

void mounts_apply(struct box *b, void (*done)(struct box *b, const struct err *e))
{
	struct err e = { 0 };
	bool trust = !b->in->hidden && egress_opens(policies_of(b, NULL));

	b->in->trusts = false;
	trust_reset(b);
	if (!b->in->hidden)
		trust_box(b, policies_of(b, NULL));
	if (!b->spec.secrets.n && !trust) {
		done(b, NULL);
		return;
	}
	struct mounts *m = begin(b);
	if (!m) {
		err_sys(&e, ERR_INTERNAL, ENOMEM, "secrets");
		done(b, &e);
		return;
	}
	m->done = done;
	go(m, trust);
}

bool mounts_trust(struct box *b, void (*done)(void *arg, const struct err *e), void *arg)
{
	bool runs = b->state.status == BOX_RUNNING || b->state.status == BOX_CREATING;
	struct mounts *m = b->in->trusts || b->in->mounts || !runs ? NULL : begin(b);

	if (!m)
		return false;
	m->trusted = done;
	m->arg = arg;
	go(m, true);
	return true;
}

static void forget(struct box *b, const struct err *why)
{
	struct mounts *m = b->in->mounts;

	if (!m)
		return;
	struct err e = { 0 };
	job_abandon(m->reading);
	guest_cancel(&m->call);
	buf_done(&m->authority);
	if (m->trusted) {
		err_set(&e, ERR_STATE, "the sandbox is being removed");
		m->trusted(m->arg, &e);
	}
	b->in->mounts = NULL;
	free(m);
}

const struct box_part mounts_part = { .forget = forget };
