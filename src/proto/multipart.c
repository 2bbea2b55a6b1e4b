/*
 * See multipart.h.
 *
 * A delimiter is looked for by its first byte, a CR. A boundary holds none, so
 * when a match breaks off, what was matched is data and the search goes on with
 * the byte that broke it.
 */
#include "multipart.h"

#include <errno.h>

#include "text.h"
#include "poison.h"

enum { PREAMBLE, AFTER, HEAD, DATA, EPILOGUE };

#define AFTER_MAX 64 /* white space between a delimiter and its CRLF */

/* ---- parameters of a header ---- */

static struct view skip_space(struct view v)
{
	while (v.n && (v.p[0] == ' ' || v.p[0] == '\t'))
		v = view_skip(v, 1);
	return v;
}

/* A quoted string behind its first quote; false when it does not end. */
static bool read_quoted(struct view *v, struct buf *out)
{
	while (v->n) {
		char c = v->p[0];
		*v = view_skip(*v, 1);
		if (c == '"')
			return out->bad == 0;
		if (c == '\\' && v->n && (v->p[0] == '"' || v->p[0] == '\\')) {
			c = v->p[0];
			*v = view_skip(*v, 1);
		}
		buf_putc(out, c);
	}
	return false;
}

static bool is_token_end(char c)
{
	return c == ';' || c == ' ' || c == '\t';
}

/* "; key=value" at the front of *v; false when there is none (or it is malformed: then v->n is not 0). */
static bool next_parameter(struct view *v, struct view *key, struct buf *value)
{
	buf_clear(value);
	*v = skip_space(*v);
	if (v->n == 0 || v->p[0] != ';')
		return false;
	struct view rest = skip_space(view_skip(*v, 1)), after;
	*key = view_trim(view_split(rest, '=', &after));
	if (!after.p || key->n == 0)
		return false;
	after = skip_space(after);
	if (after.n && after.p[0] == '"') {
		after = view_skip(after, 1);
		if (!read_quoted(&after, value))
			return false;
	} else {
		while (after.n && !is_token_end(after.p[0])) {
			buf_putc(value, after.p[0]);
			after = view_skip(after, 1);
		}
	}
	*v = after;
	return true;
}

/* "UTF-8''name%20of%20it" (RFC 8187). */
static bool read_extended(struct view v, struct buf *out)
{
	struct view language, text;
	struct view charset = view_split(v, '\'', &language);
	(void)view_split(language.p ? language : VIEW(""), '\'', &text);
	return view_eq_nocase(charset, VIEW("utf-8")) && text.p && text_unpercent(out, text, false) == 0;
}

/* ---- life ---- */

static bool is_boundary_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("'()+_,-./:=? ", c));
}

static int set_boundary(struct multipart *m, struct view boundary)
{
	if (boundary.n == 0 || boundary.n > MULTIPART_BOUNDARY_MAX || boundary.p[boundary.n - 1] == ' ')
		return -EINVAL;
	for (size_t i = 0; i < boundary.n; i++)
		if (!is_boundary_char(boundary.p[i]))
			return -EINVAL;
	memcpy(m->delimiter, "\r\n--", 4);
	memcpy(m->delimiter + 4, boundary.p, boundary.n);
	m->delimiter_n = 4 + boundary.n;
	m->matched = 2; /* as if a CRLF stood before the body */
	m->made_up = true;
	return 0;
}

int multipart_init(struct multipart *m, struct view content_type)
{
	*m = (struct multipart){ .state = PREAMBLE, .head = BUF_INIT(MULTIPART_HEAD_MAX) };
	arena_init(&m->arena, 4 * MULTIPART_HEAD_MAX);
	size_t n = 0;
	while (n < content_type.n && !is_token_end(content_type.p[n]))
		n++;
	if (!view_eq_nocase(view_head(content_type, n), VIEW("multipart/form-data")))
		return -EINVAL;
	_cleanup_(buf_done) struct buf value = BUF_INIT(256);
	struct view key, rest = view_skip(content_type, n);
	while (next_parameter(&rest, &key, &value))
		if (view_eq_nocase(key, VIEW("boundary")))
			return set_boundary(m, buf_view(&value));
	return -EINVAL;
}

