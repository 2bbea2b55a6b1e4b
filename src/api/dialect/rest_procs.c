/*
 * /v1/sandboxes/{id}/processes: processes that outlive the request. A process
 * is named by its pid or by its tag.
 */
#include "rest_procs.h"

#include <errno.h>
#include <signal.h>

#include "num.h"
#include "procs.h"
#include "rest_stream.h"
#include "text.h"
#include "wire_gen.h"
#include "poison.h"

#define STDIN_MAX   (4u * 1024 * 1024) /* of a body that waits; a piece of it at most */
#define WAIT_MAX_MS (60u * 60 * 1000)
#define OUTPUT_MAX  (64u * 1024 * 1024)

/* ---- as JSON ---- */

static void put_exit(struct json_out *o, const struct wire_exited *x)
{
	json_out_object(o);
	json_out_ku64(o, "exit_code", x->exit_code);
	json_out_kz(o, "signal", exec_signal_name(x->signal));
	json_out_kbool(o, "timed_out", x->timed_out);
	json_out_key(o, "duration_ms");
	json_out_double(o, (double)x->duration_us / 1000);
	json_out_end(o, '}');
}

void procs_put_info(struct json_out *o, const struct wire_process_info *p)
{
	json_out_ku64(o, "pid", p->pid);
	json_out_key(o, "tag");
	if (p->tag.n)
		json_out_str(o, p->tag);
	else
		json_out_null(o);
	json_out_key(o, "argv");
	json_out_array(o);
	/* The text of the loop is of no interest, and of some length. */
	for (size_t i = 0; i < p->argv.n && !view_starts(p->tag, "shell:"); i++)
		json_out_str(o, p->argv.items[i]);
	json_out_end(o, ']');
	json_out_kstr(o, "cwd", p->cwd);
	json_out_kstr(o, "user", p->user);
	json_out_kbool(o, "pty", p->pty);
	json_out_kbool(o, "running", p->running);
	rest_put_time(o, "started_at", p->started_ms);
	json_out_key(o, "exit");
	if (p->running || !p->exited)
		json_out_null(o);
	else
		put_exit(o, p->exited);
	json_out_ku64(o, "stdout_bytes", p->stdout_end);
	json_out_ku64(o, "stderr_bytes", p->stderr_end);
}

/* ---- starting ---- */

struct start_body {
	struct exec_wish wish;
	bool has_pty;
	struct {
		uint64_t cols, rows;
	} pty;
};

#define AT(f) .offset = offsetof(struct start_body, wish.f)
static const struct json_field pty_fields[] = {
	{ "cols", JSON_F_U64, .offset = 0, .min = 1, .max = 10000, .required = true },
	{ "rows", JSON_F_U64, .offset = sizeof(uint64_t), .min = 1, .max = 10000, .required = true },
};
static const struct json_schema pty_schema = { pty_fields, ELEMS(pty_fields) };
static const struct json_field start_fields[] = {
	{ "command", JSON_F_STRING, AT(command), .min = 1, .nullable = true },
	{ "argv", JSON_F_STRLIST, AT(argv), .min = 1, .nullable = true },
	{ "cwd", JSON_F_STRING, AT(cwd), .min = 1, .nullable = true },
	{ "env", JSON_F_STRMAP, AT(env), .nullable = true },
	{ "user", JSON_F_STRING, AT(user), .min = 1, .nullable = true },
	{ "tag", JSON_F_STRING, AT(tag), .min = 1, .nullable = true },
	{ "stdin", JSON_F_BOOL, AT(open_stdin), .nullable = true },
	{ "pty", JSON_F_OBJECT, .offset = offsetof(struct start_body, pty),
	  .has = offsetof(struct start_body, has_pty), .sub = &pty_schema, .nullable = true },
	{ "timeout_ms", JSON_F_U64, AT(timeout_ms), .min = 1, .nullable = true },
	{ "kill_on_disconnect", JSON_F_BOOL, AT(kill), .nullable = true },
};
#undef AT
static const struct json_schema start_schema = { start_fields, ELEMS(start_fields) };

struct starting {
	struct exec exec;
	struct req *r;
	struct view tag;
	bool pty;
};

