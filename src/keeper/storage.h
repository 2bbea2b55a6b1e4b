/*
 * The files of boxes, snapshots and workspaces on a disk: boxes/ID, snapshots/ID,
 * workspaces/ID, each a unit (disk.h). A few boxes' directories are kept ready in
 * spare/ and renamed into place, since some file systems are slow at making them.
 */
#pragma once

#include "disk.h"
#include "plan.h"

struct storage {
	struct disk disk;
	int boxes, spare, snapshots, workspaces;
	int trash;       /* on the same file system; swept */
	unsigned n;      /* spares that are ready: spare/0 … n-1 */
	unsigned wanted; /* set before it is opened */
};

int storage_open(struct storage *s, struct err *e) _must_check_; /* s->disk is open */
void storage_close(struct storage *s);                           /* without the disk */
/* An fd of boxes/ID, with all directories of the plan: new, from a snapshot, from `unit` (an
 * image's, or -1), or the ones it had. */
int storage_make(struct storage *s, const struct plan *p, int unit, struct err *e) _must_check_;
int storage_drop(struct storage *s, const char *id) _must_check_;
int storage_usage(const struct storage *s, const char *id, uint64_t *ret_bytes) _must_check_;
/* The same for a new box that has no name yet, in spare/; storage_take gives it one, storage_forget moves it
 * to the trash, also one that a killed keeper left. */
int storage_prepare(struct storage *s, const struct plan *p, struct err *e) _must_check_;
int storage_take(struct storage *s, const char *id) _must_check_;
void storage_forget(struct storage *s);
/* Makes one spare; true when there is more to do. */
bool storage_refill(struct storage *s);

int storage_snapshot(struct storage *s, const char *box, const char *id, struct err *e) _must_check_;
int storage_open_snapshot(const struct storage *s, const char *id) _must_check_; /* the fd */
int storage_drop_snapshot(struct storage *s, const char *id, struct err *e) _must_check_;

int storage_make_workspace(struct storage *s, const char *id, uint64_t bytes, const char *from,
			   struct err *e) _must_check_;
/* Owner and limit of one whose files are there. */
int storage_finish_workspace(struct storage *s, const char *id, uint64_t bytes, struct err *e) _must_check_;
int storage_open_workspace(struct storage *s, const char *id, struct err *e) _must_check_; /* the fd */
/* Of all that a box mounts, by index. On failure all are closed. */
struct storage_workspaces {
	int fds[SPEC_WORKSPACES];
	unsigned n;
};
int storage_open_workspaces(struct storage *s, const struct spec_workspaces *w,
			    struct storage_workspaces *ret, struct err *e) _must_check_;
void storage_close_workspaces(struct storage_workspaces *w);
int storage_drop_workspace(struct storage *s, const char *id, struct err *e) _must_check_;
