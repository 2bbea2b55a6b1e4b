/*
 * POST /v1/bash/exec, output, write and kill: commands whose stdout and stderr are apart and can be read from
 * any offset. See aio_bash.h.
 */
#include "aio_bash.h"

#include <stdio.h>

#include "answer_long.h"
#include "clock.h"
#include "poison.h"

#define COMMAND_MAX (1024u * 1024)
#define OUTPUT_MAX  (64u * 1024 * 1024)

static const char *const stream_names[] = { "stdout", "stderr" }, *const offset_names[] = { "offset",
											    "stderr_offset" };

/* ---- exec ---- */

struct exec_body {
	bool async;
	struct view session, command, dir;
	struct json_strmap env;
	double timeout, hard;
	uint64_t chars;
};

#define AT(f) .offset = offsetof(struct exec_body, f)
static const struct json_field exec_fields[] = {
	{ "session_id", JSON_F_STRING, AT(session), .nullable = true },
	{ "command", JSON_F_STRING, AT(command), .min = 1, .max = COMMAND_MAX, .required = true },
	{ "exec_dir", JSON_F_STRING, AT(dir), .nullable = true },
	{ "env", JSON_F_STRMAP, AT(env), .nullable = true },
	{ "async_mode", JSON_F_BOOL, AT(async) },
	{ "timeout", JSON_F_DOUBLE, AT(timeout), .fmax = AIO_SECONDS_MAX, .nullable = true },
	{ "hard_timeout", JSON_F_DOUBLE, AT(hard), .fmax = AIO_SECONDS_MAX, .nullable = true },
	{ "max_output_length", JSON_F_U64, AT(chars), .max = OUTPUT_MAX },
};
#undef AT
static const struct json_schema exec_schema = { exec_fields, ELEMS(exec_fields), .open = true };

struct running {
	struct exec exec;
	struct request *r;
	struct loop_timer soft;
	struct exec_body body;
	char session[AIO_BASH_ID], tag[AIO_BASH_TAG];
};

static void release(struct request *r)
{
	struct running *run = r->own;

	exec_cancel(&run->exec); /* the command goes on: it is kept */
	loop_timer_stop(&run->soft);
}

static void put_code(struct json_out *o, bool has, uint32_t code)
{
	json_out_key(o, "exit_code");
	if (has)
		json_out_u64(o, code);
	else
		json_out_null(o);
}

static const char *status_of(const struct exec_result *res)
{
	return !res ? "running" : res->timed_out ? "timed_out" : res->signal ? "killed" : "completed";
}

/* The core collects the output, up to the limit of one command and of the tenant: the offset says where to
 * read on. */
static void reply(struct running *run, const struct exec_result *res)
{
	struct request *r = run->r;
	struct json_out *o = aio_data(r, NULL);
	const struct buf *so_far = r->kept.bytes;

	answer_keep(r, res ? res->kept : &run->exec.kept);
	exec_cancel(&run->exec); /* which goes on: nothing more is collected */
	json_out_object(o);
	json_out_kz(o, "session_id", run->session);
	json_out_kz(o, "command_id", run->tag);
	answer_put_long(r, "command", ANSWER_STRING, run->body.command);
	json_out_kz(o, "status", status_of(res));
	for (unsigned i = 0; i < EXEC_CHANNELS; i++) {
		struct view v = !res ? aio_whole(buf_view(&so_far[i])) : i == 0 ? res->out : res->err;
		aio_put_cut(r, stream_names[i], v, run->body.chars);
		json_out_ku64(o, offset_names[i], v.n);
	}
	put_code(o, res, res ? res->exit_code : 0);
	json_out_end(o, '}');
	aio_send(r);
}

static void on_soft(struct loop_timer *t)
{
	reply(CONTAINER(t, struct running, soft), NULL);
}

static void on_begun(struct exec *x, const struct exec_begun *b)
{
	struct running *run = CONTAINER(x, struct running, exec);

	if (run->body.async)
		reply(run, NULL);
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct running *run = CONTAINER(x, struct running, exec);

	if (e)
		answer_fail(run->r, e);
	else
		reply(run, res);
}

