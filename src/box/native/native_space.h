/*
 * What a box sees of its disk and its memory: statfs, fstatfs and sysinfo are answered by PID 1
 * (src/init/space.h), which is given descriptors of the figures of the box's quota group. None of this is
 * part of the isolation.
 */
#pragma once

#include "native_child.h"

/* Lines of PID 1's environment; empty where there is nothing to say. */
#define NATIVE_SPACE_LINES (NATIVE_DISKS + 1)
#define NATIVE_SPACE_LINE  512

/* Opens the figures. A disk without them (no btrfs, no quota) is shown as the kernel shows it. */
void native_space_open(struct native_child *c, const struct native_files *files);
void native_space_close(struct native_child *c);
/* In the child: loads the filter, and says which descriptors survive the exec. */
int native_space_load(const struct native_child *c,
		      char lines[NATIVE_SPACE_LINES][NATIVE_SPACE_LINE]) _must_check_;
