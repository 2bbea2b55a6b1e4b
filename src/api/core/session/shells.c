/*
 * What can be asked of shells: see shells.h.
 */
#include "shells.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "core_base.h"
#include "outputs.h"
#include "shells_impl.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define SHELL_ARENA (1024u * 1024)

static const char default_name[] = "default";

/* ---- the table of a box ---- */

static struct shell *shells_find(const struct box *b, struct view name)
{
	LIST_EACH (it, &b->in->shells) {
		struct shell *s = CONTAINER(it, struct shell, link);
		if (view_is(name, s->name))
			return s;
	}
	return NULL;
}

static int copy_map(struct arena *a, const struct json_strmap *from, struct json_strmap *to)
{
	*to = (struct json_strmap){ .keys = arena_array(a, from->n, sizeof(struct view)),
				    .values = arena_array(a, from->n, sizeof(struct view)) };
	if (from->n && (!to->keys || !to->values))
		return -ENOMEM;
	for (size_t i = 0; i < from->n; i++) {
		to->keys[i] = arena_view(a, from->keys[i]);
		to->values[i] = arena_view(a, from->values[i]);
		if (!to->keys[i].p || !to->values[i].p)
			return -ENOMEM;
	}
	to->n = from->n;
	return 0;
}

static struct shell *add(struct box *b, struct view name, const struct exec_wish *w, struct err *e)
{
	unsigned n = 0;
	struct shell *s;

	LIST_EACH (it, &b->in->shells)
		n++;
	if (n >= SHELLS_MAX) {
		err_set(e, ERR_QUOTA, "the sandbox has %d shells already", SHELLS_MAX);
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		goto no_memory;
	s->box = b;
	list_init(&s->link);
	list_init(&s->queue);
	arena_init(&s->arena, SHELL_ARENA);
	s->made.user = arena_view(&s->arena, w->user);
	s->made.cwd = arena_view(&s->arena, w->cwd);
	s->made.pty = w->pty;
	s->made.cols = w->cols;
	s->made.rows = w->rows;
	if (!s->made.user.p || !s->made.cwd.p || copy_map(&s->arena, &w->env, &s->made.env) < 0 ||
	    view_to_str(name, s->name, sizeof(s->name)) < 0) {
		arena_done(&s->arena);
		free(s);
		goto no_memory;
	}
	snprintf(s->tag, sizeof(s->tag), "shell:%s", s->name);
	list_append(&b->in->shells, &s->link);
	return s;
no_memory:
	err_sys(e, ERR_INTERNAL, ENOMEM, "shell");
	return NULL;
}

static void forget_box(struct box *b, const struct err *why)
{
	while (!list_empty(&b->in->shells))
		shells_drop(CONTAINER(b->in->shells.next, struct shell, link), why);
}

static void init(struct box *b)
{
	list_init(&b->in->shells);
}

const struct box_part shells_part = { .init = init, .forget = forget_box };

static int check_name(struct view name, struct err *e)
{
	if (spec_is_name(name))
		return 0;
	return err_set(e, ERR_INVALID, "a shell's name must be 1 to 63 characters of [A-Za-z0-9._-]");
}

/* ---- commands ---- */

static int run(struct shell *s, struct view command, const struct exec_wish *w, struct exec *x, struct err *e)
{
	struct core *c = s->box->in->core;

	if (!x->on_output && outputs_admit(c, s->box->tenant, e) < 0)
		return -1;
	if (s->n_queue >= SHELLS_QUEUE)
		return err_set(e, ERR_RATE, "%d commands wait in this shell already", SHELLS_QUEUE);
	struct shell_command *m = shells_command_new(s, command, w->input, &w->secrets);
	if (!m)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "shell");
	m->x = x;
	m->kill = w->kill;
	m->merged = w->merged;
	m->timeout_ms = w->timeout_ms ? w->timeout_ms : c->config->max.exec_timeout_ms;
	x->core = c;
	x->way = &shells_way;
	x->command = m;
	outputs_start(&x->kept, c, s->box->tenant);
	c->stats.execs++;
	shells_run(s, m);
	return 0;
}

