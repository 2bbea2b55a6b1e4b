/*
 * An agent's program: its box, its start, its end, and the pause before the next start of one that crashes.
 * See agent.h.
 *
 * Each start makes a new box from the agent's image, so that nothing but the workspace is left of the last
 * one and the token is a new one. The program is a kept process of the box: it goes on without the api, which
 * attaches to it again. An end with status 0 is an end; any other is a crash.
 */
#include "agents.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "disk.h"
#include "log.h"
#include "money.h"
#include "net.h"
#include "remove.h"
#include "templates.h"
#include "poison.h"

#define TERM_MS     10000
#define PAUSE_MS    1000 /* before the first start after a crash; twice as long before each further one */
#define PAUSE_MOST  60000
#define STEADY_MS   60000 /* so long it must run for the pauses to begin anew */
#define RECOVER_MS  100
#define AGENT_LABEL "paddock.agent"

static void begin_start(struct agent *a);
static void drop_box(struct agent *a);

/* ---- those who wait ---- */

struct waiter {
	struct job job;
	struct list link;
};

static struct job *add_waiter(struct agent *a, job_done *done, void *arg, struct err *e)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (!w) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "agent");
		return NULL;
	}
	w->job = (struct job){ .done = done, .arg = arg };
	list_append(&a->waiters, &w->link);
	return &w->job;
}

/* The end of a step: those who wait are told when the store knows. */
struct settled {
	struct core *core;
	char id[AGENT_ID + 1];
	struct list waiters;
	struct err e;
};

static void on_settled(void *arg, const struct err *failed)
{
	struct settled *s = arg;
	struct map_node *n = map_get(&s->core->agents->by_id, view_of(s->id));
	const struct agent *a = n ? CONTAINER(n, struct agent, by_id) : NULL;
	const struct err *e = s->e.code ? &s->e : failed;
	struct err gone = { 0 };

	core_store_result(s->core, failed);
	err_set(&gone, ERR_NOT_FOUND, "the agent was removed");
	LIST_EACH (it, &s->waiters) {
		struct waiter *w = CONTAINER(it, struct waiter, link);
		list_del(&w->link);
		job_finish(&w->job, a, e ? e : a ? NULL : &gone);
		free(w);
	}
	free(s);
}

static void settle(struct agent *a, const struct err *e)
{
	struct settled *s = a->core->stopping ? NULL : calloc(1, sizeof(*s));

	if (!s) { /* nobody hears of it; the row is written at the next change */
		agents_save(a, NULL, NULL);
		return;
	}
	s->core = a->core;
	memcpy(s->id, a->id, sizeof(s->id));
	list_init(&s->waiters);
	LIST_EACH (it, &a->waiters) {
		list_del(it);
		list_append(&s->waiters, it);
	}
	if (e)
		s->e = *e;
	agents_save(a, on_settled, s);
}

/* ---- the end ---- */

static void on_pause_over(struct loop_timer *t)
{
	struct agent *a = CONTAINER(t, struct agent, timer);

	a->next_start_ms = 0;
	begin_start(a);
}

static void pause_before_start(struct agent *a)
{
	uint64_t ms = PAUSE_MS;

	if (a->started_ms && clock_wall_ms() - a->started_ms >= STEADY_MS)
		a->crashes = 0;
	for (uint64_t i = 0; i < a->crashes && ms < PAUSE_MOST; i++)
		ms *= 2;
	ms = MIN(ms, (uint64_t)PAUSE_MOST);
	a->crashes++;
	a->status = AGENT_CRASHED;
	a->next_start_ms = clock_wall_ms() + (int64_t)ms;
	agents_log_say(a, AGENT_BY_DAEMON, AGENT_WARN, "starting again in %llu s",
		       (unsigned long long)(ms / 1000));
	loop_timer_start(a->core->loop, &a->timer, ms, on_pause_over);
}

/* It has no box any more. */
static void ended(struct agent *a)
{
	a->step = AGENT_STEP_NONE;
	a->box[0] = 0;
	a->n_filters = 0;
	if (a->again) { /* later: whoever told us of the box's end still has it, and with it the workspace */
		a->again = false;
		a->next_start_ms = 0;
		loop_timer_start(a->core->loop, &a->timer, 0, on_pause_over);
		return;
	}
	if (a->wanted && !a->removing)
		pause_before_start(a);
	else
		a->status = AGENT_STOPPED;
	settle(a, NULL);
}

