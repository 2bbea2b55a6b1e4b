/*
 * Mounts by file descriptor (fsopen, open_tree, move_mount): everything is built
 * detached and attached at the end. -errno; no memory is allocated, so that a
 * child between clone and exec can use all of it.
 */
#pragma once

#include "defs.h"

/* A detached copy of the mount at dirfd/path (path "" = dirfd itself), with
 * MOUNT_ATTR_* flags; userns >= 0 makes it idmapped by that user namespace. */
int mnt_tree(int dirfd, const char *path, uint64_t attr, int userns) _must_check_;

/* The same with all that is mounted below it, as it is. */
int mnt_trees(int dirfd, const char *path) _must_check_;

struct mnt_option {
	const char *key, *value; /* value NULL: a flag */
};
/* A new file system, detached: tmpfs, proc, devpts, … */
int mnt_fs(const char *type, const struct mnt_option *options, size_t n, uint64_t attr) _must_check_;

/* An overlay of `lower` (a detached mount) under two directories of `store` (a
 * detached mount too), writing as uid/gid `owner`: ids that the idmapped upper
 * layer can store. The caller has SECBIT_NO_SETUID_FIXUP, so that this does not
 * cost it capabilities. Kernels before 6.15 want layers that are attached
 * somewhere in the caller's mount namespace: for them `scratch` is a directory
 * with empty sub-directories "lower", "over" and "store". `over` is a second tree
 * whose files hide those of `lower`. Without `upper` nothing can be written. */
struct mnt_overlay {
	int lower, store;
	const int *over; /* NULL: none */
	const char *upper, *work;
	uint32_t owner;
	int scratch;
	bool attach; /* do it the old way at once */
};
int mnt_overlay(const struct mnt_overlay *o) _must_check_;
/* Whether the last overlay had to have its layers attached. */
extern bool mnt_attached;
/* The type of a descriptor's file system, for messages: "ext4", … */
const char *mnt_type(int fd);

/* What a box sees of `upper` over `lower` (directories of mounts that are attached), to read only. */
int mnt_merged(int upper, int lower, uint64_t attr) _must_check_;

int mnt_move(int fd, int dirfd, const char *path) _must_check_;
int mnt_set_attr(int fd, uint64_t attr) _must_check_;
/* What the kernel said last about a failed fs context, for messages. */
extern char mnt_why[120];
