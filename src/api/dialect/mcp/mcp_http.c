/*
 * POST, GET and DELETE of an endpoint: which era a request belongs to, whether its headers fit it, and its
 * session. See mcp.h.
 */
#include <errno.h>
#include <stdio.h>

#include "mcp_impl.h"
#include "poison.h"

#define META(name) "io.modelcontextprotocol/" name

/* ---- refusals ---- */

/* An error of JSON-RPC as the whole answer. */
static void refuse_data(struct request *r, int http, enum mcp_error code, const struct json *id,
			const char *message, struct view data)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kz(o, "jsonrpc", "2.0");
	mcp_rpc_put_id(o, id);
	json_out_key(o, "error");
	json_out_object(o);
	json_out_ki64(o, "code", code);
	json_out_kz(o, "message", message);
	if (data.n) {
		json_out_key(o, "data");
		json_out_raw(o, data);
	}
	json_out_end(o, '}');
	json_out_end(o, '}');
	answer_send(r, http);
}

static void refuse(struct request *r, int http, enum mcp_error code, const struct json *id,
		   const char *message)
{
	refuse_data(r, http, code, id, message, VIEW_NONE);
}

static void refuse_version(struct request *r, const struct json *id, struct view requested)
{
	struct buf b = BUF_INIT(4096);
	struct json_out o;

	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_key(&o, "supported");
	json_out_array(&o);
	for (unsigned v = MCP_VERSIONS - 1; v > MCP_NONE; v--)
		json_out_str(&o, view_of(mcp_rpc_version_name((enum mcp_version)v)));
	json_out_end(&o, ']');
	json_out_kstr(&o, "requested", view_head(requested, 64));
	json_out_end(&o, '}');
	refuse_data(r, 400, MCP_VERSION, id, "this version of the protocol is not supported", buf_view(&b));
	buf_done(&b);
}

static bool accepts(const struct request *r, const char *type)
{
	struct view rest = http_get_header(r->x, "accept");

	if (!rest.p)
		return true;
	while (rest.p) {
		struct view parameters,
			one = view_trim(view_split(view_split(rest, ',', &rest), ';', &parameters));
		struct view family = view_split(one, '/', &parameters),
			    wanted = view_split(view_of(type), '/', &parameters);
		if (view_eq_nocase(one, view_of(type)) || view_is(one, "*/*") ||
		    (view_eq_nocase(family, wanted) && one.n == family.n + 2 && one.p[one.n - 1] == '*'))
			return true;
	}
	return false;
}

/* ---- 2026-07-28 ---- */

/* Mcp-Name repeats what the request is about, so that proxies need not read its body. */
static const struct json *name_of(const struct mcp_message *m)
{
	if (view_is(m->method, "tools/call") || view_is(m->method, "prompts/get"))
		return json_get(m->params, "name");
	return view_is(m->method, "resources/read") ? json_get(m->params, "uri") : NULL;
}

static bool same_header(struct request *r, const char *header, struct view want)
{
	struct view given = http_get_header(r->x, header);

	given = given.p ? mcp_rpc_header(r->x->arena, view_trim(given)) : given;
	return given.p && view_eq(given, want);
}

static bool check_modern(struct request *r, const struct mcp_message *m, struct view header)
{
	const struct json *meta = json_get(m->params, "_meta"),
			  *version = json_get(meta, META("protocolVersion")),
			  *caps = json_get(meta, META("clientCapabilities")), *name = name_of(m);

	if (!version || version->type != JSON_STRING || !caps || caps->type != JSON_OBJECT)
		refuse(r, 400, MCP_PARAMS, m->id,
		       "_meta must have " META("protocolVersion") " and " META("clientCapabilities"));
	else if (!view_eq(header, version->text))
		refuse(r, 400, MCP_HEADER, m->id, "MCP-Protocol-Version differs from the version in _meta");
	else if (mcp_rpc_version(version->text) != MCP_2026_07)
		refuse_version(r, m->id, version->text);
	else if (!same_header(r, "mcp-method", m->method))
		refuse(r, 400, MCP_HEADER, m->id, "Mcp-Method differs from the method in the body");
	else if (name && name->type == JSON_STRING && !same_header(r, "mcp-name", name->text))
		refuse(r, 400, MCP_HEADER, m->id, "Mcp-Name differs from the name or uri in the body");
	else
		return true;
	return false;
}

static void run(struct mcp_stream *s, struct request *r, const struct mcp_message *messages, size_t n,
		const char *scope)
{
	struct actor actor = r->actor; /* the request ends with the answer */

	s->settling = true;
	for (size_t i = 0; i < n; i++)
		if (messages[i].kind == MCP_MESSAGE_REQUEST)
			mcp_call_start(s, &messages[i], &actor, scope);
	s->settling = false;
	mcp_stream_settle(s);
}

