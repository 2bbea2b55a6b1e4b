/*
 * Sends policies to paddock-gate: see policies.h. The gate has only the policies that were sent on
 * this channel. On a new channel, every box's policy is sent, a few at a time, and then GateSynced.
 * Without a gate, nothing gets through.
 */
#include "policies.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "boxes.h"
#include "core_base.h"
#include "fd.h"
#include "images.h"
#include "index.h"
#include "keeper.h"
#include "log.h"
#include "trust.h"
#include "vault.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS    10000
#define GATE_MS      10000
#define SETTLE_MS    1000
#define AGAIN_MS     200
#define SENDING_MAX  32
#define MESSAGE_MAX  (4u * 1024 * 1024)
#define VERDICTS_MAX (8u * 1024 * 1024)

static void open_gate(struct core *c);
static void send_more(struct core *c);

/* ---- a policy as the gate wants it ---- */

static bool put_ports(struct arena *a, const struct egress_rule *r, struct wire_gate_rule *w)
{
	w->ports.items = arena_array(a, r->n_ports, sizeof(*w->ports.items));
	for (size_t i = 0; w->ports.items && i < r->n_ports; i++)
		w->ports.items[i] = (struct wire_gate_ports){ r->ports[i].first, r->ports[i].last };
	w->ports.n = r->n_ports;
	return w->ports.items != NULL;
}

static bool put_net(struct arena *a, const struct egress_net *n, struct wire_gate_rule *w)
{
	struct buf b = BUF_INIT(64);

	if (!n->family)
		return true;
	w->cidrs.items = arena_array(a, 1, sizeof(*w->cidrs.items));
	if (w->cidrs.items && egress_put_net(&b, n) >= 0)
		w->cidrs.items[0] = arena_view(a, buf_view(&b));
	w->cidrs.n = 1;
	buf_done(&b);
	return w->cidrs.items && w->cidrs.items[0].p;
}

static bool put_inject(struct arena *a, const struct egress_rule *r, struct wire_gate_rule *w)
{
	w->inject.items = arena_array(a, r->n_inject, sizeof(*w->inject.items));
	for (size_t i = 0; w->inject.items && i < r->n_inject; i++)
		w->inject.items[i] = (struct wire_gate_inject){ .secret = r->inject[i].secret,
								.header = r->inject[i].header,
								.prefix = r->inject[i].prefix,
								.query = r->inject[i].query,
								.placeholder = r->inject[i].placeholder };
	w->inject.n = r->n_inject;
	return w->inject.items != NULL;
}

static bool put_rule(struct arena *a, const struct egress_rule *r, struct view id, struct wire_gate_rule *w)
{
	static const int protocols[EGRESS_PROTOCOLS] = {
		[EGRESS_ANY] = WIRE_GATE_PROTOCOL_ANY,
		[EGRESS_TCP] = WIRE_GATE_PROTOCOL_TCP,
		[EGRESS_TLS] = WIRE_GATE_PROTOCOL_TLS,
		[EGRESS_HTTP] = WIRE_GATE_PROTOCOL_HTTP,
	};

	*w = (struct wire_gate_rule){ .id = id,
				      .action = r->verdict == EGRESS_ALLOW ? WIRE_GATE_ACTION_ALLOW
									   : WIRE_GATE_ACTION_DENY,
				      .protocol = protocols[r->protocol] };
	if (r->host.n) {
		w->domains.items = arena_array(a, 1, sizeof(*w->domains.items));
		if (!w->domains.items)
			return false;
		w->domains.items[0] = r->host;
		w->domains.n = 1;
	}
	w->methods.items = r->methods.items;
	w->methods.n = r->methods.n;
	w->paths.items = r->paths.items;
	w->paths.n = r->paths.n;
	return put_net(a, &r->net, w) && put_ports(a, r, w) && put_inject(a, r, w);
}

/* A rule is known by its place in the policy as it was written; a set is one rule. */
static struct view rule_id(struct arena *a, size_t i)
{
	char text[32];

	snprintf(text, sizeof(text), "rules[%zu]", i);
	return arena_view(a, view_of(text));
}

/* A rule with the members of its set in place of its name. */
static bool put_flat(struct arena *a, const struct egress_rule *r, const struct json *sets, struct view id,
		     size_t room, struct wire_gate_policy *w)
{
	const struct egress_policy one = { .rules = (struct egress_rule *)r, .n_rules = 1 };
	struct egress_policy flat;
	bool ok = egress_flatten(a, &one, sets, &flat, NULL) >= 0 && w->rules.n + flat.n_rules < room;

	for (size_t k = 0; ok && k < flat.n_rules; k++)
		ok = put_rule(a, &flat.rules[k], id, &w->rules.items[w->rules.n++]);
	return ok;
}

