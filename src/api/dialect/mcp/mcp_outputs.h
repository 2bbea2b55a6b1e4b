/*
 * Long output of commands, which clients read as resources ("paddock://outputs/ID/stdout"). It is kept for
 * ten minutes and counts against its tenant like any output that nobody has read yet.
 */
#pragma once

#include "mcp_impl.h"
#include "run.h"

#define MCP_OUTPUT_ID 20

struct mcp_output {
	struct list link;
	char id[MCP_OUTPUT_ID + 1], box[BOX_ID + 1];
	const struct tenant *tenant;
	uint64_t made_ms;
	struct output kept;
};

/* Takes the output. NULL: there is no memory for it. */
const struct mcp_output *mcp_outputs_keep(struct mcp *m, const struct actor *a, const char *box,
					  struct output *kept);
/* What the text is called, and a link to it in a result that is open. */
void mcp_outputs_link(struct mcp_call *c, const struct mcp_output *x, unsigned channel);
void mcp_outputs_prune(struct mcp *m, uint64_t now);
void mcp_outputs_free(struct mcp *m);

/* resources/list, resources/read and completion/complete */
void mcp_outputs_list(struct mcp_call *c);
void mcp_outputs_read(struct mcp_call *c);
void mcp_outputs_complete(struct mcp_call *c);
