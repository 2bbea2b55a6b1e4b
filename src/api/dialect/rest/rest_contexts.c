/*
 * /v1/sandboxes/{id}/contexts and …/execute: code in interpreters that remember.
 * The answer to an execution is whole (JSON) or comes as it happens: events
 * start, stdout, stderr, result, error and end.
 */
#include "session.h"

#include <errno.h>

#include "answer_long.h"
#include "rest_output.h"
#include "rest_variables.h"
#include "text.h"
#include "poison.h"

#define RESULTS_MAX (64u * 1024 * 1024) /* of all results of an answer that is not streamed */

/* ---- contexts ---- */

struct asking {
	struct context_op op;
	struct request *r;
	int status;
};

static void put_context(struct json_out *o, const struct context_info *c)
{
	json_out_object(o);
	json_out_kstr(o, "id", c->id);
	json_out_kstr(o, "language", c->language);
	json_out_kstr(o, "cwd", c->cwd);
	json_out_kstr(o, "user", c->user);
	json_out_ku64_any(o, "pid", c->pid);
	json_out_kbool(o, "busy", c->busy);
	json_out_ku64(o, "queued", c->queued);
	answer_put_time(o, "created_at", c->created_ms);
	json_out_end(o, '}');
}

static void on_list(struct context_op *op, const struct context_info *list, size_t n, const struct err *e)
{
	struct request *r = CONTAINER(op, struct asking, op)->r;
	struct json_out *o = answer_result_list(r, e, "contexts");

	if (!o)
		return;
	for (size_t i = 0; i < n; i++)
		put_context(o, &list[i]);
	answer_send_list(r);
}

static void on_one(struct context_op *op, const struct context_info *list, size_t n, const struct err *e)
{
	struct asking *k = CONTAINER(op, struct asking, op);

	if (e) {
		answer_fail(k->r, e);
		return;
	}
	if (n == 0) {
		answer_no_content(k->r);
		return;
	}
	struct json_out *o = answer_json(k->r);
	put_context(o, list);
	answer_send(k->r, k->status);
}

static void on_asking_gone(struct request *r)
{
	struct asking *k = r->own;
	contexts_cancel(&k->op);
}

typedef void done_fn(struct context_op *op, const struct context_info *list, size_t n, const struct err *e);
typedef int ask_fn(struct core *c, const struct actor *a, struct view box, struct view id,
		   struct context_op *op, struct err *e);

static struct asking *asking(struct request *r, done_fn *done)
{
	struct asking *k = request_own(r, sizeof(*k));

	if (!k)
		return NULL;
	k->r = r;
	k->status = 200;
	k->op.done = done;
	r->on_gone = on_asking_gone;
	return k;
}

/* Whatever is asked may be answered before the call returns: the request is not to be touched after it. */
static void ask(struct request *r, ask_fn *call, struct view id, done_fn *done)
{
	struct err e = { 0 };
	struct asking *k = asking(r, done);
	if (k && call(r->core, &r->actor, r->params[0], id, &k->op, &e) < 0)
		answer_fail(r, &e);
}

#define AT(f) .offset = offsetof(struct context_wish, f)
static const struct json_field create_fields[] = {
	{ "language", JSON_F_STRING, AT(language), .min = 1, .required = true },
	{ "cwd", JSON_F_STRING, AT(cwd), .min = 1, .nullable = true },
	{ "env", JSON_F_STRMAP, AT(env), .nullable = true },
	{ "user", JSON_F_STRING, AT(user), .min = 1, .nullable = true },
};
#undef AT
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields) };

static void create(struct request *r)
{
	struct context_wish w = { 0 };
	struct err e = { 0 };

	if (request_read(r, &create_schema, &w) < 0)
		return;
	struct asking *k = asking(r, on_one);
	if (!k)
		return;
	k->status = 201;
	if (contexts_create(r->core, &r->actor, r->params[0], &w, &k->op, &e) < 0)
		answer_fail(r, &e);
}

