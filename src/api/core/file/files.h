/*
 * File work in a box, by its PID 1. The host never resolves a path of a box: it
 * passes it on. The caller embeds a struct file_op (zeroed, `ops` and `arg` set)
 * and keeps it until `done` or files_cancel.
 */
#pragma once

#include "guest.h"
#include "json.h"

struct actor;
struct wire_file_event;
struct wire_file_info;
struct wire_grep_match;

struct file_op;

struct file_ops {
	/* read: what it is, before the first byte */
	void (*on_info)(struct file_op *op, const struct wire_file_info *info);
	/* read, pack: bytes, each to be given back by files_consumed */
	void (*on_data)(struct file_op *op, struct view data);
	/* list, find: some more entries; `bytes` to be given back */
	void (*on_entries)(struct file_op *op, const struct wire_file_info *entries, size_t n, size_t bytes);
	/* grep */
	void (*on_matches)(struct file_op *op, const struct wire_grep_match *matches, size_t n, size_t bytes);
	/* watch: it has begun; what happens. Without on_events on_data gets the checked FileEvents as bytes.
	 */
	void (*on_started)(struct file_op *op);
	void (*on_events)(struct file_op *op, const struct wire_file_event *events, size_t n, size_t bytes);
	/* write, unpack: there is room again */
	void (*on_room)(struct file_op *op);
	/* info: of stat and write, else NULL; gone when this returns */
	void (*done)(struct file_op *op, const struct wire_file_info *info, bool created,
		     const struct err *e);
};

/* What an operation did, as far as it counts such things. Set when `done` is called without an error. */
struct file_sum {
	uint64_t files, directories, bytes, skipped; /* copy, pack, unpack; grep: files and skipped */
	uint64_t changed;                            /* chmod */
	bool truncated;                              /* list, find, grep: there is more */
	bool copied;                                 /* move: to another mount */
};

struct file_op {
	struct call call;
	const struct file_ops *ops;
	bool detail; /* the caller's: infos of stat, list and write have names, metadata and where links lead
		      */
	struct json_strmap metadata; /* the caller's: of a file that is written */
	bool want_end, got_info;
	struct file_sum sum;
};

/* Where and as whom; user empty: the box's. */
struct file_place {
	struct view box, path, user;
};

int files_read(struct core *c, const struct actor *a, const struct file_place *p, uint64_t offset,
	       uint64_t length, struct file_op *op, struct err *e) _must_check_;
int files_write(struct core *c, const struct actor *a, const struct file_place *p, unsigned mode, bool append,
		struct file_op *op, struct err *e) _must_check_;
int files_stat(struct core *c, const struct actor *a, const struct file_place *p, struct file_op *op,
	       struct err *e) _must_check_;
/* limit 0: everything, in no order; else a page behind the relative path `after`, in the order of names. */
struct file_page {
	unsigned depth, limit;
	struct view after;
};
#define FILES_PAGE_MAX  1000
#define FILES_DEPTH_MAX 64
int files_list(struct core *c, const struct actor *a, const struct file_place *p,
	       const struct file_page *page, struct file_op *op, struct err *e) _must_check_;
int files_remove(struct core *c, const struct actor *a, const struct file_place *p, bool recursive,
		 struct file_op *op, struct err *e) _must_check_;
int files_mkdir(struct core *c, const struct actor *a, const struct file_place *p, unsigned mode,
		bool parents, struct file_op *op, struct err *e) _must_check_;
int files_move(struct core *c, const struct actor *a, const struct file_place *p, struct view to,
	       bool overwrite, struct file_op *op, struct err *e) _must_check_;
int files_copy(struct core *c, const struct actor *a, const struct file_place *p, struct view to,
	       bool recursive, bool overwrite, struct file_op *op, struct err *e) _must_check_;

struct file_change {
	unsigned mode;
	bool has_mode, recursive;
	struct view owner; /* empty: stays */
};
int files_chmod(struct core *c, const struct actor *a, const struct file_place *p,
		const struct file_change *change, struct file_op *op, struct err *e) _must_check_;

struct file_search {
	struct view pattern;
	struct view type;    /* find: "file", "directory", …; empty: any */
	struct view include; /* grep: a pattern of names; empty: any */
	bool regex, ignore_case;
	unsigned limit;
};
int files_find(struct core *c, const struct actor *a, const struct file_place *p, const struct file_search *s,
	       struct file_op *op, struct err *e) _must_check_;
int files_grep(struct core *c, const struct actor *a, const struct file_place *p, const struct file_search *s,
	       struct file_op *op, struct err *e) _must_check_;
int files_watch(struct core *c, const struct actor *a, const struct file_place *p, bool recursive,
		struct file_op *op, struct err *e) _must_check_;
/* A tar archive out of the box, and into it. */
int files_pack(struct core *c, const struct actor *a, const struct file_place *p, struct file_op *op,
	       struct err *e) _must_check_;
int files_unpack(struct core *c, const struct actor *a, const struct file_place *p, struct file_op *op,
		 struct err *e) _must_check_;

void files_consumed(struct file_op *op, size_t n);
size_t files_send(struct file_op *op, struct view data);
void files_end(struct file_op *op);
void files_cancel(struct file_op *op);

const char *files_type_name(int32_t type);  /* "file", "directory", … */
const char *files_event_name(int32_t kind); /* "create", "write", … */
