/*
 * The answer to one POST, or to a GET that waits for messages. An answer to one request that is ready before
 * anything else is to be said is a plain JSON document; anything else is a stream of events.
 *
 * In the older era an event has an id, "STREAM-SEQ", and is kept for a while: a client whose connection broke
 * gets what it missed by a GET with Last-Event-ID, and calls go on without it. In 2026-07-28 a client that
 * goes away has cancelled its call.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "answer_long.h"
#include "mcp_impl.h"
#include "num.h"
#include "poison.h"

#define LATE_MS   5000
#define RETRY_MS  1000
#define KEEP      (128u * 1024)       /* bytes of events of a session */
#define KEEP_LOST (16u * 1024 * 1024) /* while nobody reads the stream */
#define UNREAD    (64u * 1024 * 1024) /* of a tenant: what its calls hold and say while nobody reads them */
#define OVERHEAD  512                 /* what an event costs beside its text */

struct event {
	struct list link;
	uint64_t seq;
	size_t n;
	char text[];
};

/* Between a request and its stream; either may go first. */
struct attached {
	struct mcp_stream *stream;
};

/* ---- events that are kept ---- */

static void drop_event(struct mcp_stream *s, struct event *v)
{
	list_del(&v->link);
	s->kept -= v->n + OVERHEAD;
	s->session->kept -= v->n + OVERHEAD;
	free(v);
}

/* Attached streams count with their connections (http_hold). */
static size_t unread(const struct mcp *m, const struct tenant *t)
{
	size_t n = 0;

	LIST_EACH (it, &m->order) {
		const struct mcp_session *session = CONTAINER(it, struct mcp_session, order);
		if (session->actor.tenant != t)
			continue;
		n += session->kept;
		LIST_EACH (one, &session->streams) {
			const struct mcp_stream *s = CONTAINER(one, struct mcp_stream, link);
			n += s->r ? 0 : s->arena.used;
		}
	}
	return n;
}

static void drop_events(struct mcp_stream *s)
{
	LIST_EACH (it, &s->events)
		drop_event(s, CONTAINER(it, struct event, link));
}

/* Of ended streams first, then of this one. */
static void make_room(struct mcp_stream *s, size_t n, size_t max)
{
	LIST_EACH (it, &s->session->streams) {
		struct mcp_stream *other = CONTAINER(it, struct mcp_stream, link);
		if (s->session->kept + n <= max)
			return;
		if (other != s && list_empty(&other->calls) && !other->r && !other->lasting)
			mcp_stream_free(other);
	}
	LIST_EACH (it, &s->events)
		if (s->session->kept + n > max)
			drop_event(s, CONTAINER(it, struct event, link));
}

static void keep(struct mcp_stream *s, struct view json)
{
	size_t max = s->r ? KEEP : KEEP_LOST, n = json.n + OVERHEAD;
	bool fits = n <= max && (n <= KEEP || unread(s->mcp, s->session->actor.tenant) + n <= UNREAD);
	struct event *v = fits ? malloc(sizeof(*v) + json.n) : NULL;

	make_room(s, n, max);
	if (!v) { /* whoever resumes behind it is told that something is missing */
		drop_events(s);
		return;
	}
	v->seq = s->seq;
	v->n = json.n;
	if (json.n)
		memcpy(v->text, json.p, json.n);
	s->kept += n;
	s->session->kept += n;
	list_append(&s->events, &v->link);
}

/* ---- writing ---- */

static void write_event(struct mcp_stream *s, uint64_t seq, struct view json)
{
	struct buf *b = &s->sse.text;

	if (s->session)
		buf_printf(b, "id: %u-%llu\n", s->number, (unsigned long long)seq);
	if (json.n)
		buf_puts(b, "event: message\n");
	else
		buf_printf(b, "retry: %d\n", RETRY_MS);
	buf_puts(b, "data: ");
	buf_add(b, json);
	buf_puts(b, "\n\n");
	if (!http_write(s->r->x, buf_view(b)))
		s->sse.full = true;
	buf_clear(b);
	buf_shrink(b);
}

static void emit(struct mcp_stream *s, struct view json)
{
	s->seq++;
	if (s->session)
		keep(s, json);
	if (s->r)
		write_event(s, s->seq, json);
}

/* ---- the request that it answers ---- */

static void detach(struct mcp_stream *s)
{
	if (s->r)
		((struct attached *)s->r->own)->stream = NULL;
	s->r = NULL;
	loop_timer_stop(&s->late);
}

/* The client is gone, or the answer has ended. */
static void lost(struct mcp_stream *s)
{
	detach(s);
	if (!s->session || unread(s->mcp, s->session->actor.tenant) > UNREAD) {
		mcp_stream_free(s); /* nobody waits for it, or too many wait for too much */
		return;
	}
	if (!s->begun) { /* nobody knows an id by which to ask for it */
		s->is_batch = false;
		buf_done(&s->batch);
	}
	mcp_stream_settle(s);
}

