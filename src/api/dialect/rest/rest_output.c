/*
 * Output as events: see rest_output.h.
 */
#include "rest_output.h"

#include <errno.h>
#include <stdio.h>

#include "exec_stream.h"
#include "rest_procs.h"
#include "run.h"
#include "text.h"
#include "poison.h"

static const char *const channel_names[] = { "stdout", "stderr" };

void rest_output_begin(struct rest_output *p, uint32_t process)
{
	char pid[16];
	struct http_header header = { VIEW("x-process-id"), VIEW_NONE };

	snprintf(pid, sizeof(pid), "%u", process);
	header.value = view_of(pid);
	stream_begin(&p->stream, &header, 1);
}

static void on_begun(struct exec *x, const struct exec_begun *b)
{
	struct rest_output *p = CONTAINER(x, struct rest_output, exec);
	struct json_out o;

	rest_output_begin(p, b->pid);
	memcpy(p->offsets, b->offsets, sizeof(p->offsets));
	if (p->stream.form == STREAM_RAW)
		return;
	stream_open(&p->stream, &o, "start");
	if (b->info) {
		rest_procs_put_info(&o, b->info);
	} else {
		json_out_ku64(&o, "pid", b->pid);
		json_out_kz(&o, "tag", p->tag);
	}
	stream_close(&p->stream, &o);
}

/* ---- output ---- */

static bool is_text(struct view v)
{
	return text_utf8_prefix(v) == v.n && !(v.n && memchr(v.p, 0, v.n));
}

bool rest_output_is_text(struct view *v, bool cut)
{
	size_t whole = text_utf8_prefix(*v);

	if ((whole < v->n && (!cut || v->n - whole >= 4)) || (v->n && memchr(v->p, 0, v->n)))
		return false;
	v->n = whole;
	return true;
}

void rest_output_put_bytes(struct json_out *o, uint64_t offset, struct view data)
{
	bool text = is_text(data);
	struct buf coded = BUF_INIT(ANSWER_MAX);

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

struct put_to {
	struct rest_output *p;
	unsigned at;
};

static void put_piece(void *arg, struct view data)
{
	const struct put_to *to = arg;
	struct rest_output *p = to->p;
	struct json_out o;

	stream_open(&p->stream, &o, channel_names[to->at]);
	rest_output_put_bytes(&o, p->offsets[to->at], data);
	p->offsets[to->at] += data.n;
	stream_close(&p->stream, &o);
}

void rest_output_bytes(struct rest_output *p, unsigned channel, struct view data)
{
	struct put_to to = { p, channel - 1 };
	text_pieces_add(&p->pieces[to.at], data, put_piece, &to);
}

void rest_output_flush(struct rest_output *p)
{
	for (unsigned i = 0; i < EXEC_CHANNELS; i++)
		text_pieces_end(&p->pieces[i], put_piece, &(struct put_to){ p, i });
}

static void on_output(struct exec *x, unsigned channel, struct view data)
{
	struct rest_output *p = CONTAINER(x, struct rest_output, exec);

	if (p->stream.form != STREAM_RAW)
		rest_output_bytes(p, channel, data);
	else if (channel == 1 && !http_write(p->stream.r->x, data))
		p->stream.full = true;
	exec_stream_passed(&p->stream, x, data.n);
}

static void on_writable(struct http_exchange *x)
{
	struct rest_output *p = ((struct request *)x->ctx)->own;

	exec_stream_room(&p->stream, &p->exec);
}

/* ---- the end ---- */

void rest_output_put_result(struct json_out *o, const struct exec_result *res)
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

/* Bytes of stdout that are followed by how it ended, where the protocol can say that. */
static void finish_raw(struct rest_output *p, const struct exec_result *res)
{
	char code[16];
	struct http_header trailers[] = {
		{ VIEW("x-exit-code"), VIEW_NONE },
		{ VIEW("x-exit-signal"), view_of(res->signal ? res->signal : "none") },
		{ VIEW("x-timed-out"), res->timed_out ? VIEW("1") : VIEW("0") },
	};

	snprintf(code, sizeof(code), "%u", res->exit_code);
	trailers[0].value = view_of(code);
	http_trailers(p->stream.r->x, trailers, ELEMS(trailers));
	stream_finish(&p->stream);
}

void rest_output_fail(struct rest_output *p, const struct err *e)
{
	struct request *r = p->stream.r;
	struct err copy = *e;
	struct json_out o;

	if (!p->stream.begun) {
		stream_release(&p->stream);
		answer_fail(r, &copy);
	} else if (p->stream.form == STREAM_RAW) {
		stream_release(&p->stream);
		http_break(r->x);
		request_done(r);
	} else {
		stream_open(&p->stream, &o, "error");
		json_out_kz(&o, "code", err_name(copy.code));
		json_out_kz(&o, "message", copy.msg);
		json_out_kz(&o, "request_id", r->x->request_id);
		stream_close(&p->stream, &o);
		stream_finish(&p->stream);
	}
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct rest_output *p = CONTAINER(x, struct rest_output, exec);
	struct json_out o;

	if (e) {
		rest_output_fail(p, e);
		return;
	}
	if (p->stream.form == STREAM_RAW) {
		finish_raw(p, res);
		return;
	}
	rest_output_flush(p);
	stream_open(&p->stream, &o, "exit");
	rest_output_put_result(&o, res);
	stream_close(&p->stream, &o);
	stream_finish(&p->stream);
}

static void on_abort(struct http_exchange *x)
{
	struct rest_output *p = ((struct request *)x->ctx)->own;

	exec_stream_gone(&p->stream, &p->exec);
}

static const struct http_ops stream_ops = { .on_body = request_drop_body,
					    .on_abort = on_abort,
					    .on_writable = on_writable };

struct rest_output *rest_output_new(struct request *r, enum stream_form form)
{
	struct rest_output *p = request_own(r, sizeof(*p));

	if (!p)
		return NULL;
	stream_init(&p->stream, r, form, &stream_ops);
	p->exec.on_begun = on_begun;
	p->exec.on_output = on_output;
	p->exec.done = on_done;
	return p;
}