static int start(struct box *b, const struct exec_wish *w, struct exec *x, struct err *e)
{
	struct shell *s;

	if (check_name(w->shell, e) < 0 || exec_check(b->in->core->config, w, e) < 0)
		return -1;
	if (!w->command.p)
		return err_set(e, ERR_INVALID, "a shell takes command, not argv");
	if (w->env.n || w->cwd.n || w->user.n)
		return err_set(e, ERR_INVALID,
			       "env, cwd and user are the shell's own: give them when it is made, or use cd "
			       "and export");
	s = shells_find(b, w->shell);
	if (!s)
		s = add(b, w->shell, &(struct exec_wish){ .pty = w->pty, .cols = w->cols, .rows = w->rows },
			e);
	return s ? run(s, w->command, w, x, e) : -1;
}

const struct exec_way shells_way = { .start = start,
				     .consumed = shells_run_consumed,
				     .abandon = shells_run_abandon };

int shells_create(struct core *c, const struct actor *a, struct view box, struct view name,
		  const struct exec_wish *w, struct exec *x, struct err *e)
{
	struct box *b = procs_box(c, a, box, e);
	struct exec_wish check = *w;

	check.command = VIEW(":");
	if (!b || check_name(name, e) < 0 || exec_check(c->config, &check, e) < 0)
		return -1;
	if (shells_find(b, name))
		return err_set(e, ERR_CONFLICT, "there is a shell named \"%.*s\" already", VIEW_ARG(name));
	struct shell *s = add(b, name, w, e);
	if (!s)
		return -1;
	s->made_new = true;
	return run(s, VIEW(":"), &(struct exec_wish){ .timeout_ms = w->timeout_ms }, x, e);
}

/* ---- what there is ---- */

static void describe(const struct box *b, const struct shell *s, const struct proc_info *p,
		     struct shell_info *ret)
{
	*ret = (struct shell_info){ .name = view_of(default_name),
				    .user = b->spec.user,
				    .cwd = b->spec.workdir };
	if (p) {
		ret->name = view_skip(p->tag, strlen("shell:"));
		ret->user = p->user;
		ret->cwd = p->cwd;
		ret->pid = p->pid;
		ret->started_ms = p->started_ms;
	} else if (s) {
		ret->name = view_of(s->name);
		ret->user = s->made.user.n ? s->made.user : b->spec.user;
		ret->cwd = s->made.cwd.n ? s->made.cwd : b->spec.workdir;
	}
	if (!s)
		return;
	if (buf_len(&s->cwd))
		ret->cwd = buf_view(&s->cwd);
	ret->busy = s->current != NULL;
	ret->queued = s->n_queue;
}

struct view shells_cwd(const struct box *b, struct view name)
{
	const struct shell *s = shells_find(b, name);
	return s && buf_len(&s->cwd) ? buf_view(&s->cwd) : VIEW_NONE;
}

static bool is_wanted(const struct shells_op *o, struct view name)
{
	return !o->name[0] || view_is(name, o->name);
}

static bool has(const struct shell_info *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (view_is(list[i].name, name))
			return true;
	return false;
}

/* Living processes with our tags; shells that wait to be started; the default one, whatever it does. */
static size_t gather(struct shells_op *o, struct box *b, const struct proc_info *p, size_t n_p,
		     struct shell_info *list, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < n_p && n < max; i++) {
		if (!p[i].running || !view_starts(p[i].tag, "shell:"))
			continue;
		struct view name = view_skip(p[i].tag, strlen("shell:"));
		if (spec_is_name(name) && is_wanted(o, name))
			describe(b, shells_find(b, name), &p[i], &list[n++]);
	}
	LIST_EACH (it, &b->in->shells) {
		const struct shell *s = CONTAINER(it, struct shell, link);
		if (n < max && is_wanted(o, view_of(s->name)) && !has(list, n, s->name))
			describe(b, s, NULL, &list[n++]);
	}
	if (n < max && is_wanted(o, view_of(default_name)) && !has(list, n, default_name))
		describe(b, NULL, NULL, &list[n++]);
	return n;
}

static void on_processes(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct shells_op *o = CONTAINER(op, struct shells_op, op);
	struct box *b = boxes_by_id(o->core, view_of(o->box));
	size_t max = n + SHELLS_MAX + 1;
	struct shell_info *found;
	struct err mine = { 0 };

	if (e || !b) {
		if (!e)
			boxes_unknown(&mine);
		o->done(o, NULL, 0, e ? e : &mine);
		return;
	}
	found = calloc(max, sizeof(*found));
	size_t have = found ? gather(o, b, list, n, found, max) : 0;
	if (!found)
		err_sys(&mine, ERR_INTERNAL, ENOMEM, "shells");
	else if (o->name[0] && have == 0)
		err_set(&mine, ERR_NOT_FOUND, "no such shell");
	o->done(o, found, have, mine.code ? &mine : NULL);
	free(found);
}

