/*
 * Templates: the list, the logs of their builds, a build from steps, and a sandbox made from one.
 */
#include "dashboard_impl.h"
#include "image.h"
#include "template.h"
#include "poison.h"

#define STEPS_MAX   (256u * 1024)
#define COMMAND_MAX 8192

/* ---- the list and the logs ---- */

static const char *status_name(const struct template_build *b)
{
	static const char *const names[] = { [TEMPLATE_WAITING] = "waiting",
					     [TEMPLATE_BUILDING] = "building",
					     [TEMPLATE_READY] = "ready",
					     [TEMPLATE_ERROR] = "error" };
	return b ? names[templates_status(b)] : "none";
}

static void put_template(void *arg, const struct template *t)
{
	const struct template_build *b = templates_newest(t);
	struct json_out *o = arg;

	json_out_object(o);
	json_out_kz(o, "id", t->id);
	json_out_key(o, "names");
	json_out_array(o);
	json_out_str(o, view_of(t->name));
	json_out_end(o, ']');
	json_out_kz(o, "status", status_name(b));
	json_out_kz(o, "build", b ? b->id : NULL);
	json_out_kz(o, "tenant", t->tenant->name);
	answer_put_time(o, "created_at", t->created_ms);
	json_out_end(o, '}');
}

static void templates(struct request *r)
{
	struct err e = { 0 };
	struct json_out *o = answer_json_list(r, "templates");

	if (templates_each(r->core, &r->actor, put_template, o, &e) < 0)
		answer_fail(r, &e);
	else
		answer_send_list(r);
}

