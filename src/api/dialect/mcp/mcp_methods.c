/*
 * The methods of MCP, in both eras.
 */
#include <stdio.h>
#include <stdlib.h>

#include "mcp_impl.h"
#include "record.h"
#include "poison.h"

#define META(name) "io.modelcontextprotocol/" name

/* ---- what there is ---- */

static void put_server(struct json_out *o)
{
	json_out_object(o);
	json_out_kz(o, "name", MCP_SERVER_NAME);
	json_out_kz(o, "title", "Paddock");
	json_out_kz(o, "version", PADDOCK_VERSION);
	json_out_end(o, '}');
}

static void put_self(struct json_out *o, const struct mcp_kind *k)
{
	json_out_key(o, "capabilities");
	json_out_raw(o, k->capabilities);
	if (k->instructions.n)
		json_out_kstr(o, "instructions", k->instructions);
}

void mcp_methods_initialize(struct mcp_stream *s, const struct mcp_message *m)
{
	struct buf b = BUF_INIT(64u * 1024);
	struct json_out o;

	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kz(&o, "jsonrpc", "2.0");
	mcp_rpc_put_id(&o, m->id);
	json_out_key(&o, "result");
	json_out_object(&o);
	json_out_kz(&o, "protocolVersion", mcp_rpc_version_name(s->version));
	json_out_key(&o, "serverInfo");
	put_server(&o);
	put_self(&o, s->mcp->kind);
	json_out_end(&o, '}');
	json_out_end(&o, '}');
	mcp_stream_answer(s, &b, 200);
}

static void discover(struct mcp_call *c)
{
	struct json_out *o = mcp_call_result(c);

	json_out_key(o, "supportedVersions");
	json_out_array(o);
	for (unsigned v = MCP_VERSIONS - 1; v > MCP_NONE; v--)
		json_out_str(o, view_of(mcp_rpc_version_name((enum mcp_version)v)));
	json_out_end(o, ']');
	put_self(o, c->mcp->kind);
	mcp_call_cacheable(c, true);
	json_out_key(o, "_meta");
	json_out_object(o);
	json_out_key(o, META("serverInfo"));
	put_server(o);
	json_out_end(o, '}');
	mcp_call_send(c);
}

static void nothing(struct mcp_call *c)
{
	mcp_call_result(c);
	mcp_call_send(c);
}

static void set_level(struct mcp_call *c)
{
	const struct json *level = json_get(c->params, "level");
	int v = level && level->type == JSON_STRING ? mcp_rpc_level(level->text) : -1;

	if (v < 0) {
		mcp_call_error(c, MCP_PARAMS, 400,
			       "level must be debug, info, notice, warning, error, "
			       "critical, alert or emergency");
		return;
	}
	c->stream->session->level = v;
	nothing(c);
}

static void send_list(struct mcp_call *c, const char *key, struct view items)
{
	struct json_out *o = mcp_call_result(c);

	json_out_key(o, key);
	json_out_raw(o, items);
	mcp_call_cacheable(c, true);
	mcp_call_send(c);
}

static void list_tools(struct mcp_call *c)
{
	send_list(c, "tools", c->scope[0] ? c->mcp->kind->list_box : c->mcp->kind->list_all);
}

static void list_templates(struct mcp_call *c)
{
	send_list(c, "resourceTemplates", c->mcp->kind->templates);
}

/* ---- tools ---- */

const struct mcp_tool *mcp_methods_tool(const struct mcp *m, struct view name)
{
	for (const struct mcp_tool *t = m->kind->tools; t->name; t++)
		if (view_is(name, t->name))
			return t;
	return NULL;
}

static int read_args(struct mcp_call *c, const struct mcp_tool *t, struct err *e)
{
	static const struct json none = { .type = JSON_OBJECT };
	struct json_schema s = *t->args;
	struct mcp_args *a = c->own;

	if (t->box && c->scope[0]) { /* the path has named it */
		s.fields++;
		s.n--;
	}
	if (json_read(&c->stream->arena, c->args ? c->args : &none, &s, a, false, e) < 0)
		return -1;
	if (t->box && c->scope[0])
		a->sandbox = view_of(c->scope);
	return 0;
}

void mcp_methods_run(struct mcp_call *c, const struct mcp_tool *t)
{
	struct err e = { 0 };

	c->tool = t;
	c->run = t->run;
	if (t->audit && c->stream->r && !c->record)
		c->record = c->actor.record = record_open(c->stream->r, t->audit);
	if (t->args && !mcp_call_own(c, *t->size))
		return;
	if (t->args && read_args(c, t, &e) < 0)
		mcp_call_fail(c, &e);
	else
		t->run(c);
}

