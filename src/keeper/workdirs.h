/*
 * Named workspaces that are mounted into boxes, as they are on the wire and in the state file.
 */
#pragma once

#include "spec.h"

struct wire_box_spec;
struct wire_workspace_mount;

/* ERR_INVALID. `ret` is empty when there are none. */
int workdirs_read(const struct wire_box_spec *w, struct spec_workspaces *ret, struct err *e) _must_check_;
/* The other way; `room` has SPEC_WORKSPACES. */
void workdirs_put(const struct spec_workspaces *w, struct wire_workspace_mount *room,
		  struct wire_box_spec *to);
