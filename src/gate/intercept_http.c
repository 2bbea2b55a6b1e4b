/*
 * Requests and answers of an intercepted connection: see intercept.h. One request at a
 * time: the next one is looked at when the answer to this one is complete. A request is
 * parsed strictly, judged, and written anew with the secrets of its rule. Answers are
 * framed, so that what is cut between two chunks is still masked, and must not be
 * compressed: nobody could mask in that.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "intercept.h"
#include "text.h"
#include "wire_gen.h"
#include "poison.h"

#define HEADERS   128
#define HEAD_MAX  (48u * 1024)
#define OUT_MAX   (4u * 1024 * 1024)
#define HEADER_VALUE 8192 /* of a secret that goes into a header or the target */

static bool no_space(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if ((unsigned char)v.p[i] < ' ' || v.p[i] == 0x7f)
			return false;
	return true;
}

static struct view header(const struct http1_request *r, const char *name)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (view_is(r->headers[i].name, name))
			return r->headers[i].value;
	return VIEW_NONE;
}

/* ---- values ---- */

static struct intercept_value *value_of(struct intercept *ic, struct view name)
{
	for (unsigned i = 0; i < ic->n_values; i++)
		if (view_is(name, ic->values[i].name))
			return &ic->values[i];
	return NULL;
}

static void forget_values(struct intercept *ic)
{
	for (unsigned i = 0; i < ic->n_values; i++)
		buf_done(&ic->values[i].value);
	ic->n_values = 0;
}

/* For place_fill: a placeholder is filled when the rule says so and the vault gave it. */
static bool placeholder_value(void *arg, struct view name, struct view *ret)
{
	struct intercept *ic = arg;
	struct intercept_value *v = value_of(ic, name);

	for (size_t i = 0; v && v->there && i < ic->n_inject; i++)
		if (ic->inject[i].placeholder && view_is(name, ic->inject[i].secret)) {
			*ret = buf_view(&v->value);
			return true;
		}
	return false;
}

static bool has_placeholder(const struct intercept *ic)
{
	for (size_t i = 0; i < ic->n_inject; i++)
		if (ic->inject[i].placeholder)
			return true;
	return false;
}

static void fail_secret(struct intercept *ic, struct view name, const char *why)
{
	char text[256];

	snprintf(text, sizeof(text), "paddock: the secret %.*s %s", VIEW_ARG(view_head(name, PLACE_NAME)), why);
	flow_say(ic->flow, false, WIRE_GATE_REASON_RULE, NULL, ic->request.method, ic->request.path);
	intercept_fail(ic->flow, 403, text);
}

/* ---- judging ---- */

static bool judge(struct intercept *ic)
{
	struct flow *f = ic->flow;
	const struct http1_request *r = &ic->request;
	const struct policy_rule *rule = NULL;
	enum policy_answer answer = POLICY_DENY;
	struct proxy_target t = { 0 };
	struct policy_facts facts;

	if (!r->host.n || proxy_target(r->host, &t) < 0 || !view_is(view_of(t.name), f->name) || (t.port && t.port != f->port)) {
		flow_say(f, false, WIRE_GATE_REASON_MISMATCH, NULL, r->method, r->path);
		intercept_fail(f, 403, "paddock: Host does not fit the connection");
		return false;
	}
	flow_facts(f, &facts, &f->addr, POLICY_HTTP);
	facts.method = r->method;
	facts.path = r->path;
	if (f->box->policy)
		answer = policy_decide(f->box->policy, &facts, &rule);
	if (answer != POLICY_ALLOW) {
		flow_say(f, false, answer == POLICY_DENY_RULE ? WIRE_GATE_REASON_RULE : WIRE_GATE_REASON_NO_RULE, rule, r->method, r->path);
		intercept_fail(f, 403, "paddock: the policy of this sandbox does not allow it");
		return false;
	}
	flow_say(f, true, WIRE_GATE_REASON_RULE, rule, r->method, r->path);
	/* A copy: the policy may be another one before the vault has answered. */
	ic->n_inject = rule->n_inject;
	memcpy(ic->inject, rule->inject, rule->n_inject * sizeof(*ic->inject));
	return true;
}

