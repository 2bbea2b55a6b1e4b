/*
 * The Model Context Protocol: sandboxes as tools for models, at /mcp (all sandboxes of the caller) and
 * /sandbox/NAME/mcp (one of them). Streamable HTTP in both eras: 2026-07-28, where each request stands for
 * itself, and 2025-11-25 and older, with sessions, streams that can be resumed, and requests to the client.
 *
 *   mcp.c           paths, who asks, errors
 *   mcp_access.c    Host and Origin; what OAuth clients want to know (pure but for one route)
 *   mcp_http.c      POST, GET and DELETE: era, version, headers, session
 *   mcp_rpc.c       messages of JSON-RPC (pure)
 *   mcp_session.c   sessions of the older era
 *   mcp_stream.c    the answer to one POST (or GET): whole, or as events that can be asked for again
 *   mcp_call.c      one request of JSON-RPC, from its parameters to its result
 *   mcp_input.c     what is asked of the client's user in the middle of a call, in both eras
 *   mcp_seal.c      the state that the client keeps meanwhile (pure)
 *   mcp_methods.c   the methods
 *   mcp_tools*.c    the tools; tools.yaml has what clients see of them
 *   mcp_hub.c       the tools of one sandbox for other dialects
 *   mcp_outputs.c   long output, which clients read as a resource
 */
#pragma once

#include "dialect.h"

extern const struct dialect mcp_dialect;
/* What the official conformance suite wants to call, without a key and without sandboxes: only by a listener
 * that the configuration binds to it, and only where unit tests are built. */
extern const struct dialect mcp_conformance_dialect;
