/*
 * The effective configuration from its three sources, the later over the
 * earlier: the file, PADDOCK_* variables, flags. Validated once, as a whole.
 */
#pragma once

#include "config.h"

#define CONFIG_LOAD_DEFAULT "/etc/paddock/paddock.yaml"

/* A flag under the name of its variable: {"LISTEN", "127.0.0.1:0"}. */
struct config_flag {
	const char *variable;
	const char *value;
};

/* path NULL: the default file, where it exists; else the file must exist. `env`
 * is an environ. *ret_path (may be NULL) is the file that was read, or NULL. */
int config_load(struct arena *a, const char *path, char *const *env, const struct config_flag *flags,
		size_t n_flags, struct config *ret, const char **ret_path, struct err *e) _must_check_;
