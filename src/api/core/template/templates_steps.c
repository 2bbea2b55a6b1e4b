/*
 * The steps of a build, one after the other in its box: a step is a command (the client's, or
 * a script of ours), what it writes goes to the build's log, and what it changes for those that
 * follow (ENV, WORKDIR, USER) is kept here. See templates_build.h.
 */
#include "spec_make.h"
#include "templates_build.h"

#include <errno.h>
#include <stdio.h>

#include "clock.h"
#include "core_base.h"
#include "templates_kept.h"
#include "poison.h"

#define PIECE   (64u * 1024)
#define SAVE_MS 2000

enum kind { STEP_RUN, STEP_COPY, STEP_ENV, STEP_WORKDIR, STEP_USER, STEP_NONE };
static const char *const kinds[] = { "RUN", "COPY", "ENV", "WORKDIR", "USER" };

static void next(struct loop_task *t);

static enum kind kind_of(struct view type)
{
	for (size_t i = 0; i < ELEMS(kinds); i++)
		if (view_is(type, kinds[i]))
			return (enum kind)i;
	return STEP_NONE;
}

static struct view arg_of(const struct template_step *s, size_t i)
{
	return i < s->args.n ? s->args.items[i] : VIEW("");
}

/* ---- what is asked ---- */

static int check_step(const struct template_step *s, struct err *e)
{
	enum kind k = kind_of(s->type);
	struct view rest;

	if (k == STEP_NONE)
		return err_set(e, ERR_INVALID, "type must be RUN, COPY, ENV, WORKDIR or USER");
	for (size_t i = 0; i < s->args.n; i++)
		if (memchr(s->args.items[i].p, 0, s->args.items[i].n))
			return err_set(e, ERR_INVALID, "an argument has a NUL in it");
	if (k == STEP_ENV)
		return s->args.n && s->args.n % 2 == 0
			       ? 0
			       : err_set(e, ERR_INVALID, "ENV takes names and values");
	if (!arg_of(s, 0).n || (k == STEP_COPY && !arg_of(s, 1).n))
		return err_set(e, ERR_INVALID, "%s takes an argument that is not empty", kinds[k]);
	if (k == STEP_COPY && !s->hash.n)
		return err_set(e, ERR_INVALID, "COPY needs the filesHash of an upload");
	if (k == STEP_USER)
		return spec_check_user(view_split(arg_of(s, 0), ':', &rest), "USER", e);
	return k == STEP_RUN && arg_of(s, 1).n ? spec_check_user(arg_of(s, 1), "the user of RUN", e) : 0;
}

int templates_steps_take(struct template_run *r, const struct template_plan *p, struct err *e)
{
	r->steps = arena_array(&r->arena, p->n, sizeof(*r->steps));
	if (!r->steps)
		return err_set(e, ERR_TOO_LARGE, "the steps are too large");
	for (r->n = 0; r->n < p->n; r->n++) {
		const struct template_step *from = &p->steps[r->n];
		struct template_step *to = &r->steps[r->n];

		if (check_step(from, e) < 0)
			return err_wrap(e, "step %zu", r->n + 1);
		to->type = arena_view(&r->arena, from->type);
		to->hash = arena_view(&r->arena, from->hash.p ? from->hash : VIEW(""));
		to->args.items = arena_array(&r->arena, from->args.n, sizeof(struct view));
		if (!to->type.p || !to->hash.p || !to->args.items)
			return err_set(e, ERR_TOO_LARGE, "the steps are too large");
		for (; to->args.n < from->args.n; to->args.n++) {
			to->args.items[to->args.n] = arena_view(&r->arena, from->args.items[to->args.n]);
			if (!to->args.items[to->args.n].p)
				return err_set(e, ERR_TOO_LARGE, "the steps are too large");
		}
	}
	return 0;
}

/* At the step that is being run. SDKs count from 1. */
static void fail_here(struct template_run *r, const char *why)
{
	char step[16];
	snprintf(step, sizeof(step), "%zu", r->at + 1);
	templates_build_fail(r, step, why);
}

/* ---- output ---- */

static void log_lines(struct template_run *r, unsigned channel, bool all)
{
	struct buf *b = &r->lines[channel - 1];

	for (;;) {
		struct view v = buf_view(b);
		const char *nl = v.n ? memchr(v.p, '\n', v.n) : NULL;
		size_t n = nl ? (size_t)(nl - v.p) : v.n;

		if (!nl && (!all || !v.n) && v.n < TEMPLATES_LINE_MAX)
			return;
		n = MIN(n, (size_t)TEMPLATES_LINE_MAX);
		templates_log(r->build, channel == 2 ? TEMPLATE_WARN : TEMPLATE_INFO, view_head(v, n));
		buf_consume(b, n + (nl && n == (size_t)(nl - v.p)));
	}
}