static void on_started(struct exec *x, const struct exec_begun *b)
{
	struct starting *s = CONTAINER(x, struct starting, exec);
	struct req *r = s->r;
	struct json_out *o = rest_json(r);

	json_out_object(o);
	json_out_ku64(o, "pid", b->pid);
	json_out_key(o, "tag");
	if (s->tag.n)
		json_out_str(o, s->tag);
	else
		json_out_null(o);
	json_out_kbool(o, "pty", s->pty);
	json_out_kbool(o, "running", true);
	json_out_end(o, '}');
	exec_cancel(x); /* it goes on without us */
	rest_send(r, 201);
}

static void on_start_over(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct err mine = { 0 };

	if (!e)
		err_set(&mine, ERR_INTERNAL, "the process ended before it began");
	rest_fail(CONTAINER(x, struct starting, exec)->r, e ? e : &mine);
}

static void on_start_gone(struct req *r)
{
	struct starting *s = r->own;
	exec_cancel(&s->exec);
}

static void start_detached(struct req *r, const struct exec_wish *w)
{
	struct err e = { 0 };
	struct starting *s;

	if (w->kill) {
		err_set(&e, ERR_INVALID,
			"kill_on_disconnect needs a streamed answer (Accept: text/event-stream)");
		rest_fail(r, &e);
		return;
	}
	s = rest_own(r, sizeof(*s));
	if (!s)
		return;
	s->r = r;
	s->tag = w->tag;
	s->pty = w->pty;
	s->exec.on_begun = on_started;
	s->exec.done = on_start_over;
	r->on_gone = on_start_gone;
	if (exec_start(r->core, &r->actor, r->params[0], w, &s->exec, &e) < 0)
		rest_fail(r, &e);
}

static void start(struct req *r)
{
	enum stream_form form = stream_form(r);
	struct start_body b = { 0 };
	struct exec_wish *w = &b.wish;
	struct err e = { 0 };

	if (rest_read(r, &start_schema, &b) < 0)
		return;
	w->keep = true;
	w->pty = b.has_pty;
	w->cols = b.pty.cols;
	w->rows = b.pty.rows;
	if (form == STREAM_NONE) {
		start_detached(r, w);
		return;
	}
	struct stream *s = stream_new(r, form);
	if (!s)
		return;
	s->tag = w->tag.n ? arena_str(&r->arena, w->tag) : NULL;
	if (exec_start(r->core, &r->actor, r->params[0], w, &s->exec, &e) < 0)
		rest_fail(r, &e);
}

/* ---- requests with a short answer ---- */

struct asking {
	struct proc_op op;
	struct req *r;
};

static void on_asking_gone(struct req *r)
{
	struct asking *k = r->own;
	procs_cancel(&k->op);
}

static struct asking *asking(struct req *r, void (*done)(struct proc_op *, const struct wire_process_info *,
							 size_t, const struct err *))
{
	struct asking *k = rest_own(r, sizeof(*k));

	if (!k)
		return NULL;
	k->r = r;
	k->op.done = done;
	r->on_gone = on_asking_gone;
	return k;
}

static void on_list(struct proc_op *op, const struct wire_process_info *list, size_t n, const struct err *e)
{
	struct req *r = CONTAINER(op, struct asking, op)->r;
	struct json_out *o = rest_result_list(r, e, "processes");

	if (!o)
		return;
	for (size_t i = 0; i < n; i++) {
		json_out_object(o);
		procs_put_info(o, &list[i]);
		json_out_end(o, '}');
	}
	rest_send_list(r);
}

static void on_one(struct proc_op *op, const struct wire_process_info *list, size_t n, const struct err *e)
{
	struct req *r = CONTAINER(op, struct asking, op)->r;
	struct json_out *o = rest_result(r, e);

	if (!o)
		return;
	json_out_object(o);
	procs_put_info(o, list);
	json_out_end(o, '}');
	rest_send(r, 200);
}

static void on_nothing(struct proc_op *op, const struct wire_process_info *list, size_t n,
		       const struct err *e)
{
	struct req *r = CONTAINER(op, struct asking, op)->r;

	if (e)
		rest_fail(r, e);
	else
		rest_no_content(r);
}

static void list(struct req *r)
{
	struct asking *k = asking(r, on_list);
	struct err e = { 0 };

	if (k && procs_list(r->core, &r->actor, r->params[0], &k->op, &e) < 0)
		rest_fail(r, &e);
}

