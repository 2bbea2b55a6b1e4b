/*
 * What can be asked of code contexts: see contexts.h.
 */
#include "contexts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "contexts_impl.h"
#include "core_base.h"
#include "rnd.h"
#include "spec_make.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define CONTEXT_ARENA (1024u * 1024)
#define SIGNAL_MS     10000

static const char tag_prefix[] = "context:";

/* ---- the set of a box ---- */

static struct context *find(struct contexts *set, struct view id)
{
	LIST_EACH (it, &set->list) {
		struct context *c = CONTAINER(it, struct context, link);
		if (view_is(id, c->id) && !c->remove)
			return c;
	}
	return NULL;
}

static int copy_env(struct arena *a, const struct json_strmap *from, struct json_strmap *to)
{
	*to = (struct json_strmap){ .keys = arena_array(a, from->n, sizeof(struct view)),
				    .values = arena_array(a, from->n, sizeof(struct view)) };
	if (from->n && (!to->keys || !to->values))
		return -ENOMEM;
	for (; to->n < from->n; to->n++) {
		to->keys[to->n] = arena_view(a, from->keys[to->n]);
		to->values[to->n] = arena_view(a, from->values[to->n]);
		if (!to->keys[to->n].p || !to->values[to->n].p)
			return -ENOMEM;
	}
	return 0;
}

/* Not yet running. An empty id: a new one. */
static struct context *add(struct contexts *set, const struct context_language *lang, struct view id,
			   const struct context_wish *w, struct err *e)
{
	if (set->n >= CONTEXTS_MAX) {
		err_set(e, ERR_QUOTA, "the sandbox has %d contexts already", CONTEXTS_MAX);
		return NULL;
	}
	struct context *c = calloc(1, sizeof(*c));
	if (!c) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "context");
		return NULL;
	}
	arena_init(&c->arena, CONTEXT_ARENA);
	c->box = set->box;
	c->language = lang;
	c->created_ms = c->used_ms = clock_wall_ms();
	list_init(&c->queue);
	list_init(&c->ops);
	rnd_name(c->id, CONTEXT_ID);
	c->made.user = arena_view(&c->arena, w->user);
	c->made.cwd = arena_view(&c->arena, w->cwd);
	if (!c->made.user.p || !c->made.cwd.p || copy_env(&c->arena, &w->env, &c->made.env) < 0 ||
	    (id.n && view_to_str(id, c->id, sizeof(c->id)) < 0)) {
		arena_done(&c->arena);
		free(c);
		err_sys(e, ERR_INTERNAL, ENOMEM, "context");
		return NULL;
	}
	snprintf(c->tag, sizeof(c->tag), "%s%s:%s", tag_prefix, c->id, lang->name);
	list_append(&set->list, &c->link);
	set->n++;
	return c;
}

/* A process of ours from before our time; what it was made with but user and cwd is not known any more. */
static void adopt(struct contexts *set, const struct proc_info *p)
{
	struct view language, id;
	struct err e = { 0 };

	if (!p->running || !view_starts(p->tag, tag_prefix))
		return;
	id = view_split(view_skip(p->tag, strlen(tag_prefix)), ':', &language);
	const struct context_language *lang = contexts_language(language);
	if (!lang || !spec_is_name(id) || id.n > CONTEXT_NAME || find(set, id))
		return;
	struct context_wish w = { .user = p->user, .cwd = p->cwd };
	struct context *c = add(set, lang, id, &w, &e);
	if (!c)
		return;
	c->maybe = c->ran = true;
	c->created_ms = c->used_ms = p->started_ms;
}

static void wake(struct contexts *set, const struct err *e)
{
	struct list mine = LIST_INIT(mine);

	LIST_EACH (it, &set->waiting) {
		list_del(it);
		list_append(&mine, it);
	}
	while (!list_empty(&mine)) {
		struct context_wait *w = CONTAINER(mine.next, struct context_wait, link);
		list_del(&w->link);
		w->set = NULL;
		if (e)
			w->fail(w, e);
		else
			w->go(w, set->box);
	}
}

static void on_loaded(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct contexts *set = CONTAINER(op, struct contexts, load);

	for (size_t i = 0; i < n && !e; i++)
		adopt(set, &list[i]);
	set->known = !e;
	wake(set, e);
}

/* Calls `go` when all contexts of the box are known. */
static int when_known(struct core *c, const struct actor *a, struct view ref, struct context_wait *w,
		      struct err *e)
{
	struct box *b = procs_box(c, a, ref, e);