static void on_gone(struct request *r)
{
	struct attached *a = r->own;

	if (a && a->stream)
		lost(a->stream);
}

static void on_abort(struct http_exchange *x)
{
	struct request *r = x->ctx;
	struct attached *a = r->own;

	if (a->stream) {
		stream_release(&a->stream->sse);
		lost(a->stream);
	}
	request_done(r);
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
}

static void on_writable(struct http_exchange *x)
{
	struct attached *a = ((struct request *)x->ctx)->own;

	if (a->stream)
		a->stream->sse.full = false;
}

static const struct http_ops ops = { .on_body = on_body, .on_abort = on_abort, .on_writable = on_writable };

static void on_drain(struct request *r)
{
	struct attached *a = r->own;

	if (a && a->stream && a->stream->lasting)
		mcp_stream_hang_up(a->stream);
}

static bool attach(struct mcp_stream *s, struct request *r)
{
	struct attached *a = request_own(r, sizeof(*a));

	if (!a)
		return false;
	a->stream = s;
	s->r = r;
	r->on_gone = on_gone;
	r->on_drain = on_drain;
	return true;
}

/* ---- as events ---- */

static void begin(struct mcp_stream *s)
{
	loop_timer_stop(&s->late);
	s->sse = (struct stream){ 0 };
	s->begun = true;
	stream_init(&s->sse, s->r, STREAM_SSE, &ops);
	stream_begin(&s->sse, NULL, 0);
}

void mcp_stream_begin(struct mcp_stream *s)
{
	if (s->begun || !s->r || s->then)
		return;
	begin(s);
	if (s->session && s->version >= MCP_2025_11) {
		s->seq++;
		write_event(s, s->seq, VIEW("")); /* an id to resume from before anything has happened */
	}
	struct view rest = buf_view(&s->batch);
	while (rest.n) { /* one answer on each line */
		struct view one = view_split(rest, '\n', &rest);
		emit(s, one);
	}
	buf_done(&s->batch);
}

static void on_late(struct loop_timer *t)
{
	mcp_stream_begin(CONTAINER(t, struct mcp_stream, late));
}

void mcp_stream_note(struct mcp_stream *s, struct view json)
{
	mcp_stream_begin(s);
	if (s->begun)
		emit(s, json);
}

/* ---- answers ---- */

bool mcp_stream_content(struct mcp_stream *s, struct view bytes, bool text)
{
	if (!s->r || s->begun || s->is_batch || s->then || bytes.n < ANSWER_LONG_FROM ||
	    !answer_copy(s->r, &bytes))
		return false;
	loop_timer_stop(&s->late); /* it stays one answer */
	s->content = bytes;
	s->content_is_text = text;
	return true;
}

/* The JSON with the content between its quotes, as the request's answer. */
static void put_content(struct mcp_stream *s, struct request *r, struct buf *json)
{
	struct view text = buf_view(json);

	answer_json(r);
	buf_add(&r->out, view_head(text, s->content_at));
	answer_hole(r, s->content_is_text ? ANSWER_STRING : ANSWER_BASE64, s->content);
	buf_add(&r->out, view_skip(text, s->content_at));
	s->content = VIEW_NONE;
	buf_done(json);
}

static void send_plain(struct mcp_stream *s, struct buf *json, int http)
{
	struct request *r = s->r;
	struct http_header session = { VIEW("mcp-session-id"),
				       s->session ? view_of(s->session->id) : VIEW_NONE };

	detach(s);
	r->on_gone = NULL;
	if (s->then) {
		mcp_hub_deliver(s, r, buf_view(json));
		buf_done(json);
		return;
	}
	if (s->content.n) {
		put_content(s, r, json);
		json = &r->out;
	}
	answer_reply_with(r, http, json, &session, s->session ? 1 : 0);
}

void mcp_stream_answer(struct mcp_stream *s, struct buf *json, int http)
{
	if (json->bad) {
		s->content = VIEW_NONE;
		buf_done(json);
		buf_puts(json, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":"
			       "\"the answer does not fit into memory\"}}");
	}
	if (s->begun) {
		emit(s, buf_view(json));
	} else if (s->is_batch) {
		buf_add(&s->batch, buf_view(json));
		buf_putc(&s->batch, '\n');
	} else if (s->r) {
		send_plain(s, json, http);
		return;
	}
	buf_done(json);
}