/* What is denied is denied by its usual name, too: no image takes a host out of a set that is refused to it.
 */
static int put_rules(const struct box *b, struct arena *a, const struct egress_policy *p,
		     struct wire_gate_policy *w)
{
	const struct core *c = b->in->core;
	const struct egress_policy *refuse = &c->policies->refuse;
	const struct json *sets = policies_sets(b)->sets;
	size_t room = refuse->n_rules + EGRESS_FLAT_MAX + 1;
	bool ok = true;

	w->rules.items = arena_array(a, room, sizeof(*w->rules.items));
	if (!w->rules.items)
		return -ENOMEM;
	for (size_t i = 0; ok && i < refuse->n_rules; i++)
		ok = put_rule(a, &refuse->rules[i], VIEW("refuse"), &w->rules.items[w->rules.n++]);
	for (size_t i = 0; ok && i < p->n_rules; i++) {
		const struct egress_rule *r = &p->rules[i];
		struct view id = rule_id(a, i);

		ok = id.p && put_flat(a, r, sets, id, room, w);
		if (ok && r->set.n && r->verdict == EGRESS_DENY && sets != c->images->standard.sets)
			ok = put_flat(a, r, c->images->standard.sets, id, room, w);
	}
	if (ok && p->otherwise == EGRESS_ALLOW)
		w->rules.items[w->rules.n++] =
			(struct wire_gate_rule){ .id = VIEW("default"), .action = WIRE_GATE_ACTION_ALLOW };
	return ok ? 0 : -ENOMEM;
}

/* ---- sending ---- */

struct push {
	struct call call;
	struct core *core;
	policies_sent *done; /* NULL: nobody waits */
	void *arg;
	bool counted; /* among `sending` */
	char box[BOX_ID + 1];
};

static void push_end(struct push *p, const struct err *e)
{
	struct core *c = p->core;
	bool counted = p->counted;

	if (p->done)
		p->done(p->arg, e);
	free(p);
	if (!counted)
		return;
	c->policies->sending--;
	send_more(c);
}

static int on_pushed(struct call *call, const struct frame *f, int fd)
{
	fd_close(fd);
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	push_end(CONTAINER(call, struct push, call), NULL);
	return 0;
}

static void on_push_fail(struct call *call, const struct err *e)
{
	struct push *p = CONTAINER(call, struct push, call);
	struct err copy = *e;

	if (!p->core->stopping)
		log_error("sandbox %s: the gate did not take its egress policy: %s", p->box, e->msg);
	push_end(p, &copy);
}

static const struct call_ops push_ops = { .on_reply = on_pushed, .on_fail = on_push_fail };

static int send_policy(struct push *p, const struct box *b, const struct egress_policy *policy, bool recheck)
{
	struct core *c = p->core;
	struct arena a = ARENA_INIT(MESSAGE_MAX);
	char key[POLICIES_KEY_SIZE];
	struct wire_gate_policy w = {
		.box = view_of(b->id),
		.version = ++c->policies->version,
		.max_flows = (uint32_t)policy->limits.connections,
		.bytes_per_second = policy->limits.bytes_per_second,
		.max_bytes = policy->limits.bytes,
		.connects_per_second = (uint32_t)policy->limits.connections_per_second,
		.recheck = recheck,
		.refuse_ech = policy->refuse_ech,
		.tenant = view_of(b->tenant->id),
		.used_bytes = b->in->egress->used,
	};
	int r = put_rules(b, &a, policy, &w);

	policies_token_key(b, key);
	w.token_key = view_of(key);
	vault_box_policy((struct box *)b, policy); /* before the gate can ask for anything */
	p->call.ops = &push_ops;
	if (r >= 0)
		r = mux_call(&c->policies->gate, &p->call, WIRE_TYPE_GATE_POLICY, GATE_MS, GATE_MS,
			     &wire_gate_policy_msg, &w);
	explicit_bzero(key, sizeof(key));
	arena_done(&a);
	return r;
}

int policies_push(struct box *b, const struct egress_policy *policy, bool recheck, policies_sent *done,
		  void *arg)
{
	struct core *c = b->in->core;
	struct push *p = c->policies->gate.open ? calloc(1, sizeof(*p)) : NULL;

	if (!p)
		return 0;
	*p = (struct push){ .core = c, .done = done, .arg = arg };
	memcpy(p->box, b->id, sizeof(p->box));
	int r = send_policy(p, b, policy, recheck);
	if (r < 0) {
		log_error("sandbox %s: its egress policy cannot be sent: error %d", b->id, -r);
		free(p);
		return 0;
	}
	trust_box(b, policy);
	return done ? 1 : 0;
}