static void get(struct req *r)
{
	struct asking *k = asking(r, on_one);
	struct err e = { 0 };

	if (k && procs_get(r->core, &r->actor, r->params[0], r->params[1], &k->op, &e) < 0)
		rest_fail(r, &e);
}

static void end(struct req *r)
{
	struct asking *k = asking(r, on_nothing);
	struct err e = { 0 };

	if (k && procs_signal(r->core, &r->actor, r->params[0], r->params[1], SIGKILL, true, &k->op, &e) < 0)
		rest_fail(r, &e);
}

struct signal_body {
	const struct json *signal;
};

static const struct json_field signal_fields[] = {
	{ "signal", JSON_F_ANY, .offset = offsetof(struct signal_body, signal), .required = true },
};
static const struct json_schema signal_schema = { signal_fields, ELEMS(signal_fields) };

static void send_signal(struct req *r)
{
	struct signal_body b = { 0 };
	struct err e = { 0 };

	if (rest_read(r, &signal_schema, &b) < 0)
		return;
	bool spelled = b.signal && (b.signal->type == JSON_STRING || b.signal->type == JSON_NUMBER);
	uint32_t signo = spelled ? exec_signal(b.signal->text) : 0;
	if (!signo) {
		err_set(&e, ERR_INVALID, "signal must be a name (\"SIGTERM\") or a number from 1 to 64");
		rest_fail(r, &e);
		return;
	}
	struct asking *k = asking(r, on_nothing);
	if (k && procs_signal(r->core, &r->actor, r->params[0], r->params[1], signo, false, &k->op, &e) < 0)
		rest_fail(r, &e);
}

static void resize(struct req *r)
{
	uint64_t size[2] = { 0 };
	struct err e = { 0 };

	if (rest_read(r, &pty_schema, size) < 0)
		return;
	struct asking *k = asking(r, on_nothing);
	if (k &&
	    procs_resize(r->core, &r->actor, r->params[0], r->params[1], size[0], size[1], &k->op, &e) < 0)
		rest_fail(r, &e);
}

/* ---- output ---- */

/* What is there now: up to the ends that were true when we attached. */
struct snapshot {
	struct exec exec;
	struct req *r;
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
	struct req *r = s->r;
	struct json_out *o = &s->json;
	struct buf out;

	for (unsigned i = 0; i < EXEC_CHANNELS; i++) {
		json_out_key(o, i == 0 ? "stdout" : "stderr");
		json_out_object(o);
		stream_put_bytes(o, s->offsets[i], buf_view(&s->bytes[i]));
		json_out_end(o, '}');
	}
	json_out_end(o, '}');
	out = s->info;
	s->info = BUF_INIT(0);
	exec_cancel(&s->exec);
	snapshot_release(s);
	rest_reply(r, 200, &out);
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
	procs_put_info(&s->json, b->info);
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
	struct req *r = s->r;

	if (!e) {
		snapshot_finish(s);
		return;
	}
	struct err copy = *e;
	snapshot_release(s);
	rest_fail(r, &copy);
}

static void snapshot_gone(struct req *r)
{
	struct snapshot *s = r->own;
	exec_cancel(&s->exec);
	snapshot_release(s);
}

static int read_offset(struct req *r, const char *name, uint64_t *ret)
{
	struct view v = rest_query(r, name);
	struct err e = { 0 };

	if (!v.p || num_u64(v, ret) >= 0)
		return 0;
	err_set(&e, ERR_INVALID, "%s must be a byte offset", name);
	rest_fail(r, &e);
	return -1;
}

static void output(struct req *r)
{
	struct exec_place p = { .process = r->params[1] };
	enum stream_form form = stream_form(r);
	struct err e = { 0 };
	struct exec *x;
	bool follow;

	if (read_offset(r, "stdout", &p.offsets[0]) < 0 || read_offset(r, "stderr", &p.offsets[1]) < 0 ||
	    rest_query_flag(r, "follow", &follow) < 0)
		return;
	if (follow) {
		struct stream *s = stream_new(r, form == STREAM_NONE ? STREAM_SSE : form);
		x = s ? &s->exec : NULL;
	} else {
		struct snapshot *s = rest_own(r, sizeof(*s));
		x = s ? &s->exec : NULL;
		if (s) {
			s->r = r;
			s->info = BUF_INIT(REST_ANSWER_MAX);
			s->bytes[0] = s->bytes[1] = BUF_INIT(OUTPUT_MAX);
			x->on_begun = snapshot_begun;
			x->on_output = snapshot_output;
			x->done = snapshot_done;
			r->on_gone = snapshot_gone;
		}
	}
	if (x && exec_attach(r->core, &r->actor, r->params[0], &p, x, &e) < 0)
		rest_fail(r, &e);
}

