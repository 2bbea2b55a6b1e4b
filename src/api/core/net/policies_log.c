/*
 * The gate's verdicts: the newest of each box, in memory and in the store. See policies.h. The text of
 * a verdict comes from the box: the gate bounds it, it is cut here, and quoted where it is written.
 *
 * Verdicts are stored a moment later, many at once, and one batch at a time. Verdicts that a burst has
 * pushed out of memory by then are never written. Killing this process loses the verdicts of that
 * moment.
 */
#include <stdlib.h>

#include "index.h"
#include "boxes.h"
#include "clock.h"
#include "core_base.h"
#include "host_match.h"
#include "ledger.h"
#include "log.h"
#include "policies.h"
#include "text.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define TEXT_MAX  256 /* of each part */
#define JOIN_LOOK 32  /* of the newest: what is as one of them is said again */
#define SAVE_MS   200
#define SAVE_MOST 2048 /* at once */
#define GONE_MAX  (8u * (POLICIES_LOG_ALL + SAVE_MOST))

static const char *const reason_names[] = {
	[WIRE_GATE_REASON_NONE] = "none",       [WIRE_GATE_REASON_RULE] = "rule",
	[WIRE_GATE_REASON_NO_RULE] = "no_rule", [WIRE_GATE_REASON_NO_POLICY] = "no_policy",
	[WIRE_GATE_REASON_ADDRESS] = "address", [WIRE_GATE_REASON_MISMATCH] = "mismatch",
	[WIRE_GATE_REASON_NO_NAME] = "no_name", [WIRE_GATE_REASON_UNRESOLVED] = "unresolved",
	[WIRE_GATE_REASON_LIMIT] = "limit",     [WIRE_GATE_REASON_MALFORMED] = "malformed",
	[WIRE_GATE_REASON_TOKEN] = "token",     [WIRE_GATE_REASON_UNREACHABLE] = "unreachable",
	[WIRE_GATE_REASON_ECH] = "ech",         [WIRE_GATE_REASON_SECRET] = "secret",
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

/* Whether the installation refuses it: no rule of the box's helps then. The gate does not say so of names
 * that it does not resolve. */
static bool is_refused(const struct core *c, const struct policy_verdict *v)
{
	const struct egress_policy *p = &c->policies->refuse;

	for (size_t i = 0; i < p->n_rules; i++)
		if (host_match(p->rules[i].host, v->host))
			return true;
	return view_is(v->rule, "refuse");
}

bool policies_advice(const struct core *c, const struct policy_verdict *v, struct buf *out)
{
	bool by_policy = v->reason == WIRE_GATE_REASON_RULE || v->reason == WIRE_GATE_REASON_NO_RULE ||
			 v->reason == WIRE_GATE_REASON_NO_POLICY;
	/* DNS tells such an address only by a rule that has both, name and network, and a target has one. */
	bool by_address = (v->reason == WIRE_GATE_REASON_ADDRESS && !view_is(v->protocol, "dns")) ||
			  v->reason == WIRE_GATE_REASON_NO_NAME || v->reason == WIRE_GATE_REASON_ECH;
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

/* ---- what is kept ---- */

static size_t gather(const struct policy_verdict *v, struct view ret[7])
{
	const struct view parts[] = { v->protocol, v->host, v->address, v->rule, v->method, v->path, v->via };

	memcpy(ret, parts, sizeof(parts));
	return ELEMS(parts);
}

static char *keep(char *at, struct view from, struct view *to)
{
	struct view v = view_head(from, TEXT_MAX);

	v.n = v.n < from.n ? text_utf8_prefix(v) : v.n;
	if (v.n)
		memcpy(at, v.p, v.n);
	*to = (struct view){ at, v.n };
	return at + v.n;
}

/* A copy with the words in it. */
static struct policy_verdict *verdict_new(const struct policy_verdict *like)
{
	struct view parts[7];
	size_t n = gather(like, parts), size = 0;

	for (size_t i = 0; i < n; i++)
		size += MIN(parts[i].n, (size_t)TEXT_MAX);
	struct policy_verdict *v = calloc(1, sizeof(*v) + size);
	if (!v)
		return NULL;
	memcpy(v, like, sizeof(*v));
	list_init(&v->of_box);
	list_init(&v->of_all);
	struct view *const to[] = { &v->protocol, &v->host, &v->address, &v->rule,
				    &v->method,   &v->path, &v->via };
	char *at = v->text;
	for (size_t i = 0; i < n; i++)
		at = keep(at, parts[i], to[i]);
	return v;
}

static bool same(const struct policy_verdict *a, const struct policy_verdict *b)
{
	struct view x[7], y[7];
	size_t n = gather(a, x);

	if (a->allowed != b->allowed || a->reason != b->reason || a->port != b->port)
		return false;
	gather(b, y);
	for (size_t i = 0; i < n; i++)
		if (!view_eq(x[i], y[i]))
			return false;
	return true;
}

static void row_goes(struct core *c, uint64_t id)
{
	if (id)
		(void)!buf_append(&c->policies->logs.gone, &id, sizeof(id));
}

static void take_out(struct policy_verdict *v)
{
	list_del(&v->of_box);
	list_del(&v->of_all);
	v->box->in->egress->log.n--;
	v->box->in->core->policies->logs.n--;
	ledger_count(v->box->in->core, v->box->tenant, LEDGER_VERDICTS, -1);
}

static void put_last(struct policy_verdict *v)
{
	struct policy_log *l = &v->box->in->egress->log;

	if (!l->verdicts.next)
		list_init(&l->verdicts);
	list_append(&l->verdicts, &v->of_box);
	list_append(&v->box->in->core->policies->logs.verdicts, &v->of_all);
	l->n++;
	v->box->in->core->policies->logs.n++;
	ledger_count(v->box->in->core, v->box->tenant, LEDGER_VERDICTS, 1);
}

static void drop(struct policy_verdict *v)
{
	row_goes(v->box->in->core, v->stored ? v->id : v->was);
	take_out(v);
	free(v);
}

/* The log of the box with the most, of the tenant with the most. */
static struct policy_log *find_longest(const struct core *c)
{
	const struct tenant *most = ledger_largest(c, LEDGER_VERDICTS);
	struct policy_log *found = NULL;

	LIST_EACH (it, &c->boxes->all) {
		const struct box *b = BOX_OF(it, order);
		struct policy_log *l = &b->in->egress->log;
		if (b->tenant == most && l->n && (!found || l->n > found->n))
			found = l;
	}
	return found;
}

/* Its own oldest makes room for a box's newest; where all have too many, that of who has the most. */
static void make_room(struct core *c, struct policy_log *l)
{
	struct policy_log *longest;

	while (l->n >= POLICIES_LOG)
		drop(CONTAINER(l->verdicts.next, struct policy_verdict, of_box));
	while (c->policies->logs.n >= c->policies->logs.most && (longest = find_longest(c)))
		drop(CONTAINER(longest->verdicts.next, struct policy_verdict, of_box));
}

static struct policy_verdict *said_before(const struct policy_log *l, const struct policy_verdict *v)
{
	size_t looked = 0;

	if (!l->n)
		return NULL;
	for (struct list *it = l->verdicts.prev; it != &l->verdicts && looked < JOIN_LOOK;
	     it = it->prev, looked++)
		if (same(CONTAINER(it, struct policy_verdict, of_box), v))
			return CONTAINER(it, struct policy_verdict, of_box);
	return NULL;
}

static void on_save(struct loop_timer *t);

static void save_later(struct core *c)
{
	struct policy_logs *ls = &c->policies->logs;

	if (!ls->saving && !loop_timer_active(&ls->save) && !c->stopping)
		loop_timer_start(c->loop, &ls->save, SAVE_MS, on_save);
}

static void add(struct core *c, struct policy_verdict *like)
{
	struct policy_log *l = &like->box->in->egress->log;
	struct policy_verdict *v = said_before(l, like);

	if (v) {
		take_out(v);
		if (v->stored)
			v->was = v->id;
		v->stored = false;
		v->at_ms = like->at_ms;
		v->count++;
	} else {
		v = verdict_new(like);
		if (!v)
			return;
		v->count = 1;
		v->first_ms = v->at_ms;
		make_room(c, l);
	}
	v->id = c->policies->logs.next_id = clock_stamp(c->policies->logs.next_id);
	put_last(v);
	save_later(c);
}

void policies_log_add(struct core *c, const void *verdicts)
{
	const struct wire_gate_verdicts *all = verdicts;

	if (all->dropped)
		log_warn("egress: %llu verdicts were dropped by the gate", (unsigned long long)all->dropped);
	for (size_t i = 0; i < all->verdicts.n; i++) {
		const struct wire_gate_verdict *w = &all->verdicts.items[i];
		struct box *b = boxes_by_id(c, w->box);
		struct policy_verdict v = { .box = b,
					    .at_ms = w->time_ms,
					    .allowed = w->allowed,
					    .reason = w->reason,
					    .port = (uint16_t)MIN(w->port, UINT16_MAX),
					    .protocol = w->protocol,
					    .host = w->name,
					    .address = w->address,
					    .rule = w->rule,
					    .method = w->method,
					    .path = w->path,
					    .via = w->via };

		if (w->allowed)
			c->stats.egress_allowed++;
		else
			c->stats.egress_denied++;
		if (!b || b->in->hidden || b->in->pooled)
			continue;
		policies_audit(b, &v);
		add(c, &v);
	}
}

const struct policy_verdict *policies_next(const struct box *b, uint64_t after)
{
	const struct policy_log *l = &b->in->egress->log;
	const struct policy_verdict *found = NULL;

	if (!l->n)
		return NULL;
	for (struct list *it = l->verdicts.prev; it != &l->verdicts; it = it->prev) {
		const struct policy_verdict *v = CONTAINER(it, struct policy_verdict, of_box);

		if (v->id <= after)
			break;
		found = v;
	}
	return found;
}

/* ---- the store ---- */

static void on_saved(void *arg, const struct err *e)
{
	struct core *c = arg;
	struct policy_logs *ls = &c->policies->logs;

	core_store_result(c, e);
	ls->saving = false;
	if (ls->saved < ls->next_id || buf_len(&ls->gone))
		save_later(c);
}

static void put_row(struct core *c, struct policy_verdict *v, store_done *done)
{
	const struct store_verdict row = {
		.id = v->id,
		.was = v->was,
		.count = v->count,
		.first_ms = v->first_ms,
		.at_ms = v->at_ms,
		.reason = (uint32_t)v->reason,
		.port = v->port,
		.allowed = v->allowed,
		.box = view_of(v->box->id),
		.protocol = v->protocol,
		.host = v->host,
		.address = v->address,
		.rule = v->rule,
		.method = v->method,
		.path = v->path,
		.via = v->via,
	};

	v->stored = true;
	v->was = 0;
	c->policies->logs.saved = v->id;
	store_verdict_put(c->store, &row, done, c);
}

/* Those that the store does not have are the newest: an id is given anew to what is said again. */
static void save(struct core *c, size_t most)
{
	struct policy_logs *ls = &c->policies->logs;
	struct list *it = &ls->verdicts;
	size_t n = 0;

	while (it->prev != &ls->verdicts &&
	       CONTAINER(it->prev, struct policy_verdict, of_all)->id > ls->saved)
		it = it->prev;
	for (; it != &ls->verdicts && n < most; it = it->next, n++)
		put_row(c, CONTAINER(it, struct policy_verdict, of_all), core_store_done);
	if (it == &ls->verdicts)
		ls->saved = ls->next_id; /* the newest may be gone with its box */
	ls->saving = true;
	/* The last of the batch, and of the transaction; of no rows, too. */
	store_verdict_delete(c->store, buf_view(&ls->gone), on_saved, c);
	buf_clear(&ls->gone);
}

static void on_save(struct loop_timer *t)
{
	save(CONTAINER(t, struct policies, logs.save)->core, SAVE_MOST);
}

void policies_log_load(struct core *c, const struct store_verdict *row)
{
	struct policy_logs *ls = &c->policies->logs;
	struct policy_verdict *v, like = {
		.box = boxes_by_id(c, row->box),
		.id = row->id,
		.count = row->count,
		.first_ms = row->first_ms,
		.at_ms = row->at_ms,
		.stored = true,
		.allowed = row->allowed,
		.reason = (int)row->reason,
		.port = row->port,
		.protocol = row->protocol,
		.host = row->host,
		.address = row->address,
		.rule = row->rule,
		.method = row->method,
		.path = row->path,
		.via = row->via,
	};

	if (!like.box || !(v = verdict_new(&like))) {
		row_goes(c, row->id);
		return;
	}
	make_room(c, &like.box->in->egress->log);
	put_last(v);
	ls->saved = ls->next_id = MAX(ls->next_id, row->id);
}

/* ---- life ---- */

void policies_log_init(struct core *c)
{
	struct policy_logs *ls = &c->policies->logs;

	list_init(&ls->verdicts);
	buf_init(&ls->gone, GONE_MAX);
	ls->most = POLICIES_LOG_ALL;
	ls->saved = ls->next_id = clock_stamp(0);
}

/* Its rows go with the box's, or stay with it for the next start. */
void policies_log_forget(struct box *b)
{
	struct policy_log *l = &b->in->egress->log;

	while (l->n) {
		struct policy_verdict *v = CONTAINER(l->verdicts.next, struct policy_verdict, of_box);

		take_out(v);
		free(v);
	}
	policies_audit_forget(b);
}

void policies_log_stop(struct core *c)
{
	struct policy_logs *ls = &c->policies->logs;

	policies_audit_stop(c);
	loop_timer_stop(&ls->save);
	if (ls->saved < ls->next_id || buf_len(&ls->gone))
		save(c, POLICIES_LOG_ALL);
}
