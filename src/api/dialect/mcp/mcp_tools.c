/*
 * The table of tools, and what they share.
 */
#include "mcp_tools.h"

#include "mcp_outputs.h"
#include "mcp_tools_json.h"
#include "text.h"
#include "poison.h"

#define HEAD (24u * 1024)
#define TAIL (8u * 1024)

/* ---- results ---- */

struct json_out *mcp_tools_open(struct mcp_object *x)
{
	x->text = BUF_INIT(MCP_RESULT_MAX);
	json_out_init(&x->o, &x->text);
	json_out_object(&x->o);
	return &x->o;
}

void mcp_tools_send(struct mcp_call *c, struct mcp_object *x)
{
	json_out_end(&x->o, '}');
	struct buf text = x->text; /* x may be the call's own */
	mcp_call_content(c);
	c->out.bad = text.bad;
	mcp_call_text(c, buf_view(&text));
	mcp_call_structured(c, buf_view(&text));
	buf_done(&text);
}

void mcp_tools_put_text(struct json_out *o, const char *key, struct view v)
{
	json_out_key(o, key);
	if (v.n)
		json_out_str(o, v);
	else
		json_out_null(o);
}

void mcp_tools_put_box(struct json_out *o, const struct box *b)
{
	json_out_object(o);
	json_out_kz(o, "id", b->id);
	mcp_tools_put_text(o, "name", b->spec.name);
	json_out_kz(o, "status", boxes_status_name(b->state.status));
	json_out_kstr(o, "image", b->spec.image);
	json_out_kstr(o, "user", b->spec.user);
	json_out_kstr(o, "workdir", b->spec.workdir);
	answer_put_time(o, "created_at", b->state.created_ms);
	answer_put_time(o, "expires_at", b->state.expires_ms);
	json_out_key(o, "cpu");
	json_out_double(o, b->spec.limits.cpu_milli / 1000.0);
	json_out_ku64(o, "memory_mb", b->spec.limits.memory_mb);
	json_out_kmap(o, "metadata", &b->spec.metadata);
	json_out_end(o, '}');
}

/* ---- texts ---- */

struct view mcp_tools_shorten(struct view text, struct buf *room, bool *ret_cut)
{
	*ret_cut = text.n > MCP_TOOLS_INLINE;
	if (!*ret_cut)
		return text;
	struct view head = view_head(text, HEAD), tail = view_skip(text, text.n - TAIL);
	while (head.n && ((unsigned char)text.p[head.n] & 0xc0) == 0x80) /* not within a character */
		head.n--;
	while (tail.n && ((unsigned char)tail.p[0] & 0xc0) == 0x80)
		tail = view_skip(tail, 1);
	*room = BUF_INIT(2 * MCP_TOOLS_INLINE);
	buf_add(room, head);
	buf_printf(room, "\n[… %zu bytes are left out here …]\n", text.n - head.n - tail.n);
	buf_add(room, tail);
	return buf_view(room);
}

static bool ends(struct view name, const char *tail)
{
	size_t n = strlen(tail);
	return name.n > n && view_eq_nocase(view_skip(name, name.n - n), view_of(tail));
}

const char *mcp_tools_mime(struct view name, struct view bytes)
{
	static const struct {
		const char *tail, *mime;
	} texts[] = { { ".json", "application/json" },
		      { ".html", "text/html" },
		      { ".md", "text/markdown" },
		      { ".csv", "text/csv" },
		      { ".py", "text/x-python" } };

	if (view_starts(bytes, "\x89PNG\r\n\x1a\n"))
		return "image/png";
	if (view_starts(bytes, "\xff\xd8\xff"))
		return "image/jpeg";
	if (view_starts(bytes, "GIF87a") || view_starts(bytes, "GIF89a"))
		return "image/gif";
	if (view_starts(bytes, "RIFF") && bytes.n > 12 && memcmp(bytes.p + 8, "WEBP", 4) == 0)
		return "image/webp";
	for (size_t i = 0; i < ELEMS(texts); i++)
		if (ends(name, texts[i].tail) && text_is_utf8(bytes))
			return texts[i].mime;
	return NULL;
}

