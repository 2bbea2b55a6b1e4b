/*
 * /v1/mcp: a hub of MCP servers over REST. There is one server, `sandbox`: the tools that Paddock's own MCP
 * has for this sandbox.
 */
#include "aio_impl.h"
#include "serve.h"
#include "poison.h"

#define SERVER "sandbox"

static void servers(struct request *r)
{
	struct json_out *o = aio_data(r, NULL);

	json_out_array(o);
	if (serve_find_tools(r->serve).tools)
		json_out_str(o, VIEW(SERVER));
	json_out_end(o, ']');
	aio_send(r);
}

/* .tools NULL: the answer is sent. */
static struct serve_tools find(struct request *r)
{
	struct serve_tools found = serve_find_tools(r->serve);

	if (found.tools && view_is(r->params[0], SERVER))
		return found;
	aio_refuse(r, "there is no MCP server \"%.*s\"; this sandbox has \"" SERVER "\"",
		   (int)MIN(r->params[0].n, 100u), r->params[0].p);
	return (struct serve_tools){ 0 };
}

static void tools(struct request *r)
{
	struct serve_tools hub = find(r);

	if (!hub.tools)
		return;
	struct json_out *o = aio_data(r, NULL);
	json_out_object(o);
	json_out_key(o, "tools");
	json_out_raw(o, hub.tools->list());
	json_out_end(o, '}');
	aio_send(r);
}

/* A tool that failed is an answer, too: its result says so (isError). */
static void on_result(struct request *r, struct view result, const struct err *e)
{
	if (e) {
		aio_refuse(r, "%s", e->msg);
		return;
	}
	json_out_raw(aio_data(r, NULL), result);
	aio_send(r);
}

static void execute(struct request *r)
{
	static const struct json none = { .type = JSON_OBJECT };
	struct serve_tools hub = find(r);
	struct json *args = (struct json *)&none;
	struct err e = { 0 };

	if (!hub.tools)
		return;
	if (!hub.tools->has(r->params[1])) {
		aio_refuse(r, "the server \"" SERVER "\" has no tool \"%.*s\"",
			   (int)MIN(r->params[1].n, 100u), r->params[1].p);
		return;
	}
	if (buf_len(&r->body) && request_read_doc(r, &args, &e) < 0)
		aio_unprocessable(r, "", e.msg);
	else if (args->type != JSON_OBJECT)
		aio_unprocessable(r, "", "the arguments must be an object");
	else
		hub.tools->call(hub.state, r, r->params[1], args, on_result);
}

const struct route aio_mcp_routes[] = {
	{ "GET", "/v1/mcp/servers", servers, .query = AIO_QUERY " include_hidden" },
	{ "GET", "/v1/mcp/{server_name}/tools", tools, .query = AIO_QUERY },
	{ "POST", "/v1/mcp/{server_name}/tools/{tool_name}", execute, .body = ROUTE_JSON,
	  .query = AIO_QUERY },
	{ 0 },
};
