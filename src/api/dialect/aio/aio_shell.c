/*
 * Sessions of /v1/shell and the commands in them: see aio_shell.h.
 */
#include "aio_shell.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "rnd.h"
#include "text.h"
#include "poison.h"

#define COLS        200 /* `ps` and its like cut what they show at the width */
#define ROWS        50
#define COMMAND_MAX (1024u * 1024)
#define PRUNE_MS    60000

/* ---- the table ---- */

bool aio_shell_name(struct request *r, struct view id, char ret[AIO_SHELL_NAME])
{
	char fresh[21];

	if (!id.n) {
		rnd_name(fresh, sizeof(fresh) - 1);
		snprintf(ret, AIO_SHELL_NAME, "aio.%s", fresh);
		return true;
	}
	snprintf(ret, AIO_SHELL_NAME, "aio.%.*s", (int)MIN(id.n, (size_t)AIO_SHELL_NAME), id.p);
	if (id.n <= AIO_SHELL_NAME - strlen("aio.") - 1 && spec_is_name(view_of(ret)))
		return true;
	aio_refuse(r, "a session's id must be 1 to %zu characters of [A-Za-z0-9._-]",
		   AIO_SHELL_NAME - strlen("aio.") - 1);
	return false;
}

struct aio_shell *aio_shell_find(const struct aio_state *st, const char *box, const char *name)
{
	LIST_EACH (it, &st->shells) {
		struct aio_shell *s = CONTAINER(it, struct aio_shell, link);
		if (!s->leaving && !strcmp(s->box, box) && !strcmp(s->name, name))
			return s;
	}
	return NULL;
}

struct aio_shell *aio_shell_get(struct request *r, struct view id)
{
	char name[AIO_SHELL_NAME];
	struct aio_shell *s;

	if (!aio_may_exec(r))
		return NULL;
	if (!id.n || id.n > AIO_SHELL_NAME - strlen("aio.") - 1) {
		aio_refuse(r, "there is no such session");
		return NULL;
	}
	snprintf(name, sizeof(name), "aio.%.*s", VIEW_ARG(id));
	s = aio_shell_find(r->state, r->box, name);
	if (!s)
		aio_refuse(r, "there is no session \"%.*s\"", VIEW_ARG(id));
	else
		s->used_ms = clock_wall_ms();
	return s;
}

void aio_shell_free(struct aio_shell *s)
{
	struct err e = { 0 };

	err_set(&e, ERR_CANCELLED, "the session was removed");
	list_del(&s->link);
	exec_cancel(&s->exec);
	shells_cancel(&s->removal);
	while (!list_empty(&s->waits))
		aio_wait_fail(CONTAINER(s->waits.next, struct aio_wait, link), &e);
	buf_done(&s->command);
	outputs_done(&s->output);
	free(s);
}

static void on_removed(struct shells_op *op, const struct shell_info *list, size_t n, const struct err *e)
{
	aio_shell_free(CONTAINER(op, struct aio_shell, removal));
}

/* What is kept of a box that is gone counts against its tenant no longer than this. */
static void on_prune(struct loop_timer *t)
{
	struct aio_state *st = CONTAINER(t, struct aio_state, prune);
	struct loop *loop = NULL;

	LIST_EACH (it, &st->shells) {
		struct aio_shell *s = CONTAINER(it, struct aio_shell, link);
		loop = s->loop;
		if (!boxes_by_id(st->core, view_of(s->box)))
			aio_shell_free(s);
	}
	aio_shell_forget(st, false);
	if (loop && !list_empty(&st->shells))
		loop_timer_start(loop, &st->prune, PRUNE_MS, on_prune);
}