/* ---- the table ---- */

/* act: its name in the audit log; NULL: it changes nothing but what is in the sandbox */
#define TOOL(text, function, arguments, act)                                                                 \
	{                                                                                                    \
		.name = text, .run = function, .args = &arguments##_args, .size = &arguments##_size,         \
		.audit = act                                                                                 \
	}
#define BOX_TOOL(text, function, arguments, act)                                                             \
	{                                                                                                    \
		.name = text, .run = function, .args = &arguments##_args, .size = &arguments##_size,         \
		.box = true, .audit = act                                                                    \
	}

static const struct mcp_tool tools[] = {
	TOOL("sandbox_create", mcp_tools_create, mcp_tools_create, "sandbox.create"),
	TOOL("sandbox_list", mcp_tools_list, mcp_tools_list, NULL),
	BOX_TOOL("sandbox_get", mcp_tools_get, mcp_tools_plain, NULL),
	TOOL("sandbox_delete", mcp_tools_delete, mcp_tools_plain, "sandbox.delete"),
	BOX_TOOL("exec", mcp_tools_exec, mcp_tools_exec, NULL),
	BOX_TOOL("run_code", mcp_tools_code, mcp_tools_code, NULL),
	BOX_TOOL("file_read", mcp_tools_read, mcp_tools_read, NULL),
	BOX_TOOL("file_write", mcp_tools_write, mcp_tools_write, NULL),
	BOX_TOOL("file_edit", mcp_tools_edit, mcp_tools_edit, NULL),
	BOX_TOOL("file_list", mcp_tools_entries, mcp_tools_entries, NULL),
	BOX_TOOL("file_search", mcp_tools_search, mcp_tools_search, NULL),
	BOX_TOOL("processes", mcp_tools_processes, mcp_tools_processes, NULL),
	BOX_TOOL("ports", mcp_tools_ports, mcp_tools_plain, NULL),
	BOX_TOOL("snapshot", mcp_tools_snapshot, mcp_tools_snapshot, "sandbox.snapshot"),
	TOOL("fork", mcp_tools_fork, mcp_tools_fork, "sandbox.fork"),
	TOOL("transactions", mcp_tools_transactions, mcp_tools_transactions, "transaction.decide"),
	TOOL("createSandbox", mcp_tools_named_create, mcp_tools_named, "sandbox.create"),
	TOOL("getSandbox", mcp_tools_named_get, mcp_tools_named, NULL),
	TOOL("listSandbox", mcp_tools_list, mcp_tools_list, NULL),
	TOOL("deleteSandbox", mcp_tools_named_delete, mcp_tools_named, "sandbox.delete"),
	TOOL("sandboxExecutor", mcp_tools_executor, mcp_tools_executor, NULL),
	{ 0 },
};

const struct mcp_kind mcp_kind = {
	.capabilities = VIEW("{\"tools\":{},\"resources\":{},\"completions\":{},\"logging\":{}}"),
	.instructions =
		VIEW("Paddock runs commands and code in isolated Linux sandboxes. Create one with "
		     "sandbox_create, and name it by its id or name in the other tools. exec runs in a shell "
		     "that keeps its directory and variables from one call to the next. Sandboxes have no "
		     "network access unless their egress policy allows it. Delete a sandbox when it is no "
		     "longer needed."),
	.tools = tools,
	.list_all = { mcp_tools_all, sizeof(mcp_tools_all) - 1 },
	.list_box = { mcp_tools_of_box, sizeof(mcp_tools_of_box) - 1 },
	.templates =
		VIEW("[{\"uriTemplate\":\"paddock://sandboxes/{sandbox}/files/{+path}\",\"name\":\"file\","
		     "\"title\":\"A file of a sandbox\",\"description\":\"path is absolute, without its "
		     "first slash\"}]"),
	.resources = mcp_outputs_list,
	.read = mcp_outputs_read,
	.complete = mcp_outputs_complete,
};
