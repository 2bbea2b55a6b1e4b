/*
 * Tools that create, list, show and remove sandboxes; and Agent-Sandbox's names for the same.
 */
#include <errno.h>

#include "mcp_tools.h"
#include "net.h"
#include "poison.h"

#define PAGE 50

/* ---- create ---- */

struct create_args {
	struct mcp_args head;
	struct box_wish wish;
	const struct json *egress;
};

#define AT(f)    .offset = offsetof(struct create_args, wish.f)
#define LIMIT(f) AT(limits.f), .has = offsetof(struct create_args, wish.limits.has_##f)
static const struct json_field create_fields[] = {
	{ "name", JSON_F_STRING, AT(name), .min = 1, .max = SPEC_NAME_MAX, .nullable = true },
	{ "image", JSON_F_STRING, AT(image), .min = 1, .max = 200, .nullable = true },
	{ "snapshot", JSON_F_STRING, AT(snapshot), .min = 1, .max = 200, .nullable = true },
	{ "workspace", JSON_F_STRING, AT(workspace), .min = 1, .max = SPEC_NAME_MAX, .nullable = true },
	{ "env", JSON_F_STRMAP, AT(env), .nullable = true },
	{ "metadata", JSON_F_STRMAP, AT(metadata), .nullable = true },
	{ "ttl_seconds", JSON_F_U64, AT(ttl_seconds), .has = offsetof(struct create_args, wish.has_ttl),
	  .nullable = true },
	{ "idle_seconds", JSON_F_U64, AT(idle_seconds), .nullable = true },
	{ "on_end", JSON_F_STRING, AT(on_end), .min = 1, .nullable = true },
	{ "cpu", JSON_F_DOUBLE, LIMIT(cpu), .nullable = true },
	{ "memory_mb", JSON_F_U64, LIMIT(memory_mb), .nullable = true },
	{ "disk_mb", JSON_F_U64, LIMIT(disk_mb), .nullable = true },
	{ "egress", JSON_F_ANY, .offset = offsetof(struct create_args, egress), .nullable = true },
};
#undef AT
#undef LIMIT
const struct json_schema mcp_tools_create_args = { create_fields, ELEMS(create_fields) };

static int read_egress(struct mcp_call *c, struct create_args *a, struct err *e)
{
	struct arena *arena = &c->stream->arena;
	struct egress_policy *p = a->egress ? arena_array(arena, 1, sizeof(*p)) : NULL;

	if (!a->egress)
		return 0;
	if (!p)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "egress");
	if (egress_read(arena, a->egress, policies_sets_wish(c->core, &c->actor, &a->wish)->sets, p, e) < 0 ||
	    policies_wish(c->core, &c->actor, &a->wish, p, e) < 0)
		return err_wrap(e, "egress");
	return 0;
}

static void send_box(struct mcp_call *c, const struct box *b)
{
	struct buf text = BUF_INIT(MCP_RESULT_MAX);
	struct json_out o;

	json_out_init(&o, &text);
	mcp_tools_put_box(&o, b);
	mcp_call_object(c, buf_view(&text));
	buf_done(&text);
}

static void on_box(void *arg, const void *result, const struct err *e)
{
	struct mcp_call *c = arg;

	c->job = NULL;
	if (e)
		mcp_call_fail(c, e);
	else
		send_box(c, result);
}

void mcp_tools_create(struct mcp_call *c)
{
	struct create_args *a = c->own;
	struct err e = { 0 };

	if (read_egress(c, a, &e) < 0)
		mcp_call_fail(c, &e);
	else
		mcp_call_await(c, create_box(c->core, &c->actor, &a->wish, on_box, c, &e), &e);
}

/* ---- list, get, delete ---- */

struct list_args {
	struct mcp_args head;
	struct view status, cursor;
	uint64_t limit;
};

static const struct json_field list_fields[] = {
	{ "status", JSON_F_STRING, offsetof(struct list_args, status), .min = 1, .nullable = true },
	{ "cursor", JSON_F_STRING, offsetof(struct list_args, cursor), .min = 1, .nullable = true },
	{ "limit", JSON_F_U64, offsetof(struct list_args, limit), .min = 1, .max = BOXES_PAGE_MAX,
	  .nullable = true },
};
const struct json_schema mcp_tools_list_args = { list_fields, ELEMS(list_fields) };

static void put_each(void *arg, const struct box *b)
{
	mcp_tools_put_box(arg, b);
}

void mcp_tools_list(struct mcp_call *c)
{
	const struct list_args *a = c->own;
	struct box_filter f = { .status = a->status.n ? boxes_status(a->status) : BOX_NONE,
				.cursor = a->cursor,
				.limit = a->limit ? (unsigned)a->limit : PAGE,
				.newest_first = true };
	char next[BOXES_CURSOR_SIZE];
	struct mcp_object x;
	struct err e = { 0 };

	if (a->status.n && f.status == BOX_NONE) {
		err_set(&e, ERR_INVALID, "status must be creating, running, paused or stopped");
		mcp_call_fail(c, &e);
		return;
	}
	struct json_out *o = mcp_tools_open(&x);
	json_out_key(o, "sandboxes");
	json_out_array(o);
	if (boxes_list(c->core, &c->actor, &f, put_each, o, next, &e) < 0) {
		buf_done(&x.text);
		mcp_call_fail(c, &e);
		return;
	}
	json_out_end(o, ']');
	json_out_kz(o, "next", next[0] ? next : NULL);
	mcp_tools_send(c, &x);
}