/* Where a box has too many, the one that was idle longest goes. */
static bool make_place(struct request *r)
{
	struct aio_state *st = r->state;
	struct aio_shell *oldest = NULL;
	unsigned n = 0;
	struct err e = { 0 };

	LIST_EACH (it, &st->shells) {
		struct aio_shell *s = CONTAINER(it, struct aio_shell, link);
		if (s->leaving || strcmp(s->box, r->box) != 0)
			continue;
		n++;
		if (s->automatic && !s->running && (!oldest || s->used_ms < oldest->used_ms))
			oldest = s;
	}
	if (n < AIO_SHELL_MAX)
		return true;
	if (!oldest)
		return false;
	oldest->leaving = true;
	oldest->removal.done = on_removed;
	if (shells_remove(r->core, &r->actor, view_of(r->box), view_of(oldest->name), &oldest->removal, &e) <
	    0)
		aio_shell_free(oldest);
	return true;
}

struct aio_shell *aio_shell_new(struct request *r, const char *name, bool automatic)
{
	struct aio_shell *s;

	if (!make_place(r)) {
		aio_refuse(r, "the sandbox has %d sessions already: remove some (DELETE /v1/shell/sessions)",
			   AIO_SHELL_MAX);
		return NULL;
	}
	s = aio_shell_add(r, name, automatic);
	if (!s)
		aio_refuse(r, "out of memory");
	return s;
}

struct aio_shell *aio_shell_add(struct request *r, const char *name, bool automatic)
{
	struct aio_state *st = r->state;
	struct aio_shell *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->core = r->core;
	s->loop = r->x->loop;
	memcpy(s->box, r->box, sizeof(s->box));
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->automatic = automatic;
	s->created_ms = s->used_ms = clock_wall_ms();
	s->quiet_ms = AIO_SHELL_QUIET;
	s->status = "completed";
	s->command = BUF_INIT(COMMAND_MAX);
	list_init(&s->waits);
	list_append(&st->shells, &s->link);
	if (!loop_timer_active(&st->prune))
		loop_timer_start(s->loop, &st->prune, PRUNE_MS, on_prune);
	return s;
}

/* ---- commands ---- */

struct view aio_shell_output(const struct aio_shell *s)
{
	return buf_view(s->running ? &s->exec.kept.bytes[0] : &s->output.bytes[0]);
}

static void on_kept(struct exec *x)
{
	struct aio_shell *s = CONTAINER(x, struct aio_shell, exec);

	LIST_EACH (it, &s->waits)
		aio_wait_news(CONTAINER(it, struct aio_wait, link));
}

static void keep(struct aio_shell *s, struct view output)
{
	const struct box *b = boxes_by_id(s->core, view_of(s->box));
	struct buf cut = BUF_INIT(8 * AIO_SHELL_CHARS);

	outputs_done(&s->output);
	if (b && aio_cut(&cut, output, AIO_SHELL_CHARS) >= 0) {
		outputs_start(&s->output, s->core, b->tenant);
		(void)outputs_add(&s->output, 1, buf_view(&cut));
	}
	buf_done(&cut);
}

/* They are answered from a list of their own: an answer may bring the next command. */
static struct list *take_waits(struct aio_shell *s, struct list *ret)
{
	list_init(ret);
	LIST_EACH (it, &s->waits) {
		list_del(it);
		list_append(ret, it);
	}
	return ret;
}

static void finish(struct aio_shell *s, const struct aio_wait_end *end)
{
	struct list waits;

	s->running = false;
	s->status = end->status;
	s->has_code = end->has_code;
	s->code = end->code;
	keep(s, end->output);
	take_waits(s, &waits);
	while (!list_empty(&waits))
		aio_wait_over(CONTAINER(waits.next, struct aio_wait, link), end);
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct aio_shell *s = CONTAINER(x, struct aio_shell, exec);
	struct list waits;

	if (!e) {
		finish(s, &(struct aio_wait_end){ .status = res->timed_out ? "hard_timeout" : "completed",
						  .has_code = true,
						  .code = res->exit_code,
						  .output = res->out });
		return;
	}
	s->running = s->has_code = false;
	s->status = "terminated";
	keep(s, view_of(e->msg));
	take_waits(s, &waits);
	while (!list_empty(&waits))
		aio_wait_fail(CONTAINER(waits.next, struct aio_wait, link), e);
}

