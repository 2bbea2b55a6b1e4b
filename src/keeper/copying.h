/*
 * Snapshots, boxes and images made from them, and clones of workspaces. These take microseconds on
 * btrfs and a copy elsewhere. A running box is frozen until its files are copied.
 */
#pragma once

#include "calls.h"
#include "flush.h"

/* The answer (SnapshotCreated) comes when it is made. */
int copying_snapshot(struct keeper_call *c, const struct flush_wish *w, struct err *e) _must_check_;
/* Where storage is plain directories: a box whose files are those of `from`. */
int copying_box(struct keeper_call *c, const struct spec *s, struct view image, int from,
		struct err *e) _must_check_;
int copying_workspace(struct keeper_call *c, const char *id, uint64_t bytes, const char *from,
		      struct err *e) _must_check_;
struct wire_image_commit;
int copying_image(struct keeper_call *c, const char *snapshot, const struct wire_image_commit *m,
		  struct err *e) _must_check_;
/* A box that is being made of a copy is not wanted any more. */
bool copying_cancel(struct keeper *k, struct view box);
/* After a restart: a box that stood still for a copy goes on. */
void copying_adopt(struct keeper *k, const struct keeper_box *b, int run_box);
