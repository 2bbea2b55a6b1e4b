/*
 * Files of a box. PID 1 of the box does all file work; the host passes paths on and never resolves them.
 */
#pragma once

#include "json.h"
#include "mux.h"

struct actor;
struct core;
struct file_op;
struct watcher;

/*
 * ---- files.c ----
 * The caller embeds a struct file_op (zeroed, `ops` and `arg` set) and keeps it until `done` or files_cancel.
 */

enum file_type {
	FILE_TYPE_NONE, /* not known */
	FILE_TYPE_FILE,
	FILE_TYPE_DIRECTORY,
	FILE_TYPE_SYMLINK,
	FILE_TYPE_FIFO,
	FILE_TYPE_SOCKET,
	FILE_TYPE_DEVICE,
	FILE_TYPES
};

/* Names are the box's words: hostile, with at most 4 KiB each. */
struct file_info {
	struct view name, path, target; /* target: of a link */
	enum file_type type;
	uint64_t size;
	uint32_t mode, uid, gid; /* mode: its permissions */
	int64_t mtime_ms, atime_ms, ctime_ms;
	/* With `detail`: */
	struct view owner, group;
	struct view resolved; /* where a link leads in the end; empty: nowhere */
	enum file_type resolved_type;
	uint32_t resolved_mode;
	struct json_strmap metadata;
};

struct file_match {
	struct view path, text;
	uint64_t line, column;
};

enum file_event_kind {
	FILE_EVENT_NONE, /* not known */
	FILE_EVENT_CREATE,
	FILE_EVENT_WRITE,
	FILE_EVENT_REMOVE,
	FILE_EVENT_RENAME,
	FILE_EVENT_CHMOD,
	FILE_EVENT_OVERFLOW, /* some were lost */
	FILE_EVENTS
};

struct file_event {
	enum file_event_kind kind;
	struct view path, old_path;
	bool directory;
};

struct file_ops {
	/* read: what it is, before the first byte */
	void (*on_info)(struct file_op *op, const struct file_info *info);
	/* read, pack: bytes, each to be given back by files_consumed */
	void (*on_data)(struct file_op *op, struct view data);
	/* list, find: some more entries; `bytes` to be given back */
	void (*on_entries)(struct file_op *op, const struct file_info *entries, size_t n, size_t bytes);
	/* grep */
	void (*on_matches)(struct file_op *op, const struct file_match *matches, size_t n, size_t bytes);
	/* watch: it has begun; what happens. Without on_events on_data gets checked FileEvents as bytes. */
	void (*on_started)(struct file_op *op);
	void (*on_events)(struct file_op *op, const struct file_event *events, size_t n, size_t bytes);
	/* write, unpack: there is room again */
	void (*on_room)(struct file_op *op);
	/* info: of stat and write, else NULL; gone when this returns */
	void (*done)(struct file_op *op, const struct file_info *info, bool created, const struct err *e);
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
	bool detail;                 /* the caller's: infos have names, metadata and where links lead */
	struct json_strmap metadata; /* the caller's: of a file that is written */
	bool exclusive;              /* the caller's: a write to a file that is there fails */
	bool want_end, got_info;
	struct file_sum sum;
};

/* Where and as whom; user empty: the box's. */
struct file_place {
	struct view box, path, user;
	const struct view *within; /* read, write: it must lie in one of these directories also when links are
				      followed; else ERR_FORBIDDEN with EXDEV */
	size_t n_within;           /* 0: anywhere */
	bool as_root;              /* what is made is the user's; a sandbox without sudo ignores it */
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

const char *files_type_name(enum file_type type);        /* "file", "directory", … */
const char *files_event_name(enum file_event_kind kind); /* "create", "write", … */

/*
 * ---- watchers.c ----
 * Watchers that are polled: what happens below a path of a box is kept until
 * somebody asks. Each holds a bounded number of bytes (past it all is dropped and
 * an overflow is told) and goes away by itself when nobody has asked for a while.
 */

#define WATCHERS_ID     20
#define WATCHERS_OF_BOX 16

/* `ready` once, later: the watcher, which the core keeps, or an error. Until then it may be abandoned. */
struct watcher *watchers_add(struct core *c, const struct actor *a, const struct file_place *p,
			     bool recursive,
			     void (*ready)(void *arg, const struct watcher *w, const struct err *e),
			     void *arg, struct err *e) _must_check_;
void watchers_abandon(struct watcher *w); /* before `ready` */
const char *watchers_id(const struct watcher *w);

/* What has happened since the last time. */
struct watcher_news {
	struct arena *arena; /* set by the caller: of the events */
	const struct file_event *events;
	size_t n;
	bool overflow;
	bool ended; /* nothing more will come: what was watched is gone, or the box has stopped */
};
int watchers_poll(struct core *c, const struct actor *a, struct view box, struct view id,
		  struct watcher_news *ret, struct err *e) _must_check_;
int watchers_remove(struct core *c, const struct actor *a, struct view box, struct view id,
		    struct err *e) _must_check_;
