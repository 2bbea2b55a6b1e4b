/*
 * Patterns of paths: `*` and `?` within a name, `[a-z]`, `[!a-z]`, `\` before a
 * character that means itself, `**` as a whole part for any number of
 * directories (at the end: for all that is inside). A pattern without a slash is matched with the last part
 * alone. Names that begin with a dot are names like others. Time is bounded by the product of the lengths,
 * whatever the pattern.
 */
#pragma once

#include "view.h"

#define GLOB_MAX 1024

bool glob_match(struct view pattern, struct view path);