int aio_shell_run(struct request *r, struct aio_shell *s, struct view text, struct view shown,
		  uint64_t limit_ms)
{
	struct exec_wish w = { .command = text,
			       .shell = view_of(s->name),
			       .timeout_ms = limit_ms,
			       .merged = true,
			       .kill = true,
			       .pty = true,
			       .cols = COLS,
			       .rows = ROWS };
	struct err e = { 0 };

	s->exec = (struct exec){ .done = on_done, .on_kept = on_kept };
	if (exec_start(r->core, &r->actor, view_of(r->box), &w, &s->exec, &e) < 0) {
		answer_fail(r, &e);
		return -1;
	}
	s->running = true;
	s->used_ms = clock_wall_ms();
	buf_clear(&s->command);
	buf_add(&s->command, shown);
	outputs_done(&s->output);
	return 0;
}

/* ---- exec ---- */

struct exec_body {
	bool async, strict, symlinks, truncate, has_quiet;
	struct view id, dir, command;
	double timeout, hard;
	uint64_t quiet;
};

#define AT(f) .offset = offsetof(struct exec_body, f)
static const struct json_field exec_fields[] = {
	{ "id", JSON_F_STRING, AT(id), .nullable = true },
	{ "exec_dir", JSON_F_STRING, AT(dir), .nullable = true },
	{ "command", JSON_F_STRING, AT(command), .min = 1, .max = COMMAND_MAX, .required = true },
	{ "async_mode", JSON_F_BOOL, AT(async) },
	{ "timeout", JSON_F_DOUBLE, AT(timeout), .fmax = AIO_SECONDS_MAX, .nullable = true },
	{ "strict", JSON_F_BOOL, AT(strict), .nullable = true },
	{ "no_change_timeout", JSON_F_U64, AT(quiet), .has = offsetof(struct exec_body, has_quiet),
	  .max = AIO_SECONDS_MAX, .nullable = true },
	{ "hard_timeout", JSON_F_DOUBLE, AT(hard), .fmax = AIO_SECONDS_MAX, .nullable = true },
	{ "preserve_symlinks", JSON_F_BOOL, AT(symlinks), .nullable = true },
	{ "truncate", JSON_F_BOOL, AT(truncate) },
};
#undef AT
static const struct json_schema exec_schema = { exec_fields, ELEMS(exec_fields), .open = true };

struct running {
	struct aio_wait wait; /* at the beginning: aio_wait.c knows no more of this */
	struct exec_body body;
	struct exec probe; /* whether the directory is there */
	struct aio_adopt adopt;
	char name[AIO_SHELL_NAME];
};

static void release(struct request *r)
{
	struct running *run = r->own;
	exec_cancel(&run->probe);
	shells_cancel(&run->adopt.op);
	aio_wait_release(&run->wait);
}

static void begin(struct request *r)
{
	struct running *run = r->own;
	const struct exec_body *b = &run->body;
	struct aio_shell *s = aio_shell_find(r->state, r->box, run->name);
	_cleanup_(buf_done) struct buf text = BUF_INIT(2 * COMMAND_MAX);
	bool fresh = !s;

	if (!s && !aio_shell_adopt(r, &run->adopt, begin))
		return;
	if (s && s->running) {
		aio_refuse(
			r,
			"the session runs a command already: use view, wait, write or kill, or another id");
		return;
	}
	if (fresh && !(s = aio_shell_new(r, run->name, !b->id.n)))
		return;
	if (b->dir.n) {
		buf_puts(&text, b->symlinks ? "builtin cd -L -- " : "builtin cd -P -- ");
		text_quote_word(&text, b->dir);
		buf_puts(&text, " 2>/dev/null\n");
	}
	buf_add(&text, b->command);
	if (aio_shell_run(r, s, buf_view(&text), b->command, aio_limit_ms(r->core, b->hard)) < 0) {
		if (fresh)
			aio_shell_free(s);
		return;
	}
	struct aio_wait *w = &run->wait;
	w->kind = AIO_WAIT_EXEC;
	w->whole = !b->truncate;
	w->command = b->command;
	w->quiet_ms = b->has_quiet ? b->quiet * 1000 : s->quiet_ms;
	if (b->async) {
		w->r = r;
		w->shell = s;
		aio_wait_over(w, &(struct aio_wait_end){ .status = "running", .output = VIEW("") });
		return;
	}
	w->streams = stream_form(r) == STREAM_SSE;
	aio_wait_begin(w, r, s, aio_ms(b->timeout));
}

