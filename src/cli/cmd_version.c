/*
 * paddock version.
 */
#include <stdio.h>

#include "cmd.h"

#include "poison.h"

static int run(struct cmd_ctx *ctx _unused_, const void *flags _unused_, size_t n _unused_,
	       char **operands _unused_, struct err *e _unused_)
{
	puts("paddock " PADDOCK_VERSION);
	return 0;
}

const struct cmd cmd_version = {
	.name = "version",
	.operands = "",
	.summary = "show the version",
	.lead = OPTS_ANYWHERE,
	.run = run,
};
