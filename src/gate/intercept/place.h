/*
 * Placeholders: {{secret.NAME}} in text, and %7B%7Bsecret.NAME%7D%7D as clients write it
 * into a target. Pure.
 */
#pragma once

#include "buf.h"

#define PLACE_NAME 64

struct place {
	size_t at, n; /* where it stands, with its braces */
	struct view name;
};

/* The first one at or behind `from`. */
bool place_find(struct view text, size_t from, struct place *ret);
/* How many bytes at the end may be the beginning of one, or of one that is not over yet. */
size_t place_open_end(struct view text);

/* The value of a name into *ret; false: there is none, and nothing is written. */
typedef bool place_value(void *arg, struct view name, struct view *ret);
/* Everything with its values, appended to `out`. -ENOENT for a name without a value, which goes to *ret_name.
 */
int place_fill(struct view text, bool percent, place_value *value, void *arg, struct buf *out,
	       struct view *ret_name) _must_check_;
