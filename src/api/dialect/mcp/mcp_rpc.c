/*
 * Messages of JSON-RPC 2.0 as MCP has them. Pure.
 */
#include "mcp_impl.h"
#include "text.h"
#include "poison.h"

static const char *const versions[] = {
	[MCP_2025_03] = "2025-03-26",
	[MCP_2025_06] = "2025-06-18",
	[MCP_2025_11] = "2025-11-25",
	[MCP_2026_07] = "2026-07-28",
};

static const char *const levels[] = { "debug", "info",     "notice", "warning",
				      "error", "critical", "alert",  "emergency" };

static bool is_id(const struct json *j)
{
	int64_t n;
	return j && ((j->type == JSON_STRING && j->text.n <= 256) ||
		     (j->type == JSON_NUMBER && json_to_i64(j, &n) >= 0));
}

struct mcp_message mcp_rpc_read(const struct json *j)
{
	const struct json *version = json_get(j, "jsonrpc"), *method = json_get(j, "method");
	struct mcp_message m = { .id = json_get(j, "id"),
				 .params = json_get(j, "params"),
				 .result = json_get(j, "result"),
				 .error = json_get(j, "error") };

	if (m.id && !is_id(m.id)) {
		m.id = NULL;
		return m;
	}
	if (!version || version->type != JSON_STRING || !view_is(version->text, "2.0"))
		return m;
	if (method) {
		if (method->type != JSON_STRING || method->text.n > 128 || m.result || m.error ||
		    (m.params && m.params->type != JSON_OBJECT))
			return m;
		m.method = method->text;
		m.kind = m.id ? MCP_MESSAGE_REQUEST : MCP_MESSAGE_NOTE;
		return m;
	}
	bool failed = m.error && m.error->type == JSON_OBJECT;
	if (m.id && !m.params && (failed ? !m.result : m.result && !m.error))
		m.kind = MCP_MESSAGE_RESPONSE;
	return m;
}

void mcp_rpc_put_id(struct json_out *o, const struct json *id)
{
	json_out_key(o, "id");
	if (id)
		json_out_value(o, id);
	else
		json_out_null(o);
}

enum mcp_version mcp_rpc_version(struct view text)
{
	for (unsigned i = MCP_2025_03; i < MCP_VERSIONS; i++)
		if (view_is(text, versions[i]))
			return (enum mcp_version)i;
	return MCP_NONE;
}

const char *mcp_rpc_version_name(enum mcp_version v)
{
	return versions[v];
}

unsigned mcp_rpc_caps(const struct json *capabilities)
{
	return (json_get(capabilities, "roots") ? MCP_CAP_ROOTS : 0u) |
	       (json_get(capabilities, "sampling") ? MCP_CAP_SAMPLING : 0u) |
	       (json_get(capabilities, "elicitation") ? MCP_CAP_ELICITATION : 0u);
}

int mcp_rpc_level(struct view name)
{
	for (size_t i = 0; i < ELEMS(levels); i++)
		if (view_is(name, levels[i]))
			return (int)i;
	return -1;
}

struct view mcp_rpc_header(struct arena *a, struct view value)
{
	static const char begin[] = "=?base64?", end[] = "?=";
	size_t around = sizeof(begin) - 1 + sizeof(end) - 1;
	struct buf b = BUF_INIT(value.n + 1);
	struct view v = VIEW_NONE;

	if (!view_starts(value, begin) || value.n < around ||
	    memcmp(value.p + value.n - 2, end, sizeof(end) - 1) != 0)
		return value;
	struct view coded = { value.p + sizeof(begin) - 1, value.n - around };
	if (text_unbase64(&b, coded) >= 0 && text_is_utf8(buf_view(&b)))
		v = arena_view(a, buf_view(&b));
	buf_done(&b);
	return v;
}