static void on_probed(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct running *run = CONTAINER(x, struct running, probe);
	struct request *r = run->wait.r;

	if (e)
		answer_fail(r, e);
	else if (res->exit_code)
		aio_refuse(r, "the working directory %.*s does not exist",
			   (int)MIN(run->body.dir.n, (size_t)400), run->body.dir.p);
	else
		begin(r);
}

static void exec(struct request *r)
{
	struct running *run = aio_own(r, sizeof(*run), release);
	struct err e = { 0 };

	if (!run)
		return;
	run->wait.r = r;
	list_init(&run->wait.link);
	run->body = (struct exec_body){ .truncate = true };
	if (aio_read(r, &exec_schema, &run->body) < 0 || !aio_shell_name(r, run->body.id, run->name) ||
	    !aio_may_exec(r))
		return;
	if (run->body.dir.n && run->body.dir.p[0] != '/') {
		aio_unprocessable(r, "exec_dir", "exec_dir: must be an absolute path");
		return;
	}
	if (!run->body.dir.n || !run->body.strict) {
		begin(r);
		return;
	}
	struct view argv[] = { VIEW("/bin/sh"), VIEW("-c"), VIEW("cd -- \"$1\""), VIEW("sh"), run->body.dir };
	struct exec_wish w = { .argv = { argv, ELEMS(argv) }, .timeout_ms = 30000 };
	run->probe.done = on_probed;
	if (exec_start(r->core, &r->actor, view_of(r->box), &w, &run->probe, &e) < 0)
		answer_fail(r, &e);
}

/* ---- what a session does ---- */

struct id_body {
	bool enter;
	struct view id, input;
	uint64_t seconds, most;
};

#define AT(f) .offset = offsetof(struct id_body, f)
static const struct json_field id_fields[] = {
	{ "id", JSON_F_STRING, AT(id), .required = true },
};
static const struct json_schema id_schema = { id_fields, ELEMS(id_fields), .open = true };
static const struct json_field wait_fields[] = {
	{ "id", JSON_F_STRING, AT(id), .required = true },
	{ "seconds", JSON_F_U64, AT(seconds), .max = AIO_SECONDS_MAX, .nullable = true },
	{ "max_wait_seconds", JSON_F_U64, AT(most), .max = AIO_SECONDS_MAX, .nullable = true },
};
static const struct json_schema wait_schema = { wait_fields, ELEMS(wait_fields), .open = true };
static const struct json_field write_fields[] = {
	{ "id", JSON_F_STRING, AT(id), .required = true },
	{ "input", JSON_F_STRING, AT(input), .required = true },
	{ "press_enter", JSON_F_BOOL, AT(enter), .required = true },
};
static const struct json_schema write_schema = { write_fields, ELEMS(write_fields), .open = true };
#undef AT

static void view(struct request *r)
{
	struct id_body b = { 0 };
	struct aio_shell *s;
	struct aio_wait *w;

	if (aio_read(r, &id_schema, &b) < 0 || !(s = aio_shell_get(r, b.id)) ||
	    !(w = aio_wait_new(r, AIO_WAIT_VIEW)))
		return;
	w->command = arena_view(&r->arena, buf_view(&s->command));
	w->streams = stream_form(r) == STREAM_SSE;
	if (w->streams) {
		aio_wait_begin(w, r, s, 0);
		return;
	}
	w->r = r;
	w->shell = s;
	aio_wait_over(w, &(struct aio_wait_end){ .status = s->running ? "running" : s->status,
						 .has_code = !s->running && s->has_code,
						 .code = s->code,
						 .output = aio_shell_output(s) });
}

#define WAIT_SECONDS 15 /* where the caller does not say */

