/*
 * HTTP/1 in clear: each request of a connection is read by the strict parser, judged,
 * and written anew, so that the server reads what was judged. Answers pass unread, but
 * for the first bytes of one that may switch to WebSocket.
 */
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "flow_impl.h"
#include "wire_gen.h"
#include "poison.h"

#define HEADERS   128
#define HEAD_MOST (FLOW_LOOK_MOST - 1)

void web_done(struct flow *f)
{
	free(f->headers);
	f->headers = NULL;
}

/* The answers to requests before this one come first: the server is told that there are no more. */
static bool say_no(struct flow *f, int status, const char *why)
{
	if (!f->first_done) {
		proxy_http_error(f, status, why);
		flow_part(f);
		return false;
	}
	flow_set_mode(f, FLOW_DRAIN);
	f->conn.client_eof = true;
	f->last_status = status;
	f->last_words = why;
	flow_timer(f, FLOW_HEAD_MS);
	return false;
}

static bool malformed(struct flow *f, int status, const char *why)
{
	flow_say(f, false, WIRE_GATE_REASON_MALFORMED, NULL, VIEW(""), VIEW(""));
	return say_no(f, status, why);
}

static bool refuse(struct flow *f, int reason, const struct policy_rule *rule)
{
	int status;
	const char *words = flow_words(reason, &status);

	flow_say(f, false, reason, rule, f->request.method, f->request.path);
	return say_no(f, status, words);
}

static struct view header(const struct http1_request *r, const char *name)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (view_is(r->headers[i].name, name))
			return r->headers[i].value;
	return VIEW_NONE;
}

/* ---- where to ---- */

/* Not connected yet: the first request says where to. */
static bool choose(struct flow *f, const struct target *t)
{
	const struct http1_request *r = &f->request;

	if (f->one_request) {
		if (!r->authority.n || (f->conn.look.p + f->conn.look.head)[r->method.n + 5] == 's')
			return malformed(f, 400, "Invalid proxy request");
		struct view token = header(r, "proxy-authorization");
		memcpy(f->conn.name, t->name, sizeof(f->conn.name));
		f->conn.port = t->port ? t->port : 80;
		if (token.p && !token_allows(f->box->policy ? f->box->policy->token_key : VIEW_NONE, token,
					     t->name[0] ? view_of(t->name) : r->host, clock_wall_ms() / 1000))
			return refuse(f, WIRE_GATE_REASON_TOKEN, NULL);
		if (t->name[0])
			dial_name(f);
		else
			dial_addr(f, &t->addr);
		return f->state != FLOW_OVER;
	}
	memcpy(f->conn.name, t->name, sizeof(f->conn.name));
	if (t->name[0]) {
		dial_name(f);
	} else if (!r->host.n || addr_eq(&t->addr, &f->meant)) {
		dial_addr(f, &f->meant);
	} else {
		return refuse(f, WIRE_GATE_REASON_MISMATCH, NULL);
	}
	return f->state != FLOW_OVER;
}

static bool agrees(const struct flow *f, const struct target *t)
{
	if (t->port && t->port != f->conn.port)
		return false;
	if (!f->request.host.n)
		return f->conn.name[0] == 0 || !f->first_done;
	if (!t->name[0])
		return addr_eq(&t->addr, &f->addr);
	return view_is(view_of(t->name), f->conn.name) ||
	       (f->has_meant && box_was_told(f->box, &f->meant, view_of(t->name)));
}

static bool judge(struct flow *f, const struct target *t)
{
	const struct policy_rule *rule = NULL;
	enum policy_answer answer = POLICY_DENY;
	struct policy_facts facts;

	if (!agrees(f, t))
		return refuse(f, WIRE_GATE_REASON_MISMATCH, NULL);
	memcpy(f->conn.name, t->name, sizeof(f->conn.name));
	flow_facts(f, &facts, &f->addr, POLICY_HTTP);
	facts.method = f->request.method;
	facts.path = f->request.path;
	if (f->box->policy)
		answer = policy_decide(f->box->policy, &facts, &rule);
	if (answer != POLICY_ALLOW)
		return refuse(f,
			      answer == POLICY_DENY_RULE      ? WIRE_GATE_REASON_RULE
			      : answer == POLICY_DENY_ADDRESS ? WIRE_GATE_REASON_ADDRESS
							      : WIRE_GATE_REASON_NO_RULE,
			      rule);
	f->rule = rule;
	flow_say(f, true, WIRE_GATE_REASON_RULE, rule, f->request.method, f->request.path);
	return true;
}

/* ---- forwarding ---- */

static bool hop_by_hop(struct view name)
{
	static const char *const drop[] = { "host",          "connection",       "upgrade",
					    "keep-alive",    "proxy-connection", "proxy-authorization",
					    "http2-settings" };

	for (size_t i = 0; i < ELEMS(drop); i++)
		if (view_is(name, drop[i]))
			return true;
	return false;
}

