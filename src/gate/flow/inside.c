/*
 * Connections that are looked into: what interception asks of them (conn.h), and the steps
 * that hand it their bytes.
 */
#include "flow_impl.h"
#include "wire_gen.h"
#include "poison.h"

static struct flow *flow_of(struct conn *c)
{
	return CONTAINER(c, struct flow, conn);
}

static void conn_on_end(struct conn *c, bool reset)
{
	flow_end(flow_of(c), reset);
}

static void conn_on_refuse(struct conn *c, int reason)
{
	flow_refuse(flow_of(c), reason, NULL);
}

static void conn_on_wants(struct conn *c)
{
	flow_wants(flow_of(c));
}

static void conn_on_timer(struct conn *c, uint64_t ms)
{
	flow_timer(flow_of(c), ms);
}

static bool conn_on_flush(struct conn *c)
{
	return relay_flush(flow_of(c));
}

static bool conn_on_judge(struct conn *c, struct view method, struct view path,
			  const struct policy_rule **ret)
{
	struct flow *f = flow_of(c);
	enum policy_answer answer = POLICY_DENY;
	struct policy_facts facts;

	flow_facts(f, &facts, &f->addr, POLICY_HTTP);
	facts.method = method;
	facts.path = path;
	if (f->box->policy)
		answer = policy_decide(f->box->policy, &facts, ret);
	flow_say(f, answer == POLICY_ALLOW,
		 answer == POLICY_ALLOW || answer == POLICY_DENY_RULE ? WIRE_GATE_REASON_RULE
								      : WIRE_GATE_REASON_NO_RULE,
		 *ret, method, path);
	return answer == POLICY_ALLOW;
}

static void conn_on_deny(struct conn *c, int reason, struct view method, struct view path)
{
	flow_say(flow_of(c), false, reason, NULL, method, path);
}

static bool conn_on_collect(struct conn *c, size_t n)
{
	struct gate_box *b = flow_of(c)->box;

	if (n > FLOW_COLLECT - b->collected)
		return false;
	b->collected += n;
	c->collected += n;
	return true;
}

static void conn_on_collected(struct conn *c, size_t n)
{
	flow_of(c)->box->collected -= n;
	c->collected -= n;
}

const struct conn_ops inside_conn_ops = {
	.end = conn_on_end,
	.refuse = conn_on_refuse,
	.wants = conn_on_wants,
	.timer = conn_on_timer,
	.flush = conn_on_flush,
	.judge = conn_on_judge,
	.deny = conn_on_deny,
	.collect = conn_on_collect,
	.collected = conn_on_collected,
};

void inside_start(struct flow *f)
{
	if (f->box->n_intercepts == FLOW_INTERCEPTS) {
		flow_refuse(f, WIRE_GATE_REASON_LIMIT, NULL);
		return;
	}
	f->box->n_intercepts++;
	f->intercepted = true;
	f->hold = false;
	flow_set_mode(f, FLOW_INTERCEPT);
	intercept_start(f->box->all->intercepts, &f->conn);
}

/* ---- steps ---- */

void inside_on_bytes(struct flow *f, const struct flow_what *w)
{
	intercept_client(&f->conn, w->data);
}

void inside_on_bytes_back(struct flow *f, const struct flow_what *w)
{
	intercept_server(&f->conn, w->data);
}

void inside_on_end_back(struct flow *f, const struct flow_what *w)
{
	(void)w;
	intercept_server_ended(&f->conn);
}

void inside_on_time(struct flow *f, const struct flow_what *w)
{
	if (!intercept_late(&f->conn))
		flow_on_idle(f, w);
}