static void wait_for(struct request *r)
{
	struct id_body b = { 0 };
	struct aio_shell *s;
	struct aio_wait *w;

	if (aio_read(r, &wait_schema, &b) < 0 || !(s = aio_shell_get(r, b.id)) ||
	    !(w = aio_wait_new(r, AIO_WAIT_STATUS)))
		return;
	uint64_t seconds = b.seconds ? b.seconds : b.most ? b.most : WAIT_SECONDS;
	aio_wait_begin(w, r, s, (b.most ? MIN(seconds, b.most) : seconds) * 1000);
}

struct feeding {
	struct proc_op op;
	struct request *r;
	struct buf text;
};

static void release_feeding(struct request *r)
{
	struct feeding *f = r->own;
	procs_cancel(&f->op);
	buf_done(&f->text);
}

static void on_fed(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct request *r = CONTAINER(op, struct feeding, op)->r;

	if (e) {
		answer_fail(r, e);
		return;
	}
	struct json_out *o = aio_data(r, NULL);
	json_out_object(o);
	json_out_kz(o, "status", "running");
	json_out_end(o, '}');
	aio_send(r);
}

static void write_to(struct request *r)
{
	struct id_body b = { 0 };
	struct aio_shell *s;
	struct feeding *f;
	struct err e = { 0 };
	char tag[AIO_SHELL_NAME + 8];

	if (aio_read(r, &write_schema, &b) < 0 || !(s = aio_shell_get(r, b.id)))
		return;
	if (!s->running) {
		aio_refuse(r, "no command runs in the session");
		return;
	}
	if (b.input.n >= PROCS_INPUT_MAX) {
		aio_refuse(r, "the input is larger than %u bytes", PROCS_INPUT_MAX - 1);
		return;
	}
	f = aio_own(r, sizeof(*f), release_feeding);
	if (!f)
		return;
	f->r = r;
	f->op.done = on_fed;
	f->text = BUF_INIT(PROCS_INPUT_MAX);
	buf_add(&f->text, b.input);
	if (b.enter)
		buf_putc(&f->text, '\n');
	snprintf(tag, sizeof(tag), "shell:%s", s->name);
	if (procs_input(r->core, &r->actor, view_of(r->box), arena_view(&r->arena, view_of(tag)),
			buf_view(&f->text), false, &f->op, &e) < 0)
		answer_fail(r, &e);
}

static void put_code(struct json_out *o, const char *key, bool has, uint32_t code)
{
	json_out_key(o, key);
	if (has)
		json_out_u64(o, code);
	else
		json_out_null(o);
}

/* The command is given up, with all that it has started; the shell stays. */
static void end(struct request *r)
{
	struct id_body b = { 0 };
	struct aio_shell *s;

	if (aio_read(r, &id_schema, &b) < 0 || !(s = aio_shell_get(r, b.id)))
		return;
	if (s->running) {
		struct output kept = s->exec.kept;
		s->exec.kept = (struct output){ 0 };
		exec_cancel(&s->exec);
		finish(s, &(struct aio_wait_end){ .status = "terminated",
						  .has_code = true,
						  .code = 128 + 9,
						  .output = buf_view(&kept.bytes[0]) });
		outputs_done(&kept);
	}
	struct json_out *o = aio_data(r, NULL);
	json_out_object(o);
	json_out_kz(o, "status", s->status);
	put_code(o, "exit_code", s->has_code, s->code);
	put_code(o, "returncode", s->has_code, s->code);
	json_out_end(o, '}');
	aio_send(r);
}

const struct route aio_shell_routes[] = {
	{ "POST", "/v1/shell/exec", exec, .body = ROUTE_JSON, .schema = &exec_schema, .query = AIO_QUERY },
	{ "POST", "/v1/shell/view", view, .body = ROUTE_JSON, .schema = &id_schema, .query = AIO_QUERY },
	{ "POST", "/v1/shell/wait", wait_for, .body = ROUTE_JSON, .schema = &wait_schema,
	  .query = AIO_QUERY },
	{ "POST", "/v1/shell/write", write_to, .body = ROUTE_JSON, .schema = &write_schema,
	  .query = AIO_QUERY },
	{ "POST", "/v1/shell/kill", end, .body = ROUTE_JSON, .schema = &id_schema, .query = AIO_QUERY },
	{ 0 },
};
