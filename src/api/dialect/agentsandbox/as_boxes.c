/*
 * /api/v1/sandbox: create, list, get, delete, pause, resume and figures, in the words of the first release
 * (environment, minutes) and of today's (template, seconds). A body belongs to the first if it has a field
 * that only that has.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "as_impl.h"
#include "clock.h"
#include "image.h"
#include "num.h"
#include "rnd.h"
#include "template.h"
#include "poison.h"

#define SEED_TIMEOUT_MAX 1440 /* minutes */
#define TIMEOUT_DEFAULT  1800 /* seconds */
#define TIMEOUT_MAX      86400
#define NAMES_MAX        1000
#define META             "agent-sandbox.template"

/* ---- quantities of Kubernetes ---- */

/* "200m", "1.5", "2": thousandths. */
static int read_cpu(struct view v, double *ret)
{
	char text[32], *end;

	if (view_to_str(v, text, sizeof(text)) < 0)
		return -EINVAL;
	double n = strtod(text, &end);
	if (end == text || n <= 0 || n > 1e6 || (*end && strcmp(end, "m") != 0))
		return -EINVAL;
	*ret = *end ? n / 1000 : n;
	return 0;
}

/* "500Mi", "2Gi", "128974848": MiB. */
static int read_memory(struct view v, uint64_t *ret)
{
	static const struct {
		const char *unit;
		double bytes;
	} units[] = { { "", 1 },        { "K", 1e3 },        { "M", 1e6 },          { "G", 1e9 },
		      { "Ki", 1024.0 }, { "Mi", 1048576.0 }, { "Gi", 1073741824.0 } };
	char text[32], *end;

	if (view_to_str(v, text, sizeof(text)) < 0)
		return -EINVAL;
	double n = strtod(text, &end);
	for (size_t i = 0; end != text && n > 0 && i < ELEMS(units); i++)
		if (strcmp(end, units[i].unit) == 0) {
			n = n * units[i].bytes / 1048576.0;
			*ret = n < 1 ? 1 : n > 1e12 ? UINT64_MAX : (uint64_t)(n + 0.5);
			return 0;
		}
	return -EINVAL;
}

/* ---- what it is ---- */

static const char *status_of(const struct box *b)
{
	enum box_status s = b->state.status;

	return s == BOX_CREATING   ? "creating"
	       : s == BOX_RUNNING  ? "running"
	       : s == BOX_DELETING ? "deleting"
				   : "paused";
}

static void put_limits(struct json_out *o, const struct box_limits *l)
{
	char text[32];

	snprintf(text, sizeof(text), "%um", l->cpu_milli);
	json_out_kz(o, "cpu", text);
	json_out_kz(o, "cpu_limit", text);
	snprintf(text, sizeof(text), "%lluMi", (unsigned long long)l->memory_mb);
	json_out_kz(o, "memory", text);
	json_out_kz(o, "memory_limit", text);
}

/* Both generations' names for one thing stand side by side. */
static void put_box(struct json_out *o, const struct box *b)
{
	struct view of = spec_map_get(&b->spec.metadata, VIEW(META));

	json_out_object(o);
	json_out_kz(o, "id", b->id);
	json_out_kstr(o, "name", as_name(b));
	json_out_kstr(o, "template", of.p ? of : b->spec.image);
	json_out_kstr(o, "environment", of.p ? of : b->spec.image);
	json_out_kstr(o, "image", b->spec.image);
	json_out_kmap(o, "envVars", &b->spec.env);
	json_out_kmap(o, "env", &b->spec.env);
	json_out_kmap(o, "metadata", &b->spec.metadata);
	json_out_ki64(o, "timeout", b->spec.ttl_seconds ? (int64_t)b->spec.ttl_seconds : -1);
	json_out_ki64(o, "idle_timeout", b->spec.idle_seconds ? (int64_t)b->spec.idle_seconds : -1);
	json_out_kz(o, "idle_policy", b->spec.on_end == SPEC_END_DELETE ? "delete" : "scaledown");
	json_out_kbool(o, "autoPause", b->spec.on_end == SPEC_END_PAUSE);
	json_out_kbool(o, "autoResume", b->spec.auto_resume);
	put_limits(o, &b->spec.limits);
	json_out_kstr(o, "workdir", b->spec.workdir);
	json_out_ku64(o, "port", AS_PORT);
	json_out_key(o, "ports");
	json_out_array(o);
	json_out_u64(o, AS_PORT);
	json_out_end(o, ']');
	json_out_kz(o, "status", status_of(b));
	json_out_kz(o, "user", b->tenant->name);
	answer_put_time(o, "created_at", b->state.created_ms);
	json_out_end(o, '}');
}

