/*
 * Pausing, stopping, snapshots and workspaces: the calls of api/wire.proto that are
 * about a box's life rather than its birth. See calls.h for the rest.
 */
#pragma once

#include "calls.h"

#define LIFE_FREEZE_MS 1000
int life_freeze(struct keeper_call *c, struct view id, bool on, struct err *e) _must_check_;

int life_pause(struct keeper_call *c, const void *msg, struct err *e);
int life_resume(struct keeper_call *c, const void *msg, struct err *e);
int life_update(struct keeper_call *c, const void *msg, struct err *e) _must_check_;
int life_stop(struct keeper_call *c, const void *msg, struct err *e);
int life_snapshot_create(struct keeper_call *c, const void *msg, struct err *e);
int life_snapshot_remove(struct keeper_call *c, const void *msg, struct err *e);
int life_snapshot_list(struct keeper_call *c, const void *msg, struct err *e);
int life_workspace_create(struct keeper_call *c, const void *msg, struct err *e);
int life_workspace_remove(struct keeper_call *c, const void *msg, struct err *e);
int life_workspace_list(struct keeper_call *c, const void *msg, struct err *e);
