/*
 * The first bytes of a connection: what it is, and whether its name fits where it goes.
 *
 * A direct connection is connected already as the client sees it; where it goes is the
 * address that was meant. Its first bytes are looked at (unless the rules decide without
 * them) and must name where it goes: the name in a ClientHello, the Host of a request.
 * A client that is silent lets a server speak first where the rules allow plain TCP; its
 * first bytes are judged all the same, when they come. Over the proxy port the name is
 * said beforehand, the other side is connected, and then the first bytes are judged.
 */
#include "flow_impl.h"
#include "wire_gen.h"
#include "poison.h"

/* The name may stand for the address that was meant, or is the one that was asked for. */
static bool agrees(struct flow *f, struct view name)
{
	return view_is(name, f->conn.name) || (f->has_meant && box_was_told(f->box, &f->meant, name));
}

static void go_opaque(struct flow *f)
{
	flow_set_mode(f, FLOW_OPAQUE);
	f->hold = false;
	(void)buf_add(&f->conn.to_server, buf_view(&f->conn.look));
	buf_done(&f->conn.look);
	if (f->conn.to_server.bad)
		flow_end(f, true);
	else if (relay_flush(f))
		flow_wants(f);
}

static void open_ech(struct flow *f, struct view name)
{
	if (!intercept_able(f->box->all->intercepts, f->conn.name)) {
		flow_refuse(f, WIRE_GATE_REASON_ECH, NULL);
		return;
	}
	f->conn.opened = true;
	if (flow_judge(f, POLICY_TLS, name, &f->addr))
		inside_start(f);
}

static void looked_tls(struct flow *f, struct view name)
{
	f->proto = POLICY_TLS;
	if (flow_is_open(f)) {
		if (name.n && !agrees(f, name)) {
			flow_refuse(f, WIRE_GATE_REASON_MISMATCH, NULL);
			return;
		}
		(void)!view_to_str(name, f->conn.name, sizeof(f->conn.name));
		struct policy_facts facts;
		flow_facts(f, &facts, &f->addr, POLICY_TLS);
		if (f->box->policy && policy_intercepts(f->box->policy, &facts))
			inside_start(f);
		else if (f->ech && name.n)
			open_ech(f, name);
		else if (flow_judge(f, POLICY_TLS, name, &f->addr))
			go_opaque(f);
		return;
	}
	(void)!view_to_str(name, f->conn.name, sizeof(f->conn.name));
	if (name.n)
		dial_name(f);
	else
		dial_addr(f, &f->meant);
}

/*
 * An encrypted ClientHello may be for another name than the one that can be read, and one that only looks so
 * (browsers send such always) cannot be told from it. Where the rules ask for no name it passes like one
 * without; otherwise the connection is intercepted: our own hello to the server is a plain one, and its name
 * the true one.
 */
static void looked_ech(struct flow *f, struct view name)
{
	const struct policy *p = f->box->policy;
	struct policy_facts facts;

	f->ech = true;
	flow_facts(f, &facts, flow_is_open(f) ? &f->addr : &f->meant, POLICY_TLS);
	facts.name = name;
	looked_tls(f, p && policy_opens_ech(p, &facts) ? name : VIEW(""));
}

/* HTTP/2 in clear names its hosts where nobody looks: a rule for hosts lets it through only if it is one for
 * plain TCP. */
static bool hides_names(struct flow *f)
{
	const struct policy_rule *rule;
	struct policy_facts facts;

	flow_facts(f, &facts, &f->addr, POLICY_TCP);
	return f->box->policy && policy_decide(f->box->policy, &facts, &rule) == POLICY_ALLOW &&
	       rule->n_domains && rule->protocol != POLICY_TCP;
}

static void looked_other(struct flow *f, enum peek what)
{
	f->proto = POLICY_TCP;
	/* It says no name itself: what the box was told counts, as for a server that speaks first. */
	if (f->has_meant && !f->conn.name[0])
		(void)!view_to_str(box_name(f->box, &f->meant), f->conn.name, sizeof(f->conn.name));
	if (!flow_is_open(f))
		dial_addr(f, &f->meant);
	else if (what == PEEK_HTTP2 && hides_names(f))
		flow_refuse(f, WIRE_GATE_REASON_NO_NAME, NULL);
	else if (flow_judge(f, POLICY_TCP, view_of(f->conn.name), &f->addr))
		go_opaque(f);
}