bool policies_push_new(struct box *b, policies_sent *done, void *arg)
{
	const struct egress_policy *p = policies_of(b, NULL);
	bool opens = p->n_rules || p->otherwise == EGRESS_ALLOW;

	return policies_push(b, p, false, opens ? done : NULL, arg) > 0;
}

/* ---- its verdicts so far ---- */

struct settle {
	struct job job;
	struct call call;
};

static void settle_end(struct call *call)
{
	struct settle *s = CONTAINER(call, struct settle, call);

	job_finish(&s->job, NULL, NULL);
	free(s);
}

static int on_settled(struct call *call, const struct frame *f, int fd)
{
	fd_close(fd);
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	settle_end(call);
	return 0;
}

/* A gate that does not serve the box has nothing more to say of it. */
static void on_settle_fail(struct call *call, const struct err *e _unused_)
{
	settle_end(call);
}

static const struct call_ops settle_ops = { .on_reply = on_settled, .on_fail = on_settle_fail };

struct job *policies_settle(struct box *b, job_done *done, void *arg)
{
	struct core *c = b->in->core;
	struct settle *s = c->policies->gate.open ? calloc(1, sizeof(*s)) : NULL;
	const struct wire_gate_stats m = { .box = view_of(b->id) };

	if (!s)
		return NULL;
	*s = (struct settle){ .job = { done, arg }, .call.ops = &settle_ops };
	if (mux_call(&c->policies->gate, &s->call, WIRE_TYPE_GATE_STATS, SETTLE_MS, SETTLE_MS,
		     &wire_gate_stats_msg, &m) >= 0)
		return &s->job;
	free(s);
	return NULL;
}

/* ---- sending many ---- */

static void on_sync_end(struct core *c)
{
	if (c->policies->on_first)
		TAKE_PTR(c->policies->on_first)(c);
}

static int on_synced(struct call *call, const struct frame *f, int fd)
{
	struct core *c = CONTAINER(call, struct policies, synced)->core;

	fd_close(fd);
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	on_sync_end(c);
	return 0;
}

static void on_sync_fail(struct call *call, const struct err *e)
{
	on_sync_end(CONTAINER(call, struct policies, synced)->core);
}

static const struct call_ops sync_ops = { .on_reply = on_synced, .on_fail = on_sync_fail };

static void say_synced(struct core *c)
{
	struct wire_gate_synced msg = { 0 };

	c->policies->syncing = false;
	c->policies->synced.ops = &sync_ops;
	if (mux_call(&c->policies->gate, &c->policies->synced, WIRE_TYPE_GATE_SYNCED, GATE_MS, GATE_MS,
		     &wire_gate_synced_msg, &msg) < 0)
		on_sync_end(c);
}

static bool runs(const struct box *b)
{
	return !b->in->hidden && !b->in->pooled &&
	       (b->state.status == BOX_RUNNING || b->state.status == BOX_PAUSED);
}

static void send_more(struct core *c)
{
	struct policies *ps = c->policies;

	while (ps->gate.open && ps->sending < SENDING_MAX && !list_empty(&ps->unsent)) {
		struct box *b = CONTAINER(ps->unsent.next, struct box_egress, unsent)->box;
		struct push *p = runs(b) ? calloc(1, sizeof(*p)) : NULL;

		list_del(&b->in->egress->unsent);
		if (!p)
			continue;
		*p = (struct push){ .core = c, .counted = true };
		memcpy(p->box, b->id, sizeof(p->box));
		if (!ps->syncing) /* otherwise nothing is new but the gate */
			trust_box(b, policies_of(b, NULL));
		if (send_policy(p, b, policies_of(b, NULL), false) < 0)
			free(p);
		else
			ps->sending++;
	}
	if (ps->gate.open && ps->syncing && !ps->sending && list_empty(&ps->unsent))
		say_synced(c);
}

void policies_push_all(struct core *c, bool (*pick)(const struct box *b, const void *arg), const void *arg)
{
	LIST_EACH (it, &c->boxes->all) {
		struct box *b = BOX_OF(it, order);

		if (!runs(b) || !pick(b, arg))
			continue;
		list_del(&b->in->egress->unsent);
		list_append(&c->policies->unsent, &b->in->egress->unsent);
	}
	send_more(c);
}

/* ---- the channel ---- */

static bool any(const struct box *b, const void *arg)
{
	return true;
}

