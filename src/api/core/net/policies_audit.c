/*
 * Writes a line to the log for each verdict of the gate: sandbox, destination, rule, reason. Its text
 * comes from the box, so it is bounded and quoted. See policies.h.
 *
 * A box that tries many destinations must not fill the machine's log, and neither must a thousand
 * boxes. Beyond a number of lines in a second, the others are counted and the count is written.
 */
#include "index.h"
#include "boxes.h"
#include "clock.h"
#include "core_base.h"
#include "log.h"
#include "policies.h"
#include "text.h"
#include "who.h"
#include "poison.h"

#define TEXT_MOST 256 /* of each part */
#define LINES_BOX 50  /* in a second */
#define LINES_ALL 1000
#define SECOND_MS 1000

static void put_quoted(struct buf *b, const char *key, struct view v)
{
	if (!v.n)
		return;
	buf_printf(b, " %s=", key);
	text_quote(b, v, TEXT_MOST);
}

static void write_line(const struct box *b, const struct policy_verdict *v)
{
	struct buf line = BUF_INIT(8192), advice = BUF_INIT(1024);

	buf_printf(&line, "egress %s box=%s tenant=%s reason=%s", v->allowed ? "allowed" : "denied", b->id,
		   b->tenant->id, policies_reason_name(v->reason));
	put_quoted(&line, "rule", v->rule);
	put_quoted(&line, "protocol", v->protocol);
	put_quoted(&line, "host", v->host);
	put_quoted(&line, "address", v->address);
	buf_printf(&line, " port=%u", v->port);
	put_quoted(&line, "method", v->method);
	put_quoted(&line, "path", v->path);
	put_quoted(&line, "via", v->via);
	if (policies_advice(b->in->core, v, &advice))
		put_quoted(&line, "allow", buf_view(&advice));
	log_info("%.*s", VIEW_ARG(buf_view(&line)));
	buf_done(&line);
	buf_done(&advice);
}

static bool may_write(struct policy_audit *a, uint64_t now, uint64_t most)
{
	if (now - a->since_ms >= SECOND_MS) {
		a->since_ms = now;
		a->lines = 0;
	}
	return a->lines < most;
}

static void tell(struct box *b)
{
	struct policy_audit *a = &b->in->egress->log.audit;

	if (a->left_out)
		log_info("egress left_out=%llu box=%s tenant=%s", (unsigned long long)a->left_out, b->id,
			 b->tenant->id);
	a->left_out = 0;
}

static void on_tell(struct loop_timer *t)
{
	struct core *c = CONTAINER(t, struct policies, logs.tell)->core;

	LIST_EACH (it, &c->boxes->all)
		tell(BOX_OF(it, order));
}

void policies_audit(struct box *b, const struct policy_verdict *v)
{
	struct policy_audit *own = &b->in->egress->log.audit, *all = &b->in->core->policies->logs.audit;
	struct loop_timer *timer = &b->in->core->policies->logs.tell;
	uint64_t now = clock_mono_ms();

	if (may_write(own, now, LINES_BOX) && may_write(all, now, LINES_ALL)) {
		own->lines++;
		all->lines++;
		write_line(b, v);
		return;
	}
	own->left_out++;
	if (!loop_timer_active(timer))
		loop_timer_start(b->in->core->loop, timer, SECOND_MS, on_tell);
}

void policies_audit_forget(struct box *b)
{
	tell(b);
}

void policies_audit_stop(struct core *c)
{
	if (loop_timer_active(&c->policies->logs.tell))
		on_tell(&c->policies->logs.tell);
	loop_timer_stop(&c->policies->logs.tell);
}
