/*
 * The audit log, for the core itself: see audit.h.
 */
#pragma once

#include "audit.h"
#include "loop.h"
#include "store_audit.h"

/* What happens often, and what users do, pushes out nothing of what admins did. Numbers of the store. */
enum { AUDIT_BY_ADMINS, AUDIT_BOXES, AUDIT_BY_USERS, AUDIT_KINDS };

struct audit_log {
	struct core *core;
	struct audit_ring {
		struct audit_entry *entries; /* AUDIT_KEPT places, or NULL while there is none */
		size_t n, head;              /* head: the place of the oldest */
		uint64_t stored;             /* the newest that the store was told of */
	} rings[AUDIT_KINDS];
	uint64_t next_id;
	struct loop_timer flush;
};

int audit_load(struct core *c, const struct store_audit *row) _must_check_;
void audit_stop(struct core *c); /* writes what is not written yet */
void audit_done(struct core *c);
