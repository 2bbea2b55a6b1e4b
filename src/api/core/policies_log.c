/*
 * The gate's verdicts: the newest of each box in memory, and a line each in the log. See
 * policies.h. What stands in a verdict was said by the box: it is bounded by the gate, cut
 * here, and quoted where it is written.
 */
#include <stdlib.h>

#include "clock.h"
#include "core_state.h"
#include "log.h"
#include "policies.h"
#include "text.h"
#include "wire_gen.h"
#include "poison.h"

#define TEXT_MAX   256 /* of each part */
#define LINES_MAX  50  /* of the audit, of one box in a second */

static const char *const reason_names[] = {
	[WIRE_GATE_REASON_NONE] = "none",
	[WIRE_GATE_REASON_RULE] = "rule",
	[WIRE_GATE_REASON_NO_RULE] = "no_rule",
	[WIRE_GATE_REASON_NO_POLICY] = "no_policy",
	[WIRE_GATE_REASON_ADDRESS] = "address",
	[WIRE_GATE_REASON_MISMATCH] = "mismatch",
	[WIRE_GATE_REASON_NO_NAME] = "no_name",
	[WIRE_GATE_REASON_UNRESOLVED] = "unresolved",
	[WIRE_GATE_REASON_LIMIT] = "limit",
	[WIRE_GATE_REASON_MALFORMED] = "malformed",
	[WIRE_GATE_REASON_TOKEN] = "token",
	[WIRE_GATE_REASON_UNREACHABLE] = "unreachable",
	[WIRE_GATE_REASON_ECH] = "ech",
};

const char *policies_reason_name(int reason)
{
	return reason >= 0 && (size_t)reason < ELEMS(reason_names) ? reason_names[reason] : "other";
}

/* ---- advice ---- */

static void put_address(struct buf *out, struct view address)
{
	bool v6 = memchr(address.p, ':', address.n) != NULL;

	buf_printf(out, v6 ? "[%.*s]/128" : "%.*s/32", VIEW_ARG(address));
}

static bool below(struct view host, struct view domain)
{
	return host.n > domain.n && view_eq_nocase(view_skip(host, host.n - domain.n), domain);
}

/* Whether the installation refuses it: no rule of the box's helps then. The gate does not say so of names
 * that it does not resolve. */
static bool is_refused(const struct core *c, const struct policy_verdict *v)
{
	const struct egress_policy *p = &c->policies.refuse;

	for (size_t i = 0; v->host.n && i < p->n_rules; i++) {
		struct view host = p->rules[i].host;

		if (view_is(host, "*") || view_eq_nocase(host, v->host) ||
		    (view_starts(host, "*.") && below(v->host, view_skip(host, 1))))
			return true;
	}
	return view_is(v->rule, "refuse");
}

bool policies_advice(const struct core *c, const struct policy_verdict *v, struct buf *out)
{
	bool by_policy = v->reason == WIRE_GATE_REASON_RULE || v->reason == WIRE_GATE_REASON_NO_RULE ||
			 v->reason == WIRE_GATE_REASON_NO_POLICY;
	bool by_address = v->reason == WIRE_GATE_REASON_ADDRESS || v->reason == WIRE_GATE_REASON_NO_NAME ||
			  v->reason == WIRE_GATE_REASON_ECH;
	struct arena tmp = ARENA_INIT(4096);
	struct egress_rule r;

	buf_clear(out);
	if (v->allowed || is_refused(c, v))
		return false;
	if (by_policy && v->host.n)
		buf_add(out, v->host);
	else if ((by_policy || by_address) && v->address.n)
		put_address(out, v->address);
	if (buf_len(out) && v->port && !view_is(v->protocol, "dns"))
		buf_printf(out, ":%u", v->port);
	/* The words are the box's: what is no target is no advice. */
	bool ok = !out->bad && buf_len(out) && egress_target(&tmp, buf_view(out), NULL, &r, NULL) >= 0;
	arena_done(&tmp);
	if (!ok)
		buf_clear(out);
	return ok;
}

/* ---- the audit ---- */

