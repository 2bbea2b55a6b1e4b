/*
 * Directories of the machine in a spec, for the core itself: see spec.h.
 */
#pragma once

#include "spec.h"

struct actor;

int spec_mounts_copy(struct arena *a, const struct spec_mount_list *from,
		     struct spec_mount_list *to) _must_check_; /* -ENOMEM */
/* Whether the actor may have them: ERR_FORBIDDEN names the directory. */
int spec_mounts_permit(const struct config *c, const struct actor *a, const struct spec_mount_list *m,
		       struct err *e) _must_check_;