static void on_box_gone(void *arg, const void *result, const struct err *e)
{
	struct agent *a = arg;

	a->job = NULL;
	if (a->core->stopping)
		return;
	if (e && e->code != ERR_NOT_FOUND && boxes_by_id(a->core, view_of(a->box))) {
		/* It is there, and will be removed at the next try. */
		a->step = AGENT_STEP_NONE;
		a->wanted = a->again = false;
		a->status = AGENT_STOPPED;
		settle(a, e);
		return;
	}
	ended(a);
}

static void drop_box(struct agent *a)
{
	struct actor us = agents_actor(a);
	struct err e = { 0 };

	loop_timer_stop(&a->timer);
	procs_cancel(&a->kill);
	if (a->attached)
		exec_cancel(&a->exec);
	a->attached = false;
	agents_log_output_end(a);
	a->step = AGENT_STEP_GONE;
	a->job = a->box[0] ? remove_box(a->core, &us, view_of(a->box), on_box_gone, a, &e) : NULL;
	if (!a->job)
		on_box_gone(a, NULL, a->box[0] ? &e : NULL);
}

static void say_end(struct agent *a, const struct exec_result *r, const struct err *e)
{
	if (e)
		snprintf(a->reason, sizeof(a->reason), "the sandbox is gone: %.150s", e->msg);
	else if (r->oom_killed)
		snprintf(a->reason, sizeof(a->reason), "it used more than its %llu MB of memory",
			 (unsigned long long)r->memory_mb);
	else if (r->signal)
		snprintf(a->reason, sizeof(a->reason), "it was killed by %s", r->signal);
	else
		snprintf(a->reason, sizeof(a->reason), "it ended with exit code %u", r->exit_code);
	agents_log_say(a, AGENT_BY_DAEMON, !e && !r->signal && !r->exit_code ? AGENT_INFO : AGENT_ERROR, "%s",
		       a->reason);
}

static void on_end(struct exec *x, const struct exec_result *r, const struct err *e)
{
	struct agent *a = CONTAINER(x, struct agent, exec);

	a->attached = false;
	if (a->core->stopping)
		return;
	agents_log_output_end(a);
	if (a->status != AGENT_STOPPING)
		say_end(a, r, e);
	if (!e && !r->exit_code && !r->signal)
		a->wanted = a->again; /* its work is done */
	if (a->status == AGENT_STARTING && !list_empty(&a->waiters)) {
		struct err why = { 0 };
		err_set(&why, ERR_STATE, "the agent did not start: %s", a->reason);
		a->wanted = false;
		settle(a, &why);
	}
	if (a->status != AGENT_STOPPING)
		a->status = AGENT_STOPPING;
	drop_box(a);
}

/* ---- the start ---- */

/* Nobody has begun. Who asked for it is told; a start that nobody asked for is tried again. */
static void start_failed(struct agent *a, const struct err *e)
{
	bool asked = !list_empty(&a->waiters);
	struct err copy = *e;

	if (a->core->stopping)
		return;
	snprintf(a->reason, sizeof(a->reason), "it was not started: %.150s", copy.msg);
	agents_log_say(a, AGENT_BY_DAEMON, AGENT_ERROR, "%s", a->reason);
	if (asked) {
		a->wanted = false;
		settle(a, &copy);
	}
	a->status = AGENT_STOPPING;
	drop_box(a);
}

static void on_begun(struct exec *x, const struct exec_begun *b)
{
	struct agent *a = CONTAINER(x, struct agent, exec);

	if (a->status != AGENT_STARTING)
		return;
	a->step = AGENT_STEP_NONE;
	a->status = AGENT_RUNNING;
	a->started_ms = clock_wall_ms();
	a->reason[0] = 0;
	settle(a, NULL);
	if (a->stale) /* the image has become another one in the meantime */
		agents_run_renew(a);
}

static void on_output(struct exec *x, unsigned channel, struct view data)
{
	struct agent *a = CONTAINER(x, struct agent, exec);

	agents_log_output(a, channel, data);
	exec_consumed(x, data.n);
}

