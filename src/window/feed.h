/*
 * What the daemon tells of requests for approval: a stream of events, which says when to look, and the list
 * of those that wait, which says what there is. No I/O.
 */
#pragma once

#include "buf.h"
#include "json.h"

#define FEED_MAX  256 /* requests that are told apart; of more, the number is known */
#define FEED_LINE (256u << 10)

struct feed_request {
	char id[64];
	char agent[80], chain[80];
	char summary[512];
};

/* Those that wait, as they were last seen. */
struct feed {
	char ids[FEED_MAX][64];
	size_t n;
};

/* The whole lines of server-sent events in `lines`, which are consumed: whether one says that requests have
 * changed, or may have (some were lost). */
bool feed_changed(struct buf *lines);
/* GET /v1/transactions?state=pending. Fills `new` with those that were not there before, at most `max`;
 * *ret_new is how many there were. Returns how many wait, or -1: not such an answer. */
int feed_update(struct feed *f, const struct json *answer, struct feed_request *new, size_t max,
		size_t *ret_new, struct err *e) _must_check_;
