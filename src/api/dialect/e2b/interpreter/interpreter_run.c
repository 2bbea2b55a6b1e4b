/*
 * POST /execute: the output and the results of code as lines of JSON, as they come.
 *
 * A client that goes away takes its code along: it has no other way to say that
 * it waits no longer.
 */
#include "clock.h"
#include "interpreter_impl.h"
#include "run.h"
#include "text.h"
#include "poison.h"

#define LINE_MAX_SIZE (1u << 30)
#define PING_MS       30000

struct running {
	struct context_run run;
	struct request *r;
	struct buf line;
	char tail[EXEC_CHANNELS][4]; /* the first bytes of a character */
	size_t n_tail[EXEC_CHANNELS];
	bool begun, full;
	struct loop_timer ping;
};

/* ---- lines ---- */

static void open_line(struct running *k, struct json_out *o, const char *type)
{
	json_out_init(o, &k->line);
	json_out_object(o);
	json_out_kz(o, "type", type);
}

static void close_line(struct running *k, struct json_out *o)
{
	json_out_end(o, '}');
	buf_putc(&k->line, '\n');
	if (!k->line.bad && !http_write(k->r->x, buf_view(&k->line))) {
		k->full = true;
		contexts_pause(&k->run);
	}
	buf_done(&k->line);
	k->line = BUF_INIT(LINE_MAX_SIZE);
}

static void on_ping(struct loop_timer *t)
{
	struct running *k = CONTAINER(t, struct running, ping);
	struct json_out o;

	if (!k->full) {
		open_line(k, &o, "keepalive");
		close_line(k, &o);
	}
	loop_timer_start(k->r->x->loop, t, PING_MS, on_ping);
}

static const struct http_ops streamed_ops;

static void begin(struct running *k)
{
	static const struct http_header headers[] = { { VIEW("cache-control"), VIEW("no-store") },
						      { VIEW("x-content-type-options"), VIEW("nosniff") } };

	if (k->begun)
		return;
	k->begun = true;
	k->r->x->ops = &streamed_ops;
	k->r->x->eof_aborts = true;
	http_begin(k->r->x, 200, "application/x-ndjson", -1, headers, ELEMS(headers));
	loop_timer_start(k->r->x->loop, &k->ping, PING_MS, on_ping);
}

/* ---- what comes of the code ---- */

static void on_queued(struct context_run *run)
{
	begin(CONTAINER(run, struct running, run));
}

static void on_begun(struct context_run *run, const struct context_info *c)
{
	begin(CONTAINER(run, struct running, run));
}

static void put_text(struct running *k, unsigned channel, struct view text)
{
	char now[CLOCK_RFC3339_SIZE];
	struct json_out o;

	if (!text.n)
		return;
	clock_rfc3339(clock_wall_ms(), now);
	open_line(k, &o, channel == 1 ? "stdout" : "stderr");
	json_out_kstr(&o, "text", text);
	json_out_kz(&o, "timestamp", now);
	close_line(k, &o);
}

/* As text, whatever it is: what is no UTF-8 becomes U+FFFD, and what may yet become a character is left. */
static size_t to_text(struct view in, bool last, struct buf *out)
{
	size_t at = 0;

	while (at < in.n) {
		struct view rest = view_skip(in, at);
		size_t whole = text_utf8_prefix(rest);
		buf_add(out, view_head(rest, whole));
		at += whole;
		if (at == in.n || (!last && in.n - at < 4 && text_utf8_begins(view_skip(in, at))))
			break;
		buf_puts(out, "\xef\xbf\xbd");
		at++;
	}
	return at;
}

static void output(struct running *k, unsigned channel, struct view data, bool last)
{
	_cleanup_(buf_done) struct buf in = BUF_INIT(LINE_MAX_SIZE), out = BUF_INIT(LINE_MAX_SIZE);
	unsigned c = channel - 1;

	buf_append(&in, k->tail[c], k->n_tail[c]);
	buf_add(&in, data);
	size_t used = to_text(buf_view(&in), last, &out);
	struct view left = view_skip(buf_view(&in), used);
	k->n_tail[c] = MIN(left.n, sizeof(k->tail[c]));
	memcpy(k->tail[c], left.n ? left.p : "", k->n_tail[c]);
	put_text(k, channel, buf_view(&out));
}

static void on_output(struct context_run *run, unsigned channel, struct view data)
{
	output(CONTAINER(run, struct running, run), channel, data, false);
}

