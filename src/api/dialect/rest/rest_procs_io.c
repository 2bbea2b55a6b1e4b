/*
 * /v1/sandboxes/{id}/processes/{process}/output, …/wait and …/stdin: what comes out
 * of a process that is kept, its end, and what goes in.
 */
#include "num.h"
#include "rest_output.h"
#include "rest_procs.h"
#include "run.h"
#include "poison.h"

#define STDIN_MAX   (4u * 1024 * 1024) /* of a body that waits; a piece of it at most */
#define WAIT_MAX_MS (60u * 60 * 1000)
#define OUTPUT_MAX  (64u * 1024 * 1024)

/* ---- output ---- */

/* What is there now: up to the ends that were true when we attached. */
struct snapshot {
	struct exec exec;
	struct request *r;
	uint64_t offsets[EXEC_CHANNELS], ends[EXEC_CHANNELS];
	struct buf bytes[EXEC_CHANNELS];
	struct buf info; /* of the process, as JSON members */
	struct json_out json;
};

static void snapshot_release(struct snapshot *s)
{
	for (unsigned i = 0; i < EXEC_CHANNELS; i++)
		buf_done(&s->bytes[i]);
	buf_done(&s->info);
}

static void snapshot_finish(struct snapshot *s)
{
	struct request *r = s->r;
	struct json_out *o = &s->json;
	struct buf out;

	for (unsigned i = 0; i < EXEC_CHANNELS; i++) {
		json_out_key(o, i == 0 ? "stdout" : "stderr");
		json_out_object(o);
		rest_output_put_bytes(o, s->offsets[i], buf_view(&s->bytes[i]));
		json_out_end(o, '}');
	}
	json_out_end(o, '}');
	out = s->info;
	s->info = BUF_INIT(0);
	exec_cancel(&s->exec);
	snapshot_release(s);
	answer_reply(r, 200, &out);
}

static bool snapshot_complete(const struct snapshot *s)
{
	for (unsigned i = 0; i < EXEC_CHANNELS; i++)
		if (s->offsets[i] + buf_len(&s->bytes[i]) < s->ends[i])
			return false;
	return true;
}

static void snapshot_begun(struct exec *x, const struct exec_begun *b)
{
	struct snapshot *s = CONTAINER(x, struct snapshot, exec);

	s->ends[0] = b->info->stdout_end;
	s->ends[1] = b->info->stderr_end;
	memcpy(s->offsets, b->offsets, sizeof(s->offsets));
	json_out_init(&s->json, &s->info);
	json_out_object(&s->json);
	rest_procs_put_info(&s->json, b->info);
	if (snapshot_complete(s))
		snapshot_finish(s);
}

static void snapshot_output(struct exec *x, unsigned channel, struct view data)
{
	struct snapshot *s = CONTAINER(x, struct snapshot, exec);
	struct buf *b = &s->bytes[channel - 1];
	uint64_t at = s->offsets[channel - 1] + buf_len(b), end = s->ends[channel - 1];

	exec_consumed(x, data.n);
	buf_add(b, view_head(data, (size_t)MIN(end > at ? end - at : 0, (uint64_t)data.n)));
	if (snapshot_complete(s) || b->bad)
		snapshot_finish(s);
}

static void snapshot_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct snapshot *s = CONTAINER(x, struct snapshot, exec);
	struct request *r = s->r;

	if (!e) {
		snapshot_finish(s);
		return;
	}
	struct err copy = *e;
	snapshot_release(s);
	answer_fail(r, &copy);
}

static void snapshot_gone(struct request *r)
{
	struct snapshot *s = r->own;
	exec_cancel(&s->exec);
	snapshot_release(s);
}

static int read_offset(struct request *r, const char *name, uint64_t *ret)
{
	struct view v = request_query(r, name);
	struct err e = { 0 };

	if (!v.p || num_u64(v, ret) >= 0)
		return 0;
	err_set(&e, ERR_INVALID, "%s must be a byte offset", name);
	answer_fail(r, &e);
	return -1;
}

static void output(struct request *r)
{
	struct exec_place p = { .process = r->params[1] };
	enum stream_form form = stream_form(r);
	struct err e = { 0 };
	struct exec *x;
	bool follow;

	if (read_offset(r, "stdout", &p.offsets[0]) < 0 || read_offset(r, "stderr", &p.offsets[1]) < 0 ||
	    request_query_flag(r, "follow", &follow) < 0)
		return;
	if (follow) {
		struct rest_output *s = rest_output_new(r, form == STREAM_NONE ? STREAM_SSE : form);
		x = s ? &s->exec : NULL;
	} else {
		struct snapshot *s = request_own(r, sizeof(*s));
		x = s ? &s->exec : NULL;
		if (s) {
			s->r = r;
			s->info = BUF_INIT(ANSWER_MAX);
			s->bytes[0] = s->bytes[1] = BUF_INIT(OUTPUT_MAX);
			x->on_begun = snapshot_begun;
			x->on_output = snapshot_output;
			x->done = snapshot_done;
			r->on_gone = snapshot_gone;
		}
	}
	if (x && exec_attach(r->core, &r->actor, r->params[0], &p, x, &e) < 0)
		answer_fail(r, &e);
}

/* ---- waiting ---- */

