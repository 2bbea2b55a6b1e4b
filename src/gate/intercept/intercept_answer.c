/*
 * HTTP/1.1 on an intercepted connection, the answers: see intercept.h. They are framed,
 * so that what is cut between two chunks is still masked, and must not be compressed:
 * nobody could mask in that.
 */
#include <errno.h>

#include "intercept_impl.h"
#include "poison.h"

static bool to_client_masked(struct intercept *ic, struct view data, bool end)
{
	_cleanup_(buf_done) struct buf plain = { .max = INJECT_OUT, .secret = true },
				       out = { .max = INJECT_OUT, .secret = true };
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
		conn_end(ic->conn, true);
		return false;
	}
	return buf_len(&out) ? intercept_to_client(ic->conn, buf_view(&out)) : true;
}

static bool bad_answer(struct intercept *ic, const char *why)
{
	intercept_fail(ic->conn, 502, why);
	return false;
}

static void answer_done(struct intercept *ic)
{
	ic->in_answer = false;
	conn_collected(ic->conn, ic->conn->collected);
	if (ic->step != IC_SENT || !ic->keep_alive) {
		intercept_close(ic->conn);
		return;
	}
	ic->step = IC_HEAD;
	intercept_http_client(ic);
}

/* The parser of requests reads the headers, behind a line of our own: what it finds ambiguous is refused. */
static int parse_headers(struct view lines, struct buf *copy, struct http1_request *r,
			 struct http_header *headers)
{
	buf_puts(copy, "POST / HTTP/1.1\r\nhost: x\r\n");
	buf_add(copy, lines);
	if (copy->bad)
		return -1;
	http1_request_init(r, headers, INJECT_HEADERS, 2 * INJECT_HEAD);
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
	_cleanup_(buf_done) struct buf copy = { .max = 2 * INJECT_HEAD, .secret = true };
	struct http_header headers[INJECT_HEADERS];
	struct http1_request r;
	struct view lines, line = view_split(head, '\n', &lines);

	if (line.n < 12 || !view_starts(line, "HTTP/1.") || line.p[8] != ' ')
		return -1;
	for (size_t i = 9; i < 12; i++)
		if (line.p[i] < '0' || line.p[i] > '9')
			return -1;
	*ret = (struct answer){ .status = (line.p[9] - '0') * 100 + (line.p[10] - '0') * 10 +
					  (line.p[11] - '0') };
	if (parse_headers(lines, &copy, &r, headers) < 0)
		return -1;
	struct view connection = VIEW_NONE;
	for (size_t i = 0; i < r.n_headers; i++) {
		ret->encoded = ret->encoded || inject_is_coded(headers[i]);
		if (view_is(headers[i].name, "connection") && !connection.p)
			connection = headers[i].value;
	}
	ret->close = says(connection, "close") || (line.p[7] == '0' && !says(connection, "keep-alive"));
	ret->length = r.has_coding || r.has_length ? r.content_length : -2;
	return 0;
}

/* 1: a head was dealt with; 0: it is not whole; -1: over. */
static int answer_head(struct intercept *ic)
{
	struct view all = buf_view(&ic->answer);
	struct view unseen = view_skip(all, MAX(ic->answer_seen, 3u) - 3);
	const char *end = memmem(unseen.p, unseen.n, "\r\n\r\n", 4);
	struct answer a;

	ic->answer_seen = end ? 0 : all.n;
	if (!end) {
		if (all.n > INJECT_HEAD)
			return bad_answer(ic, INTERCEPT_IMPROPER) ? 0 : -1;
		return 0;
	}
	struct view head = view_head(all, (size_t)(end + 4 - all.p));
	if ((ic->step != IC_SENT && ic->step != IC_BODY) || parse_answer(head, &a) < 0 || a.status < 100)
		return bad_answer(ic, INTERCEPT_IMPROPER) ? 0 : -1;
	bool interim = a.status < 200 && a.status != 101, switched = a.status == 101;
	if (switched && !ic->upgrade)
		return bad_answer(ic, INTERCEPT_IMPROPER) ? 0 : -1;
	if (a.encoded && ic->mask.words && !interim)
		return bad_answer(ic, INTERCEPT_CODED) ? 0 : -1;
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
		return ic->conn->over ? -1 : 1;
	}
	bool none = ic->method_head || a.status == 204 || a.status == 304 || a.length == 0;
	ic->keep_alive = ic->keep_alive && !a.close && a.length != -2;
	ic->in_answer = true;
	ic->until_end = a.length == -2 && !none;
	ic->answer_chunked = a.length == -1 && !none;
	http1_body_init(&ic->answer_body, none || a.length == -2 ? 0 : a.length);
	if (none) {
		answer_done(ic);
		return ic->conn->over || ic->closing ? -1 : 1;
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
		conn_end(ic->conn, true);
		return -1;
	}
	buf_consume(&ic->answer, all.n - in.n);
	if (r != HTTP1_END)
		return 0;
	if (!to_client_masked(ic, VIEW(""), true))
		return -1;
	answer_done(ic);
	return ic->conn->over || ic->closing ? -1 : 1;
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
		conn_end(ic->conn, true);
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
	struct conn *c = ic->conn;

	if (c->over || ic->closing)
		return;
	if (ic->step == IC_SWITCHED || (ic->in_answer && ic->until_end)) {
		if (to_client_masked(ic, VIEW(""), true))
			intercept_close(c);
	} else if (ic->in_answer) {
		conn_end(c, true); /* cut off: the client must see that */
	} else if (ic->step == IC_HEAD && !buf_len(&ic->in)) {
		intercept_close(c);
	} else {
		intercept_fail(c, 502, INTERCEPT_CLOSED);
	}
}
