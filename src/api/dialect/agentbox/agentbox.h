/*
 * agentbox: sandbox.v1.SandboxService over gRPC, gRPC-Web and Connect, and the HTTP API that agentbox has
 * inside of a sandbox, on its port 2024. A session is a sandbox whose name is the session's id.
 */
#pragma once

#include "dialect.h"

extern const struct dialect agentbox_dialect;