/* ---- which secrets ---- */

static bool want(struct intercept *ic, const char *name)
{
	if (value_of(ic, view_of(name)))
		return true;
	if (ic->n_values == INTERCEPT_VALUES)
		return false;
	struct intercept_value *v = &ic->values[ic->n_values++];
	*v = (struct intercept_value){ .value = { .max = INTERCEPT_PLAIN, .secret = true } };
	return view_to_str(view_of(name), v->name, sizeof(v->name)) == 0;
}

/* "Basic" and base64: the placeholder is inside. */
static int unwrap_basic(struct view name, struct view value, struct buf *plain)
{
	if (!view_is(name, "authorization") || value.n < 6 || !view_eq_nocase(view_head(value, 6), VIEW("basic ")))
		return -ENOENT;
	return text_unbase64(plain, view_trim(view_skip(value, 6)));
}

/* Every placeholder of the head must be one of the rule's. */
static bool check_text(struct intercept *ic, struct view text)
{
	struct place p;

	for (size_t at = 0; place_find(text, at, &p); at = p.at + p.n) {
		bool named = false;
		for (size_t i = 0; i < ic->n_inject; i++)
			named = named || (ic->inject[i].placeholder && view_is(p.name, ic->inject[i].secret));
		char name[PLACE_NAME + 1];
		if (!named || view_to_str(p.name, name, sizeof(name)) < 0 || !want(ic, name)) {
			fail_secret(ic, p.name, "is not for this host");
			return false;
		}
	}
	return true;
}

static bool check_head(struct intercept *ic)
{
	const struct http1_request *r = &ic->request;

	if (!check_text(ic, r->path) || (r->query.p && !check_text(ic, r->query)))
		return false;
	for (size_t i = 0; i < r->n_headers; i++) {
		_cleanup_(buf_done) struct buf plain = { .max = HEAD_MAX, .secret = true };
		if (!check_text(ic, r->headers[i].value) ||
		    (unwrap_basic(r->headers[i].name, r->headers[i].value, &plain) == 0 && !check_text(ic, buf_view(&plain))))
			return false;
	}
	return true;
}

static bool choose_secrets(struct intercept *ic)
{
	bool body = ic->request.content_length != 0;

	if (!check_head(ic))
		return false;
	for (size_t i = 0; i < ic->n_inject; i++)
		if ((!ic->inject[i].placeholder || body) && !want(ic, ic->inject[i].secret)) {
			fail_secret(ic, view_of(ic->inject[i].secret), "is one too many");
			return false;
		}
	return true;
}

/* ---- writing the request ---- */

static bool dropped(const struct intercept *ic, struct view name)
{
	static const char *const drop[] = { "host", "connection", "upgrade", "keep-alive", "proxy-connection", "te",
					    "proxy-authorization", "http2-settings", "accept-encoding", "expect" };

	for (size_t i = 0; i < ELEMS(drop); i++)
		if (view_is(name, drop[i]))
			return true;
	for (size_t i = 0; i < ic->n_inject; i++)
		if (ic->inject[i].header[0] && view_is(name, ic->inject[i].header))
			return true;
	return ic->rewrite && (view_is(name, "content-length") || view_is(name, "transfer-encoding"));
}

/* -ENOENT: with the name of the secret that is not there. */
static int put_header(struct intercept *ic, struct http_header h, struct buf *out, struct view *missing)
{
	_cleanup_(buf_done) struct buf plain = { .max = HEAD_MAX, .secret = true }, filled = { .max = OUT_MAX, .secret = true };
	struct place p;
	bool basic = unwrap_basic(h.name, h.value, &plain) == 0 && place_find(buf_view(&plain), 0, &p);
	int r = place_fill(basic ? buf_view(&plain) : h.value, false, placeholder_value, ic, &filled, missing);

	if (r < 0)
		return r;
	buf_add(out, h.name);
	buf_puts(out, basic ? ": Basic " : ": ");
	if (basic)
		(void)text_base64(out, buf_view(&filled));
	else if (no_space(buf_view(&filled)) || view_eq(buf_view(&filled), h.value))
		buf_add(out, buf_view(&filled));
	else
		return -EINVAL;
	return buf_puts(out, "\r\n");
}