static void start(struct running *run, struct aio_bash *s)
{
	const struct exec_body *b = &run->body;
	struct request *r = run->r;
	struct view plain[] = { VIEW("/bin/bash"), VIEW("-c"), b->command };
	struct view with[] = { VIEW("/bin/bash"), VIEW("-c"), VIEW(". \"$1\"; eval \"$2\""),
			       VIEW("bash"),      VIEW_NONE,  b->command };
	struct exec_wish w = { .env = b->env,
			       .cwd = buf_view(&s->cwd),
			       .keep = true,
			       .open_stdin = true,
			       .timeout_ms = aio_ms(b->hard) };
	struct err e = { 0 };

	with[4] = buf_view(&s->profile);
	w.argv = buf_len(&s->profile) ? (struct json_strlist){ with, ELEMS(with) }
				      : (struct json_strlist){ plain, ELEMS(plain) };
	s->count++;
	s->used_ms = clock_wall_ms();
	aio_bash_last(s, run->tag);
	w.tag = view_of(run->tag);
	snprintf(run->session, sizeof(run->session), "%s", s->id);
	run->exec.on_begun = on_begun;
	run->exec.done = on_done;
	if (exec_start(r->core, &r->actor, view_of(r->box), &w, &run->exec, &e) < 0)
		answer_fail(r, &e);
	else if (b->timeout > 0 && !b->async)
		loop_timer_start(r->x->loop, &run->soft, aio_ms(b->timeout), on_soft);
}

static void exec(struct request *r)
{
	struct running *run = aio_own(r, sizeof(*run), release);
	struct aio_bash *s = NULL;

	if (!run)
		return;
	run->r = r;
	run->body.chars = 50000;
	if (aio_read(r, &exec_schema, &run->body) < 0 || !aio_may_exec(r))
		return;
	if (run->body.dir.n && run->body.dir.p[0] != '/') {
		aio_unprocessable(r, "exec_dir", "exec_dir: must be an absolute path");
		return;
	}
	if (run->body.session.n)
		s = aio_bash_find(r, run->body.session);
	if (s && s->closed) {
		aio_refuse(r, "the session \"%s\" is closed", s->id);
		return;
	}
	if (!s && !(s = aio_bash_new(r, run->body.session, VIEW(""))))
		return;
	if (run->body.dir.n) {
		buf_clear(&s->cwd);
		buf_add(&s->cwd, run->body.dir);
	}
	start(run, s);
}

/* ---- output ---- */

struct output_body {
	bool wait;
	struct view session, command;
	uint64_t offsets[EXEC_CHANNELS];
	double patience;
};

#define AT(f) .offset = offsetof(struct output_body, f)
static const struct json_field output_fields[] = {
	{ "session_id", JSON_F_STRING, AT(session), .required = true },
	{ "command_id", JSON_F_STRING, AT(command), .nullable = true },
	{ "offset", JSON_F_U64, AT(offsets[0]), .max = INT64_MAX },
	{ "stderr_offset", JSON_F_U64, AT(offsets[1]), .max = INT64_MAX },
	{ "wait", JSON_F_BOOL, AT(wait) },
	{ "wait_timeout", JSON_F_DOUBLE, AT(patience), .fmax = AIO_SECONDS_MAX },
};
#undef AT
static const struct json_schema output_schema = { output_fields, ELEMS(output_fields), .open = true };

struct reading {
	struct exec exec;
	struct request *r;
	struct loop_timer patience;
	struct output_body body;
	char session[AIO_BASH_ID], tag[AIO_BASH_TAG];
	struct view command;
	struct buf bytes[EXEC_CHANNELS];
	uint64_t ends[EXEC_CHANNELS]; /* of what was there when we came */
	const char *status;
	bool all; /* up to the ends; else until anything comes */
	bool has_code;
	uint32_t code;
};

static void release_reading(struct request *r)
{
	struct reading *k = r->own;

	exec_cancel(&k->exec);
	loop_timer_stop(&k->patience);
	for (unsigned i = 0; i < EXEC_CHANNELS; i++)
		buf_done(&k->bytes[i]);
}

static void show(struct reading *k)
{
	struct request *r = k->r;
	struct json_out *o = aio_data(r, NULL);

	json_out_object(o);
	json_out_kz(o, "session_id", k->session);
	for (unsigned i = 0; i < EXEC_CHANNELS; i++) {
		struct view v = buf_view(&k->bytes[i]);
		if (!k->has_code)
			v = aio_whole(v);
		answer_put_long(r, stream_names[i], ANSWER_STRING, v);
		json_out_ku64(o, offset_names[i], k->body.offsets[i] + v.n);
	}
	json_out_key(o, "command");
	json_out_object(o);
	json_out_kz(o, "command_id", k->tag);
	json_out_kstr(o, "command", k->command);
	json_out_kz(o, "status", k->status);
	put_code(o, k->has_code, k->code);
	json_out_end(o, '}');
	json_out_end(o, '}');
	aio_send(r);
}

