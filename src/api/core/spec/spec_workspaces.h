/*
 * Named workspaces in a spec, for the core itself: see spec.h.
 */
#pragma once

#include "spec.h"

/* Both ways of a wish become one list. ERR_INVALID names the path that cannot be. */
int spec_workspaces_make(struct arena *a, const struct box_wish *w, struct spec_workspace_list *ret,
			 struct err *e) _must_check_;
/* A list of one: older rows have no other. */
int spec_workspaces_load(struct arena *a, const struct spec_workspace *old, struct spec_workspace_list *ret,
			 struct err *e) _must_check_;