static const struct json_field plain_fields[] = { MCP_TOOLS_SANDBOX };
const struct json_schema mcp_tools_plain_args = { plain_fields, ELEMS(plain_fields) };

void mcp_tools_get(struct mcp_call *c)
{
	const struct mcp_args *a = c->own;
	struct err e = { 0 };

	mcp_call_await(c, boxes_measure(c->core, &c->actor, a->sandbox, on_box, c, &e), &e);
}

static void on_removed(void *arg, const void *result, const struct err *e)
{
	struct mcp_call *c = arg;
	const struct mcp_args *a = c->own;
	struct mcp_object x;

	c->job = NULL;
	if (e) {
		mcp_call_fail(c, e);
		return;
	}
	struct json_out *o = mcp_tools_open(&x);
	json_out_kstr(o, "sandbox", a->sandbox);
	json_out_kbool(o, "deleted", true);
	mcp_tools_send(c, &x);
}

void mcp_tools_delete(struct mcp_call *c)
{
	const struct mcp_args *a = c->own;
	struct err e = { 0 };

	mcp_call_await(c, remove_box(c->core, &c->actor, a->sandbox, on_removed, c, &e), &e);
}

/* ---- Agent-Sandbox's names ---- */

/* The name is in the place of `sandbox`, so that the tools above take it. */
struct named_args {
	struct mcp_args head;
	struct view environment;
};

static const struct json_field named_fields[] = {
	{ "name", JSON_F_STRING, offsetof(struct mcp_args, sandbox), .min = 1, .max = SPEC_NAME_MAX,
	  .nullable = true },
	{ "environment", JSON_F_STRING, offsetof(struct named_args, environment), .min = 1, .max = 200,
	  .nullable = true },
};
const struct json_schema mcp_tools_named_args = { named_fields, ELEMS(named_fields) };

/* The sandbox, and the names of the tools that sandboxExecutor calls in it. */
static void send_named(struct mcp_call *c, const struct box *b)
{
	struct mcp_object x;
	struct json_out *o = mcp_tools_open(&x);

	json_out_key(o, "sandbox");
	mcp_tools_put_box(o, b);
	json_out_key(o, "tools");
	json_out_array(o);
	for (const struct mcp_tool *t = c->mcp->kind->tools; t->name; t++)
		if (t->box)
			json_out_str(o, view_of(t->name));
	json_out_end(o, ']');
	mcp_tools_send(c, &x);
}

static void on_named(void *arg, const void *result, const struct err *e)
{
	struct mcp_call *c = arg;

	c->job = NULL;
	if (e)
		mcp_call_fail(c, e);
	else
		send_named(c, result);
}

void mcp_tools_named_create(struct mcp_call *c)
{
	const struct named_args *a = c->own;
	struct box_wish w = { .name = a->head.sandbox, .image = a->environment };
	struct err e = { 0 };

	mcp_call_await(c, create_box(c->core, &c->actor, &w, on_named, c, &e), &e);
}

static bool has_name(struct mcp_call *c)
{
	const struct named_args *a = c->own;
	struct err e = { 0 };

	if (a->head.sandbox.n && !a->environment.n)
		return true;
	err_set(&e, ERR_INVALID, "exactly name is needed");
	mcp_call_fail(c, &e);
	return false;
}

void mcp_tools_named_get(struct mcp_call *c)
{
	const struct named_args *a = c->own;
	struct err e = { 0 };

	if (has_name(c))
		mcp_call_await(c, boxes_measure(c->core, &c->actor, a->head.sandbox, on_named, c, &e), &e);
}

void mcp_tools_named_delete(struct mcp_call *c)
{
	if (has_name(c))
		mcp_tools_delete(c);
}

struct executor_args {
	struct mcp_args head;
	struct view tool;
	const struct json *arguments;
};

static const struct json_field executor_fields[] = {
	{ "sandbox_name", JSON_F_STRING, offsetof(struct executor_args, head.sandbox), .min = 1,
	  .max = SPEC_NAME_MAX, .required = true },
	{ "tool_name", JSON_F_STRING, offsetof(struct executor_args, tool), .min = 1, .required = true },
	{ "arguments", JSON_F_ANY, offsetof(struct executor_args, arguments), .nullable = true },
};
const struct json_schema mcp_tools_executor_args = { executor_fields, ELEMS(executor_fields) };

/* As if it had been called at the sandbox's own path; images and all else that it gives stay as they are. */
void mcp_tools_executor(struct mcp_call *c)
{
	const struct executor_args *a = c->own;
	const struct mcp_tool *t = mcp_methods_tool(c->mcp, a->tool);
	struct err e = { 0 };

	c->scope = arena_str(&c->stream->arena, a->head.sandbox);
	c->args = a->arguments;
	if (!c->scope || !t || !t->box)
		err_set(&e, ERR_INVALID, "tool_name must be one of the tools that getSandbox lists");
	else if (c->args && c->args->type != JSON_OBJECT)
		err_set(&e, ERR_INVALID, "arguments must be an object");
	if (e.code) {
		c->scope = "";
		mcp_call_fail(c, &e);
	} else {
		mcp_methods_run(c, t);
	}
}

const size_t mcp_tools_create_size = sizeof(struct create_args),
	     mcp_tools_list_size = sizeof(struct list_args), mcp_tools_plain_size = sizeof(struct mcp_args),
	     mcp_tools_named_size = sizeof(struct named_args),
	     mcp_tools_executor_size = sizeof(struct executor_args);
