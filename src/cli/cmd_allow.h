/*
 * What the commands about an agent's limits share.
 */
#pragma once

#include "cmd.h"
#include "json.h"
#include "signer_gen.h"

/* The daemon's entry of an agent, and the scope of its rules. */
int cmd_allow_agent(struct cmd_ctx *ctx, const char *name, struct json **ret, char scope[96],
		    struct err *e) _must_check_;
/* Rules on standard output, as sentences or as JSON. */
int cmd_allow_print(struct cmd_ctx *ctx, const struct sgn_rules *r, struct err *e) _must_check_;
