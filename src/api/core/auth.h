/*
 * Who asks, and what they may do: the one place where every operation of every
 * dialect is permitted or refused.
 */
#pragma once

#include "keys.h"

struct box;
struct core;

enum act {
	ACT_NONE, /* permitted to nobody */
	ACT_BOX_CREATE,
	ACT_BOX_LIST,
	ACT_BOX_READ,
	ACT_BOX_DELETE,
	ACT_BOX_EXEC,
	ACT_FILE_READ,
	ACT_FILE_WRITE,
	ACT_IMAGE_LIST,
	ACT_IMAGE_CHANGE,
	ACT_KEYS,
	ACT_POSTURE,
	ACT_METRICS,
	ACT_CAPABILITIES,
	ACTS
};

/* A token as it stands behind "Bearer " or in X-API-Key. */
int auth_actor(struct core *c, struct view token, struct actor *ret, struct err *e) _must_check_;
/* `b` where the act is on a box, else NULL. Another tenant's box does not exist. */
int auth_permit(const struct actor *a, enum act act, const struct box *b, struct err *e) _must_check_;
