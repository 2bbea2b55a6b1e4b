/*
 * File work in a box, by its PID 1. The host never resolves a path of a box: it
 * passes it on. The caller embeds a struct file_op (zeroed, `ops` and `arg` set)
 * and keeps it until `done` or files_cancel.
 */
#pragma once

#include "guest.h"

struct actor;
struct wire_file_info;

struct file_op;

struct file_ops {
	/* read: what it is, before the first byte */
	void (*on_info)(struct file_op *op, const struct wire_file_info *info);
	/* read: bytes, each to be given back by files_consumed */
	void (*on_data)(struct file_op *op, struct view data);
	/* list: some more entries; `bytes` to be given back */
	void (*on_entries)(struct file_op *op, const struct wire_file_info *entries, size_t n, size_t bytes);
	/* write: there is room again */
	void (*on_room)(struct file_op *op);
	/* info: of stat and write, else NULL; gone when this returns */
	void (*done)(struct file_op *op, const struct wire_file_info *info, bool created,
		     const struct err *e);
};

struct file_op {
	struct call call;
	const struct file_ops *ops;
	bool want_end, got_info;
};

/* Where and as whom; user empty: the box's. */
struct file_place {
	struct view box, path, user;
};

int files_read(struct core *c, const struct actor *a, const struct file_place *p, uint64_t offset,
	       uint64_t length, struct file_op *op, struct err *e) _must_check_;
int files_write(struct core *c, const struct actor *a, const struct file_place *p, unsigned mode,
		struct file_op *op, struct err *e) _must_check_;
int files_stat(struct core *c, const struct actor *a, const struct file_place *p, struct file_op *op,
	       struct err *e) _must_check_;
int files_list(struct core *c, const struct actor *a, const struct file_place *p, struct file_op *op,
	       struct err *e) _must_check_;
int files_remove(struct core *c, const struct actor *a, const struct file_place *p, bool recursive,
		 struct file_op *op, struct err *e) _must_check_;

void files_consumed(struct file_op *op, size_t n);
size_t files_send(struct file_op *op, struct view data);
void files_end(struct file_op *op);
void files_cancel(struct file_op *op);

const char *files_type_name(int32_t type); /* "file", "directory", … */