/* The target with placeholders filled and parameters set: what was there under their names goes. */
static int put_target(struct intercept *ic, struct buf *out, struct view *missing)
{
	const struct http1_request *r = &ic->request;
	struct view rest = r->query;
	bool first = true;
	int e = place_fill(r->path, true, placeholder_value, ic, out, missing);

	while (e == 0 && rest.p) {
		struct view value, pair = view_split(rest, '&', &rest), name = view_split(pair, '=', &value);
		bool replaced = false;
		for (size_t i = 0; i < ic->n_inject; i++)
			replaced = replaced || (ic->inject[i].query[0] && view_is(name, ic->inject[i].query));
		if (replaced)
			continue;
		buf_putc(out, first ? '?' : '&');
		first = false;
		e = place_fill(pair, true, placeholder_value, ic, out, missing);
	}
	for (size_t i = 0; e == 0 && i < ic->n_inject; i++) {
		if (!ic->inject[i].query[0])
			continue;
		buf_printf(out, "%c%s=", first ? '?' : '&', ic->inject[i].query);
		first = false;
		place_percent(out, buf_view(&value_of(ic, view_of(ic->inject[i].secret))->value));
	}
	return e;
}

static int put_head(struct intercept *ic, int64_t length, struct buf *out, struct view *missing)
{
	const struct http1_request *r = &ic->request;

	buf_add(out, r->method);
	buf_putc(out, ' ');
	int e = put_target(ic, out, missing);
	buf_printf(out, " HTTP/1.%d\r\nhost: %.*s\r\n", r->version - 10, VIEW_ARG(r->host));
	for (size_t i = 0; e == 0 && i < r->n_headers; i++)
		if (!dropped(ic, r->headers[i].name))
			e = put_header(ic, r->headers[i], out, missing);
	for (size_t i = 0; e == 0 && i < ic->n_inject; i++)
		if (ic->inject[i].header[0]) {
			buf_printf(out, "%s: %s", ic->inject[i].header, ic->inject[i].prefix);
			buf_add(out, buf_view(&value_of(ic, view_of(ic->inject[i].secret))->value));
			buf_puts(out, "\r\n");
		}
	if (e < 0)
		return e;
	buf_puts(out, "accept-encoding: identity\r\n");
	if (ic->rewrite && length >= 0)
		buf_printf(out, "content-length: %lld\r\n", (long long)length);
	else if (ic->rewrite)
		buf_puts(out, "transfer-encoding: chunked\r\n");
	if (ic->upgrade)
		buf_puts(out, "connection: Upgrade\r\nupgrade: websocket\r\n");
	else if (!r->keep_alive)
		buf_puts(out, "connection: close\r\n");
	return buf_puts(out, "\r\n");
}

/* The head and, where it was collected, the body. */
static bool send_request(struct intercept *ic, bool collected)
{
	_cleanup_(buf_done) struct buf out = { .max = OUT_MAX, .secret = true }, body = { .max = OUT_MAX, .secret = true };
	struct view missing = VIEW("");
	int e = collected ? place_fill(buf_view(&ic->collect), false, placeholder_value, ic, &body, &missing) : 0;

	if (e == 0)
		e = put_head(ic, collected ? (int64_t)buf_len(&body) : -1, &out, &missing);
	if (e == 0)
		e = buf_add(&out, buf_view(&body));
	if (e == -ENOENT)
		fail_secret(ic, missing, "is not for this host, or is not there");
	else if (e < 0)
		intercept_fail(ic->flow, 400, "paddock: with its secrets the request is too large or not proper");
	buf_clear(&ic->collect);
	return e == 0 && intercept_to_server(ic->flow, buf_view(&out));
}

/* ---- secrets are there ---- */