static void on_output(struct exec *x, unsigned channel, struct view data)
{
	struct template_run *r = CONTAINER(x, struct template_run, exec);
	size_t n = data.n;

	if (channel == 1 && kind_of(r->steps[r->at].type) == STEP_ENV) {
		buf_add(&r->text, data); /* too much of it shows as an error at the end */
	} else if (channel == 1 || channel == 2) {
		while (data.n) {
			struct view part = view_head(data, TEMPLATES_LINE_MAX);
			buf_add(&r->lines[channel - 1], part);
			log_lines(r, channel, false);
			data = view_skip(data, part.n);
		}
	}
	exec_consumed(x, n);
}

/* ---- ENV ---- */

int templates_steps_set_env(struct template_build *b, struct view key, struct view value)
{
	struct view copy = arena_view(&b->arena, value);
	size_t i = 0;

	while (i < b->env.n && !view_eq(b->env.keys[i], key))
		i++;
	if (!copy.p || i == SPEC_ENV_MAX)
		return -ENOMEM;
	if (i == b->env.n) {
		b->env.keys[i] = arena_view(&b->arena, key);
		if (!b->env.keys[i].p)
			return -ENOMEM;
		b->env.n++;
	}
	b->env.values[i] = copy;
	return 0;
}

static int take_env(struct template_run *r, struct err *e)
{
	const struct template_step *s = &r->steps[r->at];
	struct view text = buf_view(&r->text);

	if (r->text.bad)
		return err_set(e, ERR_TOO_LARGE, "the environment is too large");
	for (size_t i = 0; i + 1 < s->args.n; i += 2) {
		const char *nul = text.n ? memchr(text.p, 0, text.n) : NULL;
		if (!nul)
			return err_set(e, ERR_INTERNAL, "the environment was not understood");
		size_t n = (size_t)(nul - text.p);
		if (templates_steps_set_env(r->build, s->args.items[i], view_head(text, n)) < 0)
			return err_set(e, ERR_INVALID, "the environment is too large");
		text = view_skip(text, n + 1);
	}
	return spec_check_env(&r->build->env, "ENV", e);
}

/* ---- what they do ---- */

/* "/a" stays, "b" is below the directory that is. */
static int take_workdir(struct template_run *r, struct view path, struct view *ret)
{
	struct buf b = BUF_INIT(SPEC_PATH_MAX);

	if (path.p[0] != '/') {
		buf_add(&b, r->build->workdir);
		buf_putc(&b, '/');
	}
	buf_add(&b, path);
	*ret = b.bad ? VIEW_NONE : arena_view(&r->build->arena, buf_view(&b));
	buf_done(&b);
	return ret->p ? 0 : -ENOMEM;
}

/* What it changes for the steps that follow. */
static int take_effect(struct template_run *r, struct err *e)
{
	const struct template_step *s = &r->steps[r->at];
	struct template_build *b = r->build;
	struct view v, rest;

	switch (kind_of(s->type)) {
	case STEP_ENV:
		return take_env(r, e);
	case STEP_WORKDIR:
		if (take_workdir(r, arg_of(s, 0), &v) < 0)
			return err_set(e, ERR_INVALID, "the directory's path is too long");
		b->workdir = v;
		return 0;
	case STEP_USER:
		v = arena_view(&b->arena, view_split(arg_of(s, 0), ':', &rest));
		if (!v.p)
			return err_sys(e, ERR_INTERNAL, ENOMEM, "template");
		b->user = v;
		return 0;
	case STEP_RUN:
	case STEP_COPY:
	case STEP_NONE:
		break;
	}
	return 0;
}

/* In E2B's words, which its users know. */
static void say_failed(const struct template_run *r, const struct exec_result *res, const struct err *e,
		       char why[192])
{
	const struct template_step *s = &r->steps[r->at];
	enum kind k = kind_of(s->type);
	struct view what = view_head(arg_of(s, 0), 80), user = arg_of(s, 1).n ? arg_of(s, 1) : r->build->user;
	int n = k == STEP_RUN ? snprintf(why, 192, "failed to run command '%.*s': ", VIEW_ARG(what))
			      : snprintf(why, 192, "%s '%.*s' failed: ", kinds[k], VIEW_ARG(what));
	size_t room = 192 - (size_t)n;

	if (e && e->sys == ERR_SYS_NO_USER && k == STEP_RUN)
		snprintf(why + n, room, "command failed: unauthenticated: invalid username: '%.*s'",
			 VIEW_ARG(view_head(user, 40)));
	else if (e)
		snprintf(why + n, room, "%s", e->msg);
	else
		snprintf(why + n, room, "%s%s %u", res->timed_out ? "out of time, " : "",
			 res->signal ? res->signal : "exit status", res->exit_code);
}

