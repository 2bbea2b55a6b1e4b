/*
 * How each of our programs drops its privileges. There are two steps, because one program has work to
 * do in between: first the identity (uid, capabilities), then the access (files, system calls). A step
 * that fails ends the program, because a program must not run with more access than intended.
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
