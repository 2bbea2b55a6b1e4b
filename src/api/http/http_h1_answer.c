/*
 * What the dialect's calls do to an answer of HTTP/1.1: they queue bytes in the room, and have http_h1.c send
 * them.
 */
#include "http_h1.h"
#include "poison.h"

#define TRAILERS_MAX 4096

static struct http_h1 *h1_of(struct http_impl *i)
{
	return CONTAINER(i, struct http_h1, i);
}

static void h1_kick(struct http_h1 *h)
{
	if (!h->busy)
		http_conn_kick(h->c);
}

static void h1_begin(struct http_impl *i, const struct http_answer *a)
{
	struct http_h1 *h = h1_of(i);
	int64_t length = a->length;
	if ((a->whole && h1_body_left(h) && !h1_can_drain(h)) || h->c->seat.guest)
		h->close = true;
	if (a->status == 204 || a->status == 304 || (i->is_head && length < 0)) {
		length = HTTP1_LENGTH_NONE;
	} else if (length < 0 && i->x.version == 10) {
		length = HTTP1_LENGTH_NONE;
		h->close = true; /* that is what ends it */
	}
	h->chunked = length == HTTP1_LENGTH_CHUNKED;
	if (h1_queued(h) == 0)
		http_conn_progress(h->c);
	(void)!http1_write_head(&h->room->out, &(struct http1_answer){ .status = a->status,
								       .length = length,
								       .content_type = a->content_type,
								       .date = http_server_date(h->c->server),
								       .request_id = view_of(i->x.request_id),
								       .version = i->x.version,
								       .keep_alive = !h->close,
								       .extra = a->extra,
								       .n_extra = a->n_extra });
	h1_kick(h);
}

static bool h1_write(struct http_impl *i, struct view data)
{
	struct http_h1 *h = h1_of(i);
	if (h1_queued(h) == 0)
		http_conn_progress(h->c);
	if (h->chunked)
		http1_write_chunk(&h->room->out, data);
	else
		buf_add(&h->room->out, data);
	i->blocked |= h1_queued(h) >= http_place_high_water(h->c); /* until on_writable has come */
	h1_kick(h);
	return !i->blocked;
}

static void h1_share(struct http_impl *i, struct view data)
{
	h1_of(i)->shared = data;
}

static void h1_end(struct http_impl *i)
{
	struct http_h1 *h = h1_of(i);
	if (h->chunked && !i->bodyless)
		http1_write_last_chunk(&h->room->out, buf_view(&h->trailers));
	buf_done(&h->trailers);
	h1_kick(h);
}

static void h1_broken(struct http_impl *i)
{
	h1_of(i)->broken = true;
	h1_kick(h1_of(i));
}

static void h1_trailers(struct http_impl *i, const struct http_header *t, size_t n)
{
	struct buf *b = &h1_of(i)->trailers;
	b->max = TRAILERS_MAX;
	for (size_t k = 0; k < n; k++)
		if (http1_is_header(t[k]) && !http1_write_is_framing(t[k].name))
			buf_printf(b, "%.*s: %.*s\r\n", VIEW_ARG(t[k].name), VIEW_ARG(t[k].value));
	if (b->bad)
		buf_done(b); /* better none than half a line */
}

/* What the client sent behind its request is already of the new protocol. */
static void h1_upgrade(struct http_impl *i, const struct http_answer *a)
{
	struct http_h1 *h = h1_of(i);
	h->state = H1_RAW;
	h->close = true;
	h->chunked = false;
	if (h1_queued(h) == 0)
		http_conn_progress(h->c);
	(void)!http1_write_head(&h->room->out, &(struct http1_answer){ .status = a->status,
								       .length = HTTP1_LENGTH_NONE,
								       .date = http_server_date(h->c->server),
								       .request_id = view_of(i->x.request_id),
								       .version = i->x.version,
								       .upgrade = a->upgrade,
								       .extra = a->extra,
								       .n_extra = a->n_extra });
	h1_kick(h);
}

static void h1_resume(struct http_impl *i)
{
	http_conn_progress(h1_of(i)->c);
	h1_kick(h1_of(i));
}

const struct http_side http_h1_answer_side = {
	.begin = h1_begin,
	.write = h1_write,
	.share = h1_share,
	.end = h1_end,
	.broken = h1_broken,
	.trailers = h1_trailers,
	.resume = h1_resume,
	.upgrade = h1_upgrade,
};