	if (!b)
		return -1;
	if (!b->in->contexts) {
		b->in->contexts = calloc(1, sizeof(*b->in->contexts));
		if (!b->in->contexts)
			return err_sys(e, ERR_INTERNAL, ENOMEM, "contexts");
		b->in->contexts->box = b;
		b->in->contexts->load.done = on_loaded;
		list_init(&b->in->contexts->list);
		list_init(&b->in->contexts->waiting);
	}
	struct contexts *set = b->in->contexts;
	if (set->known) {
		w->go(w, b);
		return 0;
	}
	if (list_empty(&set->waiting) && procs_list(c, a, view_of(b->id), &set->load, e) < 0)
		return -1;
	w->set = set;
	list_init(&w->link);
	list_append(&set->waiting, &w->link);
	return 0;
}

static void stop_waiting(struct context_wait *w)
{
	if (!w->set)
		return;
	list_del(&w->link);
	w->set = NULL;
}

static void forget(struct box *b, const struct err *why)
{
	struct contexts *set = TAKE_PTR(b->in->contexts);

	if (!set)
		return;
	procs_cancel(&set->load);
	wake(set, why);
	while (!list_empty(&set->list))
		contexts_drop(CONTAINER(set->list.next, struct context, link), why);
	free(set);
}

const struct box_part contexts_part = { .forget = forget };

/* ---- operations ---- */

void contexts_describe(const struct context *c, struct context_info *ret)
{
	const struct box_spec *s = &c->box->spec;

	*ret = (struct context_info){
		.id = view_of(c->id),
		.language = view_of(c->language->name),
		.user = c->made.user.n ? c->made.user : s->user,
		.cwd = c->made.cwd.n ? c->made.cwd : s->workdir,
		.created_ms = c->created_ms,
		.used_ms = c->used_ms,
		.pid = c->pid,
		.busy = c->current != NULL,
		.queued = c->n_queue,
	};
}

void contexts_tell(struct context *c)
{
	struct context_info info;
	struct list mine = LIST_INIT(mine);

	contexts_describe(c, &info);
	LIST_EACH (it, &c->ops) {
		list_del(it);
		list_append(&mine, it);
	}
	while (!list_empty(&mine)) {
		struct context_op *op = CONTAINER(mine.next, struct context_op, link);
		list_del(&op->link);
		op->done(op, &info, 1, NULL);
	}
}

static void fail(struct context_op *op, enum err_code code, const char *what)
{
	struct err e = { 0 };
	err_set(&e, code, "%s", what);
	op->done(op, NULL, 0, &e);
}

static void list_all(struct contexts *set, struct context_op *op)
{
	struct context_info list[CONTEXTS_MAX];
	size_t n = 0;

	LIST_EACH (it, &set->list) {
		struct context *c = CONTAINER(it, struct context, link);
		if (!c->remove && n < CONTEXTS_MAX)
			contexts_describe(c, &list[n++]);
	}
	op->done(op, list, n, NULL);
}

static void create(struct box *b, struct context_op *op)
{
	struct err e = { 0 };
	struct context *c = NULL;

	if (op->wish.id.n && find(b->in->contexts, op->wish.id))
		err_set(&e, ERR_CONFLICT, "there is a context with this id");
	else
		c = add(b->in->contexts, contexts_language(op->wish.language), op->wish.id, &op->wish, &e);
	if (!c) {
		op->done(op, NULL, 0, &e);
		return;
	}
	list_append(&c->ops, &op->link);
	contexts_advance(c);
}

static void tell_interrupted(struct context_op *op)
{
	struct context *c = op->box->in->contexts ? find(op->box->in->contexts, op->id) : NULL;
	struct context_info info;

	if (!c) {
		fail(op, ERR_NOT_FOUND, "no such context");
		return;
	}
	contexts_describe(c, &info);
	op->done(op, &info, 1, NULL);
}

static int on_interrupted(struct call *call, const struct frame *f, int fd)
{
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	tell_interrupted(CONTAINER(call, struct context_op, call));
	return 0;
}

static void on_interrupt_fail(struct call *call, const struct err *said)
{
	struct context_op *op = CONTAINER(call, struct context_op, call);
	struct err e;

	guest_read_fail(said, &e);
	if (e.code == ERR_NOT_FOUND) /* it has just ended */
		tell_interrupted(op);
	else
		op->done(op, NULL, 0, &e);
}

static const struct call_ops interrupt_ops = { .on_reply = on_interrupted, .on_fail = on_interrupt_fail };

static void interrupt(struct context *c, struct context_op *op)
{
	struct wire_signal msg = { .pid = c->pid, .signo = SIGINT, .scope = WIRE_SIGNAL_SCOPE_GROUP };
	struct err e = { 0 };

	if (!c->current || !c->pid || !c->current->begun) {
		if (c->current)
			c->current->interrupt = true;
		tell_interrupted(op);
		return;
	}
	contexts_insist(c);
	op->call.ops = &interrupt_ops;
	if (guest_call(c->box->in->guest, &op->call, WIRE_TYPE_SIGNAL, 0, SIGNAL_MS, &wire_signal_msg, &msg,
		       &e) < 0)
		op->done(op, NULL, 0, &e);
}