static struct box *prepare(struct core *c, const struct actor *a, struct view box, struct view name,
			   struct shells_op *o, struct err *e)
{
	struct box *b = procs_box(c, a, box, e);

	if (!b)
		return NULL;
	if (name.p && (!spec_is_name(name) || view_to_str(name, o->name, sizeof(o->name)) < 0)) {
		err_set(e, ERR_NOT_FOUND, "no such shell");
		return NULL;
	}
	memcpy(o->box, b->id, sizeof(b->id));
	o->core = c;
	return b;
}

int shells_list(struct core *c, const struct actor *a, struct view box, struct view name, struct shells_op *o,
		struct err *e)
{
	if (!prepare(c, a, box, name, o, e))
		return -1;
	o->op.done = on_processes;
	return procs_list(c, a, box, &o->op, e);
}

/* ---- removal ---- */

static void forget(struct shells_op *o)
{
	struct box *b = boxes_by_id(o->core, view_of(o->box));
	struct shell *s = b ? shells_find(b, view_of(o->name)) : NULL;
	struct err e = { 0 };

	err_set(&e, ERR_CANCELLED, "the shell was removed");
	if (s)
		shells_drop(s, &e);
}

/* It may have ended by itself: whoever waits for the end will see that. */
static void on_signalled(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct shells_op *o = CONTAINER(op, struct shells_op, op);

	if (!e || e->code == ERR_NOT_FOUND)
		return;
	exec_cancel(&o->end);
	o->done(o, NULL, 0, e);
}

static int kill_it(struct shells_op *o, uint32_t pid, struct err *e)
{
	struct box *b = boxes_by_id(o->core, view_of(o->box));
	struct wire_signal msg = { .pid = pid, .signo = SIGKILL, .scope = WIRE_SIGNAL_SCOPE_TREE };

	return b ? procs_call(b, &o->op, WIRE_TYPE_SIGNAL, &wire_signal_msg, &msg, e) : boxes_unknown(e);
}

static void on_end_begun(struct exec *x, const struct exec_begun *b)
{
	struct shells_op *o = CONTAINER(x, struct shells_op, end);
	struct err e = { 0 };

	if (!b->info->running) /* an earlier one of this name; its end follows at once */
		return;
	forget(o); /* before it ends, so that nobody starts it again */
	o->ended = true;
	if (kill_it(o, b->pid, &e) >= 0)
		return;
	exec_cancel(x);
	o->done(o, NULL, 0, &e);
}

static void on_end_output(struct exec *x, unsigned channel, struct view data)
{
	exec_consumed(x, data.n);
}

static void on_end_done(struct exec *x, const struct exec_result *r, const struct err *e)
{
	struct shells_op *o = CONTAINER(x, struct shells_op, end);
	struct box *b = boxes_by_id(o->core, view_of(o->box));
	struct err mine = { 0 };

	procs_cancel(&o->op);
	if (e && e->code != ERR_NOT_FOUND) {
		o->done(o, NULL, 0, e);
		return;
	}
	/* The default one is always there, and so is one that waits to be started. */
	if (!o->ended && strcmp(o->name, default_name) != 0 && !(b && shells_find(b, view_of(o->name)))) {
		err_set(&mine, ERR_NOT_FOUND, "no such shell");
		o->done(o, NULL, 0, &mine);
		return;
	}
	forget(o);
	o->done(o, NULL, 0, NULL);
}

int shells_remove(struct core *c, const struct actor *a, struct view box, struct view name,
		  struct shells_op *o, struct err *e)
{
	char tag[SPEC_NAME_MAX + 8];
	struct exec_place p = { .from_end = true };

	if (!prepare(c, a, box, name, o, e))
		return -1;
	snprintf(tag, sizeof(tag), "shell:%s", o->name);
	p.process = view_of(tag);
	o->op.done = on_signalled;
	o->end.on_begun = on_end_begun;
	o->end.on_output = on_end_output;
	o->end.done = on_end_done;
	return exec_attach(c, a, box, &p, &o->end, e);
}

void shells_cancel(struct shells_op *o)
{
	procs_cancel(&o->op);
	exec_cancel(&o->end);
}
