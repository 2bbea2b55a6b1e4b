/*
 * Metadata of secrets: what clients wrote beside the name. The vault keeps them with the secret and does not
 * look at them: names and values in turn, each ended by a NUL. Pure.
 */
#pragma once

#include "json.h"

#define LABELS_ENTRIES 32
#define LABELS_KEY     128
#define LABELS_VALUE   1024
#define LABELS_TOTAL   8192
#define LABELS_NOTES   (LABELS_TOTAL + 2 * LABELS_ENTRIES)

/* ERR_INVALID for more than that. */
int labels_write(const struct json_strmap *m, struct buf *out, struct err *e) _must_check_;
/* Views into the notes. -EBADMSG, -ENOMEM. */
int labels_read(struct arena *a, struct view notes, struct json_strmap *ret) _must_check_;
