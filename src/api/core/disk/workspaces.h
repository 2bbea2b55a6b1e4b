/*
 * Workspaces for the core itself: see disk.h.
 */
#pragma once

#include "money.h"
#include "boxes.h"
#include "disk.h"

struct workspaces {
	/* Removes a helper (workspace_helper.c). NULL: no memory. */
	struct job *(*remove_helper)(struct box *b, job_done *done, void *arg);
	struct map by_id;
	struct list all; /* in the order of their making */
};

int workspaces_load(struct core *c, const struct store_workspace *row, struct err *e) _must_check_;
struct workspace *workspaces_by_id(const struct core *c, struct view id);
extern const struct box_part workspaces_part;
/* The keeper may forget it; nobody waits. */
void workspaces_drop(struct core *c, struct view id);
void workspaces_done(struct core *c);
uint64_t workspaces_held(const struct core *c, const struct tenant *t, enum ledger_item i);