/* ---- create ---- */

struct create_body {
	struct box_wish wish;
	struct view environment, template, idle_policy, app, cpu, memory, cpu_limit, memory_limit, id, status;
	const struct json *timeout, *idle_timeout, *args, *ports, *port;
	struct json_strmap env, env_vars;
	bool auto_pause, auto_resume, seed;
};

#define AT(f) .offset = offsetof(struct create_body, f)
static const struct json_field create_fields[] = {
	{ "name", JSON_F_STRING, AT(wish.name), .nullable = true },
	{ "environment", JSON_F_STRING, AT(environment), .nullable = true },
	{ "template", JSON_F_STRING, AT(template), .nullable = true },
	{ "image", JSON_F_STRING, AT(wish.image), .max = 200, .nullable = true },
	{ "args", JSON_F_ANY, AT(args), .nullable = true },
	{ "app", JSON_F_STRING, AT(app), .nullable = true },
	{ "env", JSON_F_STRMAP, AT(env), .nullable = true },
	{ "envVars", JSON_F_STRMAP, AT(env_vars), .nullable = true },
	{ "metadata", JSON_F_STRMAP, AT(wish.metadata), .nullable = true },
	{ "timeout", JSON_F_ANY, AT(timeout), .nullable = true },
	{ "idle_timeout", JSON_F_ANY, AT(idle_timeout), .nullable = true },
	{ "idle_policy", JSON_F_STRING, AT(idle_policy), .nullable = true },
	{ "workdir", JSON_F_STRING, AT(wish.workdir), .nullable = true },
	{ "cpu", JSON_F_STRING, AT(cpu), .nullable = true },
	{ "memory", JSON_F_STRING, AT(memory), .nullable = true },
	{ "cpu_limit", JSON_F_STRING, AT(cpu_limit), .nullable = true },
	{ "memory_limit", JSON_F_STRING, AT(memory_limit), .nullable = true },
	{ "ports", JSON_F_ANY, AT(ports), .nullable = true },
	{ "port", JSON_F_ANY, AT(port), .nullable = true },
	{ "autoPause", JSON_F_BOOL, AT(auto_pause), .nullable = true },
	{ "autoResume", JSON_F_BOOL, AT(auto_resume), .nullable = true },
	{ "id", JSON_F_STRING, AT(id), .nullable = true },
	{ "status", JSON_F_STRING, AT(status), .nullable = true },
};
#undef AT
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields) };

static int take_limits(struct create_body *b, struct err *e)
{
	struct view cpu = b->cpu_limit.n ? b->cpu_limit : b->cpu;
	struct view memory = b->memory_limit.n ? b->memory_limit : b->memory;
	struct box_limits_wish *l = &b->wish.limits;

	l->has_cpu = cpu.n > 0;
	l->has_memory_mb = memory.n > 0;
	if (cpu.n && read_cpu(cpu, &l->cpu) < 0)
		return err_set(e, ERR_INVALID, "cpu_limit must be cores, like 1000m or 2");
	if (memory.n && read_memory(memory, &l->memory_mb) < 0)
		return err_set(e, ERR_INVALID, "memory_limit must be bytes, like 512Mi or 2Gi");
	return 0;
}

/* -1: no end. */
static int read_time(const struct json *j, const char *name, int64_t usual, int64_t most, int64_t *ret,
		     struct err *e)
{
	*ret = usual;
	if (!j)
		return 0;
	if (json_to_i64(j, ret) < 0 || *ret < -1 || *ret > most)
		return err_set(e, ERR_INVALID, "%s must be a whole number up to %lld, or -1", name,
			       (long long)most);
	if (*ret == 0)
		*ret = usual;
	return 0;
}

static int take_times(struct create_body *b, struct err *e)
{
	int64_t time, idle, unit = b->seed ? 60 : 1;

	if (read_time(b->timeout, "timeout", b->seed ? 60 : TIMEOUT_DEFAULT,
		      b->seed ? SEED_TIMEOUT_MAX : TIMEOUT_MAX, &time, e) < 0 ||
	    read_time(b->idle_timeout, "idle_timeout", b->seed ? 10 : -1, b->seed ? 60 : 3000, &idle, e) < 0)
		return -1;
	b->wish.has_ttl = true;
	b->wish.ttl_seconds = time > 0 ? (uint64_t)(time * unit) : 0;
	b->wish.idle_seconds = idle > 0 ? (uint64_t)(idle * unit) : 0;
	if (b->idle_policy.n && !view_is(b->idle_policy, "delete") && !view_is(b->idle_policy, "scaledown"))
		return err_set(e, ERR_INVALID, "idle_policy must be delete or scaledown");
	if (b->auto_pause)
		b->wish.on_end = VIEW("pause");
	else if (view_is(b->idle_policy, "scaledown"))
		b->wish.on_end = VIEW("stop");
	b->wish.auto_resume = b->auto_resume;
	return 0;
}

