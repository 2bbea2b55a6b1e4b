/*
 * Streams of events: see rest_stream.h.
 */
#include "rest_stream.h"

#include <errno.h>
#include <stdio.h>

#include "procs.h"
#include "rest_procs.h"
#include "text.h"
#include "poison.h"

#define PING_MS   15000
#define EVENT_MAX REST_ANSWER_MAX

static const char *const channel_names[] = { "stdout", "stderr" };

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

enum stream_form stream_form(const struct req *r)
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

void stream_open(struct stream *s, struct json_out *o, const char *type)
{
	if (s->form == STREAM_SSE) {
		buf_puts(&s->text, "event: ");
		buf_puts(&s->text, type);
		buf_puts(&s->text, "\ndata: ");
	}
	json_out_init(o, &s->text);
	json_out_object(o);
	if (s->form == STREAM_NDJSON)
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

void stream_begin(struct stream *s, uint32_t process)
{
	static const char *const types[] = { [STREAM_SSE] = "text/event-stream",
					     [STREAM_NDJSON] = "application/x-ndjson",
					     [STREAM_RAW] = "application/octet-stream" };
	char pid[16];
	struct http_header headers[] = { { VIEW("cache-control"), VIEW("no-store") },
					 { VIEW("x-accel-buffering"), VIEW("no") },
					 { VIEW("x-content-type-options"), VIEW("nosniff") },
					 { VIEW("x-process-id"), VIEW_NONE } };

	snprintf(pid, sizeof(pid), "%u", process);
	headers[3].value = view_of(pid);
	s->begun = true;
	http_begin(s->r->x, 200, types[s->form], -1, headers, ELEMS(headers));
	if (s->form != STREAM_RAW)
		loop_timer_start(s->r->x->loop, &s->ping, PING_MS, on_ping);
}

static void on_begun(struct exec *x, const struct exec_begun *b)
{
	struct stream *s = CONTAINER(x, struct stream, exec);
	struct json_out o;

	stream_begin(s, b->pid);
	memcpy(s->offsets, b->offsets, sizeof(s->offsets));
	if (s->form == STREAM_RAW)
		return;
	stream_open(s, &o, "start");
	if (b->info) {
		rest_procs_put_info(&o, b->info);
	} else {
		json_out_ku64(&o, "pid", b->pid);
		json_out_kz(&o, "tag", s->tag);
	}
	stream_close(s, &o);
}

/* ---- output ---- */

static bool is_text(struct view v)
{
	return text_utf8_prefix(v) == v.n && !(v.n && memchr(v.p, 0, v.n));
}

void stream_put_bytes(struct json_out *o, uint64_t offset, struct view data)
{
	bool text = is_text(data);
	struct buf coded = BUF_INIT(REST_ANSWER_MAX);

	json_out_ku64(o, "offset", offset);
	if (text) {
		json_out_kstr(o, "data", data);
	} else {
		if (text_base64(&coded, data) < 0)
			o->b->bad = coded.bad;
		json_out_kstr(o, "data", buf_view(&coded));
	}
	json_out_kz(o, "encoding", text ? "utf-8" : "base64");
	buf_done(&coded);
}

static void put_output(struct stream *s, unsigned at, struct view data)
{
	struct json_out o;

	if (data.n == 0)
		return;
	stream_open(s, &o, channel_names[at]);
	stream_put_bytes(&o, s->offsets[at], data);
	s->offsets[at] += data.n;
	stream_close(s, &o);
}

/* How many bytes at the end are the beginning of a character that is not whole yet: 0 … 3. */
static size_t split_tail(struct view v)
{
	for (size_t n = 1; n <= MIN(v.n, 3u); n++) {
		unsigned char c = (unsigned char)v.p[v.n - n];
		if ((c & 0xc0) == 0x80)
			continue;
		size_t whole = c >= 0xf0 && c <= 0xf4  ? 4
			       : c >= 0xe0 && c < 0xf0 ? 3
			       : c >= 0xc2 && c < 0xe0 ? 2
						       : 0;
		return whole > n ? n : 0;
	}
	return 0;
}

/* Puts the bytes that were held back before the first ones of `data`, as an event of their own. */
static struct view join_tail(struct stream *s, unsigned at, struct view data)
{
	char joined[8];
	size_t n = s->n_tail[at], take = 0;

	if (n == 0)
		return data;
	memcpy(joined, s->tail[at], n);
	/* Up to the end of the character: continuation bytes, at most three. */
	while (take < data.n && n < 4 && ((unsigned char)data.p[take] & 0xc0) == 0x80)
		joined[n++] = data.p[take++];
	struct view v = { joined, n };
	if (take == data.n && split_tail(v) == n) { /* still not whole */
		memcpy(s->tail[at], joined, n);
		s->n_tail[at] = n;
		return VIEW("");
	}
	s->n_tail[at] = 0;
	put_output(s, at, v);
	return view_skip(data, take);
}

void stream_output(struct stream *s, unsigned channel, struct view data)
{
	unsigned at = channel - 1;

	data = join_tail(s, at, data);
	size_t tail = split_tail(data);
	put_output(s, at, view_head(data, data.n - tail));
	if (tail) {
		memcpy(s->tail[at], data.p + data.n - tail, tail);
		s->n_tail[at] = tail;
	}
}

void stream_flush(struct stream *s)
{
	for (unsigned i = 0; i < EXEC_CHANNELS; i++) {
		put_output(s, i, (struct view){ s->tail[i], s->n_tail[i] });
		s->n_tail[i] = 0;
	}
}

static void on_output(struct exec *x, unsigned channel, struct view data)
{
	struct stream *s = CONTAINER(x, struct stream, exec);
	size_t n = data.n;

	if (s->form != STREAM_RAW)
		stream_output(s, channel, data);
	else if (channel == 1 && !http_write(s->r->x, data))
		s->full = true;
	if (s->full)
		s->held += n;
	else
		exec_consumed(x, n);
}

static void on_writable(struct http_exchange *x)
{
	struct req *r = x->ctx;
	struct stream *s = r->own;
	size_t n = s->held;

	s->full = false;
	s->held = 0;
	exec_consumed(&s->exec, n);
}

/* ---- the end ---- */

void stream_put_result(struct json_out *o, const struct exec_result *res)
{
	json_out_ku64(o, "exit_code", res->exit_code);
	json_out_kz(o, "signal", res->signal);
	json_out_kbool(o, "timed_out", res->timed_out);
	json_out_kbool(o, "oom_killed", res->oom_killed);
	if (res->oom_killed)
		json_out_ku64(o, "memory_limit_mb", res->memory_mb);
	json_out_kbool(o, "truncated", res->truncated);
	json_out_key(o, "duration_ms");
	json_out_double(o, (double)res->duration_us / 1000);
	if (!res->shell.p)
		return;
	json_out_kstr(o, "shell", res->shell);
	json_out_kstr(o, "cwd", res->cwd);
	json_out_kbool(o, "restarted", res->restarted);
}

void stream_finish(struct stream *s)
{
	struct req *r = s->r;
	stream_release(s);
	http_end(r->x);
	rest_done(r);
}

/* Bytes of stdout that are followed by how it ended, where the protocol can say that. */
static void finish_raw(struct stream *s, const struct exec_result *res)
{
	char code[16];
	struct http_header trailers[] = {
		{ VIEW("x-exit-code"), VIEW_NONE },
		{ VIEW("x-exit-signal"), view_of(res->signal ? res->signal : "none") },
		{ VIEW("x-timed-out"), res->timed_out ? VIEW("1") : VIEW("0") },
	};

	snprintf(code, sizeof(code), "%u", res->exit_code);
	trailers[0].value = view_of(code);
	http_trailers(s->r->x, trailers, ELEMS(trailers));
	stream_finish(s);
}

void stream_fail(struct stream *s, const struct err *e)
{
	struct req *r = s->r;
	struct err copy = *e;
	struct json_out o;

	if (!s->begun) {
		stream_release(s);
		rest_fail(r, &copy);
	} else if (s->form == STREAM_RAW) {
		stream_release(s);
		http_break(r->x);
		rest_done(r);
	} else {
		stream_open(s, &o, "error");
		json_out_kz(&o, "code", err_name(copy.code));
		json_out_kz(&o, "message", copy.msg);
		json_out_kz(&o, "request_id", r->x->request_id);
		stream_close(s, &o);
		stream_finish(s);
	}
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct stream *s = CONTAINER(x, struct stream, exec);
	struct json_out o;

	if (e) {
		stream_fail(s, e);
		return;
	}
	if (s->form == STREAM_RAW) {
		finish_raw(s, res);
		return;
	}
	stream_flush(s);
	stream_open(s, &o, "exit");
	stream_put_result(&o, res);
	stream_close(s, &o);
	stream_finish(s);
}

static void on_abort(struct http_exchange *x)
{
	struct req *r = x->ctx;
	struct stream *s = r->own;

	exec_cancel(&s->exec);
	stream_release(s);
	rest_done(r);
}

/* The body has been read. */
static void on_body(struct http_exchange *x, struct view data, bool last)
{
}

static const struct http_ops stream_ops = { .on_body = on_body,
					    .on_abort = on_abort,
					    .on_writable = on_writable };

void stream_init(struct stream *s, struct req *r, enum stream_form form, const struct http_ops *with)
{
	s->r = r;
	s->form = form;
	s->text = BUF_INIT(EVENT_MAX);
	r->x->ops = with;
	r->x->eof_aborts = true;
}

struct stream *stream_new(struct req *r, enum stream_form form)
{
	struct stream *s = rest_own(r, sizeof(*s));

	if (!s)
		return NULL;
	stream_init(s, r, form, &stream_ops);
	s->exec.on_begun = on_begun;
	s->exec.on_output = on_output;
	s->exec.done = on_done;
	return s;
}