static void go(struct context_wait *w, struct box *b)
{
	struct context_op *op = CONTAINER(w, struct context_op, wait);
	struct context_info info;

	op->box = b;
	if (op->kind == CONTEXT_CREATE) {
		create(b, op);
		return;
	}
	if (op->kind == CONTEXT_LIST && !op->id.p) {
		list_all(b->in->contexts, op);
		return;
	}
	struct context *c = find(b->in->contexts, op->id);
	if (!c) {
		fail(op, ERR_NOT_FOUND, "no such context");
	} else if (op->kind == CONTEXT_LIST) {
		contexts_describe(c, &info);
		op->done(op, &info, 1, NULL);
	} else if (op->kind == CONTEXT_INTERRUPT) {
		interrupt(c, op);
	} else {
		c->remove = op->kind == CONTEXT_REMOVE;
		c->restart = true;
		list_append(&c->ops, &op->link);
		contexts_advance(c);
	}
}

static void not_known(struct context_wait *w, const struct err *e)
{
	struct context_op *op = CONTAINER(w, struct context_op, wait);
	op->done(op, NULL, 0, e);
}

static int ask(struct core *c, const struct actor *a, struct view box, struct view id,
	       enum context_op_kind kind, struct context_op *op, struct err *e)
{
	op->kind = kind;
	op->id = id;
	op->wait.go = go;
	op->wait.fail = not_known;
	list_init(&op->link);
	return when_known(c, a, box, &op->wait, e);
}

static int check_language(struct view name, struct err *e)
{
	return contexts_language(name)
		       ? 0
		       : err_set(e, ERR_INVALID,
				 "language must be python, javascript, typescript, r, java or bash");
}

static int check_id(struct view id, struct err *e)
{
	return spec_is_name(id) && id.n <= CONTEXT_NAME
		       ? 0
		       : err_set(e, ERR_INVALID,
				 "a context's id must be 1 to %d of [A-Za-z0-9._-] and begin with a letter "
				 "or digit",
				 CONTEXT_NAME);
}

static int check_made(const struct context_wish *w, struct err *e)
{
	if (spec_check_env(&w->env, "env", e) < 0 || (w->user.n && spec_check_user(w->user, "user", e) < 0))
		return -1;
	return w->cwd.n ? spec_check_workdir(w->cwd, "cwd", e) : 0;
}

int contexts_create(struct core *c, const struct actor *a, struct view box, const struct context_wish *w,
		    struct context_op *op, struct err *e)
{
	if (check_language(w->language, e) < 0 || check_made(w, e) < 0 || (w->id.n && check_id(w->id, e) < 0))
		return -1;
	op->wish = *w;
	return ask(c, a, box, VIEW_NONE, CONTEXT_CREATE, op, e);
}

int contexts_list(struct core *c, const struct actor *a, struct view box, struct view id,
		  struct context_op *op, struct err *e)
{
	return ask(c, a, box, id, CONTEXT_LIST, op, e);
}

int contexts_remove(struct core *c, const struct actor *a, struct view box, struct view id,
		    struct context_op *op, struct err *e)
{
	return ask(c, a, box, id, CONTEXT_REMOVE, op, e);
}

int contexts_restart(struct core *c, const struct actor *a, struct view box, struct view id,
		     struct context_op *op, struct err *e)
{
	return ask(c, a, box, id, CONTEXT_RESTART, op, e);
}

int contexts_interrupt(struct core *c, const struct actor *a, struct view box, struct view id,
		       struct context_op *op, struct err *e)
{
	return ask(c, a, box, id, CONTEXT_INTERRUPT, op, e);
}

void contexts_cancel(struct context_op *op)
{
	stop_waiting(&op->wait);
	guest_cancel(&op->call);
	if (op->link.next)
		list_del(&op->link);
}

/* ---- executions ---- */

/* Makes room for another context that nobody named: of those that are idle, the one that was used longest ago
 * ends. */
static void trim(struct contexts *set)
{
	struct context *oldest = NULL;
	unsigned n = 0;

	LIST_EACH (it, &set->list) {
		struct context *c = CONTAINER(it, struct context, link);
		if (!c->spare || c->remove || c->current || c->n_queue)
			continue;
		n++;
		if (!oldest || c->used_ms < oldest->used_ms)
			oldest = c;
	}
	if (n < CONTEXTS_SPARE)
		return;
	oldest->remove = oldest->restart = true;
	contexts_advance(oldest);
}