static bool take_values(struct intercept *ic)
{
	for (size_t i = 0; i < ic->n_inject; i++) {
		const struct policy_inject *j = &ic->inject[i];
		const struct intercept_value *v = value_of(ic, view_of(j->secret));
		if (j->placeholder)
			continue;
		if (!v || !v->there) {
			fail_secret(ic, view_of(j->secret), "is not there");
			return false;
		}
		if (buf_len(&v->value) > HEADER_VALUE || (j->header[0] && !no_space(buf_view(&v->value)))) {
			fail_secret(ic, view_of(j->secret), "does not fit into a header");
			return false;
		}
	}
	for (unsigned i = 0; i < ic->n_values; i++) {
		if (!ic->values[i].there)
			continue;
		if (buf_len(&ic->values[i].value) < MASK_LEAST) {
			fail_secret(ic, view_of(ic->values[i].name), "is too short to be masked");
			return false;
		}
		if (mask_add(&ic->mask, buf_view(&ic->values[i].value)) < 0) {
			intercept_fail(ic->flow, 503, "paddock: no memory");
			return false;
		}
	}
	return true;
}

static bool begin_request(struct intercept *ic)
{
	const struct http1_request *r = &ic->request;
	bool body = r->content_length != 0;

	if (!take_values(ic))
		return false;
	ic->rewrite = body && has_placeholder(ic);
	ic->chunk = ic->rewrite && (r->content_length < 0 || r->content_length > INTERCEPT_BODY);
	http1_body_init(&ic->body, r->content_length);
	/* Nobody else will say it: the head goes when the body is here, or goes without the question. */
	if (body && r->expect_continue && !intercept_to_client(ic->flow, VIEW("HTTP/1.1 100 Continue\r\n\r\n")))
		return false;
	if ((!ic->rewrite || ic->chunk) && !send_request(ic, false))
		return false;
	ic->step = body ? IC_BODY : IC_SENT;
	return true;
}

void intercept_http_revealed(struct intercept *ic, const char *name, struct view value, const struct err *e)
{
	struct intercept_value *v = value_of(ic, view_of(name));

	if (ic->flow->state == FLOW_OVER || ic->step != IC_SECRETS || !v)
		return;
	v->there = !e && buf_add(&v->value, value) == 0 && value.n;
	if (--ic->asked > 0)
		return;
	if (begin_request(ic))
		intercept_http_client(ic);
	if (ic->flow->state != FLOW_OVER)
		flow_wants(ic->flow);
}

static bool ask_secrets(struct intercept *ic)
{
	ic->step = IC_SECRETS;
	ic->asked = 0;
	for (unsigned i = 0; i < ic->n_values; i++) {
		if (intercept_vault_reveal(ic->flow, ic->values[i].name) < 0) {
			intercept_fail(ic->flow, 503, "paddock: the vault cannot be reached");
			return false;
		}
		ic->asked++;
	}
	return ic->asked ? false : begin_request(ic);
}

/* ---- steps: each says whether there may be another ---- */

/* 1: a whole head, in ic->head_text, where it stays while the request lives. */
static int read_head(struct intercept *ic)
{
	struct http1_request *r = &ic->request;

	if (!ic->headers)
		ic->headers = calloc(HEADERS, sizeof(*ic->headers));
	if (!ic->headers)
		return -503;
	http1_request_init(r, ic->headers, HEADERS, HEAD_MAX);
	int n = http1_request_parse(r, ic->in.p + ic->in.head, buf_len(&ic->in));
	if (n <= 0)
		return n;
	buf_clear(&ic->head_text);
	if (buf_add(&ic->head_text, view_head(buf_view(&ic->in), (size_t)n)) < 0)
		return -431;
	http1_request_init(r, ic->headers, HEADERS, HEAD_MAX);
	int again = http1_request_parse(r, ic->head_text.p, ic->head_text.n);
	assert(again == n);
	buf_consume(&ic->in, (size_t)n);
	return 1;
}