static void start_program(struct agent *a)
{
	const struct box *b = boxes_by_id(a->core, view_of(a->box));
	struct actor us = agents_actor(a);
	bool node = a->manifest.runtime == MANIFEST_NODE;
	struct view argv[] = { node ? VIEW("node") : VIEW("python3"), node ? VIEW("--") : VIEW("-u"),
			       a->manifest.entrypoint };
	char token[TOKENS_SIZE] = "";
	struct err e = { 0 };

	if (b)
		tokens_of(a->core, b, TOKEN_AGENT, token);
	struct view keys[] = { VIEW("NODE_ENV"),         VIEW("ASSEGAI_API_PROXY"),
			       VIEW("ASSEGAI_AGENT_ID"), VIEW("ASSEGAI_AGENT_TOKEN"),
			       VIEW("PYTHONPATH"),       VIEW("PYTHONDONTWRITEBYTECODE") };
	struct view values[] = { VIEW("production"),
				 VIEW("http://host.docker.internal:8765"),
				 view_of(a->id),
				 view_of(token),
				 VIEW(AGENT_CODE "/.packages"),
				 VIEW("1") };
	const struct exec_wish w = { .argv = { argv, ELEMS(argv) },
				     .env = { keys, values, node ? 4 : ELEMS(keys) },
				     .cwd = VIEW(AGENT_CODE),
				     .keep = true,
				     .tag = VIEW(AGENT_TAG) };
	a->exec = (struct exec){ .on_begun = on_begun, .on_output = on_output, .done = on_end };
	a->step = AGENT_STEP_EXEC;
	agents_log_begin(a);
	if (exec_start(a->core, &us, view_of(a->box), &w, &a->exec, &e) < 0)
		start_failed(a, &e);
	else
		a->attached = true;
	explicit_bzero(token, sizeof(token));
}

static void on_box_made(void *arg, const void *result, const struct err *e)
{
	struct agent *a = arg;
	const struct box *b = result;

	a->job = NULL;
	if (e) {
		start_failed(a, e);
		return;
	}
	memcpy(a->box, b->id, sizeof(a->box));
	agents_save(a, NULL, NULL); /* so that a later api finds it */
	start_program(a);
}

/* Which models it may use: the gateway's own lists enforce it, for every call. */
static int wish_models(struct agent *a, struct arena *arena, struct box_wish *w, struct err *e)
{
	struct buf text = BUF_INIT(1024);
	struct json_out o;
	struct json *doc;

	json_out_init(&o, &text);
	json_out_object(&o);
	json_out_key(&o, "providers");
	json_out_array(&o);
	for (size_t i = 0; i < a->manifest.permissions.apis.n; i++)
		json_out_str(&o, a->manifest.permissions.apis.items[i]);
	json_out_end(&o, ']');
	json_out_end(&o, '}');
	int r = json_parse(arena, buf_view(&text), &doc, e);
	buf_done(&text);
	return r < 0 ? r : allowances_wish(a->core, a->tenant, doc, arena, &w->ai, e);
}

static struct job *make_box(struct agent *a, struct arena *arena, struct err *e)
{
	char name[32];
	struct actor us = agents_actor(a);
	struct egress_policy egress;
	uint64_t max = a->core->config->max.ttl_seconds;
	struct view keys[] = { VIEW(AGENT_LABEL) }, values[] = { view_of(a->id) };

	agents_template_name(a, name);
	a->stale = false;
	const struct template_build *b = templates_resolve(a->core, &us, view_of(name), e);
	struct spec_workspace files = { .name = view_of(name), .path = VIEW(AGENT_FILES) };
	struct box_wish w = {
		.snapshot = b ? view_of(b->snapshot) : VIEW_NONE,
		.metadata = { keys, values, ELEMS(keys) },
		.has_ttl = true,
		.ttl_seconds = max,
		.readonly_root = true,
		.no_sudo = true,
		.workspaces = { &files, 1 },
	};
	if (!b || templates_to_wish(b, arena, &w, e) < 0 || wish_models(a, arena, &w, e) < 0 ||
	    agents_egress(a, false, arena, &egress, e) < 0)
		return NULL;
	w.egress = &egress;
	w.workdir = VIEW(AGENT_FILES);
	/* Now: the template has just put its own there. */
	w.limits.has_cpu = a->manifest.resources.cpu_milli != 0;
	w.limits.cpu = a->manifest.resources.cpu_milli / 1000.0;
	w.limits.has_memory_mb = a->manifest.resources.memory_mb != 0;
	w.limits.memory_mb = a->manifest.resources.memory_mb;
	return create_box(a->core, &us, &w, on_box_made, a, e);
}

static void start_box(struct agent *a)
{
	struct arena arena = ARENA_INIT(AGENT_ARENA);
	struct err e = { 0 };

	a->step = AGENT_STEP_BOX;
	a->job = make_box(a, &arena, &e);
	arena_done(&arena);
	if (!a->job)
		start_failed(a, &e);
}

static void on_space(void *arg, const void *result, const struct err *e)
{
	struct agent *a = arg;

	a->job = NULL;
	if (e && e->code != ERR_CONFLICT)
		start_failed(a, e);
	else
		start_box(a);
}

