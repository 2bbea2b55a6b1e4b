/*
 * Directories of the machine in a spec, for the core itself: see spec.h.
 */
#pragma once

#include "spec.h"

/* What mounts and workspaces have in common. The number of items of a list, 0 where there is none. */
int spec_mounts_count(const struct json *j, const char *what, size_t most, struct err *e) _must_check_;
int spec_mounts_check_mode(struct view mode, struct err *e) _must_check_;
/* {KEY: VALUE, "path": …, "mode": …} */
void spec_mounts_put_one(struct json_out *o, const char *key, struct view value, struct view path,
			 bool readonly);

int spec_mounts_copy(struct arena *a, const struct spec_mount_list *from,
		     struct spec_mount_list *to) _must_check_; /* -ENOMEM */
