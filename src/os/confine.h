/*
 * How each of our programs gives up what it was started with, once. In two steps, since
 * one of them has something to do in between: who it is, then what it reaches. Each step
 * that fails ends the program: one that is less confined than it says must not run.
 */
#pragma once

#include "err.h"
#include "landlock.h"

/* From root to `uid` (also the gid), without groups, capabilities in all five sets and new
 * privileges; not dumpable, and gone with its parent. `root` becomes its root directory unless
 * it is negative; `setting` is what named the uid. Before the first thread. */
int confine_identity(const char *setting, uint32_t uid, int root, struct err *e) _must_check_;
/* No files but the given ones (Landlock), no calls but those of the filter (seccomp_*). */
int confine_reach(const struct landlock_rule *files, size_t n, void (*filter)(uint8_t *rules),
		  struct err *e) _must_check_;