struct waiting {
	struct exec exec;
	struct request *r;
	struct loop_timer timer;
};

static void wait_reply(struct waiting *w, const struct exec_result *res)
{
	struct request *r = w->r;
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kbool(o, "running", !res);
	if (res)
		rest_output_put_result(o, res);
	json_out_end(o, '}');
	loop_timer_stop(&w->timer);
	answer_send(r, 200);
}

static void wait_output(struct exec *x, unsigned channel, struct view data)
{
	exec_consumed(x, data.n);
}

static void wait_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct waiting *w = CONTAINER(x, struct waiting, exec);

	if (!e) {
		wait_reply(w, res);
		return;
	}
	loop_timer_stop(&w->timer);
	answer_fail(w->r, e);
}

static void wait_timeout(struct loop_timer *t)
{
	struct waiting *w = CONTAINER(t, struct waiting, timer);
	exec_cancel(&w->exec);
	wait_reply(w, NULL);
}

static void wait_gone(struct request *r)
{
	struct waiting *w = r->own;
	exec_cancel(&w->exec);
	loop_timer_stop(&w->timer);
}

static void wait_for(struct request *r)
{
	struct exec_place p = { .process = r->params[1], .from_end = true };
	struct view limit = request_query(r, "timeout_ms");
	uint64_t ms = WAIT_MAX_MS;
	struct err e = { 0 };

	if (limit.p && (num_u64(limit, &ms) < 0 || ms > WAIT_MAX_MS)) {
		err_set(&e, ERR_INVALID, "timeout_ms must be between 0 and %u", WAIT_MAX_MS);
		answer_fail(r, &e);
		return;
	}
	struct waiting *w = request_own(r, sizeof(*w));
	if (!w)
		return;
	w->r = r;
	w->exec.on_output = wait_output;
	w->exec.done = wait_done;
	r->on_gone = wait_gone;
	if (exec_attach(r->core, &r->actor, r->params[0], &p, &w->exec, &e) < 0)
		answer_fail(r, &e);
	else
		loop_timer_start(r->x->loop, &w->timer, ms, wait_timeout);
}

/* ---- input: one piece is with the process while the next is read ---- */

struct feeding {
	struct proc_op op;
	struct request *r;
	struct buf bytes;
	bool busy, last, close, closed;
	bool asked;  /* something was sent: no bytes at all must not hide that there is no such process */
	size_t size; /* of the piece that is under way */
};

static void feed(struct feeding *f);

static void feed_fail(struct feeding *f, const struct err *e)
{
	struct request *r = f->r;
	struct err copy = *e;

	buf_done(&f->bytes);
	answer_fail(r, &copy);
}

static void on_fed(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct feeding *f = CONTAINER(op, struct feeding, op);

	if (e) {
		feed_fail(f, e);
		return;
	}
	f->busy = false;
	buf_consume(&f->bytes, f->size);
	feed(f);
}

static void feed(struct feeding *f)
{
	struct request *r = f->r;
	struct err e = { 0 };

	if (f->busy)
		return;
	struct view piece = view_head(buf_view(&f->bytes), PROCS_INPUT_MAX);
	bool close = f->close && f->last && piece.n == buf_len(&f->bytes) && !f->closed;
	if (piece.n == 0 && !f->last) {
		http_body_resume(r->x);
		return;
	}
	if (piece.n == 0 && !close && f->asked) {
		buf_done(&f->bytes);
		answer_no_content(r);
		return;
	}
	f->busy = f->asked = true;
	f->size = piece.n;
	f->closed = close;
	if (procs_input(r->core, &r->actor, r->params[0], r->params[1], piece, close, &f->op, &e) < 0)
		feed_fail(f, &e);
}

static void feed_body(struct http_exchange *x, struct view data, bool last)
{
	struct request *r = x->ctx;
	struct feeding *f = r->own;
	struct err e = { 0 };

	f->last = last;
	if (buf_add(&f->bytes, data) < 0) {
		err_set(&e, ERR_INTERNAL, "out of memory");
		procs_cancel(&f->op);
		feed_fail(f, &e);
		return;
	}
	if (!last)
		http_body_pause(x);
	feed(f);
}

static void feed_abort(struct http_exchange *x)
{
	struct request *r = x->ctx;
	struct feeding *f = r->own;

	procs_cancel(&f->op);
	buf_done(&f->bytes);
	request_done(r);
}

static const struct http_ops feed_ops = { .on_body = feed_body, .on_abort = feed_abort };

static void input(struct request *r)
{
	struct feeding *f;
	bool close;

	if (request_query_flag(r, "close", &close) < 0)
		return;
	f = request_own(r, sizeof(*f));
	if (!f)
		return;
	f->r = r;
	f->close = close;
	f->bytes = BUF_INIT(STDIN_MAX);
	f->op.done = on_fed;
	r->x->ops = &feed_ops;
	r->x->patient = true;
}

#define PROCESS "/v1/sandboxes/{id}/processes/{process}"
const struct route rest_procs_io_routes[] = {
	{ "GET", PROCESS "/output", output, .query = "stdout stderr follow" },
	{ "GET", PROCESS "/wait", wait_for, .query = "timeout_ms" },
	{ "POST", PROCESS "/stdin", input, .body = ROUTE_STREAM, .query = "close" },
	{ 0 },
};
