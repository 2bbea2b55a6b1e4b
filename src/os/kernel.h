/*
 * Supported kernels: KERNEL_OLDEST and newer. Older ones lack features that boxes need, or were never
 * tested.
 */
#pragma once

#include "err.h"

#define KERNEL_OLDEST_MAJOR 6u
#define KERNEL_OLDEST_MINOR 1u

/* "6.12.38+deb13-amd64" is 6 and 12; -EINVAL. */
int kernel_version(const char *release, unsigned *ret_major, unsigned *ret_minor) _must_check_;
/* Of the kernel that we run on. */
bool kernel_at_least(unsigned major, unsigned minor);
/* ERR_WALLS with a sentence that says what is needed, where the kernel of this `release` (of uname) is too
 * old. */
int kernel_check(const char *release, struct err *e) _must_check_;
