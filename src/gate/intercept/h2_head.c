/*
 * Field lists of HTTP/2: see h2_head.h.
 */
#include "h2_head.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "http1.h"
#include "num.h"
#include "poison.h"

/* ---- lists ---- */

void h2_head_init(struct h2_head *h, size_t most)
{
	*h = (struct h2_head){ .text = { .max = most, .secret = true }, .most = most };
}

void h2_head_done(struct h2_head *h)
{
	buf_done(&h->text);
	free(h->fields);
	h->fields = NULL;
	h->n = h->room = h->size = 0;
	h->bad = false;
}

static bool grow(struct h2_head *h)
{
	size_t room = h->room ? 2 * h->room : 16;
	struct h2_field *p = realloc(h->fields, room * sizeof(*p));

	if (!p)
		return false;
	h->fields = p;
	h->room = room;
	return true;
}

void h2_head_add(struct h2_head *h, struct view name, struct view value, bool hidden)
{
	size_t at = h->text.n;

	h->size += name.n + value.n + 32;
	if (h->bad || h->size > h->most || h->n == H2_HEAD_FIELDS || (h->n == h->room && !grow(h)) ||
	    buf_add(&h->text, name) < 0 || buf_add(&h->text, value) < 0) {
		h->bad = true;
		return;
	}
	h->fields[h->n++] = (struct h2_field){ (uint32_t)at, (uint32_t)name.n, (uint32_t)(at + name.n),
					       (uint32_t)value.n, hidden };
}

struct http_header h2_head_get(const struct h2_head *h, size_t i)
{
	const struct h2_field *f = &h->fields[i];
	const char *p = h->text.p ? h->text.p : "";

	return (struct http_header){ { p + f->name_at, f->name_n }, { p + f->value_at, f->value_n } };
}

/* ---- requests ---- */

static bool is_lower(struct view name)
{
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] >= 'A' && name.p[i] <= 'Z')
			return false;
	return true;
}

/* What belongs to a connection of HTTP/1 and has no place here. */
static bool of_connection(struct http_header f)
{
	static const char *const names[] = { "connection", "keep-alive", "proxy-connection",
					     "transfer-encoding", "upgrade" };

	for (size_t i = 0; i < ELEMS(names); i++)
		if (view_is(f.name, names[i]))
			return true;
	return view_is(f.name, "te") && !view_eq_nocase(f.value, VIEW("trailers"));
}

static bool is_field(struct http_header f)
{
	return http1_is_header(f) && is_lower(f.name) && !of_connection(f);
}

static int fail(struct h2_request *r, int status, const char *why)
{
	r->why = why;
	return -status;
}

static int take_pseudo(struct h2_request *r, struct http_header f, struct view *scheme, struct view *target)
{
	struct view *to = view_is(f.name, ":method")      ? &r->method
			  : view_is(f.name, ":authority") ? &r->authority
			  : view_is(f.name, ":scheme")    ? scheme
			  : view_is(f.name, ":path")      ? target
							  : NULL;

	if (!to || to->p || r->n_headers || !f.value.n) /* unknown (:protocol), twice, late or empty */
		return fail(r, 400, "malformed pseudo-header");
	*to = f.value;
	return 0;
}

static int take_length(struct h2_request *r, struct view value)
{
	uint64_t n;

	if (num_u64(value, &n) < 0 || n > INT64_MAX ||
	    (r->content_length >= 0 && r->content_length != (int64_t)n))
		return fail(r, 400, "malformed Content-Length");
	r->content_length = (int64_t)n;
	return 0;
}

static int take_field(struct h2_request *r, struct http_header f, struct view *host)
{
	if (!is_field(f))
		return fail(r, 400, "malformed header");
	if (view_is(f.name, "host")) {
		if (host->p)
			return fail(r, 400, "malformed Host");
		*host = f.value;
	}
	if (view_is(f.name, "content-length") && take_length(r, f.value) < 0)
		return -400;
	if (view_is(f.name, "expect"))
		r->expect_continue = view_eq_nocase(f.value, VIEW("100-continue"));
	if (r->n_headers == INJECT_HEADERS)
		return fail(r, 431, "too many headers");
	r->headers[r->n_headers++] = f;
	return 0;
}

static int take_target(struct h2_request *r, struct view target)
{
	bool star = view_is(target, "*") && view_is(r->method, "OPTIONS");

	if (!star && (target.n == 0 || target.p[0] != '/' || !http1_is_target(target)))
		return fail(r, 400, "malformed request target");
	r->path = view_split(target, '?', &r->query);
	return 0;
}

