/*
 * Agents of catalogues, for the commands that install them.
 */
#pragma once

#include "catalogue.h"
#include "cmd.h"

/* Of the options: which catalogue. */
struct cmd_catalogue_choice {
	const char *catalogue, *key; /* both may be NULL */
};
#define CMD_CATALOGUE_OPTS(type, member)                                                                     \
	{ "catalogue",    0,                                                                                 \
	  OPT_TEXT,       offsetof(type, member.catalogue),                                                  \
	  "NAME|DIR|URL", "only this catalogue (default: those of the daemon's configuration)" },            \
	{                                                                                                    \
		"catalogue-key", 0, OPT_TEXT, offsetof(type, member.key), "HEX",                             \
			"the public key of a catalogue that is not configured"                               \
	}

/* NAME or NAME@VERSION. *ret lives in the command's arena; *ret_fd is its archive, checked. */
int cmd_catalogue_get(struct cmd_ctx *ctx, const struct cmd_catalogue_choice *choice, const char *ref,
		      struct catalogue_agent *ret, int *ret_fd, struct err *e) _must_check_;