static bool step_head(struct intercept *ic)
{
	struct flow *f = ic->flow;

	if (!ic->server.ready && !ic->server.failed)
		return false;
	int n = buf_len(&ic->in) ? read_head(ic) : 0;
	if (n < 0) {
		flow_say(f, false, WIRE_GATE_REASON_MALFORMED, NULL, VIEW(""), VIEW(""));
		intercept_fail(f, 400, ic->request.why ? ic->request.why : "malformed request");
	}
	if (n <= 0)
		return false;
	if (ic->server.failed) {
		flow_say(f, false, WIRE_GATE_REASON_UNREACHABLE, NULL, ic->request.method, ic->request.path);
		char text[256];
		snprintf(text, sizeof(text), "paddock: no TLS with the server: %.160s", ic->trouble ? ic->trouble : "it has closed the connection");
		intercept_fail(f, 502, text);
		return false;
	}
	ic->upgrade = view_eq_nocase(header(&ic->request, "upgrade"), VIEW("websocket")) && ic->request.content_length == 0;
	ic->method_head = view_is(ic->request.method, "HEAD");
	ic->keep_alive = ic->request.keep_alive;
	forget_values(ic);
	return judge(ic) && choose_secrets(ic) && ask_secrets(ic);
}

/* A piece of a body that is sent in chunks; what may be the beginning of a placeholder waits. */
static bool send_piece(struct intercept *ic, struct view data, bool last)
{
	_cleanup_(buf_done) struct buf filled = { .max = OUT_MAX, .secret = true }, out = { .max = OUT_MAX, .secret = true };
	struct view missing = VIEW("");

	(void)buf_add(&ic->collect, data);
	size_t keep = last ? 0 : place_open_end(buf_view(&ic->collect));
	int e = place_fill(view_head(buf_view(&ic->collect), buf_len(&ic->collect) - keep), false, placeholder_value, ic, &filled, &missing);
	buf_consume(&ic->collect, buf_len(&ic->collect) - keep);
	if (e == 0)
		e = http1_write_chunk(&out, buf_view(&filled));
	if (e == 0 && last)
		e = http1_write_last_chunk(&out, VIEW(""));
	if (e < 0 || ic->collect.bad) { /* half of it is with the server: it must not see an end */
		if (e == -ENOENT)
			fail_secret(ic, missing, "is not for this host, or is not there");
		else
			flow_end(ic->flow, true);
		return false;
	}
	return intercept_to_server(ic->flow, buf_view(&out));
}

static bool step_body(struct intercept *ic)
{
	struct flow *f = ic->flow;
	struct view all = buf_view(&ic->in), in = all, data;
	int r = HTTP1_MORE;

	if (!all.n)
		return false;
	while ((r = http1_body_next(&ic->body, &in, &data)) == HTTP1_DATA) {
		if (ic->chunk && !send_piece(ic, data, false))
			return false;
		if (ic->rewrite && !ic->chunk)
			(void)buf_add(&ic->collect, data);
	}
	if (r < 0 || ic->collect.bad) {
		flow_say(f, false, WIRE_GATE_REASON_MALFORMED, NULL, ic->request.method, ic->request.path);
		intercept_fail(f, 400, ic->body.why ? ic->body.why : "malformed body");
		return false;
	}
	size_t used = all.n - in.n;
	if (!ic->rewrite && !intercept_to_server(f, view_head(all, used)))
		return false;
	buf_consume(&ic->in, used);
	if (r != HTTP1_END)
		return false;
	if ((ic->chunk && !send_piece(ic, VIEW(""), true)) || (ic->rewrite && !ic->chunk && !send_request(ic, true)))
		return false;
	ic->step = IC_SENT;
	return false;
}

static bool step_switched(struct intercept *ic)
{
	struct buf out = ic->in;
	bool ok = true;

	ic->in = (struct buf){ .max = out.max, .secret = true };
	if (buf_len(&out))
		ok = intercept_to_server(ic->flow, buf_view(&out));
	buf_done(&out);
	(void)ok;
	return false;
}

