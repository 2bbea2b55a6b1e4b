/*
 * The tools as clients see them, made from tools.yaml by scripts/mcp-tools: JSON arrays, with a NUL behind
 * each.
 */
#pragma once

#include "mcp_tools_sizes.h"

extern const char mcp_tools_all[MCP_TOOLS_ALL_SIZE];       /* at /mcp */
extern const char mcp_tools_of_box[MCP_TOOLS_OF_BOX_SIZE]; /* at /sandbox/NAME/mcp */
