/*
 * YAML into the same document that the JSON reader makes, so that one schema
 * check serves both. A subset on purpose: what a reader of the file could
 * misread (anchors, aliases, tags, merge keys, duplicate keys, several
 * documents, numbers with leading zeros) is an error with its line.
 *
 * Only the command line links this: the daemons get JSON and never see libyaml.
 */
#pragma once

#include "arena.h"
#include "err.h"
#include "json.h"

#define CONFIG_YAML_MAX     (1u << 20) /* bytes of text */
#define CONFIG_YAML_ENTRIES 1024       /* of one mapping or sequence */

/* Plain scalars are typed by the core schema of YAML 1.2; quoted and block
 * scalars are strings. An empty document is an empty object. On failure the
 * message begins with "line N: "; code ERR_INVALID. */
int config_yaml_parse(struct arena *a, struct view text, struct json **ret, struct err *e) _must_check_;
