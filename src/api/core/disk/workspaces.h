/*
 * Workspaces for the core itself: see disk.h.
 */
#pragma once

#include "boxes.h"
#include "disk.h"

struct workspaces {
	struct map by_id;
	struct list all; /* in the order of their making */
};

int workspaces_load(struct core *c, const struct store_workspace *row, struct err *e) _must_check_;
struct workspace *workspaces_by_id(const struct core *c, struct view id);
struct workspace *workspaces_by_name(const struct core *c, const struct tenant *t, struct view name);
/* Whether the box may use its workspace now: ERR_CONFLICT when another one writes there. */
int workspaces_check(const struct box *b, struct err *e) _must_check_;
/* A box is going. */
void workspaces_forget(struct box *b);
/* The keeper may forget it; nobody waits. */
void workspaces_drop(struct core *c, struct view id);
void workspaces_done(struct core *c);