static void begin_start(struct agent *a)
{
	char name[32];
	struct actor us = agents_actor(a);
	struct err e = { 0 };

	a->wanted = true;
	a->status = AGENT_STARTING;
	agents_template_name(a, name);
	if (workspaces_find(a->core, &us, ACT_WORKSPACE_READ, view_of(name), &e)) {
		start_box(a);
		return;
	}
	const struct workspace_wish w = { .name = view_of(name) };
	e = (struct err){ 0 };
	a->step = AGENT_STEP_SPACE;
	a->job = workspaces_create(a->core, &us, &w, on_space, a, &e);
	if (!a->job)
		start_failed(a, &e);
}

/* ---- what clients ask for ---- */

static void on_term(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	if (e) /* it cannot be told: the box ends it */
		drop_box(CONTAINER(op, struct agent, kill));
}

static void on_term_time(struct loop_timer *t)
{
	drop_box(CONTAINER(t, struct agent, timer));
}

static void begin_stop(struct agent *a)
{
	struct actor us = agents_actor(a);
	struct err e = { 0 };

	loop_timer_stop(&a->timer);
	a->next_start_ms = 0;
	a->crashes = 0;
	if (a->status != AGENT_RUNNING) { /* it has no program */
		a->status = AGENT_STOPPING;
		drop_box(a);
		return;
	}
	a->status = AGENT_STOPPING;
	a->step = AGENT_STEP_TERM;
	agents_log_say(a, AGENT_BY_DAEMON, AGENT_INFO, "stopping");
	a->kill = (struct proc_op){ .done = on_term };
	loop_timer_start(a->core->loop, &a->timer, TERM_MS, on_term_time);
	if (procs_signal(a->core, &us, view_of(a->box), VIEW(AGENT_TAG), SIGTERM, false, &a->kill, &e) < 0)
		drop_box(a);
}

void agents_run_renew(struct agent *a)
{
	a->stale = a->status == AGENT_STARTING;
	if (a->status != AGENT_RUNNING)
		return; /* its next start has the new image */
	a->wanted = a->again = true;
	begin_stop(a);
}

static int check_built(const struct agent *a, struct err *e)
{
	if (a->status == AGENT_WAITING)
		return err_set(e, ERR_STATE, "the agent's files are not there yet");
	if (a->status == AGENT_BUILDING)
		return err_set(e, ERR_STATE, "the agent's image is being built");
	if (a->status == AGENT_FAILED)
		return err_set(e, ERR_STATE, "the agent has no image: %.140s", a->reason);
	return 0;
}

struct job *agents_start(struct core *c, const struct actor *actor, struct view ref, job_done *done,
			 void *arg, struct err *e)
{
	struct agent *a = agents_find(c, actor, ACT_AGENT_CHANGE, ref, e);

	if (!a || check_built(a, e) < 0)
		return NULL;
	if (a->status == AGENT_STOPPING) {
		err_set(e, ERR_STATE, "the agent is being stopped");
		return NULL;
	}
	struct job *j = add_waiter(a, done, arg, e);
	if (j && a->status == AGENT_RUNNING)
		settle(a, NULL);
	if (!j || a->status == AGENT_RUNNING || a->status == AGENT_STARTING)
		return j;
	loop_timer_stop(&a->timer);
	a->next_start_ms = 0;
	a->crashes = 0;
	begin_start(a);
	return j;
}

static struct job *stop(struct agent *a, bool again, job_done *done, void *arg, struct err *e)
{
	if (a->status == AGENT_STARTING) {
		err_set(e, ERR_STATE, "the agent is being started");
		return NULL;
	}
	struct job *j = add_waiter(a, done, arg, e);
	if (!j)
		return NULL;
	a->wanted = a->again = again;
	if (a->status != AGENT_STOPPING) /* else it is under way, and ends as wished now */
		begin_stop(a);
	return j;
}

struct job *agents_stop(struct core *c, const struct actor *actor, struct view ref, job_done *done, void *arg,
			struct err *e)
{
	struct agent *a = agents_find(c, actor, ACT_AGENT_CHANGE, ref, e);

	return a && check_built(a, e) >= 0 ? stop(a, false, done, arg, e) : NULL;
}

struct job *agents_restart(struct core *c, const struct actor *actor, struct view ref, job_done *done,
			   void *arg, struct err *e)
{
	struct agent *a = agents_find(c, actor, ACT_AGENT_CHANGE, ref, e);

	return a && check_built(a, e) >= 0 ? stop(a, true, done, arg, e) : NULL;
}

/* Without a program there is nothing to stop, and what the agent is stays as it is. */
static void on_end_time(struct loop_timer *t)
{
	settle(CONTAINER(t, struct agent, timer), NULL);
}

