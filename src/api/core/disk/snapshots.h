/*
 * Snapshots for the core itself: see disk.h.
 */
#pragma once

#include "money.h"
#include "boxes.h"
#include "disk.h"

struct snapshots {
	struct map by_id;
	struct list all; /* in the order of their making */
};

int snapshots_load(struct core *c, const struct store_snapshot *row, struct err *e) _must_check_;
struct snapshot *snapshots_by_id(const struct core *c, struct view id);
bool snapshots_use_image(const struct core *c, struct view digest);
/* The keeper may forget it; nobody waits. */
void snapshots_drop(struct core *c, struct view backend, struct view id);
void snapshots_done(struct core *c);
uint64_t snapshots_held(const struct core *c, const struct tenant *t, enum ledger_item i);