static void call_tool(struct mcp_call *c)
{
	const struct json *name = json_get(c->params, "name");
	const struct mcp_tool *t = NULL;

	c->args = json_get(c->params, "arguments");
	if (!name || name->type != JSON_STRING) {
		mcp_call_error(c, MCP_PARAMS, 400, "name must be the name of a tool");
		return;
	}
	if (c->args && c->args->type != JSON_OBJECT) {
		mcp_call_error(c, MCP_PARAMS, 400, "arguments must be an object");
		return;
	}
	t = mcp_methods_tool(c->mcp, name->text);
	if (!t || (c->scope[0] && !t->box))
		mcp_call_error(c, MCP_PARAMS, 200, "there is no tool \"%.*s\"", (int)MIN(name->text.n, 128),
			       name->text.p);
	else
		mcp_methods_run(c, t);
}

/* ---- changes ---- */

static bool wants(const struct json *filter, const char *what)
{
	char key[64];

	snprintf(key, sizeof(key), "%sListChanged", what);
	const struct json *v = json_get(filter, key);
	return v && v->type == JSON_BOOL && v->boolean;
}

static void note(struct mcp_stream *s, const char *method, const struct json *subscription,
		 const struct json *filter)
{
	struct buf b = BUF_INIT(64u * 1024);
	struct json_out o;

	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kz(&o, "jsonrpc", "2.0");
	json_out_kz(&o, "method", method);
	if (subscription) {
		json_out_key(&o, "params");
		json_out_object(&o);
		json_out_key(&o, "_meta");
		json_out_object(&o);
		json_out_key(&o, META("subscriptionId"));
		json_out_value(&o, subscription);
		json_out_end(&o, '}');
		if (filter) {
			json_out_key(&o, "notifications");
			json_out_value(&o, filter);
		}
		json_out_end(&o, '}');
	}
	json_out_end(&o, '}');
	if (!b.bad)
		mcp_stream_note(s, buf_view(&b));
	buf_done(&b);
}

/* A stream that lasts until the client goes. */
static void subscribe_all(struct mcp_call *c)
{
	const struct json *filter = json_get(c->params, "notifications");

	if (!filter || filter->type != JSON_OBJECT) {
		mcp_call_error(c, MCP_PARAMS, 400, "notifications must be an object");
		return;
	}
	c->stream->lasting = true;
	c->args = filter;
	note(c->stream, "notifications/subscriptions/acknowledged", c->id, filter);
}

void mcp_methods_changed(struct mcp *m, const char *what)
{
	char method[64];

	snprintf(method, sizeof(method), "notifications/%s/list_changed", what);
	LIST_EACH (it, &m->streams) {
		struct mcp_stream *s = CONTAINER(it, struct mcp_stream, link);
		struct mcp_call *c = s->lasting && !list_empty(&s->calls)
					     ? CONTAINER(s->calls.next, struct mcp_call, link)
					     : NULL;
		if (c && wants(c->args, what))
			note(s, method, c->id, NULL);
	}
	LIST_EACH (it, &m->order) {
		struct mcp_session *s = CONTAINER(it, struct mcp_session, order);
		if (s->get)
			note(s->get, method, NULL, NULL);
	}
}

/* ---- which ---- */

static void of_kind(struct mcp_call *c, void (*run)(struct mcp_call *c))
{
	c->run = run;
	if (run)
		run(c);
	else
		mcp_call_error(c, MCP_METHOD, 404, "there is no such method");
}

static void list_resources(struct mcp_call *c)
{
	of_kind(c, c->mcp->kind->resources);
}
static void read_resource(struct mcp_call *c)
{
	of_kind(c, c->mcp->kind->read);
}
static void list_prompts(struct mcp_call *c)
{
	of_kind(c, c->mcp->kind->prompts);
}
static void get_prompt(struct mcp_call *c)
{
	of_kind(c, c->mcp->kind->prompt);
}
static void complete(struct mcp_call *c)
{
	of_kind(c, c->mcp->kind->complete);
}
static void subscribe(struct mcp_call *c)
{
	of_kind(c, c->mcp->kind->subscribe);
}

static const struct {
	const char *name;
	void (*run)(struct mcp_call *c);
	bool older, modern;
} methods[] = {
	{ "tools/call", call_tool, true, true },
	{ "tools/list", list_tools, true, true },
	{ "resources/list", list_resources, true, true },
	{ "resources/templates/list", list_templates, true, true },
	{ "resources/read", read_resource, true, true },
	{ "prompts/list", list_prompts, true, true },
	{ "prompts/get", get_prompt, true, true },
	{ "completion/complete", complete, true, true },
	{ "resources/subscribe", subscribe, true, false },
	{ "resources/unsubscribe", subscribe, true, false },
	{ "logging/setLevel", set_level, true, false },
	{ "ping", nothing, true, false },
	{ "server/discover", discover, false, true },
	{ "subscriptions/listen", subscribe_all, false, true },
};

void mcp_methods_call(struct mcp_call *c, struct view method)
{
	bool modern = mcp_call_is_modern(c);

	for (size_t i = 0; i < ELEMS(methods); i++)
		if (view_is(method, methods[i].name) && (modern ? methods[i].modern : methods[i].older)) {
			c->run = methods[i].run;
			methods[i].run(c);
			return;
		}
	mcp_call_error(c, MCP_METHOD, 404, "there is no method \"%.*s\"", (int)MIN(method.n, 128), method.p);
}
