/*
 * /v1/workspaces as Sandkasten lists and removes them, on a listener of its own. Their ids are our names.
 */
#include "disk.h"
#include "sk_impl.h"
#include "poison.h"

static void on_listed(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct workspace_list *l = result;
	struct json_out *o = answer_result_list(r, e, "workspaces");

	if (!o)
		return;
	for (size_t i = 0; i < l->n; i++) {
		json_out_object(o);
		json_out_kz(o, "id", l->items[i].workspace->name);
		json_out_end(o, '}');
	}
	answer_send_list(r);
}

static void list(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, workspaces_list(r->core, &r->actor, on_listed, r, &e), &e);
}

static void on_removed(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		sk_ok(r);
}

static void remove_one(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, workspaces_remove(r->core, &r->actor, r->params[0], on_removed, r, &e), &e);
}

const struct route sk_workspaces_routes[] = {
	{ "GET", "/v1/workspaces", list },
	{ "DELETE", "/v1/workspaces/{id}", remove_one, .audit = "workspace.delete" },
	{ 0 },
};
