/*
 * Volumes as boxes see them: one, at /workspace.
 */
#pragma once

#include "e2b_impl.h"

/* The workspace that `volumeMounts` names; p == NULL: none. ERR_INVALID for what cannot be mounted. */
int e2b_volumes_mount(struct request *r, const struct json *mounts, struct view *ret,
		      struct err *e) _must_check_;
/* "volumeMounts": […] where there are any, into an open object. */
void e2b_volumes_put(struct json_out *o, const struct box *b);