/* ---- waiting ---- */

struct waiting {
	struct exec exec;
	struct req *r;
	struct loop_timer timer;
};

static void wait_reply(struct waiting *w, const struct exec_result *res)
{
	struct req *r = w->r;
	struct json_out *o = rest_json(r);

	json_out_object(o);
	json_out_kbool(o, "running", !res);
	if (res)
		stream_put_result(o, res);
	json_out_end(o, '}');
	loop_timer_stop(&w->timer);
	rest_send(r, 200);
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
	rest_fail(w->r, e);
}

static void wait_timeout(struct loop_timer *t)
{
	struct waiting *w = CONTAINER(t, struct waiting, timer);
	exec_cancel(&w->exec);
	wait_reply(w, NULL);
}

static void wait_gone(struct req *r)
{
	struct waiting *w = r->own;
	exec_cancel(&w->exec);
	loop_timer_stop(&w->timer);
}

static void wait_for(struct req *r)
{
	struct exec_place p = { .process = r->params[1], .from_end = true };
	struct view limit = rest_query(r, "timeout_ms");
	uint64_t ms = WAIT_MAX_MS;
	struct err e = { 0 };

	if (limit.p && (num_u64(limit, &ms) < 0 || ms > WAIT_MAX_MS)) {
		err_set(&e, ERR_INVALID, "timeout_ms must be between 0 and %u", WAIT_MAX_MS);
		rest_fail(r, &e);
		return;
	}
	struct waiting *w = rest_own(r, sizeof(*w));
	if (!w)
		return;
	w->r = r;
	w->exec.on_output = wait_output;
	w->exec.done = wait_done;
	r->on_gone = wait_gone;
	if (exec_attach(r->core, &r->actor, r->params[0], &p, &w->exec, &e) < 0)
		rest_fail(r, &e);
	else
		loop_timer_start(r->x->loop, &w->timer, ms, wait_timeout);
}

/* ---- input: one piece is with the process while the next is read ---- */

struct feeding {
	struct proc_op op;
	struct req *r;
	struct buf bytes;
	bool busy, last, close, closed;
	bool asked;  /* something was sent: no bytes at all must not hide that there is no such process */
	size_t size; /* of the piece that is under way */
};

static void feed(struct feeding *f);

static void feed_fail(struct feeding *f, const struct err *e)
{
	struct req *r = f->r;
	struct err copy = *e;

	buf_done(&f->bytes);
	rest_fail(r, &copy);
}

static void on_fed(struct proc_op *op, const struct wire_process_info *list, size_t n, const struct err *e)
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
	struct req *r = f->r;
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
		rest_no_content(r);
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
	struct req *r = x->ctx;
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
	struct req *r = x->ctx;
	struct feeding *f = r->own;

	procs_cancel(&f->op);
	buf_done(&f->bytes);
	rest_done(r);
}

static const struct http_ops feed_ops = { .on_body = feed_body, .on_abort = feed_abort };

static void input(struct req *r)
{
	struct feeding *f;
	bool close;

	if (rest_query_flag(r, "close", &close) < 0)
		return;
	f = rest_own(r, sizeof(*f));
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
const struct route rest_procs_routes[] = {
	{ "POST", "/v1/sandboxes/{id}/processes", start, .body = REST_JSON },
	{ "GET", "/v1/sandboxes/{id}/processes", list },
	{ "GET", PROCESS, get },
	{ "DELETE", PROCESS, end },
	{ "GET", PROCESS "/output", output, .query = "stdout stderr follow" },
	{ "GET", PROCESS "/wait", wait_for, .query = "timeout_ms" },
	{ "POST", PROCESS "/stdin", input, .body = REST_STREAM, .query = "close" },
	{ "POST", PROCESS "/signal", send_signal, .body = REST_JSON },
	{ "POST", PROCESS "/resize", resize, .body = REST_JSON },
	{ 0 },
};