static void list(struct request *r)
{
	ask(r, contexts_list, VIEW_NONE, on_list);
}

static void get(struct request *r)
{
	ask(r, contexts_list, r->params[1], on_one);
}

static void end(struct request *r)
{
	ask(r, contexts_remove, r->params[1], on_one);
}

static void restart(struct request *r)
{
	ask(r, contexts_restart, r->params[1], on_one);
}

static void interrupt(struct request *r)
{
	ask(r, contexts_interrupt, r->params[1], on_one);
}

/* ---- executions ---- */

struct execution {
	struct context_run run;
	struct rest_output output;
	struct request *r;
	/* when it is not streamed */
	struct buf results;
	struct json_out out; /* into it: an array */
	struct output wrote;
	struct buf error; /* its object as text */
	bool truncated;
};

static void release(struct execution *x)
{
	buf_done(&x->results);
	buf_done(&x->error);
	outputs_done(&x->wrote);
}

/* What the driver says, without what is between it and us. */
static void put_event(struct json_out *o, const struct json *event)
{
	for (size_t i = 0; i < event->n; i++) {
		const struct json_member *m = &event->members[i];
		if (view_is(m->key, "id") || view_is(m->key, "type"))
			continue;
		json_out_key_view(o, m->key);
		json_out_value(o, &m->value);
	}
}

/* name, value and traceback are promised; the box may say anything. */
static void put_failure(struct json_out *o, const struct json *event)
{
	static const char *const keys[] = { "name", "value", "traceback" };
	for (size_t i = 0; i < ELEMS(keys); i++) {
		const struct json *v = json_get(event, keys[i]);
		json_out_kstr(o, keys[i], v && v->type == JSON_STRING ? v->text : VIEW(""));
	}
}

static void put_end(struct json_out *o, const struct context_end *end, bool truncated)
{
	json_out_ku64(o, "execution_count", end->count);
	json_out_kbool(o, "timed_out", end->timed_out);
	json_out_kbool(o, "oom_killed", end->oom_mb > 0);
	if (end->oom_mb)
		json_out_ku64(o, "memory_limit_mb", end->oom_mb);
	json_out_kbool(o, "state_lost", end->state_lost);
	json_out_kbool(o, "truncated", end->truncated || truncated);
	json_out_key(o, "duration_ms");
	json_out_double(o, (double)end->duration_us / 1000);
}

static void collect_output(struct context_run *run, unsigned channel, struct view data)
{
	struct execution *x = CONTAINER(run, struct execution, run);

	x->truncated |= !outputs_add(&x->wrote, channel, data);
}

static void collect_event(struct context_run *run, const char *type, const struct json *event)
{
	struct execution *x = CONTAINER(run, struct execution, run);
	struct json_out o;

	if (view_is(view_of(type), "error")) {
		buf_clear(&x->error);
		json_out_init(&o, &x->error);
		json_out_object(&o);
		put_failure(&o, event);
		json_out_end(&o, '}');
		return;
	}
	size_t before = buf_len(&x->results);
	struct json_out saved = x->out;
	json_out_object(&x->out);
	put_event(&x->out, event);
	json_out_end(&x->out, '}');
	if (x->results.bad || buf_len(&x->results) > RESULTS_MAX ||
	    http_is_pressed(x->r->x)) { /* as if it had not come */
		x->results.n = x->results.head + before;
		x->results.bad = 0;
		x->out = saved;
		x->truncated = true;
	}
	http_hold(x->r->x, x->results.cap + x->r->body.cap + x->r->arena.used);
}

/* What lives as long as the answer is sent. */
static void release_sent(struct request *r)
{
	release(r->own);
}