void intercept_http_client(struct intercept *ic)
{
	bool more = true;

	while (more && ic->flow->state != FLOW_OVER && !ic->closing) {
		switch (ic->step) {
		case IC_HEAD:
			more = step_head(ic);
			break;
		case IC_BODY:
			more = step_body(ic);
			break;
		case IC_SWITCHED:
			more = step_switched(ic);
			break;
		case IC_SECRETS:
		case IC_SENT:
			more = false;
			break;
		}
	}
}

/* ---- answers ---- */

static bool to_client_masked(struct intercept *ic, struct view data, bool end)
{
	_cleanup_(buf_done) struct buf plain = { .max = OUT_MAX, .secret = true }, out = { .max = OUT_MAX, .secret = true };
	int r = mask_put(&ic->mask, data, &plain);

	if (r == 0 && end)
		r = mask_end(&ic->mask, &plain);
	if (r == 0 && ic->answer_chunked && ic->in_answer) {
		r = http1_write_chunk(&out, buf_view(&plain));
		if (r == 0 && end)
			r = http1_write_last_chunk(&out, VIEW(""));
	} else if (r == 0) {
		r = buf_add(&out, buf_view(&plain));
	}
	if (r < 0) {
		flow_end(ic->flow, true);
		return false;
	}
	return buf_len(&out) ? intercept_to_client(ic->flow, buf_view(&out)) : true;
}

static bool bad_answer(struct intercept *ic, const char *why)
{
	intercept_fail(ic->flow, 502, why);
	return false;
}

static void answer_done(struct intercept *ic)
{
	ic->in_answer = false;
	if (ic->step != IC_SENT || !ic->keep_alive) {
		intercept_close(ic->flow);
		return;
	}
	ic->step = IC_HEAD;
	intercept_http_client(ic);
}

/* The parser of requests reads the headers, behind a line of our own: what it finds ambiguous is refused. */
static int parse_headers(struct view lines, struct buf *copy, struct http1_request *r, struct http_header *headers)
{
	buf_puts(copy, "POST / HTTP/1.1\r\nhost: x\r\n");
	buf_add(copy, lines);
	if (copy->bad)
		return -1;
	http1_request_init(r, headers, HEADERS, 2 * HEAD_MAX);
	return http1_request_parse(r, copy->p, copy->n) == (int)copy->n ? 0 : -1;
}

struct answer {
	int status;
	int64_t length; /* -1: chunked; -2: to the end */
	bool encoded, close;
};

static bool says(struct view list, const char *word)
{
	while (list.p && list.n)
		if (view_eq_nocase(view_trim(view_split(list, ',', &list)), view_of(word)))
			return true;
	return false;
}

static int parse_answer(struct view head, struct answer *ret)
{
	_cleanup_(buf_done) struct buf copy = { .max = 2 * HEAD_MAX, .secret = true };
	struct http_header headers[HEADERS];
	struct http1_request r;
	struct view lines, line = view_split(head, '\n', &lines);

	if (line.n < 12 || !view_starts(line, "HTTP/1.") || line.p[8] != ' ')
		return -1;
	for (size_t i = 9; i < 12; i++)
		if (line.p[i] < '0' || line.p[i] > '9')
			return -1;
	*ret = (struct answer){ .status = (line.p[9] - '0') * 100 + (line.p[10] - '0') * 10 + (line.p[11] - '0') };
	if (parse_headers(lines, &copy, &r, headers) < 0)
		return -1;
	struct view encoding = header(&r, "content-encoding"), connection = header(&r, "connection");
	ret->encoded = encoding.n && !view_eq_nocase(encoding, VIEW("identity"));
	ret->close = says(connection, "close") || (line.p[7] == '0' && !says(connection, "keep-alive"));
	ret->length = r.has_coding || r.has_length ? r.content_length : -2;
	return 0;
}