int h2_request_parse(const struct h2_head *h, struct view scheme, struct h2_request *r)
{
	struct view said = VIEW_NONE, target = VIEW_NONE, host = VIEW_NONE;
	int e = 0;

	*r = (struct h2_request){ .content_length = -1 };
	if (h->bad)
		return fail(r, 431, "the request's head is too large");
	for (size_t i = 0; e == 0 && i < h->n; i++) {
		struct http_header f = h2_head_get(h, i);
		e = f.name.n && f.name.p[0] == ':' ? take_pseudo(r, f, &said, &target)
						   : take_field(r, f, &host);
	}
	if (e < 0)
		return e;
	if (!r->method.p || r->method.n > HTTP1_METHOD_MAX ||
	    !http1_is_header((struct http_header){ r->method, VIEW("") }) || view_is(r->method, "CONNECT"))
		return fail(r, 501, "unknown method");
	e = take_target(r, target);
	if (e < 0)
		return e;
	if (!view_eq_nocase(said, scheme))
		return fail(r, 400, "the scheme does not fit the connection");
	if (!r->authority.p)
		r->authority = host;
	else if (host.p && !view_eq_nocase(host, r->authority))
		return fail(r, 403, "paddock: Host does not fit the connection");
	if (!r->authority.n || !http1_is_host(r->authority))
		return fail(r, 400, "malformed Host");
	return 0;
}

int h2_request_write(const struct h2_request *r, struct view scheme, struct inject *j, bool same,
		     int64_t length, struct h2_head *out)
{
	_cleanup_(buf_done) struct buf text = { .max = INJECT_OUT, .secret = true };
	struct inject_head h = { r->path, r->query, r->headers, r->n_headers };
	int e = inject_target(j, &h, &text);

	h2_head_add(out, VIEW(":method"), r->method, false);
	h2_head_add(out, VIEW(":scheme"), scheme, false);
	h2_head_add(out, VIEW(":authority"), r->authority, false);
	h2_head_add(out, VIEW(":path"), buf_view(&text), j->n > 0);
	for (size_t i = 0; e == 0 && i < r->n_headers; i++) {
		const struct http_header *f = &r->headers[i];
		if (inject_drops(j, f->name) || (!same && view_is(f->name, "content-length")))
			continue;
		buf_clear(&text);
		e = inject_header(j, *f, &text);
		h2_head_add(out, f->name, buf_view(&text), !view_eq(buf_view(&text), f->value));
	}
	for (size_t i = 0; e == 0 && i < j->n; i++) {
		if (!j->rules[i].header[0])
			continue;
		buf_clear(&text);
		e = inject_own(j, i, &text);
		h2_head_add(out, view_of(j->rules[i].header), buf_view(&text), true);
	}
	if (e == 0 && !same && length >= 0) {
		char digits[24];
		int n = snprintf(digits, sizeof(digits), "%lld", (long long)length);
		h2_head_add(out, VIEW("content-length"), (struct view){ digits, (size_t)n }, false);
	}
	h2_head_add(out, VIEW("accept-encoding"), VIEW("identity"), false);
	return e < 0 ? e : out->bad ? -ENOBUFS : 0;
}

/* ---- answers ---- */

static int put_masked(const struct mask *m, struct http_header f, struct h2_head *out)
{
	_cleanup_(buf_done) struct buf name = { .max = out->most, .secret = true },
				       value = { .max = out->most, .secret = true };

	if (m->words && (mask_text(m, f.name, &name) < 0 || mask_text(m, f.value, &value) < 0))
		return -ENOBUFS;
	h2_head_add(out, m->words ? buf_view(&name) : f.name, m->words ? buf_view(&value) : f.value, false);
	return out->bad ? -ENOBUFS : 0;
}

int h2_answer_write(const struct h2_head *in, const struct mask *m, struct h2_head *out,
		    struct h2_answer *ret)
{
	struct h2_answer a = { 0 };
	uint32_t status;

	if (in->bad || !in->n)
		return -EBADMSG;
	for (size_t i = 0; i < in->n; i++) {
		struct http_header f = h2_head_get(in, i);
		if (i == 0) { /* the only pseudo-header of an answer */
			if (!view_is(f.name, ":status") || f.value.n != 3 || num_u32(f.value, &status) < 0 ||
			    status < 100)
				return -EBADMSG;
			a.status = (int)status;
			h2_head_add(out, f.name, f.value, false);
			continue;
		}
		if (!is_field(f))
			return -EBADMSG;
		a.coded = a.coded || inject_is_coded(f);
		int r = put_masked(m, f, out);
		if (r < 0)
			return r;
	}
	if (a.status == 101)
		return -EBADMSG;
	*ret = a;
	return out->bad ? -ENOBUFS : 0;
}

int h2_trailers_write(const struct h2_head *in, const struct inject *j, const struct mask *m,
		      struct h2_head *out)
{
	static const struct mask nothing;

	if (in->bad)
		return -EBADMSG;
	for (size_t i = 0; i < in->n; i++) {
		struct http_header f = h2_head_get(in, i);
		if (!is_field(f))
			return -EBADMSG;
		if ((j && inject_drops(j, f.name)) || view_is(f.name, "content-length"))
			continue;
		int r = put_masked(m ? m : &nothing, f, out);
		if (r < 0)
			return r;
	}
	return 0;
}
