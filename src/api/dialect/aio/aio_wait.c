/*
 * Answers about the command of a shell's session: as a whole, when it is over, when the caller waits no
 * longer, or when it has been silent for too long; or as Server-Sent Events while it runs:
 *
 *   output  {"session_id","output"}, as it comes
 *   result  what the whole answer would be
 *   error   {"message"}
 */
#include "aio_shell.h"
#include "answer_long.h"
#include "poison.h"

#define PIECE (64u * 1024) /* of the output in one event */

void aio_wait_release(struct aio_wait *w)
{
	list_del(&w->link);
	loop_timer_stop(&w->soft);
	loop_timer_stop(&w->quiet);
	if (w->stream.r)
		stream_release(&w->stream);
}

static void release(struct request *r)
{
	aio_wait_release(r->own);
}

struct aio_wait *aio_wait_new(struct request *r, enum aio_wait_kind kind)
{
	struct aio_wait *w = aio_own(r, sizeof(*w), release);

	if (!w)
		return NULL;
	list_init(&w->link);
	w->kind = kind;
	return w;
}

/* Where the session is: its last command's directory, or the box's. */
static struct view cwd_of(const struct aio_shell *s, const struct box *b)
{
	struct view cwd = b ? shells_cwd(b, view_of(s->name)) : VIEW_NONE;
	return cwd.p ? cwd : b ? b->spec.workdir : VIEW("/");
}

static void put_created(struct json_out *o, const struct aio_shell *s)
{
	json_out_object(o);
	json_out_kz(o, "session_id", aio_shell_id(s));
	json_out_kstr(o, "working_dir", cwd_of(s, boxes_by_id(s->core, view_of(s->box))));
	json_out_end(o, '}');
}

/* The session's own output goes with its next command: the answer has a copy, or the part that is wanted. */
static bool copy_output(struct aio_wait *w, struct view *output)
{
	struct buf b = BUF_INIT(output->n + 4096);
	bool good;

	if (w->whole)
		return answer_copy(w->r, output);
	good = aio_cut(&b, *output, AIO_SHELL_CHARS) >= 0;
	*output = arena_view(&w->r->arena, buf_view(&b));
	buf_done(&b);
	return good && output->p;
}

static void too_much(struct aio_wait *w)
{
	struct err e = { 0 };

	err_set(&e, ERR_QUOTA, "too much output of this tenant's commands waits to be read");
	aio_wait_fail(w, &e);
}

static void put_console(struct json_out *o, const struct aio_wait *w, struct view output)
{
	const struct box *b = boxes_by_id(w->shell->core, view_of(w->shell->box));
	struct buf prompt = BUF_INIT(8192);

	if (b)
		buf_add(&prompt, b->spec.user);
	buf_puts(&prompt, "@sandbox:");
	buf_add(&prompt, cwd_of(w->shell, b));
	buf_puts(&prompt, "$ ");
	json_out_key(o, "console");
	json_out_array(o);
	json_out_object(o);
	json_out_kstr(o, "ps1", buf_view(&prompt));
	answer_put_long(w->r, "command", ANSWER_STRING, w->command);
	answer_put_long(w->r, "output", ANSWER_STRING, output);
	json_out_end(o, '}');
	json_out_end(o, ']');
	buf_done(&prompt);
}

static void put_data(struct json_out *o, const struct aio_wait *w, const struct aio_wait_end *end)
{
	if (w->kind == AIO_WAIT_CREATED) {
		put_created(o, w->shell);
		return;
	}
	json_out_object(o);
	json_out_kz(o, "status", end->status);
	if (w->kind == AIO_WAIT_STATUS) {
		json_out_end(o, '}');
		return;
	}
	json_out_kz(o, "session_id", aio_shell_id(w->shell));
	if (w->command.n || w->kind == AIO_WAIT_EXEC)
		answer_put_long(w->r, "command", ANSWER_STRING, w->command);
	else
		json_out_kz(o, "command", NULL);
	answer_put_long(w->r, "output", ANSWER_STRING, end->output);
	if (w->command.n)
		put_console(o, w, end->output);
	else
		json_out_kz(o, "console", NULL);
	json_out_key(o, "exit_code");
	if (end->has_code)
		json_out_u64(o, end->code);
	else
		json_out_null(o);
	json_out_end(o, '}');
}

/* ---- as events ---- */

static void begin(struct aio_wait *w)
{
	if (!w->stream.begun)
		stream_begin(&w->stream, NULL, 0);
}

/* As much as the client takes; the rest when it takes more, or at the end. */
static void push(struct aio_wait *w, struct view output)
{
	struct view more = view_skip(output, w->sent);
	struct json_out o;

	while (more.n && !w->stream.full) {
		struct view piece = aio_whole(view_head(more, PIECE));
		if (!piece.n)
			return;
		begin(w);
		w->sent += piece.n;
		more = view_skip(more, piece.n);
		stream_open(&w->stream, &o, "output");
		json_out_kz(&o, "session_id", aio_shell_id(w->shell));
		json_out_kstr(&o, "output", piece);
		stream_close(&w->stream, &o);
	}
}

