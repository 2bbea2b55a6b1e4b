/*
 * /v1/sandboxes/{id}/shells: shells that keep their state. POST …/exec with "shell" runs commands in
 * them.
 */
#include "rest_impl.h"
#include "session.h"
#include "poison.h"

static void put_shell(struct json_out *o, const struct shell_info *s)
{
	json_out_object(o);
	json_out_kstr(o, "name", s->name);
	json_out_ku64_any(o, "pid", s->pid);
	json_out_kbool(o, "running", s->pid != 0);
	json_out_kstr(o, "user", s->user);
	json_out_kstr(o, "cwd", s->cwd);
	json_out_kbool(o, "busy", s->busy);
	json_out_ku64(o, "queued", s->queued);
	answer_put_time(o, "started_at", s->started_ms);
	json_out_end(o, '}');
}

/* ---- what there is ---- */

struct asking {
	struct shells_op op;
	struct exec exec; /* of a creation */
	struct request *r;
	struct view name;
	int status;
};

static void on_asking_gone(struct request *r)
{
	struct asking *k = r->own;
	exec_cancel(&k->exec);
	shells_cancel(&k->op);
}

static void on_list(struct shells_op *op, const struct shell_info *list, size_t n, const struct err *e)
{
	struct request *r = CONTAINER(op, struct asking, op)->r;
	struct json_out *o = answer_result_list(r, e, "shells");

	if (!o)
		return;
	for (size_t i = 0; i < n; i++)
		put_shell(o, &list[i]);
	answer_send_list(r);
}

static void on_one(struct shells_op *op, const struct shell_info *list, size_t n, const struct err *e)
{
	struct asking *k = CONTAINER(op, struct asking, op);
	struct json_out *o = answer_result(k->r, e);

	if (!o)
		return;
	put_shell(o, list);
	answer_send(k->r, k->status);
}

static void on_removed(struct shells_op *op, const struct shell_info *list, size_t n, const struct err *e)
{
	struct request *r = CONTAINER(op, struct asking, op)->r;

	if (e)
		answer_fail(r, e);
	else
		answer_no_content(r);
}

typedef void done_fn(struct shells_op *op, const struct shell_info *list, size_t n, const struct err *e);
typedef int ask_fn(struct core *c, const struct actor *a, struct view box, struct view name,
		   struct shells_op *op, struct err *e);

static struct asking *asking(struct request *r, done_fn *done)
{
	struct asking *k = request_own(r, sizeof(*k));

	if (!k)
		return NULL;
	k->r = r;
	k->status = 200;
	k->op.done = done;
	r->on_gone = on_asking_gone;
	return k;
}

static void ask(struct request *r, ask_fn *call, struct view name, done_fn *done)
{
	struct asking *k = asking(r, done);
	struct err e = { 0 };

	if (k && call(r->core, &r->actor, r->params[0], name, &k->op, &e) < 0)
		answer_fail(r, &e);
}

static void list(struct request *r)
{
	ask(r, shells_list, VIEW_NONE, on_list);
}

static void get(struct request *r)
{
	ask(r, shells_list, r->params[1], on_one);
}

static void end(struct request *r)
{
	ask(r, shells_remove, r->params[1], on_removed);
}

/* ---- making one ---- */

struct shell_body {
	struct exec_wish wish;
	struct view name;
};

#define AT(f) .offset = offsetof(struct shell_body, f)
static const struct json_field create_fields[] = {
	{ "name", JSON_F_STRING, AT(name), .min = 1, .required = true },
	{ "cwd", JSON_F_STRING, AT(wish.cwd), .min = 1, .nullable = true },
	{ "env", JSON_F_STRMAP, AT(wish.env), .nullable = true },
	{ "user", JSON_F_STRING, AT(wish.user), .min = 1, .nullable = true },
};
#undef AT
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields) };

/* It runs: show it as GET does. */
static void on_created(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct asking *k = CONTAINER(x, struct asking, exec);
	struct request *r = k->r;
	struct err mine = { 0 };

	if (e)
		answer_fail(r, e);
	else if (shells_list(r->core, &r->actor, r->params[0], k->name, &k->op, &mine) < 0)
		answer_fail(r, &mine);
}

static void create(struct request *r)
{
	struct shell_body b = { 0 };
	struct err e = { 0 };
	struct asking *k;

	if (request_read(r, &create_schema, &b) < 0)
		return;
	k = asking(r, on_one);
	if (!k)
		return;
	k->status = 201;
	k->name = b.name;
	k->exec.done = on_created;
	if (shells_create(r->core, &r->actor, r->params[0], b.name, &b.wish, &k->exec, &e) < 0)
		answer_fail(r, &e);
}

const struct route rest_shells_routes[] = {
	{ "POST", "/v1/sandboxes/{id}/shells", create, .body = ROUTE_JSON },
	{ "GET", "/v1/sandboxes/{id}/shells", list },
	{ "GET", "/v1/sandboxes/{id}/shells/{name}", get },
	{ "DELETE", "/v1/sandboxes/{id}/shells/{name}", end },
	{ 0 },
};
