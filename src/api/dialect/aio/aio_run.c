/*
 * Runs code in a context and collects what comes of it: see aio_run.h.
 */
#include "aio_run.h"

#include <errno.h>

#include "answer_long.h"
#include "rnd.h"
#include "text.h"
#include "poison.h"

#define OUTPUTS_MAX (16u * 1024 * 1024) /* of results and errors, as JSON */

/* ---- the outputs ---- */

/* Text as an array of its lines. */
static void put_lines(struct json_out *o, struct view text)
{
	json_out_array(o);
	while (text.p && text.n)
		json_out_str(o, view_split(text, '\n', &text));
	json_out_end(o, ']');
}

/* A long text among the outputs: a part of what a channel has, which stands at `at` in their JSON. */
struct slice {
	size_t at, from, n;
	unsigned channel;
};

static void hold(struct aio_run *x)
{
	struct request *r = x->r;

	http_hold(r->x, x->outputs.cap + x->traceback.cap + r->body.cap + r->arena.used);
}

/* The beginning of a character whose rest is still to come. */
static size_t unfinished(struct view said)
{
	for (size_t n = 1; n < 4 && n <= said.n; n++)
		if (text_utf8_begins(view_skip(said, said.n - n)))
			return n;
	return 0;
}

/* What was written to a channel goes among the outputs, as one piece. Channels come in pieces that end
 * anywhere: a character stays whole, although the other channel's piece came in the middle of it. */
static void flush(struct aio_run *x, unsigned channel, bool is_last)
{
	struct json_out *o = &x->list;

	if (!channel)
		return;
	size_t *from = &x->from[channel - 1];
	struct view said = view_skip(buf_view(&x->wrote.bytes[channel - 1]), *from);
	said.n -= is_last ? 0 : unfinished(said);
	if (!said.n)
		return;
	json_out_object(o);
	json_out_kz(o, "output_type", "stream");
	json_out_kz(o, "name", channel == 1 ? "stdout" : "stderr");
	json_out_key(o, "text");
	if (said.n < ANSWER_LONG_FROM) {
		json_out_str(o, said);
	} else {
		json_out_raw(o, VIEW("\"\""));
		const struct slice s = { buf_len(&x->outputs) - 1, *from, said.n, channel };
		buf_append(&x->slices, &s, sizeof(s));
	}
	json_out_end(o, '}');
	*from += said.n;
}

static void on_output(struct context_run *run, unsigned channel, struct view data)
{
	struct aio_run *x = CONTAINER(run, struct aio_run, run);

	if (channel != x->channel)
		flush(x, x->channel, false);
	x->channel = channel;
	(void)outputs_add(&x->wrote, channel, data);
}

/* The formats of a result by the names that Jupyter has for them. */
static void put_bundle(struct json_out *o, const struct json *event)
{
	static const struct {
		const char *key, *type;
	} formats[] = { { "text", "text/plain" },        { "html", "text/html" },
			{ "markdown", "text/markdown" }, { "svg", "image/svg+xml" },
			{ "png", "image/png" },          { "jpeg", "image/jpeg" },
			{ "pdf", "application/pdf" },    { "latex", "text/latex" },
			{ "json", "application/json" },  { "javascript", "application/javascript" } };
	const struct json *extra = json_get(event, "extra");

	json_out_object(o);
	for (size_t i = 0; i < ELEMS(formats); i++) {
		const struct json *v = json_get(event, formats[i].key);
		if (v && v->type != JSON_NULL) {
			json_out_key(o, formats[i].type);
			json_out_value(o, v);
		}
	}
	for (size_t i = 0; extra && extra->type == JSON_OBJECT && i < extra->n; i++) {
		json_out_key_view(o, extra->members[i].key);
		json_out_value(o, &extra->members[i].value);
	}
	json_out_end(o, '}');
}

static struct view text_of(const struct json *event, const char *key)
{
	const struct json *v = json_get(event, key);
	return v && v->type == JSON_STRING ? v->text : VIEW("");
}

static void put_error(struct aio_run *x, const struct json *event)
{
	struct json_out *o = &x->list, lines;

	buf_clear(&x->traceback);
	json_out_init(&lines, &x->traceback);
	put_lines(&lines, text_of(event, "traceback"));
	json_out_object(o);
	json_out_kz(o, "output_type", "error");
	json_out_kstr(o, "ename", text_of(event, "name"));
	json_out_kstr(o, "evalue", text_of(event, "value"));
	json_out_key(o, "traceback");
	put_lines(o, text_of(event, "traceback"));
	json_out_end(o, '}');
	x->status = "error";
}

static void put_result(struct aio_run *x, const struct json *event)
{
	const struct json *main = json_get(event, "main");
	bool is_main = main && main->type == JSON_BOOL && main->boolean;
	struct json_out *o = &x->list;

	json_out_object(o);
	json_out_kz(o, "output_type", is_main ? "execute_result" : "display_data");
	json_out_key(o, "data");
	put_bundle(o, event);
	json_out_key(o, "metadata");
	json_out_object(o);
	json_out_end(o, '}');
	json_out_end(o, '}');
}

static void on_event(struct context_run *run, const char *type, const struct json *event)
{
	struct aio_run *x = CONTAINER(run, struct aio_run, run);

	flush(x, x->channel, false);
	x->crowded |= http_is_pressed(x->r->x);
	if (x->crowded)
		return;
	if (view_is(view_of(type), "error"))
		put_error(x, event);
	else
		put_result(x, event);
	hold(x);
}