static void finish_stream(struct aio_wait *w, struct aio_wait_end *end)
{
	struct view all = end->output, more;
	struct json_out *o;

	if (!answer_copy(w->r, &all)) {
		too_much(w);
		return;
	}
	end->output = all;
	if (!w->whole && !copy_output(w, &end->output)) {
		too_much(w);
		return;
	}
	more = view_skip(all, w->sent);
	begin(w);
	if (more.n) {
		o = stream_last_open(&w->stream, "output");
		json_out_kz(o, "session_id", aio_shell_id(w->shell));
		answer_put_long(w->r, "output", ANSWER_STRING, more);
		stream_last_close(&w->stream);
	}
	o = stream_last_open(&w->stream, "result");
	json_out_kbool(o, "success", true);
	json_out_kz(o, "message", "Operation successful");
	json_out_kz(o, "hint", NULL);
	json_out_key(o, "data");
	put_data(o, w, end);
	stream_last_close(&w->stream);
	list_del(&w->link);
	loop_timer_stop(&w->soft);
	loop_timer_stop(&w->quiet);
	stream_last_send(&w->stream);
}

static void on_abort(struct http_exchange *x)
{
	request_done(x->ctx); /* whose release does the rest; the command goes on */
}

static void on_writable(struct http_exchange *x)
{
	struct aio_wait *w = ((struct request *)x->ctx)->own;

	w->stream.full = false;
	push(w, aio_shell_output(w->shell));
}

static const struct http_ops stream_ops = { .on_body = request_drop_body,
					    .on_abort = on_abort,
					    .on_writable = on_writable };

/* ---- either way ---- */

void aio_wait_over(struct aio_wait *w, const struct aio_wait_end *given)
{
	struct request *r = w->r;
	struct aio_wait_end end = *given;

	if (w->streams) {
		finish_stream(w, &end);
		return;
	}
	bool has_output = w->kind != AIO_WAIT_CREATED && w->kind != AIO_WAIT_STATUS;
	if (has_output && !copy_output(w, &end.output)) {
		too_much(w);
		return;
	}
	list_del(&w->link);
	loop_timer_stop(&w->soft);
	loop_timer_stop(&w->quiet);
	if (w->kind == AIO_WAIT_CREATED && end.has_code && end.code) {
		aio_refuse(r, "exec_dir is no directory that can be entered");
		return;
	}
	put_data(aio_data(r, NULL), w, &end);
	aio_send(r);
}

void aio_wait_fail(struct aio_wait *w, const struct err *e)
{
	struct request *r = w->r;
	struct err copy = *e;
	struct json_out o;

	list_del(&w->link);
	loop_timer_stop(&w->soft);
	loop_timer_stop(&w->quiet);
	if (w->kind == AIO_WAIT_STATUS) {
		aio_wait_over(w, &(struct aio_wait_end){ .status = "terminated" });
		return;
	}
	if (!w->streams || !w->stream.begun) {
		answer_fail(r, &copy);
		return;
	}
	stream_open(&w->stream, &o, "error");
	json_out_kz(&o, "message", copy.msg);
	stream_close(&w->stream, &o);
	stream_finish(&w->stream);
}

static void on_soft(struct loop_timer *t)
{
	struct aio_wait *w = CONTAINER(t, struct aio_wait, soft);
	aio_wait_over(w, &(struct aio_wait_end){ .status = "running", .output = aio_shell_output(w->shell) });
}

static void on_quiet(struct loop_timer *t)
{
	struct aio_wait *w = CONTAINER(t, struct aio_wait, quiet);
	aio_wait_over(w, &(struct aio_wait_end){ .status = "no_change_timeout",
						 .output = aio_shell_output(w->shell) });
}

void aio_wait_news(struct aio_wait *w)
{
	if (w->quiet_ms)
		loop_timer_start(w->r->x->loop, &w->quiet, w->quiet_ms, on_quiet);
	if (w->streams)
		push(w, aio_shell_output(w->shell));
}

void aio_wait_begin(struct aio_wait *w, struct request *r, struct aio_shell *s, uint64_t soft_ms)
{
	w->r = r;
	w->shell = s;
	if (w->streams) {
		stream_init(&w->stream, r, STREAM_SSE, &stream_ops);
		stream_begin(&w->stream, NULL, 0);
	}
	if (!s->running) {
		aio_wait_over(w, &(struct aio_wait_end){ .status = s->status,
							 .has_code = s->has_code,
							 .code = s->code,
							 .output = aio_shell_output(s) });
		return;
	}
	list_append(&s->waits, &w->link);
	if (soft_ms)
		loop_timer_start(r->x->loop, &w->soft, soft_ms, on_soft);
	aio_wait_news(w);
}