static bool is_complete(const struct reading *k)
{
	for (unsigned i = 0; i < EXEC_CHANNELS; i++)
		if (k->body.offsets[i] + buf_len(&k->bytes[i]) < k->ends[i] && buf_room(&k->bytes[i]))
			return false;
	return true;
}

static void on_attached(struct exec *x, const struct exec_begun *b)
{
	struct reading *k = CONTAINER(x, struct reading, exec);
	const struct proc_info *i = b->info;

	memcpy(k->body.offsets, b->offsets, sizeof(k->body.offsets));
	k->ends[0] = i->stdout_end;
	k->ends[1] = i->stderr_end;
	k->command = i->argv.n ? arena_view(&k->r->arena, i->argv.items[i->argv.n - 1]) : VIEW("");
	if (i->has_exit) {
		k->status = i->exit.timed_out ? "timed_out" : i->exit.signal ? "killed" : "completed";
		k->has_code = true;
		k->code = i->exit.exit_code;
	}
	k->all = !k->body.wait || !i->running || !is_complete(k);
	if (k->all && is_complete(k) && (k->has_code || i->running))
		show(k);
}

static void on_read(struct exec *x, unsigned channel, struct view data)
{
	struct reading *k = CONTAINER(x, struct reading, exec);
	struct buf *b = &k->bytes[channel - 1];
	uint64_t at = k->body.offsets[channel - 1] + buf_len(b), end = k->ends[channel - 1];

	exec_consumed(x, data.n);
	if (k->all)
		data = view_head(data, (size_t)MIN(end > at ? end - at : 0, (uint64_t)data.n));
	buf_add(b, view_head(data, buf_room(b)));
	http_hold(k->r->x, k->bytes[0].cap + k->bytes[1].cap + k->r->body.cap + k->r->arena.used);
	if (!k->all || is_complete(k))
		show(k);
}

static void on_read_end(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct reading *k = CONTAINER(x, struct reading, exec);

	if (e) {
		answer_fail(k->r, e);
		return;
	}
	k->status = status_of(res);
	k->has_code = true;
	k->code = res->exit_code;
	show(k);
}

static void on_patience(struct loop_timer *t)
{
	show(CONTAINER(t, struct reading, patience));
}

/* The command that is meant, or the session's last; false: the answer is sent. */
static bool choose(struct request *r, const struct aio_bash *s, struct view command, char ret[AIO_BASH_TAG])
{
	if (!command.n) {
		aio_bash_last(s, ret);
		if (*ret)
			return true;
		aio_refuse(r, "the session has run no command");
		return false;
	}
	if (aio_bash_owns(s, command) && view_to_str(command, ret, AIO_BASH_TAG) >= 0)
		return true;
	aio_refuse(r, "the session has no command \"%.*s\"", (int)MIN(command.n, (size_t)100), command.p);
	return false;
}

static void put_nothing(struct request *r, const struct aio_bash *s)
{
	struct json_out *o = aio_data(r, NULL);

	json_out_object(o);
	json_out_kz(o, "session_id", s->id);
	json_out_kz(o, "stdout", "");
	json_out_kz(o, "stderr", "");
	json_out_ku64(o, "offset", 0);
	json_out_ku64(o, "stderr_offset", 0);
	json_out_kz(o, "command", NULL);
	json_out_end(o, '}');
	aio_send(r);
}

static void output(struct request *r)
{
	struct reading *k = aio_own(r, sizeof(*k), release_reading);
	struct aio_bash *s;
	struct err e = { 0 };

	if (!k)
		return;
	k->r = r;
	k->status = "running";
	k->body.patience = 30;
	k->bytes[0] = k->bytes[1] = BUF_INIT(OUTPUT_MAX);
	if (aio_read(r, &output_schema, &k->body) < 0 || !(s = aio_bash_get(r, k->body.session, true)))
		return;
	if (!s->count && !k->body.command.n) {
		put_nothing(r, s);
		return;
	}
	if (!choose(r, s, k->body.command, k->tag))
		return;
	snprintf(k->session, sizeof(k->session), "%s", s->id);
	k->exec.on_begun = on_attached;
	k->exec.on_output = on_read;
	k->exec.done = on_read_end;
	struct exec_place p = { .process = view_of(k->tag),
				.offsets = { k->body.offsets[0], k->body.offsets[1] } };
	if (exec_attach(r->core, &r->actor, view_of(r->box), &p, &k->exec, &e) < 0)
		answer_fail(r, &e);
	else if (k->body.wait)
		loop_timer_start(r->x->loop, &k->patience, aio_ms(k->body.patience), on_patience);
}