static struct context *make(struct contexts *set, const struct context_code *w, struct view language,
			    struct err *e)
{
	if (w->spare)
		trim(set);
	struct context *c = add(set, contexts_language(language), w->context, &w->made, e);
	if (c)
		c->spare = w->spare;
	return c;
}

/* The context that is named, or the language's own, which is made on first use and has its name. */
static struct context *choose(struct contexts *set, const struct context_code *w, struct err *e)
{
	struct view language = w->language.n ? w->language : VIEW("python");
	struct context *c = find(set, w->context.n ? w->context : language);

	if (c && w->language.n && !view_is(w->language, c->language->name))
		err_set(e, ERR_INVALID, "the context is one of %s", c->language->name);
	else if (c)
		return c;
	else if (!w->context.n || (contexts_language(w->context) && !w->language.n))
		return add(set, contexts_language(w->context.n ? w->context : language),
			   w->context.n ? w->context : language, &w->made, e);
	else if (w->make)
		return make(set, w, language, e);
	else
		err_set(e, ERR_NOT_FOUND, "no such context");
	return NULL;
}

static void run(struct context_wait *w, struct box *b)
{
	struct context_run *x = CONTAINER(w, struct context_run, wait);
	struct err e = { 0 };
	struct context *c = choose(b->in->contexts, &x->wish, &e);

	if (c && c->n_queue >= CONTEXTS_QUEUE) {
		err_set(&e, ERR_RATE, "%d executions wait in this context already", CONTEXTS_QUEUE);
		c = NULL;
	}
	struct context_cell *m = c ? contexts_cell_new(c, &x->wish) : NULL;
	if (c && !m)
		err_sys(&e, ERR_INTERNAL, ENOMEM, "context");
	if (!m) {
		b->in->core->stats.exec_failures++;
		x->done(x, NULL, &e);
		return;
	}
	m->run = x;
	x->cell = m;
	c->used_ms = clock_wall_ms();
	b->in->core->stats.execs++;
	list_append(&c->queue, &m->link);
	c->n_queue++;
	if (c->current && x->on_queued)
		x->on_queued(x);
	contexts_advance(c);
}

static void cannot_run(struct context_wait *w, const struct err *e)
{
	struct context_run *x = CONTAINER(w, struct context_run, wait);
	x->done(x, NULL, e);
}

/* They become a shell's words, among other things: names as a shell has them. */
static int check_variables(const struct json_strmap *env, struct err *e)
{
	if (spec_check_env(env, "env", e) < 0)
		return -1;
	for (size_t i = 0; i < env->n; i++)
		for (size_t j = 0; j < env->keys[i].n; j++) {
			char ch = env->keys[i].p[j];
			bool letter = ch == '_' || (ch >= 'A' && ch <= 'Z') || (ch >= 'a' && ch <= 'z');
			if (!letter && (j == 0 || ch < '0' || ch > '9'))
				return err_set(e, ERR_INVALID,
					       "env: a variable's name has letters, digits "
					       "and _, and begins with no digit");
		}
	return 0;
}

int contexts_execute(struct core *c, const struct actor *a, struct view box, const struct context_code *w,
		     struct context_run *x, struct err *e)
{
	if ((w->language.n && check_language(w->language, e) < 0) || check_variables(&w->env, e) < 0 ||
	    check_variables(&w->secrets, e) < 0 || check_made(&w->made, e) < 0 ||
	    (w->make && check_id(w->context, e) < 0))
		return -1;
	if (w->timeout_ms > c->config->max.exec_timeout_ms)
		return err_set(e, ERR_INVALID, "timeout_ms must be between 1 and %llu",
			       (unsigned long long)c->config->max.exec_timeout_ms);
	x->wish = *w;
	x->core = c;
	x->wait.go = run;
	x->wait.fail = cannot_run;
	return when_known(c, a, box, &x->wait, e);
}

void contexts_pause(struct context_run *x)
{
	if (x->cell)
		x->cell->paused = true;
}

void contexts_resume(struct context_run *x)
{
	struct context_cell *m = x->cell;

	if (!m)
		return;
	m->paused = false;
	if (m->context->current == m) {
		size_t n = m->context->owed;
		m->context->owed = 0;
		mux_consumed(&m->context->stream, n);
	}
}

void contexts_abandon(struct context_run *x)
{
	struct context_cell *m = TAKE_PTR(x->cell);

	stop_waiting(&x->wait);
	if (!m)
		return;
	x->cell = m;
	contexts_resume(x);
	x->cell = NULL;
	m->run = NULL;
	if (m->context->current != m) {
		list_del(&m->link);
		m->context->n_queue--;
		contexts_cell_free(m);
	} else if (m->kill) {
		contexts_strike(m->context);
	}
}
