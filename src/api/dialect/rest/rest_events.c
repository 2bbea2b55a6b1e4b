/*
 * /v1/events: the log of events, as a page of JSON or as an endless stream of server-sent events. A
 * stream holds only its position in the log, so a slow client simply reads later.
 */
#include "event.h"

#include <stdio.h>

#include "num.h"
#include "rest_impl.h"
#include "poison.h"

#define PAGE_DEFAULT 100
#define ALIVE_MS     15000
#define EVENT_MAX    (64u * 1024)

static int read_filter(struct request *r, struct event_filter *ret, struct err *e)
{
	struct view types = request_query(r, "type");

	if (auth_permit(&r->actor, ACT_EVENTS, NULL, e) < 0)
		return -1;
	if (types.p && (!types.n || events_read_types(types, &ret->types, e) < 0))
		return e->code ? err_wrap(e, "type") : err_set(e, ERR_INVALID, "type must not be empty");
	ret->box = request_query(r, "sandbox");
	if (ret->box.p && !ret->box.n)
		return err_set(e, ERR_INVALID, "sandbox must not be empty");
	return 0;
}

/* Where to begin; *ret_given says whether somebody said so. */
static int read_after(struct request *r, bool stream, uint64_t *ret, bool *ret_given, struct err *e)
{
	struct view after = request_query(r, "after");
	struct view last = stream ? http_get_header(r->x, "last-event-id") : VIEW_NONE;

	/* A client that reconnects by itself repeats the query: its header is newer. */
	if (last.p && last.n)
		after = last;
	*ret_given = after.p != NULL;
	if (after.p && num_u64(after, ret) < 0)
		return err_set(e, ERR_INVALID, "after (or Last-Event-ID) must be the id of an event");
	return 0;
}

/* ---- a page ---- */

