/*
 * btrfs by its ioctls: subvolumes, snapshots, quotas. Directories are fds.
 */
#pragma once

#include "defs.h"

bool btrfs_is(int fd);                                    /* the file system of fd is btrfs */
int btrfs_create(int dir, const char *name) _must_check_; /* an empty subvolume */
/* A snapshot of the subvolume `from` as dir/name. */
int btrfs_snapshot(int from, int dir, const char *name, bool readonly) _must_check_;
/* At once; the space comes back in the background. Subvolumes within go with it, whoever made them: so many
 * at a time, then -EBUSY for the caller to try again. */
int btrfs_destroy(int dir, const char *name) _must_check_;
/* 1 if a snapshot of this subvolume would leave out subvolumes within it. */
int btrfs_nested(int subvolume) _must_check_;
/* Simple quotas where the kernel has them (6.7), else full ones. Idempotent. */
int btrfs_quota_enable(int fd) _must_check_;
bool btrfs_quota_simple(int fd);                             /* whether they are simple ones */
int btrfs_limit(int subvolume, uint64_t bytes) _must_check_; /* 0 = none */
int btrfs_usage(int subvolume, uint64_t *ret_bytes, uint64_t *ret_limit) _must_check_;
/* Descriptors that give the figures of this subvolume's quota group whenever they are read, as decimal text:
 * sysfs. Whoever has them needs no rights. */
enum { BTRFS_LIMIT, BTRFS_USED, BTRFS_RESERVED, BTRFS_FIGURES };
int btrfs_figures(int subvolume, int ret[BTRFS_FIGURES]) _must_check_;
int btrfs_grow(int fd) _must_check_; /* to the size of its device */
/* Commits, and has the kernel's thread free what removed subvolumes held. */
void btrfs_sync(int fd);
