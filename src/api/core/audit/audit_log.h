/*
 * The audit log, for the core itself: see audit.h.
 */
#pragma once

#include "audit.h"
#include "loop.h"
#include "store_audit.h"

/* What happens often, and what users do, pushes out nothing of what admins did. Numbers of the store. */
enum { AUDIT_BY_ADMINS, AUDIT_BOXES, AUDIT_BY_USERS, AUDIT_BOXES_OF_USERS, AUDIT_KINDS };

struct audit_log {
	struct core *core;
	struct audit_ring {
		struct audit_entry *entries; /* AUDIT_KEPT places, or NULL while there is none */
		size_t n, head;              /* head: the place of the oldest */
		uint64_t number;             /* of the newest */
		uint8_t hash[32];            /* likewise */
	} rings[AUDIT_KINDS];
	uint64_t next_id, next_record;
	uint64_t settled; /* all up to this one are stored, or were refused by the disk */
	struct list records;
	struct list waits; /* in the order of their entries */
	struct loop_timer retry;
};

void audit_init(struct core *c);
int audit_load(struct core *c, const struct store_audit *row) _must_check_;
void audit_stop(struct core *c); /* nobody waits any more */
void audit_done(struct core *c);
