/*
 * What the commands of paddock egress share.
 */
#pragma once

#include "cmd.h"
#include "json.h"

/* Asks for /v1/sandboxes/BOX and the rest, or without a box for /v1 and the rest. */
int cmd_egress_call(struct cmd_ctx *ctx, const char *method, const char *box, const char *rest,
		    struct view body, struct json **ret, struct err *e) _must_check_;
