/*
 * Streams of events: see stream.h.
 */
#include "stream.h"

#include "answer_long.h"
#include "poison.h"

#define PING_MS     15000
#define HEADERS_MAX 16

/* ---- choosing ---- */

static enum stream_form form_of(struct view type)
{
	if (view_eq_nocase(type, VIEW("text/event-stream")))
		return STREAM_SSE;
	if (view_eq_nocase(type, VIEW("application/x-ndjson")))
		return STREAM_NDJSON;
	if (view_eq_nocase(type, VIEW("application/octet-stream")))
		return STREAM_RAW;
	return STREAM_NONE;
}

enum stream_form stream_form(const struct request *r)
{
	struct view rest = http_get_header(r->x, "accept");

	while (rest.p) {
		struct view one = view_split(rest, ',', &rest), parameters;
		struct view type = view_trim(view_split(one, ';', &parameters));
		if (view_eq_nocase(type, VIEW("application/json")))
			return STREAM_NONE;
		if (form_of(type) != STREAM_NONE)
			return form_of(type);
	}
	return STREAM_NONE;
}

struct view stream_last_id(const struct request *r)
{
	return http_get_header(r->x, "last-event-id");
}

/* ---- writing ---- */

void stream_release(struct stream *s)
{
	loop_timer_stop(&s->ping);
	buf_done(&s->text);
}

static void write_text(struct stream *s)
{
	if (!http_write(s->r->x, buf_view(&s->text)))
		s->full = true;
	buf_clear(&s->text);
}

void stream_id(struct stream *s, uint64_t id)
{
	if (s->form == STREAM_SSE)
		buf_printf(&s->text, "id: %llu\n", (unsigned long long)id);
}

void stream_open(struct stream *s, struct json_out *o, const char *type)
{
	if (s->form == STREAM_SSE) {
		if (type)
			buf_printf(&s->text, "event: %s\n", type);
		buf_puts(&s->text, "data: ");
	}
	json_out_init(o, &s->text);
	json_out_object(o);
	if (s->form == STREAM_NDJSON && type)
		json_out_kz(o, "type", type);
}

void stream_close(struct stream *s, struct json_out *o)
{
	json_out_end(o, '}');
	buf_puts(&s->text, s->form == STREAM_SSE ? "\n\n" : "\n");
	write_text(s);
}

static void on_ping(struct loop_timer *t)
{
	struct stream *s = CONTAINER(t, struct stream, ping);

	if (!s->full) {
		buf_puts(&s->text,
			 s->form == STREAM_SSE ? ": keep-alive\n\n" : "{\"type\":\"keep-alive\"}\n");
		write_text(s);
	}
	loop_timer_start(s->r->x->loop, t, PING_MS, on_ping);
}

void stream_begin(struct stream *s, const struct http_header *extra, size_t n_extra)
{
	static const char *const types[] = { [STREAM_SSE] = "text/event-stream",
					     [STREAM_NDJSON] = "application/x-ndjson",
					     [STREAM_RAW] = "application/octet-stream" };
	struct http_header headers[HEADERS_MAX] = { { VIEW("cache-control"), VIEW("no-store") },
						    { VIEW("x-accel-buffering"), VIEW("no") },
						    { VIEW("x-content-type-options"), VIEW("nosniff") } };
	size_t n = 3;

	assert(n_extra <= HEADERS_MAX - n);
	for (size_t i = 0; i < n_extra; i++)
		headers[n++] = extra[i];
	s->begun = true;
	http_begin(s->r->x, 200, types[s->form], -1, headers, n);
	if (s->form != STREAM_RAW)
		loop_timer_start(s->r->x->loop, &s->ping, PING_MS, on_ping);
}

void stream_init(struct stream *s, struct request *r, enum stream_form form, const struct http_ops *ops)
{
	s->r = r;
	s->form = form;
	s->text = BUF_INIT(ANSWER_MAX);
	r->x->ops = ops;
	r->x->eof_aborts = true;
}

void stream_finish(struct stream *s)
{
	struct request *r = s->r;

	stream_release(s);
	http_end(r->x);
	request_done(r);
}

struct json_out *stream_last_open(struct stream *s, const char *type)
{
	struct request *r = s->r;

	if (!r->out.max)
		answer_json(r);
	buf_printf(&r->out, "event: %s\ndata: ", type);
	json_out_init(&r->json, &r->out);
	json_out_object(&r->json);
	return &r->json;
}

void stream_last_close(struct stream *s)
{
	json_out_end(&s->r->json, '}');
	buf_puts(&s->r->out, "\n\n");
}

static void end_last(struct request *r)
{
	http_end(r->x);
	request_done(r);
}

void stream_last_send(struct stream *s)
{
	struct request *r = s->r;

	stream_release(s);
	if (r->out.bad) {
		http_break(r->x);
		request_done(r);
		return;
	}
	answer_long_send(r, end_last);
}

void stream_cut(struct stream *s)
{
	struct request *r = s->r;

	stream_release(s);
	http_break(r->x);
	request_done(r);
}
