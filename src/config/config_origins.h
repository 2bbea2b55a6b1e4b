/*
 * Where each setting comes from, for people who ask why it is as it is: {"file": PATH, "in_file": [NAME…],
 * "environment": [VARIABLE…], "flags": [VARIABLE…]}. The daemon gets it with the settings.
 */
#pragma once

#include "config_load.h"

/* `doc` is what the file says, `file` its path or NULL. ERR_INTERNAL: no memory. */
int config_origins_gather(struct arena *a, const struct json *doc, const char *file, char *const *env,
			  const struct config_flag *flags, size_t n_flags, const struct json **ret,
			  struct err *e) _must_check_;
/* Of a setting ("max.boxes"), as a text in `out`. NULL origins: unknown. */
void config_origins_of(const struct json *origins, struct view name, struct buf *out);