static void put_quoted(struct buf *b, const char *key, struct view v)
{
	if (!v.n)
		return;
	buf_printf(b, " %s=", key);
	text_quote(b, v, TEXT_MAX);
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
	if (policies_advice(b->core, v, &advice))
		put_quoted(&line, "allow", buf_view(&advice));
	log_info("%.*s", VIEW_ARG(buf_view(&line)));
	buf_done(&line);
	buf_done(&advice);
}

/* A box that knocks on every door shall not fill the machine's log. */
static void audit(struct box *b, const struct policy_verdict *v)
{
	struct policy_log *l = &b->egress.log;
	uint64_t now = clock_mono_ms();

	if (now - l->line_ms >= 1000) {
		if (l->silent)
			log_info("egress box=%s: %llu more verdicts in the second before", b->id,
				 (unsigned long long)l->silent);
		l->line_ms = now;
		l->lines = l->silent = 0;
	}
	if (++l->lines <= LINES_MAX)
		write_line(b, v);
	else
		l->silent++;
}

/* ---- the ring ---- */

static char *keep(char *at, struct view from, struct view *to)
{
	struct view v = view_head(from, TEXT_MAX);

	v.n = v.n < from.n ? text_utf8_prefix(v) : v.n;
	if (v.n)
		memcpy(at, v.p, v.n);
	*to = (struct view){ at, v.n };
	return at + v.n;
}

static struct policy_verdict *verdict_new(struct core *c, const struct wire_gate_verdict *w)
{
	const struct view parts[] = { w->protocol, w->name, w->address, w->rule, w->method, w->path, w->via };
	size_t size = 0;

	for (size_t i = 0; i < ELEMS(parts); i++)
		size += MIN(parts[i].n, (size_t)TEXT_MAX);
	struct policy_verdict *v = calloc(1, sizeof(*v) + size);
	if (!v)
		return NULL;
	v->id = ++c->policies.next_id;
	v->at_ms = w->time_ms;
	v->allowed = w->allowed;
	v->reason = w->reason;
	v->port = (uint16_t)MIN(w->port, UINT16_MAX);
	struct view *const to[] = { &v->protocol, &v->host, &v->address, &v->rule, &v->method, &v->path, &v->via };
	char *at = v->text;
	for (size_t i = 0; i < ELEMS(parts); i++)
		at = keep(at, parts[i], to[i]);
	return v;
}

static void put(struct policy_log *l, struct policy_verdict *v)
{
	if (!l->ring)
		l->ring = calloc(POLICIES_LOG, sizeof(*l->ring));
	if (!l->ring) {
		free(v);
		return;
	}
	if (l->n == POLICIES_LOG) {
		free(l->ring[l->head]);
		l->head = (l->head + 1) % POLICIES_LOG;
		l->n--;
	}
	l->ring[(l->head + l->n++) % POLICIES_LOG] = v;
}

void policies_log_add(struct core *c, const void *verdicts)
{
	const struct wire_gate_verdicts *all = verdicts;

	if (all->dropped)
		log_warn("egress: %llu verdicts were dropped by the gate", (unsigned long long)all->dropped);
	for (size_t i = 0; i < all->verdicts.n; i++) {
		const struct wire_gate_verdict *w = &all->verdicts.items[i];
		struct box *b = boxes_by_id(c, w->box);
		struct policy_verdict *v = b && !b->hidden && !b->pooled ? verdict_new(c, w) : NULL;

		if (w->allowed)
			c->stats.egress_allowed++;
		else
			c->stats.egress_denied++;
		if (!v)
			continue;
		audit(b, v);
		put(&b->egress.log, v);
	}
}

const struct policy_verdict *policies_next(const struct box *b, uint64_t after)
{
	const struct policy_log *l = &b->egress.log;
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (l->ring[(l->head + mid) % POLICIES_LOG]->id <= after)
			low = mid + 1;
		else
			high = mid;
	}
	return low < l->n ? l->ring[(l->head + low) % POLICIES_LOG] : NULL;
}

void policies_log_done(struct policy_log *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->ring[(l->head + i) % POLICIES_LOG]);
	free(l->ring);
	*l = (struct policy_log){ 0 };
}
