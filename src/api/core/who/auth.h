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
	ACT_BOX_CHANGE, /* its deadlines and labels; pause, resume, stop, start */
	ACT_BOX_COPY,   /* snapshot, fork */
	ACT_BOX_PORTS,  /* connect to its servers */
	ACT_BOX_SHARE,  /* let others do that: signed links, links between boxes */
	ACT_SNAPSHOT_LIST,
	ACT_SNAPSHOT_READ,
	ACT_SNAPSHOT_DELETE,
	ACT_WORKSPACE_CREATE,
	ACT_WORKSPACE_LIST,
	ACT_WORKSPACE_READ,
	ACT_WORKSPACE_WRITE,
	ACT_WORKSPACE_DELETE,
	ACT_FILE_READ,
	ACT_FILE_WRITE,
	ACT_IMAGE_LIST,
	ACT_IMAGE_CHANGE,
	ACT_KEYS,
	ACT_POSTURE,
	ACT_METRICS,
	ACT_CAPABILITIES,
	ACT_EVENTS,   /* of the tenant's boxes; an admin sees all */
	ACT_WEBHOOKS, /* of the tenant */
	ACT_TENANTS,
	ACT_SECRETS,     /* of the tenant */
	ACT_BOX_SECRETS, /* of a box */
	ACT_VAULT,       /* its master key */
	ACTS
};

/* A token as it stands behind "Bearer " or in X-API-Key. */
int auth_actor(struct core *c, struct view token, struct actor *ret, struct err *e) _must_check_;
/* `b` where the act is on a box, else NULL. Another tenant's box does not exist. */
int auth_permit(const struct actor *a, enum act act, const struct box *b, struct err *e) _must_check_;
/* The same on a snapshot or a workspace; `what` is its kind, for the message. */
int auth_permit_on(const struct actor *a, enum act act, const struct tenant *owner, const char *what,
		   struct err *e) _must_check_;
/* Whether the act counts as a use of the box, which keeps it from being idle. */
bool auth_is_use(enum act act);