/* So that a crash of the daemon does not lose all of the log. */
static void save_sometimes(struct template_run *r)
{
	int64_t now = clock_wall_ms();

	if (now - r->saved_ms < SAVE_MS)
		return;
	r->saved_ms = now;
	templates_save(r->build->of);
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct template_run *r = CONTAINER(x, struct template_run, exec);
	char why[192];
	struct err failed = { 0 };

	log_lines(r, 1, true);
	log_lines(r, 2, true);
	templates_layer_release(TAKE_PTR(r->layer));
	if (e || res->exit_code || res->timed_out || res->signal) {
		say_failed(r, res, e, why);
		fail_here(r, why);
	} else if (take_effect(r, &failed) < 0) {
		fail_here(r, failed.msg);
	} else {
		r->at++;
		save_sometimes(r);
		templates_kept_save(r);
	}
}

static void feed(struct exec *x)
{
	struct template_run *r = CONTAINER(x, struct template_run, exec);
	char piece[PIECE];

	while (r->layer) {
		ssize_t n = templates_layer_read(r->layer, r->offset, piece, sizeof(piece));
		if (n <= 0) { /* a file that cannot be read is a short archive, which tar says */
			templates_layer_release(TAKE_PTR(r->layer));
			exec_end(x);
			return;
		}
		size_t sent = exec_send(x, (struct view){ piece, (size_t)n });
		r->offset += sent;
		if (sent < (size_t)n)
			return;
	}
}

/* Runs a script of ours, or the client's command, with these arguments. */
static int run(struct template_run *r, const char *const flags, struct view script, const struct view *args,
	       size_t n, struct view user, bool streams, struct err *e)
{
	struct template_build *b = r->build;
	struct view *argv = arena_array(&r->arena, n + 4, sizeof(*argv));

	if (!argv)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "template");
	argv[0] = VIEW("/bin/bash");
	argv[1] = view_of(flags);
	argv[2] = script;
	argv[3] = VIEW("step");
	for (size_t i = 0; i < n; i++)
		argv[4 + i] = args[i];
	const struct exec_wish w = {
		.argv = { argv, n + 4 }, .env = b->env, .user = user, .cwd = b->workdir, .streams = streams
	};
	r->exec = (struct exec){ .on_output = on_output, .done = on_done, .on_room = streams ? feed : NULL };
	return exec_start(r->core, &r->actor, view_of(r->box), &w, &r->exec, e);
}

/* $NAME and ${NAME} are replaced, \$ is a dollar, as in a Dockerfile: PATH=$PATH:/more is what people write.
 * Nothing else of a value means anything. */
static int begin_env(struct template_run *r, const struct template_step *s, struct err *e)
{
	static const char script[] =
		"re__='^([^$]*)[$]([{]([A-Za-z_][A-Za-z0-9_]*)[}]|([A-Za-z_][A-Za-z0-9_]*))?(.*)$'\n"
		"for v__; do o__=\n"
		"  while [[ $v__ =~ $re__ ]]; do\n"
		"    p__=${BASH_REMATCH[1]} n__=${BASH_REMATCH[3]}${BASH_REMATCH[4]}\n"
		"    if [[ $p__ == *\\\\ ]]; then o__+=${p__%\\\\}'$'; v__=${v__:${#p__}+1}; continue; fi\n"
		"    v__=${BASH_REMATCH[5]}\n"
		"    if [ -n \"$n__\" ]; then o__+=$p__${!n__}; else o__+=$p__'$'; fi\n"
		"  done\n"
		"  printf '%s\\0' \"$o__$v__\"\n"
		"done\n";
	struct view *values = arena_array(&r->arena, s->args.n / 2, sizeof(*values));

	if (!values)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "template");
	for (size_t i = 0; i + 1 < s->args.n; i += 2)
		values[i / 2] = s->args.items[i + 1];
	return run(r, "-lc", view_of(script), values, s->args.n / 2, r->build->user, false, e);
}