void multipart_done(struct multipart *m)
{
	buf_done(&m->head);
	arena_done(&m->arena);
}

static int bad(struct multipart *m, const char *why)
{
	m->why = why;
	return -EBADMSG;
}

/* ---- the head of a part ---- */

static int read_disposition(struct multipart *m, struct view v)
{
	_cleanup_(buf_done) struct buf value = BUF_INIT(MULTIPART_HEAD_MAX),
				       wide = BUF_INIT(MULTIPART_HEAD_MAX);
	size_t n = 0;
	struct view key;
	while (n < v.n && !is_token_end(v.p[n]))
		n++;
	if (!view_eq_nocase(view_head(v, n), VIEW("form-data")))
		return bad(m, "a part that is no form-data");
	bool extended = false;
	struct view rest = view_skip(v, n);
	while (next_parameter(&rest, &key, &value)) {
		struct view text = buf_view(&value), copy = VIEW_NONE;
		if (view_eq_nocase(key, VIEW("filename*"))) {
			buf_clear(&wide);
			if (!read_extended(text, &wide))
				return bad(m, "a malformed filename*");
			text = buf_view(&wide);
		}
		copy = arena_view(&m->arena, text);
		if (!copy.p)
			return -ENOMEM;
		if (view_eq_nocase(key, VIEW("name")))
			m->name = copy;
		if (view_eq_nocase(key, VIEW("filename*")) ||
		    (view_eq_nocase(key, VIEW("filename")) && !extended))
			m->filename = copy;
		extended |= view_eq_nocase(key, VIEW("filename*"));
	}
	return skip_space(rest).n ? bad(m, "a malformed content-disposition") : 0;
}

static int read_head(struct multipart *m)
{
	struct view rest = buf_view(&m->head);
	bool found = false;
	arena_reset(&m->arena);
	m->name = m->filename = VIEW_NONE;
	while (rest.n) {
		struct view value, line = view_split(rest, '\n', &rest);
		if (line.n == 0 || line.p[line.n - 1] != '\r')
			return bad(m, "a line of a part's head without CRLF");
		line.n--;
		if (line.n == 0)
			break;
		struct view name = view_split(line, ':', &value);
		if (!value.p || memchr(line.p, 0, line.n))
			return bad(m, "a malformed line in a part's head");
		if (!view_eq_nocase(name, VIEW("content-disposition")))
			continue;
		if (found)
			return bad(m, "a part with two content-dispositions");
		found = true;
		int r = read_disposition(m, view_trim(value));
		if (r < 0)
			return r;
	}
	return found ? MULTIPART_PART : bad(m, "a part without content-disposition");
}

/* Gathers bytes up to `end`, a CRLF or two of them. True when they are there. */
static bool gather(struct multipart *m, struct view *in, const char *end)
{
	size_t n = strlen(end);
	while (in->n) {
		struct view line = *in;
		const char *lf = memchr(in->p, '\n', in->n);
		line.n = lf ? (size_t)(lf + 1 - in->p) : in->n;
		if (buf_add(&m->head, line) < 0)
			return false;
		*in = view_skip(*in, line.n);
		struct view have = buf_view(&m->head);
		if (have.n >= n && memcmp(have.p + have.n - n, end, n) == 0)
			return true;
		/* A head without a line. */
		if (n == 4 && view_is(have, "\r\n"))
			return true;
	}
	return false;
}

