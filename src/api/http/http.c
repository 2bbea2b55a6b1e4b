/*
 * Exchanges: what the dialects call. Checks that an answer is well-formed (a
 * head before bytes, as many bytes as promised, none for HEAD) so that neither
 * driver has to.
 */
#include "http.h"

#include <errno.h>

#include "http_conn.h"
#include "text.h"
#include "poison.h"

struct view http_get_header(const struct http_exchange *x, const char *name)
{
	struct view want = view_of(name);
	for (size_t i = 0; i < x->n_headers; i++)
		if (view_eq(x->headers[i].name, want))
			return x->headers[i].value;
	return VIEW_NONE;
}

/* Percent-decoded into the arena; p == NULL when it cannot be. */
static struct view decode(struct arena *a, struct view raw)
{
	struct view done = VIEW_NONE;
	struct buf b = BUF_INIT(raw.n + 1);
	if (text_unpercent(&b, raw, true) == 0)
		done = arena_view(a, buf_view(&b));
	buf_done(&b);
	return done;
}

struct view http_get_query(const struct http_exchange *x, const char *name)
{
	struct view want = view_of(name), rest = x->query;
	while (rest.p) {
		struct view value, pair = view_split(rest, '&', &rest);
		struct view key = view_split(pair, '=', &value);
		bool coded = memchr(key.p ? key.p : "", '%', key.n) || memchr(key.p ? key.p : "", '+', key.n);
		if (coded)
			key = decode(x->arena, key);
		if (!key.p || !view_eq(key, want))
			continue;
		return decode(x->arena, value.p ? value : VIEW(""));
	}
	return VIEW_NONE;
}

static void begin(struct http_impl *i, const struct http_answer *a)
{
	i->begun = true;
	i->bodyless = i->is_head || a->status == 204 || a->status == 304;
	i->left = a->length;
	i->side->begin(i, a);
}

static bool is_events(const char *content_type, const struct http_header *extra, size_t n_extra)
{
	if (content_type)
		return view_starts(view_of(content_type), "text/event-stream");
	for (size_t i = 0; i < n_extra; i++)
		if (view_is(extra[i].name, "content-type"))
			return view_starts(extra[i].value, "text/event-stream");
	return false;
}

void http_begin(struct http_exchange *x, int status, const char *content_type, int64_t length,
		const struct http_header *extra, size_t n_extra)
{
	struct http_impl *i = http_impl_of(x);
	if (i->finished || i->begun)
		return;
	/* Who reads events and goes away does so without a word. */
	if (is_events(content_type, extra, n_extra))
		x->eof_aborts = true;
	begin(i, &(struct http_answer){ .status = status,
					.content_type = content_type,
					.length = length < 0 ? -1 : length,
					.extra = extra,
					.n_extra = n_extra });
}

bool http_write(struct http_exchange *x, struct view data)
{
	struct http_impl *i = http_impl_of(x);
	if (i->finished || !i->begun || i->bodyless || i->overrun)
		return true;
	if (i->left >= 0 && data.n > (uint64_t)i->left) {
		i->overrun = true; /* http_end will break it */
		return true;
	}
	if (i->left >= 0)
		i->left -= (int64_t)data.n;
	return i->side->write(i, data);
}

void http_later(struct http_exchange *x)
{
	http_impl_of(x)->blocked = true;
}

bool http_is_full(const struct http_exchange *x)
{
	return CONTAINER(x, struct http_impl, x)->blocked;
}

void http_end(struct http_exchange *x)
{
	struct http_impl *i = http_impl_of(x);
	if (i->finished)
		return;
	if (!i->begun) {
		http_reply(x, 500, NULL, VIEW_NONE, NULL, 0);
		return;
	}
	if (i->overrun || (i->left > 0 && !i->bodyless)) {
		http_break(x);
		return;
	}
	i->finished = true;
	i->side->end(i);
}

void http_break(struct http_exchange *x)
{
	struct http_impl *i = http_impl_of(x);
	if (i->finished)
		return;
	i->finished = true;
	i->side->broken(i);
}

bool http_cut(struct http_exchange *x)
{
	struct http_impl *i = http_impl_of(x);
	if (i->finished || !x->ops || !x->ops->on_abort)
		return false;
	i->finished = true;
	i->side->broken(i);
	x->ops->on_abort(x);
	return true;
}

