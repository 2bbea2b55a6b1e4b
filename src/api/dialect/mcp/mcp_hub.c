/*
 * The tools of one sandbox for other dialects (dialect_tools, dialect.h): a call of a tool whose answer goes
 * to a function instead of a client of MCP. Nobody can be asked in the middle of it, and nothing is told but
 * its result.
 */
#include <errno.h>

#include "mcp_impl.h"
#include "poison.h"

/* What mcp_call.c writes before the result of call 1. */
#define RESULT "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"

static struct view list(void)
{
	return mcp_kind.list_box;
}

static bool has(struct view name)
{
	for (const struct mcp_tool *t = mcp_kind.tools; t->name; t++)
		if (t->box && view_is(name, t->name))
			return true;
	return false;
}

void mcp_hub_deliver(struct mcp_stream *s, struct request *r, struct view json)
{
	struct arena a = ARENA_INIT(64u * 1024);
	struct err e = { 0 }, ignored = { 0 };
	struct json *doc = NULL;
	const struct json *message = NULL;

	if (view_starts(json, RESULT)) {
		json = view_skip(json, strlen(RESULT));
		s->then(r, view_head(json, json.n - 1), NULL);
		return;
	}
	if (json_parse(&a, json, &doc, &ignored) >= 0)
		message = json_get(json_get(doc, "error"), "message");
	err_set(&e, ERR_INVALID, "%.*s", message && message->type == JSON_STRING ? (int)message->text.n : 0,
		message ? message->text.p : "");
	arena_done(&a);
	s->then(r, VIEW_NONE, &e);
}

/* {"name": …, "arguments": …} */
static const struct json *params_of(struct arena *a, struct view name, const struct json *args)
{
	struct json *params = arena_alloc(a, sizeof(*params));
	struct json_member *members = arena_array(a, 2, sizeof(*members));

	if (!params || !members)
		return NULL;
	members[0] = (struct json_member){ .key = VIEW("name"),
					   .value = { .type = JSON_STRING, .text = arena_view(a, name) } };
	members[1] = (struct json_member){ .key = VIEW("arguments"), .value = *args };
	*params = (struct json){ .type = JSON_OBJECT, .members = members, .n = 2 };
	return params;
}

static void call(void *state, struct request *r, struct view name, const struct json *args,
		 void (*then)(struct request *r, struct view result, const struct err *e))
{
	static const struct json one = { .type = JSON_NUMBER, .text = VIEW("1") };
	struct mcp *m = state;
	struct actor actor = r->actor; /* the request ends with the answer */
	const char *scope = arena_str(&r->arena, view_of(r->box));
	struct mcp_message message = { .kind = MCP_MESSAGE_REQUEST,
				       .id = &one,
				       .method = VIEW("tools/call"),
				       .params = params_of(&r->arena, name, args) };
	struct err e = { 0 };
	struct mcp_stream *s;

	m->loop = r->x->loop;
	if (!scope || !message.params) {
		err_sys(&e, ERR_INTERNAL, ENOMEM, "request");
		answer_fail(r, &e);
		return;
	}
	s = mcp_stream_new(m, r, NULL, MCP_2025_11);
	if (!s)
		return;
	loop_timer_stop(&s->late);
	s->then = then;
	s->settling = true;
	mcp_call_start(s, &message, &actor, scope);
	s->settling = false;
	mcp_stream_settle(s);
}

const struct dialect_tools mcp_hub = { .list = list, .has = has, .call = call };