static int step_head(struct multipart *m, struct view *in)
{
	bool whole = gather(m, in, "\r\n\r\n");
	if (m->head.bad)
		return bad(m, "a part's head that is too long");
	if (!whole)
		return MULTIPART_MORE;
	int r = read_head(m);
	buf_clear(&m->head);
	m->state = DATA;
	m->in_part = true;
	m->matched = 2; /* a part without bytes: the delimiter's CRLF is the head's */
	m->made_up = true;
	return r;
}

/* Behind a delimiter: two dashes end it all, a CRLF begins a part. */
static int step_after(struct multipart *m, struct view *in)
{
	while (in->n && buf_len(&m->head) < 2) {
		buf_putc(&m->head, in->p[0]);
		*in = view_skip(*in, 1);
	}
	if (view_is(buf_view(&m->head), "--")) {
		m->state = EPILOGUE;
		return MULTIPART_END;
	}
	bool whole = view_is(buf_view(&m->head), "\r\n") || gather(m, in, "\r\n");
	struct view v = buf_view(&m->head);
	if (m->head.bad || v.n > AFTER_MAX)
		return bad(m, "a delimiter without its end");
	if (!whole)
		return MULTIPART_MORE;
	v.n -= 2;
	if (skip_space(v).n)
		return bad(m, "a delimiter without its end");
	buf_clear(&m->head);
	m->state = HEAD;
	return MULTIPART_MORE;
}

/* ---- bytes ---- */

static int found_delimiter(struct multipart *m)
{
	m->matched = 0;
	m->made_up = false;
	m->state = AFTER;
	buf_clear(&m->head);
	if (!m->in_part)
		return MULTIPART_MORE;
	m->in_part = false;
	return MULTIPART_PART_END;
}

/* Goes on with a delimiter that the last input ended in. */
static int step_matched(struct multipart *m, struct view *in)
{
	size_t n = MIN(m->delimiter_n - m->matched, in->n);
	if (memcmp(m->delimiter + m->matched, in->p, n) == 0) {
		m->matched += n;
		*in = view_skip(*in, n);
		return m->matched == m->delimiter_n ? found_delimiter(m) : MULTIPART_MORE;
	}
	/* It was data after all, but for a CRLF that we made up or that ended the head. */
	size_t skip = m->made_up ? 2 : 0;
	m->data = (struct view){ m->delimiter + skip, m->matched - skip };
	m->matched = 0;
	m->made_up = false;
	return MULTIPART_DATA;
}

/* The bytes before a delimiter, or before what may become one. */
static int step_bytes(struct multipart *m, struct view *in)
{
	size_t at = 0;
	while (at < in->n) {
		const char *cr = memchr(in->p + at, '\r', in->n - at);
		if (!cr) {
			at = in->n;
			break;
		}
		at = (size_t)(cr - in->p);
		size_t n = MIN(m->delimiter_n, in->n - at);
		if (memcmp(cr, m->delimiter, n) == 0) {
			if (at > 0)
				break; /* what stands before it first */
			m->matched = n;
			*in = view_skip(*in, n);
			return n == m->delimiter_n ? found_delimiter(m) : MULTIPART_MORE;
		}
		at++;
	}
	m->data = view_head(*in, at);
	*in = view_skip(*in, at);
	return MULTIPART_DATA;
}

int multipart_next(struct multipart *m, struct view *in)
{
	while (in->n) {
		int r = MULTIPART_MORE;
		switch (m->state) {
		case PREAMBLE:
		case DATA:
			r = m->matched ? step_matched(m, in) : step_bytes(m, in);
			if (r == MULTIPART_DATA && (!m->in_part || m->data.n == 0))
				r = MULTIPART_MORE;
			break;
		case AFTER:
			r = step_after(m, in);
			break;
		case HEAD:
			r = step_head(m, in);
			break;
		default:
			*in = view_skip(*in, in->n);
			break;
		}
		if (r != MULTIPART_MORE)
			return r;
	}
	return MULTIPART_MORE;
}

bool multipart_is_over(const struct multipart *m)
{
	return m->state == EPILOGUE;
}
