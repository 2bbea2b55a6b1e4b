/*
 * Files of /proc that paddock-gauge answers for (gauge.h): a FUSE file system each, whose root
 * is the file itself. So nothing here or in a box's start asks the program anything: one that
 * is stuck or dead holds up who reads such a file, and nobody else.
 */
#pragma once

#include "native.h"

/* Mounts them, also in `empty_ns`; adds to the posture whether boxes have them. */
void native_gauge_open(struct native *n, struct posture *p);
void native_gauge_close(struct native *n);
/* For an instance of the program: see walls_ops. */
int native_gauge_hand_out(const struct native *n, struct walls_gauge *ret) _must_check_;
/* In a box of an earlier keeper, whose file systems are dead: ours in their place. */
/* Whether there are requests that nobody has read. */
bool native_gauge_waits(const struct native *n);
int native_gauge_renew(const struct native *n, int pidfd) _must_check_;
