/*
 * paddock inspect: all that the daemon says about a box.
 */
#include "call.h"

#include "poison.h"

static const struct cmd_things THINGS = { .prefix = "sandboxes" };

const struct cmd cmd_inspect = {
	.name = "inspect",
	.operands = "SANDBOX",
	.summary = "show a sandbox as JSON",
	CALL_SHOW(THINGS),
};