/* The interpreters give strings as their languages write them; E2B's clients get them without the quotes. */
static struct view without_quotes(struct view text)
{
	bool quoted =
		text.n >= 2 && text.p[0] == text.p[text.n - 1] && (text.p[0] == '\'' || text.p[0] == '"');
	return quoted ? (struct view){ text.p + 1, text.n - 2 } : text;
}

static void put_member(struct json_out *o, const struct json_member *m)
{
	static const char *const formats[] = { "text",  "html", "markdown",   "svg",  "png",   "jpeg", "pdf",
					       "latex", "json", "javascript", "data", "chart", "extra" };

	if (view_is(m->key, "text") && m->value.type == JSON_STRING) {
		json_out_kstr(o, "text", without_quotes(m->value.text));
		return;
	}
	for (size_t i = 1; i < ELEMS(formats); i++)
		if (view_is(m->key, formats[i])) {
			json_out_key_view(o, m->key);
			json_out_value(o, &m->value);
		}
}

static void on_event(struct context_run *run, const char *type, const struct json *event)
{
	static const char *const keys[] = { "name", "value", "traceback" };
	struct running *k = CONTAINER(run, struct running, run);
	const struct json *main = json_get(event, "main");
	struct json_out o;

	open_line(k, &o, type);
	if (view_is(view_of(type), "error")) {
		for (size_t i = 0; i < ELEMS(keys); i++) {
			const struct json *v = json_get(event, keys[i]);
			json_out_kstr(&o, keys[i], v && v->type == JSON_STRING ? v->text : VIEW(""));
		}
	} else {
		for (size_t i = 0; i < event->n; i++)
			put_member(&o, &event->members[i]);
		json_out_kbool(&o, "is_main_result", main && main->type == JSON_BOOL && main->boolean);
	}
	close_line(k, &o);
}

static void on_done(struct context_run *run, const struct context_end *end, const struct err *e)
{
	struct running *k = CONTAINER(run, struct running, run);
	struct request *r = k->r;
	struct json_out o;

	if (e && !k->begun) {
		answer_fail(r, e);
		return;
	}
	if (e) { /* the box went, or the link to it: it must not look like an end */
		http_break(r->x);
		request_done(r);
		return;
	}
	for (unsigned channel = 1; channel <= EXEC_CHANNELS; channel++)
		output(k, channel, VIEW(""), true);
	if (end->count) {
		open_line(k, &o, "number_of_executions");
		json_out_ku64(&o, "execution_count", end->count);
		close_line(k, &o);
	}
	open_line(k, &o, "end_of_execution");
	close_line(k, &o);
	http_end(r->x);
	request_done(r);
}

/* ---- the request ---- */

static void let_go(struct request *r)
{
	struct running *k = r->own;

	contexts_abandon(&k->run);
	loop_timer_stop(&k->ping);
	buf_done(&k->line);
}

static void on_writable(struct http_exchange *x)
{
	struct request *r = x->ctx;
	struct running *k = r->own;

	k->full = false;
	contexts_resume(&k->run);
}

static const struct http_ops streamed_ops = { .on_body = request_drop_body,
					      .on_abort = request_abort,
					      .on_writable = on_writable };

#define AT(f) .offset = offsetof(struct context_code, f)
static const struct json_field fields[] = {
	{ "code", JSON_F_STRING, AT(code), .required = true },
	{ "context_id", JSON_F_STRING, AT(context), .nullable = true },
	{ "language", JSON_F_STRING, AT(language), .nullable = true },
	{ "env_vars", JSON_F_STRMAP, AT(env), .nullable = true },
};
#undef AT
static const struct json_schema schema = { fields, ELEMS(fields) };

void interpreter_run(struct request *r)
{
	struct context_code w = { .kill = true };
	struct err e = { 0 };

	if (interpreter_wish(r, &w.made) < 0 || interpreter_read(r, &schema, &w) < 0)
		return;
	if (w.context.n && w.language.n) {
		err_set(&e, ERR_INVALID, "only one of context_id and language can be given");
		answer_fail(r, &e);
		return;
	}
	w.language = interpreter_language(w.language);
	struct running *k = interpreter_own(r, sizeof(*k), let_go);
	if (!k)
		return;
	k->r = r;
	k->line = BUF_INIT(LINE_MAX_SIZE);
	k->run.on_queued = on_queued;
	k->run.on_begun = on_begun;
	k->run.on_output = on_output;
	k->run.on_event = on_event;
	k->run.done = on_done;
	if (contexts_execute(r->core, &r->actor, view_of(r->box), &w, &k->run, &e) < 0)
		answer_fail(r, &e);
}