/* The built-in ones are the default image, unless there is something of that name. */
static bool is_built_in(struct view name)
{
	static const struct view known[] = { VIEW("aio"), VIEW("sandbox-base"), VIEW("sandbox-node"),
					     VIEW("sandbox-code") };

	for (size_t i = 0; i < ELEMS(known); i++)
		if (view_eq(known[i], name))
			return true;
	return false;
}

static int take_files(struct request *r, struct create_body *b, struct err *e)
{
	struct view of = b->template.n ? b->template : b->environment, digest;

	if (b->wish.image.n || !of.n || (is_built_in(of) && !images_find(r->core, of)))
		return 0;
	if (images_find(r->core, of)) {
		b->wish.image = of;
		return 0;
	}
	if (images_resolve(r->core, of, &digest, NULL) >= 0)
		return 0;
	b->wish.snapshot = of; /* or it is refused, by its name */
	return 0;
}

/* What was asked for is kept as the box's own words about itself, with its name in the environment. */
static int take_maps(struct request *r, struct create_body *b, struct err *e)
{
	const struct json_strmap *env = b->env_vars.n ? &b->env_vars : &b->env;
	struct json_strmap *m = &b->wish.metadata, *to = &b->wish.env;
	struct view *keys = arena_array(&r->arena, m->n + 1, sizeof(*keys)),
		    *values = arena_array(&r->arena, m->n + 1, sizeof(*values));
	struct view of = b->template.n ? b->template : b->environment;

	to->keys = arena_array(&r->arena, env->n + 1, sizeof(*to->keys));
	to->values = arena_array(&r->arena, env->n + 1, sizeof(*to->values));
	if (!keys || !values || !to->keys || !to->values)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "sandbox");
	for (size_t i = 0; i < m->n; i++) {
		keys[i] = m->keys[i];
		values[i] = m->values[i];
	}
	if (of.n) {
		keys[m->n] = VIEW(META);
		values[m->n++] = of;
	}
	m->keys = keys;
	m->values = values;
	for (; to->n < env->n; to->n++) {
		to->keys[to->n] = env->keys[to->n];
		to->values[to->n] = env->values[to->n];
	}
	to->keys[to->n] = VIEW("AGENT_SANDBOX_NAME");
	to->values[to->n++] = b->wish.name;
	return 0;
}

static int take_name(struct request *r, struct create_body *b, struct err *e)
{
	struct view of = b->template.n ? b->template : b->environment.n ? b->environment : VIEW("aio");
	char name[SPEC_NAME_MAX + 1];

	if (!b->wish.name.n) {
		int64_t now = clock_wall_ms();
		char tail[9];
		rnd_name(tail, 8);
		if (b->seed)
			snprintf(name, sizeof(name), "sandbox-%.*s-%lld", (int)MIN(of.n, 30), of.p,
				 (long long)(now / 1000));
		else
			snprintf(name, sizeof(name), "sbx-%lld-%s", (long long)now, tail);
		b->wish.name = arena_view(&r->arena, view_of(name));
	}
	if (boxes_find(r->core, &r->actor, ACT_BOX_READ, b->wish.name, NULL))
		return err_set(e, ERR_CONFLICT, "sandbox %.*s already exists", (int)MIN(b->wish.name.n, 64),
			       b->wish.name.p);
	return b->wish.name.p ? 0 : err_sys(e, ERR_INTERNAL, ENOMEM, "sandbox");
}

static void on_created(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct box *b = result;
	bool seed = r->own != NULL;

	if (!answer_ended(r, e))
		return;
	if (seed) {
		as_say(r, "Sandbox %.*s created successfully", VIEW_ARG(as_name(b)));
		return;
	}
	put_box(as_data(r), b);
	as_send(r);
}

