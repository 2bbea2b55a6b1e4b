/*
 * The parser behind response.h. Lines end in CRLF and nothing else; the length
 * of a body is said once or not at all; a Transfer-Encoding is "chunked".
 */
#include <errno.h>

#include "num.h"
#include "response.h"

#include "poison.h"

#define LINE_MAX_SIZE 256 /* of a chunk's size line */
#define TRAILER_MAX   (8u << 10)

struct head {
	struct response r;
	bool has_length, chunked, http10;
};

static int bad(struct err *e, const char *why)
{
	return err_set(e, ERR_INTERNAL, "the server's answer is not HTTP/1.1: %s", why);
}

static bool is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* "HTTP/1.1 200 OK"; the reason may be missing, with or without its space. */
static int status_line(struct view line, struct head *h, struct err *e)
{
	uint32_t status;

	if (!view_starts(line, "HTTP/1.1 ") && !view_starts(line, "HTTP/1.0 "))
		return bad(e, "bad version");
	h->http10 = line.p[7] == '0';
	line = view_skip(line, 9);
	if (line.n < 3 || num_u32(view_head(line, 3), &status) < 0 || status < 100 || status > 599)
		return bad(e, "bad status");
	if (line.n > 3 && line.p[3] != ' ')
		return bad(e, "bad status");
	h->r.status = (int)status;
	h->r.keep_alive = !h->http10;
	return 0;
}

static void connection_header(struct view value, struct response *r)
{
	while (value.p) {
		struct view option = view_trim(view_split(value, ',', &value));

		if (view_eq_nocase(option, VIEW("close")))
			r->keep_alive = false;
	}
}

/* Octal digits; what is not that says nothing. */
static unsigned file_mode(struct view value)
{
	unsigned mode = 0;

	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] < '0' || value.p[i] > '7' || value.n > 6)
			return 0;
		mode = mode << 3 | (unsigned)(value.p[i] - '0');
	}
	return mode & 0777;
}

static int header_line(struct view line, struct head *h, struct err *e)
{
	struct view value, name = view_split(line, ':', &value);

	if (!value.p || name.n == 0)
		return bad(e, "a header without a name");
	for (size_t i = 0; i < name.n; i++)
		if (!is_token_char(name.p[i]))
			return bad(e, "bad header name");
	value = view_trim(value);
	for (size_t i = 0; i < value.n; i++)
		if (((unsigned char)value.p[i] < 0x20 && value.p[i] != '\t') || value.p[i] == 0x7f)
			return bad(e, "a control character in a header");
	if (view_eq_nocase(name, VIEW("content-length"))) {
		if (h->has_length || num_u64(value, &h->r.length) < 0 || h->r.length > INT64_MAX)
			return bad(e, "bad Content-Length");
		h->has_length = true;
	} else if (view_eq_nocase(name, VIEW("transfer-encoding"))) {
		if (h->chunked || h->http10 || !view_eq_nocase(value, VIEW("chunked")))
			return bad(e, "bad Transfer-Encoding");
		h->chunked = true;
	} else if (view_eq_nocase(name, VIEW("connection"))) {
		connection_header(value, &h->r);
	} else if (view_eq_nocase(name, VIEW("content-type"))) {
		struct view type = view_trim(view_split(value, ';', &value));
		h->r.json = view_eq_nocase(type, VIEW("application/json"));
		h->r.events = view_eq_nocase(type, VIEW("text/event-stream"));
	} else if (view_eq_nocase(name, VIEW("x-file-mode"))) {
		h->r.mode = file_mode(value);
	} else if (view_eq_nocase(name, VIEW("sec-websocket-accept"))) {
		if (view_to_str(value, h->r.accept, sizeof(h->r.accept)) < 0)
			return bad(e, "bad Sec-WebSocket-Accept");
	} else if (view_eq_nocase(name, VIEW("mcp-session-id"))) {
		if (view_to_str(value, h->r.session, sizeof(h->r.session)) < 0)
			return bad(e, "bad Mcp-Session-Id");
	} else if (view_eq_nocase(name, VIEW("paddock-next"))) {
		if (view_to_str(value, h->r.next, sizeof(h->r.next)) < 0)
			return bad(e, "bad Paddock-Next");
	} else if (view_eq_nocase(name, VIEW("set-cookie"))) {
		if (view_to_str(view_trim(view_split(value, ';', &value)), h->r.cookie, sizeof(h->r.cookie)) <
		    0)
			h->r.cookie[0] = '\0';
	}
	return 0;
}

static int framing(struct head *h, bool to_head, struct err *e)
{
	struct response *r = &h->r;

	if (h->chunked && h->has_length)
		return bad(e, "both Content-Length and Transfer-Encoding");
	if (to_head || r->status < 200 || r->status == 204 || r->status == 304) {
		r->framing = RESPONSE_EMPTY;
	} else if (h->chunked) {
		r->framing = RESPONSE_CHUNKED;
	} else if (h->has_length) {
		r->framing = r->length ? RESPONSE_LENGTH : RESPONSE_EMPTY;
	} else {
		r->framing = RESPONSE_TO_END;
		r->keep_alive = false;
	}
	return 0;
}