struct job *agents_run_end(struct agent *a, job_done *done, void *arg, struct err *e)
{
	if (a->status == AGENT_BUILDING || (a->next && a->next->step == AGENT_NEXT_BUILDING)) {
		err_set(e, ERR_STATE, "the agent's image is being built");
		return NULL;
	}
	if (a->status != AGENT_WAITING && a->status != AGENT_FAILED)
		return stop(a, false, done, arg, e);
	struct job *j = add_waiter(a, done, arg, e);
	if (j)
		loop_timer_start(a->core->loop, &a->timer, 0, on_end_time);
	return j;
}

/* ---- after a restart ---- */

static bool is_left_over(struct core *c, const struct box *b)
{
	struct view id = spec_map_get(&b->spec.metadata, VIEW(AGENT_LABEL));
	struct map_node *n = id.p ? map_get(&c->agents->by_id, id) : NULL;
	const struct agent *a = n ? CONTAINER(n, struct agent, by_id) : NULL;
	char name[32];
	const struct template_build *t = a ? templates_of_box(c, b) : NULL;

	if (!t || a->tenant != b->tenant)
		return false;
	agents_template_name(a, name);
	return strcmp(t->of->name, name) == 0 && strcmp(a->box, b->id) != 0;
}

/* The daemon may have ended between an upgrade and the start of its program. */
static bool has_old_image(struct agent *a)
{
	const struct box *b = boxes_by_id(a->core, view_of(a->box));
	struct actor us = agents_actor(a);
	struct err e = { 0 };
	char name[32];

	agents_template_name(a, name);
	const struct template_build *t = templates_resolve(a->core, &us, view_of(name), &e);
	return b && t && !view_is(b->spec.snapshot, t->snapshot);
}

static void attach(struct agent *a)
{
	struct actor us = agents_actor(a);
	const struct exec_place p = { .process = VIEW(AGENT_TAG),
				      .offsets = { a->position[0], a->position[1] } };
	struct err e = { 0 };

	a->exec = (struct exec){ .on_output = on_output, .done = on_end };
	a->status = AGENT_RUNNING;
	a->started_ms = clock_wall_ms();
	if (exec_attach(a->core, &us, view_of(a->box), &p, &a->exec, &e) < 0) {
		a->status = AGENT_STOPPING;
		drop_box(a);
	} else {
		a->attached = true;
		if (has_old_image(a))
			agents_run_renew(a);
	}
}

/* The rest of the pause after a crash; 0: it is over, or there was none. The clock may have been set. */
static uint64_t pause_left(const struct agent *a)
{
	int64_t now = clock_wall_ms();

	return a->next_start_ms > now ? MIN((uint64_t)(a->next_start_ms - now), (uint64_t)PAUSE_MOST) : 0;
}

static void on_recover_time(struct loop_timer *t)
{
	struct agent *a = CONTAINER(t, struct agent, timer);
	const struct box *b = a->box[0] ? boxes_by_id(a->core, view_of(a->box)) : NULL;
	uint64_t left = pause_left(a);

	if (b && b->state.status == BOX_RUNNING && a->wanted)
		attach(a);
	else if (!a->box[0] && a->wanted && left)
		loop_timer_start(a->core->loop, &a->timer, left, on_pause_over);
	else if (a->box[0] || a->wanted) {
		a->status = AGENT_STOPPING;
		a->again = a->wanted;
		drop_box(a);
	}
}

void agents_run_recover(struct core *c)
{
	LIST_EACH (it, &c->boxes->all) {
		struct box *b = BOX_OF(it, order);
		if (b->state.status != BOX_DELETING && is_left_over(c, b))
			remove_unwanted(b);
	}
	LIST_EACH (it, &c->agents->all) {
		struct agent *a = CONTAINER(it, struct agent, order);
		agents_build_recover(a);
		if (a->status == AGENT_STOPPED && (a->box[0] || a->wanted)) {
			bool held = !a->box[0] && a->wanted && pause_left(a);
			a->status = held ? AGENT_CRASHED : AGENT_STARTING;
			loop_timer_start(c->loop, &a->timer, RECOVER_MS, on_recover_time);
		}
	}
}

void agents_run_stop(struct agent *a)
{
	loop_timer_stop(&a->timer);
	job_abandon(TAKE_PTR(a->job));
	procs_cancel(&a->kill);
	if (a->attached)
		exec_cancel(&a->exec);
	a->attached = false;
	LIST_EACH (it, &a->waiters) {
		list_del(it);
		free(CONTAINER(it, struct waiter, link));
	}
}