/* ---- input and signals ---- */

struct told_body {
	bool unused;
	struct view session, command, input, signal;
};

#define AT(f) .offset = offsetof(struct told_body, f)
static const struct json_field write_fields[] = {
	{ "session_id", JSON_F_STRING, AT(session), .required = true },
	{ "command_id", JSON_F_STRING, AT(command), .nullable = true },
	{ "input", JSON_F_STRING, AT(input), .required = true },
};
static const struct json_schema write_schema = { write_fields, ELEMS(write_fields), .open = true };
static const struct json_field kill_fields[] = {
	{ "session_id", JSON_F_STRING, AT(session), .required = true },
	{ "signal", JSON_F_STRING, AT(signal) },
};
static const struct json_schema kill_schema = { kill_fields, ELEMS(kill_fields), .open = true };
#undef AT

struct telling {
	struct proc_op op;
	struct request *r;
	char tag[AIO_BASH_TAG];
};

static void release_telling(struct request *r)
{
	procs_cancel(&((struct telling *)r->own)->op);
}

static void on_told(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct telling *t = CONTAINER(op, struct telling, op);
	struct request *r = t->r;

	if (e && e->code == ERR_NOT_FOUND) {
		aio_refuse(r, "the command is over");
		return;
	}
	if (e) {
		answer_fail(r, e);
		return;
	}
	struct json_out *o = aio_data(r, NULL);
	json_out_object(o);
	json_out_kz(o, "command_id", t->tag);
	json_out_end(o, '}');
	aio_send(r);
}

static void write_to(struct request *r)
{
	struct telling *t = aio_own(r, sizeof(*t), release_telling);
	struct told_body b = { 0 };
	struct aio_bash *s;
	struct err e = { 0 };

	if (!t)
		return;
	t->r = r;
	t->op.done = on_told;
	if (aio_read(r, &write_schema, &b) < 0 || !(s = aio_bash_get(r, b.session, false)) ||
	    !choose(r, s, b.command, t->tag))
		return;
	if (b.input.n > PROCS_INPUT_MAX)
		aio_refuse(r, "the input is larger than %u bytes", PROCS_INPUT_MAX);
	else if (procs_input(r->core, &r->actor, view_of(r->box), view_of(t->tag), b.input, false, &t->op,
			     &e) < 0)
		answer_fail(r, &e);
}

static void end(struct request *r)
{
	struct telling *t = aio_own(r, sizeof(*t), release_telling);
	struct told_body b = { .signal = VIEW("SIGTERM") };
	struct aio_bash *s;
	struct err e = { 0 };
	uint32_t signo;

	if (!t)
		return;
	t->r = r;
	t->op.done = on_told;
	if (aio_read(r, &kill_schema, &b) < 0 || !(s = aio_bash_get(r, b.session, false)))
		return;
	signo = exec_signal(b.signal);
	if (!signo)
		aio_unprocessable(r, "signal", "signal: must be the name of one, such as SIGTERM");
	else if (choose(r, s, VIEW_NONE, t->tag) &&
		 procs_signal(r->core, &r->actor, view_of(r->box), view_of(t->tag), signo, false, &t->op,
			      &e) < 0)
		answer_fail(r, &e);
}

const struct route aio_bash_routes[] = {
	{ "POST", "/v1/bash/exec", exec, .body = ROUTE_JSON, .schema = &exec_schema, .query = AIO_QUERY },
	{ "POST", "/v1/bash/output", output, .body = ROUTE_JSON, .schema = &output_schema,
	  .query = AIO_QUERY },
	{ "POST", "/v1/bash/write", write_to, .body = ROUTE_JSON, .schema = &write_schema,
	  .query = AIO_QUERY },
	{ "POST", "/v1/bash/kill", end, .body = ROUTE_JSON, .schema = &kill_schema, .query = AIO_QUERY },
	{ 0 },
};