/* ---- beginning and end ---- */

static void on_begun(struct context_run *run, const struct context_info *c)
{
}

static void on_removed(struct context_op *op, const struct context_info *list, size_t n, const struct err *e)
{
}

/* A context that is nobody's any more ends; the answer does not wait for it. */
static void remove_context(struct aio_run *x)
{
	struct err e = { 0 };

	if (!x->wish.once || !x->exists)
		return;
	x->exists = false;
	x->removal.done = on_removed;
	(void)!contexts_remove(x->r->core, &x->r->actor, view_of(x->r->box), view_of(x->name), &x->removal,
			       &e);
}

static void release(struct request *r)
{
	struct aio_run *x = r->own;

	contexts_abandon(&x->run);
	remove_context(x);
	contexts_cancel(&x->removal);
	buf_done(&x->outputs);
	buf_done(&x->slices);
	outputs_done(&x->wrote);
	buf_done(&x->traceback);
}

static void on_done(struct context_run *run, const struct context_end *end, const struct err *e)
{
	struct aio_run *x = CONTAINER(run, struct aio_run, run);
	struct request *r = x->r;
	struct err no_room = { 0 };

	if (e) {
		struct err copy = *e;
		answer_fail(r, &copy);
		return;
	}
	for (unsigned channel = 1; channel <= ELEMS(x->from); channel++)
		flush(x, channel, true);
	json_out_end(&x->list, ']');
	x->count = end->count;
	if (end->timed_out)
		x->status = "timeout";
	if (x->crowded)
		err_set(&no_room, ERR_QUOTA,
			"the requests, answers and output of this tenant's commands hold too much memory");
	else if (x->outputs.bad || x->slices.bad || x->traceback.bad)
		err_set(&no_room, ERR_TOO_LARGE, "the code's outputs are larger than %u MiB",
			OUTPUTS_MAX >> 20);
	if (no_room.code) {
		answer_fail(r, &no_room);
		return;
	}
	struct json_out *o = aio_data(r, NULL);
	x->wish.put(o, x);
	aio_send(r);
}

void aio_run_start(struct request *r, const struct aio_code *w)
{
	struct aio_run *x = aio_own(r, sizeof(*x), release);
	struct err e = { 0 };

	if (!x)
		return;
	x->r = r;
	x->wish = *w;
	x->status = "ok";
	x->exists = true;
	x->outputs = x->traceback = BUF_INIT(OUTPUTS_MAX);
	outputs_start(&x->wrote, r->core, r->actor.tenant);
	x->slices = BUF_INIT(OUTPUTS_MAX);
	json_out_init(&x->list, &x->outputs);
	json_out_array(&x->list);
	x->run.on_begun = on_begun;
	x->run.on_output = on_output;
	x->run.on_event = on_event;
	x->run.done = on_done;
	if (!w->session.n || w->once) {
		rnd_name(x->name, CONTEXT_ID);
	} else if (view_to_str(w->session, x->name, sizeof(x->name)) < 0) {
		aio_refuse(r, "session_id has at most %d characters here", CONTEXT_NAME);
		return;
	}
	struct context_code code = { .code = w->code,
				     .context = view_of(x->name),
				     .language = w->language,
				     .made = { .language = w->language, .cwd = w->cwd },
				     .timeout_ms = w->timeout_s * 1000,
				     .kill = true,
				     .make = true,
				     .spare = !w->session.n };
	if (contexts_execute(r->core, &r->actor, view_of(r->box), &code, &x->run, &e) < 0)
		answer_fail(r, &e);
}

/* ---- parts of answers ---- */

/* The array of JSON, with the long texts where they belong. */
void aio_run_put_outputs(struct json_out *o, const struct aio_run *x)
{
	struct request *r = x->r;
	struct view json = buf_view(&x->outputs), slices = buf_view(&x->slices);
	size_t at = 0;

	json_out_key(o, "outputs");
	json_out_raw(o, VIEW(""));
	for (; slices.n; slices = view_skip(slices, sizeof(struct slice))) {
		struct slice s;
		memcpy(&s, slices.p, sizeof(s));
		answer_hole(r, ANSWER_RAW, (struct view){ json.p + at, s.at - at });
		answer_hole(r, ANSWER_STRING,
			    view_head(view_skip(buf_view(&x->wrote.bytes[s.channel - 1]), s.from), s.n));
		at = s.at;
	}
	answer_hole(r, ANSWER_RAW, view_skip(json, at));
}

void aio_run_put_results(struct json_out *o, const struct aio_run *x)
{
	json_out_key(o, "execution_count");
	if (x->count)
		json_out_u64(o, x->count);
	else
		json_out_null(o);
	aio_run_put_outputs(o, x);
	answer_put_long(x->r, "code", ANSWER_STRING, x->wish.code);
}

void aio_run_put_output(struct json_out *o, const struct aio_run *x)
{
	answer_put_long(x->r, "stdout", ANSWER_STRING, buf_view(&x->wrote.bytes[0]));
	answer_put_long(x->r, "stderr", ANSWER_STRING, buf_view(&x->wrote.bytes[1]));
	json_out_ku64(o, "exit_code", view_is(view_of(x->status), "ok") ? 0 : 1);
}

void aio_run_put_traceback(struct json_out *o, const struct aio_run *x)
{
	struct view lines = buf_view(&x->traceback);

	answer_put_raw(x->r, "traceback", lines.n ? lines : VIEW("null"));
}