static int write_head(struct flow *f, bool upgrade)
{
	const struct http1_request *r = &f->request;
	struct buf *out = &f->conn.to_server;

	buf_add(out, r->method);
	buf_putc(out, ' ');
	buf_add(out, r->path);
	if (r->query.p) {
		buf_putc(out, '?');
		buf_add(out, r->query);
	}
	buf_printf(out, " HTTP/1.%d\r\n", r->version - 10);
	if (r->host.n)
		buf_printf(out, "host: %.*s\r\n", VIEW_ARG(r->host));
	for (size_t i = 0; i < r->n_headers; i++)
		if (!hop_by_hop(r->headers[i].name))
			buf_printf(out, "%.*s: %.*s\r\n", VIEW_ARG(r->headers[i].name),
				   VIEW_ARG(r->headers[i].value));
	if (upgrade)
		buf_puts(out, "connection: Upgrade\r\nupgrade: websocket\r\n");
	else if (f->one_request || !r->keep_alive)
		buf_puts(out, "connection: close\r\n");
	else if (r->version == 10)
		buf_puts(out, "connection: keep-alive\r\n");
	return buf_puts(out, "\r\n");
}

/* 1: a request went on its way; 0: wait (for bytes, or for the other side); -1: ended. */
static int step_head(struct flow *f)
{
	struct http1_request *r = &f->request;
	struct target t = { 0 };
	struct view v = buf_view(&f->conn.look);

	if (!http1_request_news(&f->head_seen, v.p, v.n, HEAD_MOST))
		return 0;
	if (!f->headers)
		f->headers = calloc(HEADERS, sizeof(*f->headers));
	if (!f->headers)
		return malformed(f, 503, "no memory") ? 0 : -1;
	/* From the start each time: the bytes may have moved. */
	http1_request_init(r, f->headers, HEADERS, HEAD_MOST);
	int n = http1_request_parse(r, (char *)(uintptr_t)v.p, v.n);
	if (n < 0)
		return malformed(f, -n, r->why ? r->why : "malformed request") ? 0 : -1;
	if (n == 0)
		return 0;
	f->head_seen = 0;
	if (r->host.n && target_parse(r->host, &t) < 0)
		return malformed(f, 400, "malformed Host") ? 0 : -1;
	if (!flow_is_open(f))
		return choose(f, &t) ? 0 : -1;
	if (!judge(f, &t))
		return -1;
	bool upgrade = view_eq_nocase(header(r, "upgrade"), VIEW("websocket"));
	if (upgrade && (f->first_done || r->content_length != 0 || r->version != 11))
		return malformed(f, 400, "an upgrade must be the first request of its connection") ? 0 : -1;
	if (write_head(f, upgrade) < 0)
		return malformed(f, 431, "the request is too large") ? 0 : -1;
	f->hold = false;
	f->first_done = true;
	f->in_body = r->content_length != 0;
	http1_body_init(&f->body, r->content_length);
	if (upgrade)
		flow_set_mode(f, FLOW_WAIT);
	else if (f->one_request && !f->in_body)
		flow_set_mode(f, FLOW_DRAIN);
	buf_consume(&f->conn.look, (size_t)n);
	return 1;
}

static int step_body(struct flow *f)
{
	struct view all = buf_view(&f->conn.look), in = all, data;
	int r;

	do
		r = http1_body_next(&f->body, &in, &data);
	while (r == HTTP1_DATA);
	if (r < 0)
		return malformed(f, -r, f->body.why ? f->body.why : "malformed body") ? 0 : -1;
	size_t used = all.n - in.n;
	(void)buf_add(&f->conn.to_server, view_head(all, used));
	buf_consume(&f->conn.look, used);
	if (r == HTTP1_END) {
		f->in_body = false;
		if (f->one_request)
			flow_set_mode(f, FLOW_DRAIN);
	}
	return r == HTTP1_END;
}

bool web_step(struct flow *f)
{
	int r = 1;

	while (r > 0 && f->mode == FLOW_HTTP && buf_len(&f->conn.look))
		r = f->in_body ? step_body(f) : step_head(f);
	if (f->state == FLOW_OVER)
		return false;
	if (f->mode == FLOW_DRAIN)
		buf_clear(&f->conn.look);
	if (buf_len(&f->conn.look) == 0)
		buf_done(&f->conn.look);
	if (f->conn.to_server.bad) {
		flow_end(f, true);
		return false;
	}
	return flow_is_open(f) ? relay_flush(f) : true;
}

/* The first bytes of the server's answer to an upgrade; false when the flow has ended. */
static bool read_answer(struct flow *f, struct view first)
{
	bool switched = view_starts(first, "HTTP/1.1 101 ");

	flow_set_mode(f, switched ? FLOW_OPAQUE : FLOW_HTTP);
	if (!switched) {
		/* The scratch buffer holds the answer, and web_step does not read: it stays. */
		return buf_len(&f->conn.look) ? web_step(f) : true;
	}
	(void)buf_add(&f->conn.to_server, buf_view(&f->conn.look));
	buf_done(&f->conn.look);
	web_done(f);
	if (f->conn.to_server.bad) {
		flow_end(f, true);
		return false;
	}
	return relay_flush(f);
}

/* ---- steps ---- */

void web_on_bytes(struct flow *f, const struct flow_what *w)
{
	if (buf_add(&f->conn.look, w->data) < 0)
		flow_end(f, true);
	else if (web_step(f))
		flow_wants(f);
}

void web_on_answer(struct flow *f, const struct flow_what *w)
{
	if (read_answer(f, w->data))
		relay_on_bytes_back(f, w);
}
