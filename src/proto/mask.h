/*
 * Values that must not come back: in a stream of bytes every one of them is overwritten
 * with stars, also where it is cut between two pieces. What may be the beginning of one
 * is held back until that is known, and nothing else is. Besides the value itself its
 * percent-encoded, JSON- and HTML-escaped, hexadecimal and base64 forms are looked for. Pure.
 */
#pragma once

#include "buf.h"

#define MASK_LEAST 4 /* bytes: shorter ones would turn every answer into stars */

struct mask_word {
	struct mask_word *next;
	size_t n;
	char bytes[];
};

struct mask {
	struct mask_word *words;
	size_t longest;
	struct buf held; /* secret */
	size_t told;     /* mask_put_chunked: so much of `held` has gone on */
};

void mask_init(struct mask *m);
void mask_done(struct mask *m);                               /* wipes */
int mask_add(struct mask *m, struct view value) _must_check_; /* -ENOMEM */
/* What may go on, appended to `out`. `held`: of a stream that is one of several, with the same values. */
int mask_through(const struct mask *m, struct buf *held, struct view data, struct buf *out) _must_check_;
/* All of a text on its own. */
int mask_text(const struct mask *m, struct view text, struct buf *out) _must_check_;
int mask_put(struct mask *m, struct view data, struct buf *out) _must_check_;
/* Of a connection whose HTTP is not read: what looks like a border between two chunks may also stand within a
 * value, and stays as it is. For values without line ends. */
int mask_put_chunked(struct mask *m, struct view data, struct buf *out) _must_check_;
/* The end: what was held back goes too. */
int mask_end(struct mask *m, struct buf *out) _must_check_;
