/*
 * Runs code in a context and collects what comes of it: see aio_run.h.
 */
#include "aio_run.h"

#include <errno.h>

#include "rnd.h"
#include "poison.h"

#define OUTPUTS_MAX (64u * 1024 * 1024)

/* ---- the outputs ---- */

void aio_run_put_lines(struct json_out *o, struct view text)
{
	json_out_array(o);
	while (text.p && text.n)
		json_out_str(o, view_split(text, '\n', &text));
	json_out_end(o, ']');
}

/* What was written goes among the outputs, as one piece. */
static void flush(struct aio_run *x)
{
	struct json_out *o = &x->list;

	if (!buf_len(&x->said))
		return;
	json_out_object(o);
	json_out_kz(o, "output_type", "stream");
	json_out_kz(o, "name", x->channel == 1 ? "stdout" : "stderr");
	json_out_kstr(o, "text", buf_view(&x->said));
	json_out_end(o, '}');
	buf_clear(&x->said);
}

static void on_output(struct context_run *run, unsigned channel, struct view data)
{
	struct aio_run *x = CONTAINER(run, struct aio_run, run);
	struct buf *all = &x->channels[channel - 1];
	struct view fits = view_head(data, buf_room(all));

	if (channel != x->channel)
		flush(x);
	x->channel = channel;
	(void)!buf_add(all, fits);
	(void)!buf_add(&x->said, fits);
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
	aio_run_put_lines(&lines, text_of(event, "traceback"));
	json_out_object(o);
	json_out_kz(o, "output_type", "error");
	json_out_kstr(o, "ename", text_of(event, "name"));
	json_out_kstr(o, "evalue", text_of(event, "value"));
	json_out_key(o, "traceback");
	aio_run_put_lines(o, text_of(event, "traceback"));
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

	flush(x);
	if (view_is(view_of(type), "error"))
		put_error(x, event);
	else
		put_result(x, event);
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
	buf_done(&x->said);
	buf_done(&x->channels[0]);
	buf_done(&x->channels[1]);
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
	flush(x);
	json_out_end(&x->list, ']');
	x->count = end->count;
	if (end->timed_out)
		x->status = "timeout";
	if (x->outputs.bad || x->said.bad || x->traceback.bad) {
		err_set(&no_room, ERR_TOO_LARGE, "the code's outputs are larger than %u MiB",
			OUTPUTS_MAX >> 20);
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
	uint64_t max;
	struct err e = { 0 };

	if (!x)
		return;
	max = core_config(r->core)->max.exec_output_bytes;
	x->r = r;
	x->wish = *w;
	x->status = "ok";
	x->exists = true;
	x->outputs = x->traceback = BUF_INIT(OUTPUTS_MAX);
	x->channels[0] = x->channels[1] = BUF_INIT(max);
	x->said = BUF_INIT(2 * max);
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

void aio_run_put_results(struct json_out *o, const struct aio_run *x)
{
	json_out_key(o, "execution_count");
	if (x->count)
		json_out_u64(o, x->count);
	else
		json_out_null(o);
	json_out_key(o, "outputs");
	json_out_raw(o, buf_view(&x->outputs));
	json_out_kstr(o, "code", x->wish.code);
}

void aio_run_put_output(struct json_out *o, const struct aio_run *x)
{
	json_out_kstr(o, "stdout", buf_view(&x->channels[0]));
	json_out_kstr(o, "stderr", buf_view(&x->channels[1]));
	json_out_ku64(o, "exit_code", view_is(view_of(x->status), "ok") ? 0 : 1);
}
