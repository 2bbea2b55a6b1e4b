/*
 * Volumes as boxes see them: workspaces, mounted where the client says.
 */
#pragma once

#include "e2b_impl.h"

/* What `volumeMounts` names. Where they may lie is the core's to say. */
int e2b_volumes_mount(struct request *r, const struct json *mounts, struct spec_workspace_list *ret,
		      struct err *e) _must_check_;
/* "volumeMounts": […] where there are any, into an open object. */
void e2b_volumes_put(struct json_out *o, const struct box *b);