static void create(struct request *r)
{
	struct create_body b = { 0 };
	struct err e = { 0 };

	if (request_read(r, &create_schema, &b) < 0)
		return;
	b.seed = b.environment.n || b.env.n || b.idle_policy.n || b.app.n || b.ports || b.args ||
		 b.wish.workdir.n;
	if (b.args && !(b.args->type == JSON_ARRAY && b.args->n == 0)) {
		err_set(&e, ERR_UNSUPPORTED, "args: a sandbox runs commands, it has none of its own");
		answer_fail(r, &e);
		return;
	}
	if (take_limits(&b, &e) < 0 || take_times(&b, &e) < 0 || take_name(r, &b, &e) < 0 ||
	    take_files(r, &b, &e) < 0 || take_maps(r, &b, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	/* Something of its own: the answer is the first release's sentence. */
	if (b.seed && !request_own(r, 1))
		return;
	answer_await(r, create_box(r->core, &r->actor, &b.wish, on_created, r, &e), &e);
}

/* ---- the others ---- */

static void put_each(void *arg, const struct box *b)
{
	put_box(arg, b);
}

static void list(struct request *r)
{
	struct json_out *o = as_data(r);
	struct err e = { 0 };

	json_out_array(o);
	if (boxes_each(r->core, &r->actor, put_each, o, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	json_out_end(o, ']');
	as_send(r);
}

static void get(struct request *r)
{
	const struct box *b = as_box(r, ACT_BOX_READ);

	if (!b)
		return;
	put_box(as_data(r), b);
	as_send(r);
}

static void on_removed(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		as_say(r, "Sandbox %.*s deleted successfully", (int)MIN(r->params[0].n, 64), r->params[0].p);
}

static void remove_one(struct request *r)
{
	struct err e = { 0 };

	if (as_box(r, ACT_BOX_DELETE))
		answer_await(r, remove_box(r->core, &r->actor, r->params[0], on_removed, r, &e), &e);
}

static void on_changed(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (!answer_ended(r, e))
		return;
	put_box(as_data(r), result);
	as_send(r);
}

static void change(struct request *r, enum life_step step)
{
	struct err e = { 0 };

	if (as_box(r, ACT_BOX_CHANGE))
		answer_await(r, life_change(r->core, &r->actor, r->params[0], step, on_changed, r, &e), &e);
}

static void pause_one(struct request *r)
{
	change(r, LIFE_PAUSE);
}

static void resume_one(struct request *r)
{
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, r->params[0], NULL);

	change(r, b && b->state.status == BOX_STOPPED ? LIFE_START : LIFE_RESUME);
}

/* ---- figures: the last sample of each ---- */

struct metrics_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct json_strlist names;
};
static const struct json_field metrics_fields[] = {
	{ "names", JSON_F_STRLIST, .offset = offsetof(struct metrics_body, names), .max = NAMES_MAX,
	  .required = true },
};
static const struct json_schema metrics_schema = { metrics_fields, ELEMS(metrics_fields) };

static void put_metrics(struct json_out *o, const struct box *b)
{
	unsigned n = history_count(b);
	const struct history_sample *now = n ? history_get(b, n - 1) : NULL,
				    *before = n > 1 ? history_get(b, n - 2) : NULL;
	uint64_t milli = 0;

	if (before && now->at_ms > before->at_ms && now->cpu_usec >= before->cpu_usec)
		milli = (now->cpu_usec - before->cpu_usec) / (uint64_t)(now->at_ms - before->at_ms);
	json_out_object(o);
	json_out_ku64(o, "cpuMilli", milli);
	json_out_ku64(o, "memoryBytes", now ? (uint64_t)now->memory_kb << 10 : 0);
	json_out_ku64(o, "memoryMB", now ? now->memory_kb >> 10 : 0);
	answer_put_time(o, "sampledAt", now ? now->at_ms : 0);
	json_out_end(o, '}');
}

static void metrics(struct request *r)
{
	struct metrics_body body = { 0 };

	if (request_read(r, &metrics_schema, &body) < 0)
		return;
	struct json_out *o = as_data(r);
	json_out_object(o);
	json_out_key(o, "items");
	json_out_object(o);
	for (size_t i = 0; i < body.names.n; i++) {
		const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, body.names.items[i], NULL);
		if (!b)
			continue;
		json_out_key_view(o, body.names.items[i]);
		put_metrics(o, b);
	}
	json_out_end(o, '}');
	json_out_end(o, '}');
	as_send(r);
}

const struct route as_boxes_routes[] = {
	{ "POST", "/api/v1/sandbox", create, .body = ROUTE_JSON, .query = "api_key",
	  .audit = "sandbox.create" },
	{ "GET", "/api/v1/sandbox", list, .query = "api_key" },
	{ "GET", "/api/v1/sandbox/{name}", get, .query = "api_key" },
	{ "DELETE", "/api/v1/sandbox/{name}", remove_one, .query = "api_key", .audit = "sandbox.delete" },
	{ "POST", "/api/v1/sandbox/pause/{name}", pause_one, .query = "api_key", .audit = "sandbox.pause" },
	{ "POST", "/api/v1/sandbox/resume/{name}", resume_one, .query = "api_key",
	  .audit = "sandbox.resume" },
	{ "POST", "/api/v1/sandbox/metrics", metrics, .body = ROUTE_JSON, .query = "api_key" },
	{ 0 },
};