/* The next line without its CRLF. 1, 0 (not whole yet), or -1 (a bare LF or CR). */
static int next_line(struct view in, size_t *at, struct view *ret)
{
	struct view rest = view_skip(in, *at);
	const char *lf = rest.n ? memchr(rest.p, '\n', rest.n) : NULL;
	size_t n;

	if (!lf)
		return 0;
	n = (size_t)(lf - rest.p);
	if (n == 0 || rest.p[n - 1] != '\r' || memchr(rest.p, '\r', n - 1))
		return -1;
	*ret = view_head(rest, n - 1);
	*at += n + 1;
	return 1;
}

int response_head(struct view in, bool to_head, struct response *ret, size_t *ret_used, struct err *e)
{
	struct head h = { 0 };
	bool first = true;
	size_t at = 0;

	for (;;) {
		struct view line;
		int r = next_line(in, &at, &line);

		if (r < 0)
			return bad(e, "a line that does not end in CRLF");
		if (at > RESPONSE_HEAD_MAX || (r == 0 && in.n > RESPONSE_HEAD_MAX))
			return bad(e, "its head is too large");
		if (r == 0)
			return 0;
		if (first && status_line(line, &h, e) < 0)
			return -1;
		if (!first && line.n == 0)
			break;
		if (!first && header_line(line, &h, e) < 0)
			return -1;
		first = false;
	}
	if (framing(&h, to_head, e) < 0)
		return -1;
	*ret = h.r;
	*ret_used = at;
	return 1;
}

void response_body_init(struct response_body *b, const struct response *r)
{
	*b = (struct response_body){
		.framing = r->framing,
		.left = r->framing == RESPONSE_LENGTH ? r->length : 0,
		.done = r->framing == RESPONSE_EMPTY,
	};
}

static ssize_t take_data(struct response_body *b, struct view in, struct view *ret_data)
{
	size_t n = in.n > b->left ? (size_t)b->left : in.n;

	*ret_data = view_head(in, n);
	b->left -= n;
	return (ssize_t)n;
}

/* "1f\r\n" or "1f;name=value\r\n" */
static ssize_t take_size(struct response_body *b, struct view in)
{
	struct view line, extension;
	size_t at = 0;
	int r = next_line(in, &at, &line);

	if (r < 0 || (r == 0 && in.n > LINE_MAX_SIZE) || at > LINE_MAX_SIZE)
		return -EBADMSG;
	if (r == 0)
		return 0;
	if (num_hex(view_split(line, ';', &extension), &b->left) < 0 || b->left > INT64_MAX)
		return -EBADMSG;
	b->at = b->left ? BODY_DATA : BODY_TRAILER;
	return (ssize_t)at;
}

static ssize_t take_data_end(struct response_body *b, struct view in)
{
	if (in.n < 2)
		return in.n && in.p[0] != '\r' ? -EBADMSG : 0;
	if (memcmp(in.p, "\r\n", 2) != 0)
		return -EBADMSG;
	b->at = BODY_SIZE;
	return 2;
}

static ssize_t take_trailer(struct response_body *b, struct view in)
{
	struct view line;
	size_t at = 0;
	int r = next_line(in, &at, &line);

	if (r < 0 || b->trailer_bytes + (r ? at : in.n) > TRAILER_MAX)
		return -EBADMSG;
	if (r == 0)
		return 0;
	b->trailer_bytes += at;
	b->done = line.n == 0;
	return (ssize_t)at;
}

static ssize_t chunked_next(struct response_body *b, struct view in, struct view *ret_data)
{
	size_t used = 0;

	while (!b->done) {
		struct view rest = view_skip(in, used);
		ssize_t n = -EBADMSG;

		switch (b->at) {
		case BODY_SIZE:
			n = take_size(b, rest);
			break;
		case BODY_DATA:
			n = take_data(b, rest, ret_data);
			if (b->left == 0)
				b->at = BODY_DATA_END;
			if (n > 0)
				return (ssize_t)used + n;
			break;
		case BODY_DATA_END:
			n = take_data_end(b, rest);
			break;
		case BODY_TRAILER:
			n = take_trailer(b, rest);
			break;
		}
		if (n < 0)
			return n;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

ssize_t response_body_next(struct response_body *b, struct view in, struct view *ret_data)
{
	ssize_t n = 0;

	*ret_data = VIEW_NONE;
	if (b->done)
		return 0;
	switch (b->framing) {
	case RESPONSE_EMPTY:
		break;
	case RESPONSE_LENGTH:
		n = take_data(b, in, ret_data);
		b->done = b->left == 0;
		break;
	case RESPONSE_CHUNKED:
		n = chunked_next(b, in, ret_data);
		break;
	case RESPONSE_TO_END:
		*ret_data = in;
		n = (ssize_t)in.n;
		break;
	}
	return n;
}

int response_body_eof(struct response_body *b)
{
	if (b->framing == RESPONSE_TO_END)
		b->done = true;
	return b->done ? 0 : -EBADMSG;
}
