/*
 * HTTP/1.1 on an intercepted connection, the requests: see intercept.h. One at a time:
 * the next one is looked at when the answer to this one is complete (intercept_answer.c).
 * A request is parsed strictly, judged, and written anew with the secrets of its rule.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "intercept_impl.h"
#include "wire_gen.h"
#include "poison.h"

static struct view header(const struct http1_request *r, const char *name)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (view_is(r->headers[i].name, name))
			return r->headers[i].value;
	return VIEW_NONE;
}

static void fail_secret(struct intercept *ic)
{
	conn_deny(ic->conn, WIRE_GATE_REASON_SECRET, ic->request.method, ic->request.path);
	intercept_fail(ic->conn, 403, ic->inject.trouble);
}

static struct inject_head inject_head(const struct intercept *ic)
{
	const struct http1_request *r = &ic->request;

	return (struct inject_head){ r->path, r->query, r->headers, r->n_headers };
}

/* ---- writing the request ---- */

static bool dropped(const struct intercept *ic, struct view name)
{
	return inject_drops(&ic->inject, name) || view_is(name, "te") ||
	       (ic->rewrite && (view_is(name, "content-length") || view_is(name, "transfer-encoding")));
}

static int put_head(struct intercept *ic, int64_t length, struct buf *out)
{
	const struct http1_request *r = &ic->request;
	struct inject *j = &ic->inject;
	struct inject_head h = inject_head(ic);

	buf_add(out, r->method);
	buf_putc(out, ' ');
	int e = inject_target(j, &h, out);
	buf_printf(out, " HTTP/1.%d\r\nhost: %.*s\r\n", r->version - 10, VIEW_ARG(r->host));
	for (size_t i = 0; e == 0 && i < r->n_headers; i++) {
		if (dropped(ic, r->headers[i].name))
			continue;
		buf_printf(out, "%.*s: ", VIEW_ARG(r->headers[i].name));
		e = inject_header(j, r->headers[i], out);
		buf_puts(out, "\r\n");
	}
	for (size_t i = 0; e == 0 && i < j->n; i++) {
		if (!j->rules[i].header[0])
			continue;
		buf_printf(out, "%s: ", j->rules[i].header);
		e = inject_own(j, i, out);
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
	_cleanup_(buf_done) struct buf out = { .max = INJECT_OUT, .secret = true },
				       body = { .max = INJECT_OUT, .secret = true };
	int e = collected ? inject_body(&ic->inject, buf_view(&ic->collect), &body) : 0;

	if (e == 0)
		e = put_head(ic, collected ? (int64_t)buf_len(&body) : -1, &out);
	if (e == 0)
		e = buf_add(&out, buf_view(&body));
	if (e == -ENOENT)
		fail_secret(ic);
	else if (e < 0)
		intercept_fail(ic->conn, 400, INTERCEPT_TOO_LARGE);
	buf_clear(&ic->collect);
	return e == 0 && intercept_to_server(ic->conn, buf_view(&out));
}

/* ---- secrets are there ---- */

static bool begin_request(struct intercept *ic)
{
	const struct http1_request *r = &ic->request;
	bool body = r->content_length != 0;

	if (!inject_ready(&ic->inject)) {
		fail_secret(ic);
		return false;
	}
	if (inject_mask(&ic->inject, &ic->mask) < 0) {
		intercept_fail(ic->conn, 503, "paddock: no memory");
		return false;
	}
	ic->rewrite = body && inject_has_placeholders(&ic->inject);
	ic->chunk = ic->rewrite && (r->content_length < 0 || r->content_length > INJECT_BODY ||
				    !conn_collect(ic->conn, (size_t)r->content_length));
	http1_body_init(&ic->body, r->content_length);
	/* Nobody else will say it: the head goes when the body is here, or goes without the question. */
	if (body && r->expect_continue &&
	    !intercept_to_client(ic->conn, VIEW("HTTP/1.1 100 Continue\r\n\r\n")))
		return false;
	if ((!ic->rewrite || ic->chunk) && !send_request(ic, false))
		return false;
	ic->step = body ? IC_BODY : IC_SENT;
	return true;
}

void intercept_http_revealed(struct intercept *ic, const char *name, struct view value, const struct err *e)
{
	if (ic->conn->over || ic->step != IC_SECRETS)
		return;
	if (!e)
		inject_give(&ic->inject, view_of(name), value);
	if (--ic->asked > 0)
		return;
	if (begin_request(ic))
		intercept_http_client(ic);
	conn_wants(ic->conn);
}

static bool ask_secrets(struct intercept *ic)
{
	struct inject_head h = inject_head(ic);

	if (!inject_choose(&ic->inject, &h, ic->request.content_length != 0)) {
		fail_secret(ic);
		return false;
	}
	ic->step = IC_SECRETS;
	ic->asked = 0;
	for (unsigned i = 0; i < ic->inject.n_values; i++) {
		if (intercept_vault_reveal(ic, 0, ic->inject.values[i].name) < 0) {
			intercept_fail(ic->conn, 503, INTERCEPT_NO_VAULT);
			return false;
		}
		ic->asked++;
	}
	return ic->asked ? false : begin_request(ic);
}

/* Once each request is whole: whether it may go, and with which secrets. */
static bool judge(struct intercept *ic)
{
	const char *why = intercept_judge(ic->conn, ic->request.method, ic->request.path, ic->request.host,
					  &ic->inject);

	if (why)
		intercept_fail(ic->conn, 403, why);
	return !why;
}

/* ---- steps: each says whether there may be another ---- */

/* 1: a whole head, in ic->head_text, where it stays while the request lives. */
static int read_head(struct intercept *ic)
{
	struct http1_request *r = &ic->request;

	if (!ic->headers)
		ic->headers = calloc(INJECT_HEADERS, sizeof(*ic->headers));
	if (!ic->headers)
		return -503;
	if (!http1_request_news(&ic->in_seen, ic->in.p + ic->in.head, buf_len(&ic->in), INJECT_HEAD))
		return 0;
	http1_request_init(r, ic->headers, INJECT_HEADERS, INJECT_HEAD);
	int n = http1_request_parse(r, ic->in.p + ic->in.head, buf_len(&ic->in));
	if (n <= 0)
		return n;
	ic->in_seen = 0;
	buf_clear(&ic->head_text);
	if (buf_add(&ic->head_text, view_head(buf_view(&ic->in), (size_t)n)) < 0)
		return -431;
	http1_request_init(r, ic->headers, INJECT_HEADERS, INJECT_HEAD);
	int again = http1_request_parse(r, ic->head_text.p, ic->head_text.n);
	assert(again == n);
	buf_consume(&ic->in, (size_t)n);
	return 1;
}

static bool step_head(struct intercept *ic)
{
	struct conn *c = ic->conn;

	if (!ic->server.ready && !ic->server.failed)
		return false;
	int n = buf_len(&ic->in) ? read_head(ic) : 0;
	if (n < 0) {
		conn_deny(c, WIRE_GATE_REASON_MALFORMED, VIEW(""), VIEW(""));
		intercept_fail(c, 400, ic->request.why ? ic->request.why : "malformed request");
	}
	if (n <= 0)
		return false;
	if (ic->server.failed) {
		conn_deny(c, WIRE_GATE_REASON_UNREACHABLE, ic->request.method, ic->request.path);
		char text[256];
		intercept_trouble(ic, text, sizeof(text));
		intercept_fail(c, 502, text);
		return false;
	}
	ic->upgrade = view_eq_nocase(header(&ic->request, "upgrade"), VIEW("websocket")) &&
		      ic->request.content_length == 0;
	ic->method_head = view_is(ic->request.method, "HEAD");
	ic->keep_alive = ic->request.keep_alive;
	inject_done(&ic->inject);
	return judge(ic) && ask_secrets(ic);
}

/* A piece of a body that is sent in chunks; what may be the beginning of a placeholder waits. */
static bool send_piece(struct intercept *ic, struct view data, bool last)
{
	_cleanup_(buf_done) struct buf filled = { .max = INJECT_OUT, .secret = true },
				       out = { .max = INJECT_OUT, .secret = true };

	(void)buf_add(&ic->collect, data);
	size_t keep = last ? 0 : place_open_end(buf_view(&ic->collect));
	int e = inject_body(&ic->inject, view_head(buf_view(&ic->collect), buf_len(&ic->collect) - keep),
			    &filled);
	buf_consume(&ic->collect, buf_len(&ic->collect) - keep);
	if (e == 0)
		e = http1_write_chunk(&out, buf_view(&filled));
	if (e == 0 && last)
		e = http1_write_last_chunk(&out, VIEW(""));
	if (e < 0 || ic->collect.bad) { /* half of it is with the server: it must not see an end */
		if (e == -ENOENT)
			fail_secret(ic);
		else
			conn_end(ic->conn, true);
		return false;
	}
	return intercept_to_server(ic->conn, buf_view(&out));
}

static bool step_body(struct intercept *ic)
{
	struct conn *c = ic->conn;
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
		conn_deny(c, WIRE_GATE_REASON_MALFORMED, ic->request.method, ic->request.path);
		intercept_fail(c, 400, ic->body.why ? ic->body.why : "malformed body");
		return false;
	}
	size_t used = all.n - in.n;
	if (!ic->rewrite && !intercept_to_server(c, view_head(all, used)))
		return false;
	buf_consume(&ic->in, used);
	if (r != HTTP1_END)
		return false;
	if ((ic->chunk && !send_piece(ic, VIEW(""), true)) ||
	    (ic->rewrite && !ic->chunk && !send_request(ic, true)))
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
		ok = intercept_to_server(ic->conn, buf_view(&out));
	buf_done(&out);
	(void)ok;
	return false;
}

void intercept_http_client(struct intercept *ic)
{
	bool more = true;

	while (more && !ic->conn->over && !ic->closing) {
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
