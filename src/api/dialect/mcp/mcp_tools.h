/*
 * The tools: what they share. What clients see of them is in tools.yaml.
 */
#pragma once

#include "mcp_impl.h"

#define MCP_TOOLS_SANDBOX                                                                                    \
	{                                                                                                    \
		"sandbox", JSON_F_STRING, offsetof(struct mcp_args, sandbox), .min = 1, .max = 63,           \
									      .required = true               \
	}
#define MCP_TOOLS_INLINE (32u * 1024) /* of a text that is part of a result; the rest is a resource */

/* A JSON object that becomes a structured result. */
struct mcp_object {
	struct buf text;
	struct json_out o;
};
struct json_out *mcp_tools_open(struct mcp_object *x);
/* The result: the object, and the same as text. */
void mcp_tools_send(struct mcp_call *c, struct mcp_object *x);

void mcp_tools_put_box(struct json_out *o, const struct box *b);             /* an object */
void mcp_tools_put_text(struct json_out *o, const char *key, struct view v); /* null for nothing */
/* The beginning and the end of a long text; *ret_cut says that something is missing. In `room` where it is.
 */
struct view mcp_tools_shorten(struct view text, struct buf *room, bool *ret_cut);
/* Of an image that models can look at, by its first bytes, or of a text by its name; NULL: not known. */
const char *mcp_tools_mime(struct view name, struct view bytes);

void mcp_tools_create(struct mcp_call *c);
void mcp_tools_list(struct mcp_call *c);
void mcp_tools_get(struct mcp_call *c);
void mcp_tools_delete(struct mcp_call *c);
void mcp_tools_named_create(struct mcp_call *c);
void mcp_tools_named_get(struct mcp_call *c);
void mcp_tools_named_delete(struct mcp_call *c);
void mcp_tools_executor(struct mcp_call *c);
void mcp_tools_exec(struct mcp_call *c);
void mcp_tools_code(struct mcp_call *c);
void mcp_tools_read(struct mcp_call *c);
void mcp_tools_write(struct mcp_call *c);
void mcp_tools_edit(struct mcp_call *c);
void mcp_tools_entries(struct mcp_call *c);
void mcp_tools_search(struct mcp_call *c);
void mcp_tools_processes(struct mcp_call *c);
void mcp_tools_ports(struct mcp_call *c);
void mcp_tools_snapshot(struct mcp_call *c);
void mcp_tools_fork(struct mcp_call *c);
void mcp_tools_transactions(struct mcp_call *c);

/* Their arguments: schema and size, for the table. */
#define MCP_TOOLS_ARGS(name)                                                                                 \
	extern const struct json_schema name##_args;                                                         \
	extern const size_t name##_size
MCP_TOOLS_ARGS(mcp_tools_create);
MCP_TOOLS_ARGS(mcp_tools_list);
MCP_TOOLS_ARGS(mcp_tools_plain);
MCP_TOOLS_ARGS(mcp_tools_named);
MCP_TOOLS_ARGS(mcp_tools_executor);
MCP_TOOLS_ARGS(mcp_tools_exec);
MCP_TOOLS_ARGS(mcp_tools_code);
MCP_TOOLS_ARGS(mcp_tools_read);
MCP_TOOLS_ARGS(mcp_tools_write);
MCP_TOOLS_ARGS(mcp_tools_edit);
MCP_TOOLS_ARGS(mcp_tools_entries);
MCP_TOOLS_ARGS(mcp_tools_search);
MCP_TOOLS_ARGS(mcp_tools_processes);
MCP_TOOLS_ARGS(mcp_tools_snapshot);
MCP_TOOLS_ARGS(mcp_tools_fork);
MCP_TOOLS_ARGS(mcp_tools_transactions);