/* As Docker does it: the content of a directory, a file under its new name or into a directory. */
static int begin_copy(struct template_run *r, const struct template_step *s, struct err *e)
{
	static const char script[] =
		"set -e; src=$1 dest=$2 owner=$3 mode=$4\n"
		"case $dest in /*) ;; *) dest=$PWD/$dest ;; esac\n"
		"t=$(mktemp -d /tmp/.copy.XXXXXX); trap 'rm -rf -- \"$t\"' EXIT\n"
		"cat >\"$t/archive\"; mkdir \"$t/x\"; tar -x --no-same-owner -p -f \"$t/archive\" -C "
		"\"$t/x\"\n"
		"rm \"$t/archive\"; chown -hR -- \"$owner\" \"$t/x\"\n"
		"[ -z \"$mode\" ] || chmod -R -- \"$mode\" \"$t/x\"\n"
		"cd \"$t/x\"; shopt -s nullglob dotglob globstar; IFS=\n"
		"if [ -e \"$src\" ] || [ -L \"$src\" ]; then all=(\"$src\"); else all=($src); fi\n"
		"[ ${#all[@]} -gt 0 ] || { echo \"no files match $src\" >&2; exit 1; }\n"
		"for one in \"${all[@]}\"; do\n"
		"  if [ -d \"$one\" ] && [ ! -L \"$one\" ]; then\n"
		"    [ -d \"$dest\" ] || { mkdir -p -- \"$dest\"; chown -- \"$owner\" \"$dest\"; }\n"
		"    cp -a -- \"$one/.\" \"$dest/\"\n"
		"  elif [ -d \"$dest\" ] || [ ${#all[@]} -gt 1 ] || [ \"${dest%/}\" != \"$dest\" ]; then\n"
		"    [ -d \"$dest\" ] || { mkdir -p -- \"$dest\"; chown -- \"$owner\" \"$dest\"; }\n"
		"    cp -a -- \"$one\" \"$dest/\"\n"
		"  else\n"
		"    mkdir -p -- \"$(dirname -- \"$dest\")\"; cp -aT -- \"$one\" \"$dest\"\n"
		"  fi\n"
		"done\n";
	const struct view args[] = { arg_of(s, 0), arg_of(s, 1),
				     arg_of(s, 2).n ? arg_of(s, 2) : r->build->user, arg_of(s, 3) };

	r->layer = templates_layer_hold(r->core, r->build->of, s->hash);
	if (!r->layer)
		return err_set(e, ERR_NOT_FOUND, "the files of this step were not uploaded");
	r->offset = 0;
	if (run(r, "-c", view_of(script), args, ELEMS(args), VIEW("root"), true, e) < 0)
		return -1;
	feed(&r->exec);
	return 0;
}

static int begin_step(struct template_run *r, struct err *e)
{
	static const char make_dir[] = "[ -d \"$1\" ] || { mkdir -p -- \"$1\" && chown -- \"$2\" \"$1\"; }";
	static const char make_user[] =
		"id -u -- \"$1\" >/dev/null 2>&1 || useradd -m -s /bin/bash -- \"$1\"";
	const struct template_step *s = &r->steps[r->at];
	struct view args[2] = { VIEW(""), r->build->user }, rest;

	switch (kind_of(s->type)) {
	case STEP_RUN:
		return run(r, "-lc", arg_of(s, 0), NULL, 0, arg_of(s, 1).n ? arg_of(s, 1) : r->build->user,
			   false, e);
	case STEP_COPY:
		return begin_copy(r, s, e);
	case STEP_ENV:
		return begin_env(r, s, e);
	case STEP_WORKDIR:
		if (take_workdir(r, arg_of(s, 0), &args[0]) < 0)
			return err_set(e, ERR_INVALID, "the directory's path is too long");
		return run(r, "-c", view_of(make_dir), args, 2, VIEW("root"), false, e);
	case STEP_USER:
		args[0] = view_split(arg_of(s, 0), ':', &rest);
		return run(r, "-c", view_of(make_user), args, 1, VIEW("root"), false, e);
	case STEP_NONE:
		break;
	}
	return err_set(e, ERR_INVALID, "no such step");
}

static void log_step(struct template_run *r, size_t at, const char *before)
{
	const struct template_step *s = &r->steps[at];
	struct buf line = BUF_INIT(TEMPLATES_LINE_MAX);

	buf_printf(&line, "%s[%zu/%zu] %.*s", before, at + 1, r->n, VIEW_ARG(s->type));
	for (size_t i = 0; i < s->args.n && i < 2; i++)
		buf_printf(&line, " %.*s", VIEW_ARG(view_head(s->args.items[i], 500)));
	templates_log(r->build, TEMPLATE_INFO, buf_view(&line));
	buf_done(&line);
}

void templates_steps_skipped(struct template_run *r)
{
	for (size_t i = 0; i < r->at; i++)
		log_step(r, i, "CACHED ");
}

static void next(struct loop_task *t)
{
	struct template_run *r = CONTAINER(t, struct template_run, task);
	struct err e = { 0 };

	if (r->at == r->n) {
		templates_build_finalize(r);
		return;
	}
	log_step(r, r->at, "");
	buf_clear(&r->text);
	if (begin_step(r, &e) < 0) {
		char why[192];
		say_failed(r, NULL, &e, why);
		fail_here(r, why);
	}
}

void templates_steps_run(struct template_run *r)
{
	loop_defer(r->core->loop, &r->task, next);
}