void look_bytes(struct flow *f)
{
	char name[256];

	if (f->mode == FLOW_HTTP) {
		if (web_step(f))
			flow_wants(f);
		return;
	}
	enum peek what = peek_look(&f->peek, buf_view(&f->conn.look), name);
	if (what == PEEK_MORE && (f->conn.client_eof || buf_len(&f->conn.look) >= FLOW_LOOK_MOST))
		what = buf_len(&f->conn.look) >= FLOW_LOOK_MOST ? PEEK_BAD : PEEK_OTHER;
	if (f->doomed && what != PEEK_MORE) {
		f->proto = what == PEEK_TLS || what == PEEK_ECH ? POLICY_TLS
			   : what == PEEK_HTTP || view_starts(buf_view(&f->conn.look), "CONNECT ")
				   ? POLICY_HTTP
				   : POLICY_TCP;
		flow_deny(f, f->doom);
		return;
	}
	switch (what) {
	case PEEK_MORE:
		flow_wants(f);
		return;
	case PEEK_TLS:
		looked_tls(f, view_of(name));
		return;
	case PEEK_ECH:
		looked_ech(f, view_of(name));
		return;
	case PEEK_HTTP:
		flow_set_mode(f, FLOW_HTTP);
		f->proto = POLICY_HTTP;
		if (web_step(f))
			flow_wants(f);
		return;
	case PEEK_HTTP2:
	case PEEK_OTHER:
		looked_other(f, what);
		return;
	case PEEK_BAD:
		flow_refuse(f, WIRE_GATE_REASON_MALFORMED, NULL);
		return;
	}
}

void look_connected(struct flow *f)
{
	const struct policy_rule *rule;
	struct policy_facts facts;

	f->state = f->mode;
	f->active_ms = loop_now(f->box->all->loop);
	flow_timer(f, CONN_IDLE_MS);
	if (f->via != VIA_DIRECT && f->mode == FLOW_UNSEEN && !f->has_meant) {
		proxy_answer(f, true, 0);
		if (f->state == FLOW_OVER)
			return;
	}
	if (f->mode == FLOW_UNSEEN) {
		flow_facts(f, &facts, &f->addr, POLICY_TCP);
		f->hold = !f->box->policy || policy_decide(f->box->policy, &facts, &rule) != POLICY_ALLOW;
	}
	if (f->mode == FLOW_OPAQUE)
		go_opaque(f);
	else if (buf_len(&f->conn.look) || f->conn.client_eof)
		look_bytes(f);
	else
		flow_wants(f);
}

/* ---- steps ---- */

void look_on_bytes(struct flow *f, const struct flow_what *w)
{
	if (buf_add(&f->conn.look, w->data) < 0)
		flow_end(f, true);
	else
		look_bytes(f);
}

void look_on_end(struct flow *f, const struct flow_what *w)
{
	(void)w;
	look_bytes(f);
}

/* A server that speaks first: plain TCP, as far as can be seen. */
static void silent(struct flow *f)
{
	const struct policy_rule *rule;
	struct policy_facts facts;

	flow_timer(f, FLOW_HEAD_MS);
	flow_facts(f, &facts, &f->meant, POLICY_TCP);
	facts.name = box_name(f->box, &f->meant);
	if (!f->box->policy || policy_decide(f->box->policy, &facts, &rule) != POLICY_ALLOW)
		return;
	(void)!view_to_str(facts.name, f->conn.name, sizeof(f->conn.name));
	dial_addr(f, &f->meant);
}

/* At first a short time, then a long one. */
void look_on_time(struct flow *f, const struct flow_what *w)
{
	(void)w;
	if (f->active_ms || f->doomed) {
		flow_end(f, true);
		return;
	}
	f->active_ms = loop_now(f->box->all->loop);
	if (buf_len(&f->conn.look) == 0)
		silent(f);
	else
		flow_timer(f, FLOW_HEAD_MS);
}