static void on_collected(struct context_run *run, const struct context_end *end, const struct err *e)
{
	struct execution *x = CONTAINER(run, struct execution, run);
	struct request *r = x->r;
	struct json_out *o;

	if (e) {
		struct err copy = *e;
		release(x);
		answer_fail(r, &copy);
		return;
	}
	struct view out = buf_view(&x->wrote.bytes[0]), err = buf_view(&x->wrote.bytes[1]);
	bool text = rest_output_is_text(&out, x->truncated) && rest_output_is_text(&err, x->truncated);
	enum answer_form form = text ? ANSWER_STRING : ANSWER_BASE64;
	json_out_end(&x->out, ']');
	r->release = release_sent;
	o = answer_json(r);
	json_out_object(o);
	answer_put_raw(r, "results", buf_view(&x->results));
	answer_put_long(r, "stdout", form, text ? out : buf_view(&x->wrote.bytes[0]));
	answer_put_long(r, "stderr", form, text ? err : buf_view(&x->wrote.bytes[1]));
	json_out_kz(o, "encoding", text ? "utf-8" : "base64");
	answer_put_raw(r, "error", buf_len(&x->error) && !x->error.bad ? buf_view(&x->error) : VIEW("null"));
	put_end(o, end, x->truncated);
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* ---- streamed ---- */

static void follow(struct execution *x)
{
	if (x->output.stream.full)
		contexts_pause(&x->run);
}

static void stream_begun(struct context_run *run, const struct context_info *c)
{
	struct execution *x = CONTAINER(run, struct execution, run);
	struct json_out o;

	rest_output_begin(&x->output, c->pid);
	stream_open(&x->output.stream, &o, "start");
	json_out_kstr(&o, "context", c->id);
	json_out_kstr(&o, "language", c->language);
	json_out_ku64(&o, "pid", c->pid);
	stream_close(&x->output.stream, &o);
	follow(x);
}

static void stream_channel(struct context_run *run, unsigned channel, struct view data)
{
	struct execution *x = CONTAINER(run, struct execution, run);

	rest_output_bytes(&x->output, channel, data);
	follow(x);
}

static void stream_event(struct context_run *run, const char *type, const struct json *event)
{
	struct execution *x = CONTAINER(run, struct execution, run);
	struct json_out o;

	stream_open(&x->output.stream, &o, type);
	if (view_is(view_of(type), "error"))
		put_failure(&o, event);
	else
		put_event(&o, event);
	stream_close(&x->output.stream, &o);
	follow(x);
}

static void on_streamed(struct context_run *run, const struct context_end *end, const struct err *e)
{
	struct execution *x = CONTAINER(run, struct execution, run);
	struct json_out o;

	release(x);
	if (e) {
		rest_output_fail(&x->output, e);
		return;
	}
	rest_output_flush(&x->output);
	stream_open(&x->output.stream, &o, "end");
	put_end(&o, end, false);
	stream_close(&x->output.stream, &o);
	stream_finish(&x->output.stream);
}

static void on_writable(struct http_exchange *hx)
{
	struct request *r = hx->ctx;
	struct execution *x = r->own;

	x->output.stream.full = false;
	contexts_resume(&x->run);
}

static void on_abort(struct http_exchange *hx)
{
	struct request *r = hx->ctx;
	struct execution *x = r->own;

	contexts_abandon(&x->run);
	stream_release(&x->output.stream);
	release(x);
	request_done(r);
}

/* The body has been read. */
static void on_body(struct http_exchange *hx, struct view data, bool last)
{
}

static const struct http_ops streamed_ops = { .on_body = on_body,
					      .on_abort = on_abort,
					      .on_writable = on_writable };

static void on_gone(struct request *r)
{
	struct execution *x = r->own;
	contexts_abandon(&x->run);
	release(x);
}

static void set_up_stream(struct execution *x, enum stream_form form)
{
	stream_init(&x->output.stream, x->r, form, &streamed_ops);
	x->run.on_begun = stream_begun;
	x->run.on_output = stream_channel;
	x->run.on_event = stream_event;
	x->run.done = on_streamed;
}

static void set_up_answer(struct execution *x)
{
	x->results = BUF_INIT(RESULTS_MAX + 16); /* and its end */
	x->error = BUF_INIT(1024 * 1024);
	outputs_start(&x->wrote, x->r->core, x->r->actor.tenant);
	json_out_init(&x->out, &x->results);
	json_out_array(&x->out);
	x->run.on_output = collect_output;
	x->run.on_event = collect_event;
	x->run.done = on_collected;
	x->r->on_gone = on_gone;
	x->r->x->eof_aborts = true; /* as in rest_exec.c */
}

struct execute_body {
	struct context_code wish;
	struct rest_variables variables;
};

static void run(struct request *r, void *body)
{
	const struct context_code *w = &((struct execute_body *)body)->wish;
	enum stream_form form = stream_form(r);
	struct err e = { 0 };
	struct execution *x = request_own(r, sizeof(*x));

	if (!x)
		return;
	x->r = r;
	if (form == STREAM_RAW) {
		err_set(&e, ERR_INVALID,
			"an execution is application/json, text/event-stream or application/x-ndjson");
		answer_fail(r, &e);
		return;
	}
	if (form == STREAM_NONE)
		set_up_answer(x);
	else
		set_up_stream(x, form);
	if (contexts_execute(r->core, &r->actor, r->params[0], w, &x->run, &e) >= 0)
		return;
	release(x);
	answer_fail(r, &e);
}

#define AT(f) .offset = offsetof(struct execute_body, wish.f)
static const struct json_field execute_fields[] = {
	{ "code", JSON_F_STRING, AT(code), .required = true },
	{ "env", JSON_F_STRMAP, AT(env), .nullable = true },
	{ "timeout_ms", JSON_F_U64, AT(timeout_ms), .min = 1, .nullable = true },
	{ "kill_on_disconnect", JSON_F_BOOL, AT(kill), .nullable = true },
	{ "secrets", JSON_F_ANY, .offset = offsetof(struct execute_body, variables.wish), .nullable = true },
	/* where no context is in the path */
	{ "language", JSON_F_STRING, AT(language), .min = 1, .nullable = true },
	{ "context", JSON_F_STRING, AT(context), .min = 1, .nullable = true },
};
#undef AT
static const struct json_schema execute_schema = { execute_fields, ELEMS(execute_fields) };
static const struct json_schema execute_in_schema = { execute_fields, ELEMS(execute_fields) - 2 };

static void execute(struct request *r)
{
	struct execute_body *b = rest_variables_body(r, sizeof(*b));

	if (b && request_read(r, &execute_schema, b) >= 0)
		rest_variables_fetch(r, &b->variables, &b->wish.secrets, run, b);
}

static void execute_in(struct request *r)
{
	struct execute_body *b = rest_variables_body(r, sizeof(*b));

	if (!b || request_read(r, &execute_in_schema, b) < 0)
		return;
	b->wish.context = r->params[1];
	rest_variables_fetch(r, &b->variables, &b->wish.secrets, run, b);
}

const struct route rest_contexts_routes[] = {
	{ "POST", "/v1/sandboxes/{id}/contexts", create, .body = ROUTE_JSON },
	{ "GET", "/v1/sandboxes/{id}/contexts", list },
	{ "GET", "/v1/sandboxes/{id}/contexts/{context}", get },
	{ "DELETE", "/v1/sandboxes/{id}/contexts/{context}", end },
	{ "POST", "/v1/sandboxes/{id}/contexts/{context}/restart", restart },
	{ "POST", "/v1/sandboxes/{id}/contexts/{context}/interrupt", interrupt },
	{ "POST", "/v1/sandboxes/{id}/contexts/{context}/execute", execute_in, .body = ROUTE_JSON },
	{ "POST", "/v1/sandboxes/{id}/execute", execute, .body = ROUTE_JSON },
	{ 0 },
};