static void page(struct request *r)
{
	struct buf out = BUF_INIT(ANSWER_MAX);
	struct event_filter f = { 0 };
	uint64_t next = 0;
	uint32_t most = PAGE_DEFAULT, n = 0;
	const struct event *v;
	struct err e = { 0 };
	bool given;

	if (request_query_limit(r, EVENTS_PAGE_MAX, &most, &e) < 0 || read_filter(r, &f, &e) < 0 ||
	    read_after(r, false, &next, &given, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	uint64_t after = events_meant(r->core, &r->actor, next);
	buf_puts(&out, "{\"events\":[");
	while (n < most && (v = events_next(r->core, &r->actor, &f, after))) {
		if (n++)
			buf_putc(&out, ',');
		(void)!events_to_json(&r->actor, v, &out);
		after = v->id;
		next = events_shown(&r->actor, v);
	}
	/* With room left everything was seen, also what the filter held back. */
	if (n < most)
		next = MAX(next, events_last_shown(r->core, &r->actor));
	buf_printf(&out, "],\"next\":%llu,\"first\":%llu}", (unsigned long long)next,
		   (unsigned long long)events_first_shown(r->core, &r->actor));
	answer_reply(r, 200, &out);
}

/* ---- a stream ---- */

struct feed {
	struct request *r;
	struct events_watch watch;
	struct event_filter filter;
	uint64_t after,
		shown; /* the id of the last event that is behind it, and what the client knows it by */
	struct loop_timer alive;
	bool blocked; /* until the client has read what there is */
};

static void stop(struct feed *s)
{
	events_unwatch(&s->watch);
	loop_timer_stop(&s->alive);
}

static void on_gone(struct request *r)
{
	stop(r->own);
}

/* The daemon goes down: the client comes back with the id of the last event it has seen. */
static void on_drain(struct request *r)
{
	stop(r->own);
	http_end(r->x);
	request_done(r);
}

static bool put(struct feed *s, struct view text)
{
	s->blocked = !http_write(s->r->x, text);
	return !s->blocked;
}

/* Events that are not kept any more were missed, and the client should know. */
static void tell_lost(struct feed *s)
{
	const struct request *r = s->r;
	uint64_t first = events_first_shown(r->core, &r->actor);
	char text[128];

	if (s->shown == 0 || s->shown + 1 >= first)
		return;
	snprintf(text, sizeof(text), "event: lost\ndata: {\"after\":%llu,\"first\":%llu}\n\n",
		 (unsigned long long)s->shown, (unsigned long long)first);
	s->shown = first - 1;
	s->after = events_meant(r->core, &r->actor, s->shown);
	put(s, view_of(text));
}

static void pump(struct feed *s)
{
	struct request *r = s->r;
	const struct event *v;

	if (s->blocked)
		return;
	tell_lost(s);
	while (!s->blocked && (v = events_next(r->core, &r->actor, &s->filter, s->after))) {
		struct buf out = BUF_INIT(EVENT_MAX);
		s->after = v->id;
		s->shown = events_shown(&r->actor, v);
		buf_printf(&out, "id: %llu\nevent: %s\ndata: ", (unsigned long long)s->shown,
			   events_name(v->type));
		(void)!events_to_json(&r->actor, v, &out);
		buf_puts(&out, "\n\n");
		if (!out.bad)
			put(s, buf_view(&out));
		buf_done(&out);
	}
	/* What the filter holds back need not be looked at again. */
	if (!s->blocked) {
		s->after = MAX(s->after, events_last(r->core));
		s->shown = MAX(s->shown, events_last_shown(r->core, &r->actor));
	}
}

static void on_more(struct events_watch *w)
{
	pump(CONTAINER(w, struct feed, watch));
}

static void on_alive(struct loop_timer *t)
{
	struct feed *s = CONTAINER(t, struct feed, alive);

	if (!s->blocked)
		put(s, VIEW(": keep-alive\n\n"));
	loop_timer_start(s->r->x->loop, t, ALIVE_MS, on_alive);
}

static void on_writable(struct http_exchange *x)
{
	struct feed *s = ((struct request *)x->ctx)->own;
	s->blocked = false;
	pump(s);
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
}

static void on_abort(struct http_exchange *x)
{
	struct request *r = x->ctx;
	stop(r->own);
	request_done(r);
}

static const struct http_ops feed_ops = { .on_body = on_body,
					  .on_abort = on_abort,
					  .on_writable = on_writable };

static void stream(struct request *r)
{
	static const struct http_header headers[] = { { VIEW("cache-control"), VIEW("no-store") },
						      { VIEW("x-accel-buffering"), VIEW("no") } };
	struct event_filter f = { 0 };
	struct err e = { 0 };
	uint64_t after = 0, newest = events_last_shown(r->core, &r->actor);
	bool given;

	if (read_filter(r, &f, &e) < 0 || read_after(r, true, &after, &given, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	struct feed *s = request_own(r, sizeof(*s));
	if (!s)
		return;
	s->r = r;
	s->filter = f;
	/* An id from the future is another installation's. */
	s->shown = given && after <= newest ? after : newest;
	s->after = events_meant(r->core, &r->actor, s->shown);
	r->on_gone = on_gone;
	r->on_drain = on_drain;
	r->x->ops = &feed_ops;
	http_begin(r->x, 200, "text/event-stream", -1, headers, ELEMS(headers));
	put(s, VIEW(": events\n\n"));
	events_watch(r->core, &s->watch, on_more);
	loop_timer_start(r->x->loop, &s->alive, ALIVE_MS, on_alive);
	pump(s);
}

static bool wants_stream(const struct http_exchange *x)
{
	struct view accept = http_get_header(x, "accept"), rest;

	while (accept.p && accept.n) {
		struct view type = view_split(view_split(accept, ',', &accept), ';', &rest);
		if (view_eq_nocase(view_trim(type), VIEW("text/event-stream")))
			return true;
	}
	return false;
}

static void events(struct request *r)
{
	if (wants_stream(r->x) && !view_is(r->x->method, "HEAD"))
		stream(r);
	else
		page(r);
}

const struct route rest_events_routes[] = {
	{ "GET", "/v1/events", events, .query = "after sandbox type limit" },
	{ 0 },
};