static void build_log(struct request *r)
{
	static const char *const levels[] = { [TEMPLATE_DEBUG] = "debug",
					      [TEMPLATE_INFO] = "info",
					      [TEMPLATE_WARN] = "warn",
					      [TEMPLATE_FAILURE] = "error" };
	struct err e = { 0 };
	const struct template *t = templates_find(r->core, &r->actor, ACT_SNAPSHOT_READ, r->params[0], &e);

	if (!t) {
		answer_fail(r, &e);
		return;
	}
	const struct template_build *b = templates_newest(t);
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_kz(o, "status", status_name(b));
	json_out_key(o, "lines");
	json_out_array(o);
	for (size_t i = 0; b && i < b->n_logs; i++) {
		json_out_object(o);
		answer_put_time(o, "at", b->logs[i].at_ms);
		json_out_kz(o, "level", levels[b->logs[i].level]);
		json_out_kz(o, "message", b->logs[i].text);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* ---- a build ---- */

struct wish {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view name, from, start, ready;
	const struct json *steps;
};
#define AT(f) .offset = offsetof(struct wish, f)
static const struct json_field wish_fields[] = {
	{ "name", JSON_F_STRING, AT(name), .required = true, .min = 1, .max = 200 },
	{ "from", JSON_F_STRING, AT(from), .max = 300, .nullable = true },
	{ "start", JSON_F_STRING, AT(start), .max = COMMAND_MAX, .nullable = true },
	{ "ready", JSON_F_STRING, AT(ready), .max = COMMAND_MAX, .nullable = true },
	{ "steps", JSON_F_ANY, AT(steps), .nullable = true },
};
#undef AT
static const struct json_schema wish_schema = { wish_fields, ELEMS(wish_fields) };

#define AT(f) .offset = offsetof(struct template_step, f)
static const struct json_field step_fields[] = {
	{ "type", JSON_F_STRING, AT(type), .required = true },
	{ "args", JSON_F_STRLIST, AT(args), .required = true },
};
#undef AT
static const struct json_schema step_schema = { step_fields, ELEMS(step_fields) };

struct asked {
	struct view from;
	struct template_plan plan;
};

static int read_steps(struct request *r, const struct json *list, struct template_plan *p, struct err *e)
{
	if (!list || list->type == JSON_NULL)
		return 0;
	if (list->type != JSON_ARRAY || list->n > TEMPLATES_STEPS_MAX)
		return err_set(e, ERR_INVALID, "steps must be an array of at most %d", TEMPLATES_STEPS_MAX);
	p->steps = arena_array(&r->arena, list->n, sizeof(*p->steps));
	if (!p->steps)
		return err_set(e, ERR_TOO_LARGE, "the steps are too large");
	for (; p->n < list->n; p->n++) {
		struct template_step *one = &p->steps[p->n];
		if (json_read(&r->arena, &list->items[p->n], &step_schema, one, false, e) < 0)
			return err_wrap(e, "steps[%zu]", p->n);
		if (view_is(one->type, "COPY"))
			return err_set(e, ERR_UNSUPPORTED,
				       "COPY needs files: build this template with E2B's client");
	}
	return 0;
}

/* A template that is ready, else an image, which the build itself looks for. */
static void find_base(struct request *r, struct view from, struct template_plan *p)
{
	struct err none = { 0 };

	if (!from.n)
		return;
	p->base = templates_resolve(r->core, &r->actor, from, &none);
	if (p->base)
		p->snapshot = view_of(p->base->snapshot);
	else
		p->image = from;
}

static void on_requested(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct asked *asked = r->own;
	const struct template_build *made = result;
	struct err failed = { 0 };

	if (!answer_ended(r, e))
		return;
	find_base(r, asked->from, &asked->plan); /* now: a template may have gone meanwhile */
	struct template_build *b =
		templates_build(r->core, &r->actor, view_of(made->of->id), view_of(made->id), &failed);
	if (!b || templates_begin(r->core, &r->actor, b, &asked->plan, &failed) < 0) {
		answer_fail(r, &failed);
		return;
	}
	struct json_out *o = answer_json(r);
	put_template(o, b->of);
	answer_send(r, 202);
}

static void build(struct request *r)
{
	struct asked *asked = request_own(r, sizeof(*asked));
	struct wish w = { .start = VIEW(""), .ready = VIEW("") };
	struct err e = { 0 };

	if (!asked || request_read(r, &wish_schema, &w) < 0)
		return;
	asked->from = w.from;
	asked->plan.start = w.start;
	asked->plan.ready = w.ready;
	if (read_steps(r, w.steps, &asked->plan, &e) >= 0)
		r->job = templates_request(r->core, &r->actor, &(struct template_wish){ .name = w.name },
					   on_requested, r, &e);
	if (!r->job)
		answer_fail(r, &e);
}

static void drop(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, templates_remove(r->core, &r->actor, r->params[0], answer_removed, r, &e), &e);
}

/* ---- a sandbox ---- */

static void on_started(void *arg, const void *result, const struct err *e)
{
	const struct box *b = result;
	struct json_out *o = answer_result(arg, e);

	if (!o)
		return;
	json_out_object(o);
	json_out_kz(o, "id", b->id);
	json_out_end(o, '}');
	answer_send(arg, 201);
}

/* What the template starts runs before anybody has the sandbox. */
static void on_created(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct box *b = result;
	const struct template_build *t = e ? NULL : templates_of_box(r->core, b);
	struct err failed = { 0 };

	if (!t || (!t->start.n && !t->ready.n)) {
		on_started(r, b, e);
		return;
	}
	r->job = NULL;
	answer_await(r, templates_start(r->core, &r->actor, view_of(b->id), t, false, on_started, r, &failed),
		     &failed);
}

static void use(struct request *r)
{
	struct box_wish w = { 0 };
	struct err e = { 0 };
	const struct template_build *b = templates_resolve(r->core, &r->actor, r->params[0], &e);

	if (b)
		w.snapshot = view_of(b->snapshot);
	if (b && templates_to_wish(b, &r->arena, &w, &e) >= 0)
		r->job = create_box(r->core, &r->actor, &w, on_created, r, &e);
	if (!r->job)
		answer_fail(r, &e);
}

const struct route dashboard_template_routes[] = {
	{ "GET", "/dashboard/templates", templates },
	{ "GET", "/dashboard/templates/{id}/log", build_log },
	{ "POST", "/dashboard/templates", build, .body = ROUTE_JSON, .body_max = STEPS_MAX,
	  .audit = "template.build" },
	{ "POST", "/dashboard/templates/{id}/sandboxes", use, .audit = "sandbox.create" },
	{ "DELETE", "/dashboard/templates/{id}", drop, .audit = "template.delete" },
	{ 0 },
};
