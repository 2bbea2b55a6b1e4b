/*
 * The table of all settings: names, types and ranges, once. Reading, writing and
 * overriding walk it, so that a new setting is one line there and one in struct config.
 */
#pragma once

#include "arena.h"
#include "err.h"
#include "json.h"

extern const struct json_schema config_schema; /* over struct config */

/* Sets what a variable's name ("DEFAULTS_LIMITS_CPU") means by a schema. ERR_NOT_FOUND: it has no such. */
int config_schema_override(struct arena *a, const struct json_schema *s, struct json *doc,
			   const char *variable, struct view value, struct err *e) _must_check_;
