/*
 * Where the files of boxes, snapshots and workspaces live: subvolumes of a btrfs
 * (the data directory's own, or one on a loop file in it), so that a quota, a
 * snapshot and a removal cost microseconds; or plain directories where the
 * configuration says `data.backend: copy`, without quotas and snapshots.
 */
#pragma once

#include "err.h"
#include "view.h"

struct disk {
	bool btrfs;
	int root;      /* in which boxes/, spare/, snapshots/, workspaces/ lie */
	int file, dev; /* of the loop file, or -1 */
	uint64_t most; /* size of the loop file, 0: as the disk beneath allows */
};

/* `backend`: "auto" and "btrfs" make or mount the loop file where DATA is not btrfs;
 * "copy" uses DATA itself. `mount_point` is a directory for our own mount namespace. */
int disk_open(struct disk *d, int data, struct view backend, uint64_t size_mb, const char *mount_point,
	      struct err *e) _must_check_;
void disk_close(struct disk *d);

/* A directory below `dir` that is a unit of quota, snapshot and removal. */
int disk_make(const struct disk *d, int dir, const char *name) _must_check_;
int disk_snapshot(const struct disk *d, int from, int dir, const char *name,
		  bool readonly) _must_check_; /* -EOPNOTSUPP; -EXDEV: something would be lost */
/* Explains what disk_snapshot returned; `what` is what was to be made of it. */
int disk_snapshot_error(int r, const char *what, struct err *e);
/* Gone at once for everybody else; what takes time is left in `trash`. */
int disk_remove(const struct disk *d, int dir, const char *name, int trash) _must_check_;
int disk_limit(const struct disk *d, int unit,
	       uint64_t bytes) _must_check_; /* -EOPNOTSUPP for a limit that cannot be kept */
int disk_usage(const struct disk *d, int unit, uint64_t *ret_bytes, uint64_t *ret_limit) _must_check_;
/* Grows the loop file where it is nearly full and the host has room, but not beyond what is configured. */
void disk_grow(struct disk *d);

/* 0 where it is not known. */
struct disk_room {
	uint64_t size, free; /* of the storage */
	uint64_t beneath;    /* free on the disk that holds the data directory */
};
void disk_look(const struct disk *d, struct disk_room *ret);
/* Reserves all that btrfs has left, but for a little: extents are taken and nothing is written. Until the
 * release nobody can write more. */
void disk_hold(const struct disk *d);
/* What was removed is free sooner. */
void disk_reclaim(const struct disk *d);
/* When what was removed is given back to the disk beneath: before anything else can take its place, which
 * costs every removal a little; or later. */
void disk_discard(const struct disk *d, bool at_once);
bool disk_is_held(const struct disk *d); /* perhaps by an earlier keeper */
void disk_release(const struct disk *d);
/* A little room in `dir` that nobody else can have: what must be written on a full disk takes its place. */
void disk_set_aside(int dir);
bool disk_use_aside(int dir); /* false: there is none */
