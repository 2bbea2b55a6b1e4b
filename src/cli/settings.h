/*
 * The options that decide the configuration, for `serve` and `config`.
 */
#pragma once

#include "config.h"
#include "opts.h"

struct settings_flags {
	const char *listen, *data_dir, *run_dir, *config;
	bool agentbox_env; /* of `serve` */
};

enum { SETTINGS_OPTS = 5 };
extern const struct opt settings_opts[SETTINGS_OPTS];

/* *ret_path (may be NULL): the file that was read, or NULL. */
int settings_load(struct arena *a, const struct settings_flags *f, struct config *ret, const char **ret_path,
		  struct err *e) _must_check_;