/* Somebody in a box wants the AI gateway. */
static void take_caller(struct core *c, const struct frame *f, int fd)
{
	struct arena a = ARENA_INIT(4096);
	struct wire_gate_caller m;
	_cleanup_(closep) int mine = fd;

	if (mine >= 0 && pb_decode(&wire_gate_caller_msg, f->body, PB_SKIP_UNKNOWN, &a, &m) >= 0) {
		const struct box *b = boxes_by_id(c, m.box);
		if (b && c->policies->on_caller)
			c->policies->on_caller(c->policies->caller_arg, b, TAKE_FD(mine));
	}
	arena_done(&a);
}

/* Kept for the next gate. */
static void take_used(struct core *c, const struct frame *f)
{
	struct arena a = ARENA_INIT(64 * 1024);
	struct wire_gate_used m;

	if (pb_decode(&wire_gate_used_msg, f->body, PB_SKIP_UNKNOWN, &a, &m) >= 0)
		for (size_t i = 0; i < m.boxes.n; i++) {
			struct box *b = boxes_by_id(c, m.boxes.items[i].box);
			if (b)
				b->in->egress->used = MAX(b->in->egress->used, m.boxes.items[i].bytes);
		}
	arena_done(&a);
}

static void on_event(struct mux *m, const struct frame *f, int fd)
{
	struct core *c = CONTAINER(m, struct policies, gate)->core;
	struct arena a = ARENA_INIT(VERDICTS_MAX);
	struct wire_gate_verdicts v;

	if (f->type == WIRE_TYPE_GATE_CALLER) {
		take_caller(c, f, fd);
		return;
	}
	fd_close(fd);
	if (f->type == WIRE_TYPE_GATE_USED)
		take_used(c, f);
	if (f->type == WIRE_TYPE_GATE_VERDICTS &&
	    pb_decode(&wire_gate_verdicts_msg, f->body, PB_SKIP_UNKNOWN, &a, &v) >= 0)
		policies_log_add(c, &v);
	arena_done(&a);
}

static void on_again(struct loop_timer *t)
{
	open_gate(CONTAINER(t, struct policies, again)->core);
}

static void on_closed(struct mux *m, const struct err *why)
{
	struct core *c = CONTAINER(m, struct policies, gate)->core;

	if (!c->stopping)
		log_warn("the gate is lost: %s", why->msg);
	mux_stop(m, why);
	if (!c->stopping)
		loop_timer_start(c->loop, &c->policies->again, AGAIN_MS, on_again);
}

static const struct mux_ops gate_ops = { .on_event_fd = on_event, .on_closed = on_closed };

static int on_opened(struct call *call, const struct frame *f, int fd)
{
	struct core *c = CONTAINER(call, struct policies, opening)->core;

	if (!(f->flags & FRAME_LAST) || fd < 0) {
		fd_close(fd);
		return -EBADMSG;
	}
	int r = mux_start(&c->policies->gate, c->loop, fd, true, &gate_ops);
	if (r < 0) {
		log_error("the gate's channel: error %d", -r);
		loop_timer_start(c->loop, &c->policies->again, AGAIN_MS, on_again);
		return 0;
	}
	c->policies->away = false;
	c->policies->syncing = true;
	policies_push_all(c, any, NULL);
	return 0;
}

static void on_open_fail(struct call *call, const struct err *e)
{
	struct core *c = CONTAINER(call, struct policies, opening)->core;

	if (c->stopping)
		return;
	if (!c->policies->away)
		log_warn("there is no gate at the moment, and no way out of any sandbox: %s", e->msg);
	c->policies->away = true;
	loop_timer_start(c->loop, &c->policies->again, AGAIN_MS, on_again);
	on_sync_end(c);
}

static const struct call_ops open_ops = { .on_reply = on_opened, .on_fail = on_open_fail };

static void open_gate(struct core *c)
{
	struct wire_gate_open msg = { 0 };

	if (mux_is_open(&c->policies->opening) || c->policies->gate.open || c->stopping)
		return;
	c->policies->opening.ops = &open_ops;
	if (keeper_call(c, &c->policies->opening, WIRE_TYPE_GATE_OPEN, KEEPER_MS, &wire_gate_open_msg, &msg) <
	    0)
		loop_timer_start(c->loop, &c->policies->again, AGAIN_MS, on_again);
}

void policies_gate_start(struct core *c, void (*on_first)(struct core *c))
{
	c->policies->on_first = on_first;
	open_gate(c);
}

void policies_gate_stop(struct core *c)
{
	struct err e = { 0 };

	err_set(&e, ERR_UNAVAILABLE, "the daemon is going down");
	c->policies->on_first = NULL;
	loop_timer_stop(&c->policies->again);
	mux_cancel(&c->policies->opening);
	mux_stop(&c->policies->gate, &e);
}
