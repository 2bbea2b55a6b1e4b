/*
 * Agent-Sandbox: /api/v1 in its envelope, in the form of its first release and of today's; /sandbox/{name}/…
 * as a way to a server in the sandbox, and /sandboxes/router/{id}/{port}/…. /e2b/v1 is E2B's dialect.
 */
#pragma once

#include "dialect.h"

extern const struct dialect agentsandbox_dialect;