static void post_modern(struct request *r, const struct mcp_message *m, struct view header)
{
	struct mcp *mcp = r->state;

	if (m->kind == MCP_MESSAGE_NOTE) {
		answer_empty(r, 202, NULL, 0);
		return;
	}
	if (m->kind != MCP_MESSAGE_REQUEST) {
		refuse(r, 400, MCP_REQUEST, m->id, "this is not a request of JSON-RPC 2.0");
		return;
	}
	if (!check_modern(r, m, header))
		return;
	const char *scope = arena_str(&r->arena, r->params[0]);
	struct mcp_stream *s = scope ? mcp_stream_new(mcp, r, NULL, MCP_2026_07) : NULL;
	if (s)
		run(s, r, m, 1, scope);
	else if (!scope)
		refuse(r, 500, MCP_INTERNAL, m->id, "out of memory");
}

/* ---- the older era ---- */

static void initialize(struct request *r, const struct mcp_message *m)
{
	const struct json *version = json_get(m->params, "protocolVersion"),
			  *caps = json_get(m->params, "capabilities");
	enum mcp_version v =
		version && version->type == JSON_STRING ? mcp_rpc_version(version->text) : MCP_NONE;
	struct err e = { 0 };

	if (!version || version->type != JSON_STRING || !caps || caps->type != JSON_OBJECT) {
		refuse(r, 400, MCP_PARAMS, m->id, "initialize needs protocolVersion and capabilities");
		return;
	}
	struct mcp_session *s = mcp_session_new(r->state, &r->actor, r->params[0], &e);
	if (!s) {
		answer_fail(r, &e);
		return;
	}
	/* Of what it does not know a client gets the newest that has a handshake. */
	s->version = v == MCP_NONE || v == MCP_2026_07 ? MCP_2025_11 : v;
	s->caps = mcp_rpc_caps(caps);
	s->level = MCP_LEVEL_INFO;
	mcp_session_prune(r->state);
	struct mcp_stream *t = mcp_stream_new(r->state, r, s, s->version);
	if (!t)
		return;
	mcp_methods_initialize(t, m);
	mcp_stream_settle(t);
}

/* NULL: the answer is sent. */
static struct mcp_session *session_of(struct request *r, const struct json *id)
{
	struct view header = http_get_header(r->x, "mcp-session-id");
	struct mcp_session *s = header.p ? mcp_session_find(r->state, r, header) : NULL;

	if (!header.p)
		refuse(r, 400, MCP_REQUEST, id, "Mcp-Session-Id is missing: begin with initialize");
	else if (!s)
		refuse(r, 404, MCP_REQUEST, id, "there is no such session: begin with initialize");
	return s;
}

static void take_note(struct mcp_session *s, const struct mcp_message *m)
{
	if (m->kind == MCP_MESSAGE_RESPONSE) {
		mcp_input_answer(s, m);
		return;
	}
	if (!view_is(m->method, "notifications/cancelled"))
		return;
	struct mcp_call *c = mcp_call_find(s, json_get(m->params, "requestId"));
	if (!c)
		return;
	struct mcp_stream *t = c->stream;
	mcp_call_free(c);
	mcp_stream_settle(t);
}

static void post_session(struct request *r, struct mcp_session *s, const struct mcp_message *messages,
			 size_t n, bool batch)
{
	size_t requests = 0;

	/* The other messages first: they may go with the request. */
	for (size_t i = 0; i < n; i++) {
		requests += messages[i].kind == MCP_MESSAGE_REQUEST;
		if (messages[i].kind != MCP_MESSAGE_REQUEST)
			take_note(s, &messages[i]);
	}
	if (!requests) {
		answer_empty(r, 202, NULL, 0);
		return;
	}
	struct mcp_stream *t = mcp_stream_new(r->state, r, s, s->version);
	if (!t)
		return;
	t->is_batch = batch;
	run(t, r, messages, n, s->scope);
}

static void post_older(struct request *r, const struct mcp_message *messages, size_t n, bool batch,
		       enum mcp_version header)
{
	if (!accepts(r, "application/json") || !accepts(r, "text/event-stream")) {
		refuse(r, 406, MCP_REQUEST, messages[0].id,
		       "Accept must have application/json and text/event-stream");
		return;
	}
	if (!batch && messages[0].kind == MCP_MESSAGE_REQUEST && view_is(messages[0].method, "initialize")) {
		initialize(r, messages);
		return;
	}
	struct mcp_session *s = session_of(r, messages[0].id);
	if (!s)
		return;
	for (size_t i = 0; i < n; i++)
		if (messages[i].kind == MCP_MESSAGE_BAD) {
			refuse(r, 400, MCP_REQUEST, messages[i].id, "this is not a message of JSON-RPC 2.0");
			return;
		}
	if (batch && s->version != MCP_2025_03)
		refuse(r, 400, MCP_REQUEST, NULL, "this version of the protocol has no batches");
	else if (header != MCP_NONE && header != s->version)
		refuse(r, 400, MCP_REQUEST, messages[0].id,
		       "MCP-Protocol-Version differs from the session's version");
	else
		post_session(r, s, messages, n, batch);
}

