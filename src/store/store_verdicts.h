/*
 * The store's table of the gate's verdicts: the newest of each box, removed with the box. The rules of
 * store.h also apply here.
 */
#pragma once

#include "store.h"

struct store_verdict {
	uint64_t id;    /* given by the caller; increasing */
	uint64_t was;   /* the id of the row that this one takes the place of; 0: none */
	uint64_t count; /* how often it was said */
	int64_t first_ms, at_ms;
	uint32_t reason;
	uint16_t port;
	bool allowed;
	struct view box, protocol, host, address, rule, method, path, via;
};

/* Nothing when the box is gone. */
void store_verdict_put(struct store *s, const struct store_verdict *v, store_done *done, void *arg);
/* `ids`: uint64_t, one after the other. */
void store_verdict_delete(struct store *s, struct view ids, store_done *done, void *arg);
