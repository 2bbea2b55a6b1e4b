/*
 * MCP over standard input and output, carried to the daemon's MCP server over HTTP: one message of JSON-RPC
 * on each line, in both directions. A request that takes long does not hold up others: each is carried by a
 * process of its own, which ends with us.
 */
#pragma once

#include "session.h"

/* Until the end of the input. `path` is the server's. */
int bridge_run(struct session *s, struct view path, int in, int out, struct err *e) _must_check_;