/* ---- the three methods ---- */

/* The newer era has a version in each message; the older one has none, or a version that is older. */
static bool is_modern(const struct mcp_message *m, struct view header)
{
	if (header.p)
		return mcp_rpc_version(header) == MCP_NONE || mcp_rpc_version(header) == MCP_2026_07;
	return json_get(json_get(m->params, "_meta"), META("protocolVersion")) != NULL;
}

static bool has_older_header(const struct mcp_message *m, struct view header)
{
	return header.p && !is_modern(m, header) &&
	       json_get(json_get(m->params, "_meta"), META("protocolVersion")) != NULL;
}

static void post(struct request *r)
{
	struct view header = http_get_header(r->x, "mcp-protocol-version");
	struct mcp *mcp = r->state;
	struct err e = { 0 };
	struct json *doc;

	mcp->loop = r->x->loop;
	header = header.p ? view_trim(header) : header;
	if (request_read_doc(r, &doc, &e) < 0) {
		refuse(r, e.code == ERR_TOO_LARGE ? 413 : 400, MCP_PARSE, NULL, e.msg);
		return;
	}
	bool batch = doc->type == JSON_ARRAY;
	size_t n = batch ? doc->n : 1;
	struct mcp_message *messages =
		n <= 256 ? arena_array(&r->arena, MAX(n, 1u), sizeof(*messages)) : NULL;
	if (!messages || n == 0) {
		refuse(r, 400, MCP_REQUEST, NULL, "a batch has 1 to 256 messages");
		return;
	}
	for (size_t i = 0; i < n; i++)
		messages[i] = mcp_rpc_read(batch ? &doc->items[i] : doc);
	if (!batch && has_older_header(messages, header))
		refuse(r, 400, MCP_HEADER, messages[0].id,
		       "MCP-Protocol-Version differs from the version in _meta");
	else if (!batch && is_modern(messages, header))
		post_modern(r, messages, header);
	else if (batch && header.p && mcp_rpc_version(header) == MCP_NONE)
		refuse_version(r, NULL, header);
	else
		post_older(r, messages, n, batch, mcp_rpc_version(header));
}

static void no_method(struct request *r)
{
	static const struct http_header allow = { VIEW("allow"), VIEW("POST") };
	answer_empty(r, 405, &allow, 1);
}

static void get(struct request *r)
{
	struct mcp *mcp = r->state;
	struct view last = stream_last_id(r), version = http_get_header(r->x, "mcp-protocol-version");

	mcp->loop = r->x->loop;
	if (!http_get_header(r->x, "mcp-session-id").p || mcp_rpc_version(version) == MCP_2026_07) {
		no_method(r);
		return;
	}
	struct mcp_session *s = session_of(r, NULL);
	if (!s)
		return;
	if (!accepts(r, "text/event-stream")) {
		refuse(r, 406, MCP_REQUEST, NULL, "Accept must have text/event-stream");
		return;
	}
	if (last.p) {
		if (!mcp_stream_resume(s, r, last))
			refuse(r, 400, MCP_REQUEST, NULL,
			       "the events behind Last-Event-ID are not kept any more");
		return;
	}
	mcp_stream_free(s->get); /* a client has one, and this is its newest */
	struct mcp_stream *t = mcp_stream_new(mcp, r, s, s->version);
	if (!t)
		return;
	t->lasting = true;
	s->get = t;
	mcp_stream_begin(t);
}

static void end_session(struct request *r)
{
	struct mcp *mcp = r->state;

	mcp->loop = r->x->loop;
	if (!http_get_header(r->x, "mcp-session-id").p) {
		no_method(r);
		return;
	}
	struct mcp_session *s = session_of(r, NULL);
	if (!s)
		return;
	mcp_session_free(s);
	answer_no_content(r);
}

const struct route mcp_http_routes[] = {
	{ "POST", "/mcp", post, .body = ROUTE_JSON },
	{ "GET", "/mcp", get },
	{ "DELETE", "/mcp", end_session },
	{ "POST", "/sandbox/{name}/mcp", post, .body = ROUTE_JSON },
	{ "GET", "/sandbox/{name}/mcp", get },
	{ "DELETE", "/sandbox/{name}/mcp", end_session },
	/* AIO's other address of it. */
	{ "POST", "/sandbox/{name}/v1/mcp", post, .body = ROUTE_JSON },
	{ "GET", "/sandbox/{name}/v1/mcp", get },
	{ "DELETE", "/sandbox/{name}/v1/mcp", end_session },
	{ 0 },
};