static void reply(struct http_exchange *x, const struct http_answer *a, struct view body, bool shared)
{
	struct http_impl *i = http_impl_of(x);
	if (i->finished)
		return;
	if (i->begun) {
		http_break(x); /* a second answer: the first one is not going to be right */
		return;
	}
	begin(i, a);
	if (body.n && !i->bodyless && shared)
		i->side->share(i, body);
	else if (body.n && !i->bodyless)
		i->side->write(i, body);
	i->finished = true;
	i->side->end(i);
}

static struct http_answer whole(int status, const char *content_type, struct view body,
				const struct http_header *extra, size_t n_extra)
{
	return (struct http_answer){ .status = status,
				     .content_type = content_type,
				     .length = (int64_t)body.n,
				     .extra = extra,
				     .n_extra = n_extra,
				     .whole = true };
}

void http_reply(struct http_exchange *x, int status, const char *content_type, struct view body,
		const struct http_header *extra, size_t n_extra)
{
	const struct http_answer a = whole(status, content_type, body, extra, n_extra);
	reply(x, &a, body, false);
}

void http_reply_shared(struct http_exchange *x, int status, const char *content_type, struct view body,
		       const struct http_header *extra, size_t n_extra)
{
	const struct http_answer a = whole(status, content_type, body, extra, n_extra);
	reply(x, &a, body, true);
}

bool http_upgrade(struct http_exchange *x, const char *protocol, const struct http_header *extra,
		  size_t n_extra)
{
	struct http_impl *i = http_impl_of(x);
	if (i->finished || i->begun || !i->side->upgrade || x->version != 11 || i->is_head)
		return false;
	i->begun = true;
	i->left = -1;
	i->side->upgrade(i, &(struct http_answer){ .status = 101,
						   .length = -1,
						   .upgrade = protocol,
						   .extra = extra,
						   .n_extra = n_extra });
	return true;
}

void http_trailers(struct http_exchange *x, const struct http_header *t, size_t n)
{
	struct http_impl *i = http_impl_of(x);
	if (!i->finished && i->begun && !i->is_head)
		i->side->trailers(i, t, n);
}

void http_body_pause(struct http_exchange *x)
{
	http_impl_of(x)->paused = true;
}

void http_body_resume(struct http_exchange *x)
{
	struct http_impl *i = http_impl_of(x);
	if (i->finished || !i->paused)
		return;
	i->paused = false;
	i->side->resume(i);
}

void http_vouch(struct http_exchange *x, uint64_t party)
{
	http_place_known(http_impl_of(x)->conn, party);
}

/* Counted when the driver settles: nobody may be closed within a dialect's call. */
void http_hold(struct http_exchange *x, size_t bytes)
{
	http_impl_of(x)->kept = bytes;
}

bool http_is_pressed(const struct http_exchange *x)
{
	return http_place_is_pressed(CONTAINER(x, struct http_impl, x)->conn);
}

/* ---- for the drivers ---- */

void http_impl_abort(struct http_impl *i)
{
	if (i->finished)
		return;
	i->finished = true;
	if (i->x.ops && i->x.ops->on_abort)
		i->x.ops->on_abort(&i->x);
}

void http_impl_wipe(struct view data)
{
	if (data.n)
		explicit_bzero((void *)data.p, data.n);
}

void http_impl_body(struct http_impl *i, struct view data, bool last)
{
	if (!i->finished && i->x.ops && i->x.ops->on_body)
		i->x.ops->on_body(&i->x, data, last);
}

static enum err_code error_code(int status)
{
	switch (status) {
	case 408:
		return ERR_TIMEOUT;
	case 413:
		return ERR_TOO_LARGE;
	case 414:
		return ERR_URI_TOO_LONG;
	case 417:
		return ERR_EXPECTATION;
	case 431:
		return ERR_HEAD_TOO_LARGE;
	case 500:
		return ERR_INTERNAL;
	case 501:
		return ERR_UNSUPPORTED;
	case 503:
		return ERR_UNAVAILABLE;
	case 505:
		return ERR_VERSION;
	default:
		return ERR_BAD_REQUEST;
	}
}

int http_impl_error(struct buf *out, int status, const char *message, const char *request_id)
{
	return buf_printf(out, "{\"error\":{\"code\":\"%s\",\"message\":\"%s\",\"request_id\":\"%s\"}}\n",
			  err_name(error_code(status)), message, request_id);
}
