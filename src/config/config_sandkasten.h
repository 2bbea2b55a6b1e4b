/*
 * sandkasten.yaml as a configuration of ours. What it asks for and cannot get is said in notes; what would
 * leave sessions with less isolation than it asks for is an error.
 */
#pragma once

#include "arena.h"
#include "buf.h"
#include "err.h"
#include "json.h"

/* Whether a file is one: it has settings that only Sandkasten has. */
bool config_sandkasten_is(const struct json *doc);
/* Our document, with the SANDKASTEN_* variables of `env` (an environ, or NULL) over the file's values. A line
 * is added to `notes` for each setting that is not honoured. */
int config_sandkasten_translate(struct arena *a, struct json *doc, char *const *env, struct json **ret,
				struct buf *notes, struct err *e) _must_check_;