/* 1: a head was dealt with; 0: it is not whole; -1: over. */
static int answer_head(struct intercept *ic)
{
	struct view all = buf_view(&ic->answer);
	const char *end = memmem(all.p, all.n, "\r\n\r\n", 4);
	struct answer a;

	if (!end) {
		if (all.n > HEAD_MAX)
			return bad_answer(ic, "paddock: the server's answer is not proper") ? 0 : -1;
		return 0;
	}
	struct view head = view_head(all, (size_t)(end + 4 - all.p));
	if ((ic->step != IC_SENT && ic->step != IC_BODY) || parse_answer(head, &a) < 0 || a.status < 100)
		return bad_answer(ic, "paddock: the server's answer is not proper") ? 0 : -1;
	bool interim = a.status < 200 && a.status != 101, switched = a.status == 101;
	if (switched && !ic->upgrade)
		return bad_answer(ic, "paddock: the server's answer is not proper") ? 0 : -1;
	if (a.encoded && ic->mask.words && !interim)
		return bad_answer(ic, "paddock: the server's answer is compressed, and cannot be looked through for secrets") ? 0 : -1;
	ic->answer_chunked = false;
	bool ok = to_client_masked(ic, head, true);
	if (!ok)
		return -1;
	buf_consume(&ic->answer, head.n);
	if (interim)
		return 1;
	if (switched) {
		ic->step = IC_SWITCHED;
		intercept_http_client(ic);
		return ic->flow->state == FLOW_OVER ? -1 : 1;
	}
	bool none = ic->method_head || a.status == 204 || a.status == 304 || a.length == 0;
	ic->keep_alive = ic->keep_alive && !a.close && a.length != -2;
	ic->in_answer = true;
	ic->until_end = a.length == -2 && !none;
	ic->answer_chunked = a.length == -1 && !none;
	http1_body_init(&ic->answer_body, none || a.length == -2 ? 0 : a.length);
	if (none) {
		answer_done(ic);
		return ic->flow->state == FLOW_OVER || ic->closing ? -1 : 1;
	}
	return 1;
}

/* 1: it is over; 0: there is more to come; -1: the flow is over. */
static int answer_body(struct intercept *ic)
{
	struct view in = buf_view(&ic->answer), all = in, data;
	int r = HTTP1_MORE;

	if (ic->until_end) {
		bool ok = to_client_masked(ic, all, false);
		buf_clear(&ic->answer);
		return ok ? 0 : -1;
	}
	while ((r = http1_body_next(&ic->answer_body, &in, &data)) == HTTP1_DATA)
		if (!to_client_masked(ic, data, false))
			return -1;
	if (r < 0) {
		flow_end(ic->flow, true);
		return -1;
	}
	buf_consume(&ic->answer, all.n - in.n);
	if (r != HTTP1_END)
		return 0;
	if (!to_client_masked(ic, VIEW(""), true))
		return -1;
	answer_done(ic);
	return ic->flow->state == FLOW_OVER || ic->closing ? -1 : 1;
}

void intercept_http_server(struct intercept *ic, struct view data)
{
	if (ic->closing)
		return;
	if (ic->step == IC_SWITCHED) {
		(void)!to_client_masked(ic, data, false);
		return;
	}
	if (buf_add(&ic->answer, data) < 0) {
		flow_end(ic->flow, true);
		return;
	}
	int r = 1;
	while (r > 0 && buf_len(&ic->answer)) {
		if (ic->step == IC_SWITCHED) {
			r = to_client_masked(ic, buf_view(&ic->answer), false) ? 0 : -1;
			if (r == 0)
				buf_clear(&ic->answer);
		} else {
			r = ic->in_answer ? answer_body(ic) : answer_head(ic);
		}
	}
}

void intercept_http_ended(struct intercept *ic)
{
	struct flow *f = ic->flow;

	if (f->state == FLOW_OVER || ic->closing)
		return;
	if (ic->step == IC_SWITCHED || (ic->in_answer && ic->until_end)) {
		if (to_client_masked(ic, VIEW(""), true))
			intercept_close(f);
	} else if (ic->in_answer) {
		flow_end(f, true); /* cut off: the client must see that */
	} else if (ic->step == IC_HEAD && !buf_len(&ic->in)) {
		intercept_close(f);
	} else {
		intercept_fail(f, 502, "paddock: the server has closed the connection");
	}
}