static void send_batch(struct mcp_stream *s)
{
	struct buf all = BUF_INIT(MCP_RESULT_MAX);
	struct view rest = buf_view(&s->batch);

	buf_putc(&all, '[');
	while (rest.n) {
		struct view one = view_split(rest, '\n', &rest);
		buf_add(&all, one);
		if (rest.n)
			buf_putc(&all, ',');
	}
	buf_putc(&all, ']');
	send_plain(s, &all, 200);
}

void mcp_stream_hang_up(struct mcp_stream *s)
{
	struct buf gone = BUF_INIT(1024);

	if (!s->r)
		return;
	if (s->then) { /* its call was ended by us */
		buf_puts(&gone, "{\"error\":{\"message\":\"the call was cancelled\"}}");
		send_plain(s, &gone, 200);
		return;
	}
	mcp_stream_begin(s);
	detach(s);
	stream_finish(&s->sse);
}

void mcp_stream_settle(struct mcp_stream *s)
{
	if (!list_empty(&s->calls) || s->lasting || s->settling)
		return;
	if (s->r && !s->begun && buf_len(&s->batch))
		send_batch(s);
	else
		mcp_stream_hang_up(s);
	s->ended_ms = s->ended_ms ? s->ended_ms : loop_now(s->mcp->loop);
	arena_done(&s->arena);
	if (!s->session || list_empty(&s->events))
		mcp_stream_free(s);
}

/* ---- life ---- */

struct mcp_stream *mcp_stream_new(struct mcp *m, struct request *r, struct mcp_session *session,
				  enum mcp_version v)
{
	struct mcp_stream *s = calloc(1, sizeof(*s));
	struct err e = { 0 };

	if (!s) {
		err_sys(&e, ERR_INTERNAL, ENOMEM, "request");
		answer_fail(r, &e);
		return NULL;
	}
	s->mcp = m;
	s->session = session;
	s->version = v;
	s->number = session ? ++session->n_streams : 0;
	s->arena = r->arena;
	r->arena = ARENA_INIT(0);
	s->batch = BUF_INIT(MCP_RESULT_MAX);
	list_init(&s->events);
	list_init(&s->calls);
	list_append(session ? &session->streams : &m->streams, &s->link);
	if (!attach(s, r)) {
		mcp_stream_free(s);
		return NULL;
	}
	loop_timer_start(m->loop, &s->late, LATE_MS, on_late);
	return s;
}

void mcp_stream_free(struct mcp_stream *s)
{
	if (!s)
		return;
	s->settling = true; /* its calls do not end it once more */
	LIST_EACH (it, &s->calls)
		mcp_call_free(CONTAINER(it, struct mcp_call, link));
	if (s->r)
		mcp_stream_hang_up(s);
	if (s->session && s->session->get == s)
		s->session->get = NULL;
	drop_events(s);
	list_del(&s->link);
	loop_timer_stop(&s->late);
	buf_done(&s->batch);
	arena_done(&s->arena);
	free(s);
}

void mcp_stream_forget(struct mcp_session *session, uint64_t before_ms)
{
	LIST_EACH (it, &session->streams) {
		struct mcp_stream *s = CONTAINER(it, struct mcp_stream, link);
		if (s->ended_ms && s->ended_ms < before_ms && !s->r)
			mcp_stream_free(s);
	}
}

/* ---- again ---- */

static struct mcp_stream *find(struct mcp_session *session, uint32_t number)
{
	LIST_EACH (it, &session->streams) {
		struct mcp_stream *s = CONTAINER(it, struct mcp_stream, link);
		if (s->number == number)
			return s;
	}
	return NULL;
}

/* Whether every event behind `seq` is there: events have consecutive numbers, but for the first, empty one.
 */
static bool has_all(const struct mcp_stream *s, uint64_t seq)
{
	uint64_t n = 0;

	if (seq > s->seq)
		return false;
	for (const struct list *it = s->events.next; it != &s->events; it = it->next)
		n += CONTAINER(it, struct event, link)->seq > seq;
	return n == s->seq - seq;
}

bool mcp_stream_resume(struct mcp_session *session, struct request *r, struct view last)
{
	struct view rest, first = view_split(last, '-', &rest);
	struct mcp_stream *s;
	uint32_t number;
	uint64_t seq;

	if (num_u32(first, &number) < 0 || !rest.p || num_u64(rest, &seq) < 0)
		return false;
	s = find(session, number);
	if (!s || !s->begun || !has_all(s, seq))
		return false;
	mcp_stream_hang_up(s); /* an older connection that nobody has missed yet */
	if (!attach(s, r))
		return true;
	begin(s);
	if (s->lasting)
		session->get = s;
	LIST_EACH (it, &s->events) {
		struct event *v = CONTAINER(it, struct event, link);
		if (v->seq > seq)
			write_event(s, v->seq, (struct view){ v->text, v->n });
	}
	mcp_stream_settle(s);
	return true;
}
