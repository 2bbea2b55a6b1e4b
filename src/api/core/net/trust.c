/*
 * Telling boxes of the authority: see trust.h.
 */
#include "trust.h"

#include "boxes.h"
#include "core_base.h"
#include "egress.h"
#include "fd.h"
#include "guest.h"
#include "log.h"
#include "nssdb.h"
#include "secrets.h"
#include "wire_gen.h"
#include "poison.h"

#define PATIENCE_MS 10000
#define PEM_MAX     (64u * 1024)
#define NSSDB_MAX   (256u * 1024)

/* ---- a box ---- */

static int on_told(struct call *call, const struct frame *f, int fd)
{
	fd_close(fd);
	return f->flags & FRAME_LAST ? 0 : -EBADMSG;
}

static void on_tell_fail(struct call *call, const struct err *e)
{
	struct box *b = CONTAINER(call, struct box_trust, call)->box;

	b->in->browsers->told = false;
	if (e->code != ERR_STATE && !b->in->core->stopping) /* it is being removed */
		log_warn("sandbox %s: its browsers do not trust the installation's authority: %s", b->id,
			 e->msg);
}

static const struct call_ops tell_ops = { .on_reply = on_told, .on_fail = on_tell_fail };

static void tell(struct box *b)
{
	struct wire_trust msg = { .authority = trust_pem(b->in->core),
				  .user = b->spec.user,
				  .nssdb = buf_view(&b->in->core->trust->nssdb) };
	struct err e = { 0 };

	b->in->browsers->waits = !msg.authority.n;
	if (b->in->browsers->waits || b->in->browsers->told)
		return;
	b->in->browsers->told = true;
	b->in->browsers->call = (struct call){ .ops = &tell_ops, .background = true };
	if (guest_call(b->in->guest, &b->in->browsers->call, WIRE_TYPE_TRUST, PATIENCE_MS, PATIENCE_MS,
		       &wire_trust_msg, &msg, &e) < 0)
		on_tell_fail(&b->in->browsers->call, &e);
}

void trust_box(struct box *b, const struct egress_policy *p)
{
	/* One that is being made is told when it has greeted. */
	bool early = b->in->creation && b->in->guest->state != GUEST_READY;

	if (egress_asks_names(p) && !early)
		tell(b);
}

void trust_reset(struct box *b)
{
	guest_cancel(&b->in->browsers->call);
	*b->in->browsers = (struct box_trust){ .box = b };
}

static void init(struct box *b)
{
	b->in->browsers->box = b;
}

static void forget(struct box *b, const struct err *why)
{
	trust_reset(b);
}

const struct box_part trust_part = {
	.slot = offsetof(struct box_inside, browsers),
	.size = sizeof(struct box_trust),
	.init = init,
	.forget = forget,
};

/* ---- the certificate ---- */

static void on_pem(void *arg, const void *result, const struct err *e)
{
	struct core *c = arg;
	const struct view *said = result;
	struct buf pem = BUF_INIT(PEM_MAX), nssdb = BUF_INIT(NSSDB_MAX);

	c->trust->reading = NULL;
	if (e || buf_add(&pem, *said) < 0 || nssdb_make(*said, &nssdb) < 0) {
		log_warn("the installation's authority is not known: %s", e ? e->msg : "it cannot be read");
		buf_done(&pem);
		buf_done(&nssdb);
		return;
	}
	buf_done(&c->trust->pem);
	buf_done(&c->trust->nssdb);
	c->trust->pem = pem;
	c->trust->nssdb = nssdb;
	LIST_EACH (it, &c->boxes->all) {
		struct box *b = BOX_OF(it, order);
		if (b->in->browsers->waits && b->in->guest->state != GUEST_DEAD)
			tell(b);
	}
}

void trust_refresh(struct core *c)
{
	struct err e = { 0 };

	if (!c->trust->reading)
		c->trust->reading = secrets_authority(c, NULL, on_pem, c, &e);
}

void trust_stop(struct core *c)
{
	job_abandon(TAKE_PTR(c->trust->reading));
	buf_done(&c->trust->pem);
	buf_done(&c->trust->nssdb);
}

struct view trust_pem(const struct core *c)
{
	return buf_view(&c->trust->pem);
}
