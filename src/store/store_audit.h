/*
 * The store's table of who changed what. The rules of store.h hold here too.
 */
#pragma once

#include "store.h"

struct store_audit {
	uint64_t id;   /* given by the caller; increasing */
	uint32_t kind; /* each is trimmed and numbered for itself */
	uint64_t number;
	int64_t at_ms;
	enum store_role role;
	struct view tenant, key, via, origin, request, action, target, detail, verdict, code;
	struct view hash; /* of the entry before and of this one, 64 bytes; empty: it is in no chain */
};

void store_audit_put(struct store *s, const struct store_audit *a, store_done *done, void *arg);
/* All of the kind with a lower id. */
void store_audit_trim(struct store *s, uint32_t kind, uint64_t first, store_done *done, void *arg);
