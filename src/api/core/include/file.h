/*
 * Files of a box. PID 1 of the box does all file work; the host passes paths on and never resolves
 * them.
 */
#pragma once

#include "http_range.h"
#include "json.h"
#include "mux.h"
#include "who.h"

struct actor;
struct core;
struct download;
struct file_op;
struct watcher;

/*
 * ---- files.c ----
 * File work in a box, by its PID 1. The host never resolves a path of a box: it
 * passes it on. The caller embeds a struct file_op (zeroed, `ops` and `arg` set)
 * and keeps it until `done` or files_cancel.
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
	/* watch: it has begun; what happens. Without on_events on_data gets the checked FileEvents as bytes.
	 */
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
	bool detail; /* the caller's: infos of stat, list and write have names, metadata and where links lead
		      */
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
	bool as_root; /* with root's rights (read, write, stat, list, remove, mkdir, move, watch); what is
			 made is the user's. A sandbox without sudo ignores it. */
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
 * ---- download.c ----
 * The bytes of a file, whole or one range of them, as an HTTP answer wants them:
 * a promise of how many there will be, then exactly those. The caller embeds a
 * struct download (zeroed) and keeps it until `done`, on_no_range or download_cancel.
 */

struct download_ops {
	/* What it is. With a range, `range_text` is the Content-Range. */
	void (*on_info)(struct download *d, const struct file_info *info);
	/* The answer begins; -1: nobody knows how long it is. */
	void (*on_begin)(struct download *d, int64_t length);
	/* False: the client is behind; download_writable is called when it is not. */
	bool (*on_bytes)(struct download *d, struct view data);
	/* Instead of everything else: the file has no such bytes. */
	void (*on_no_range)(struct download *d, uint64_t size);
	/* e: before or, if `begun`, behind the beginning. `left` bytes of the promise are missing. */
	void (*done)(struct download *d, const struct err *e);
};

struct download {
	struct file_op op;
	const struct download_ops *ops;
	struct core *core;
	const struct actor *actor;
	struct file_place place;
	struct http_range range; /* as asked for */
	char range_text[HTTP_RANGE_TEXT];
	bool begun, exact;
	uint64_t left; /* of what was promised */
	size_t held;   /* bytes that the client has not taken yet */
};

/* `range` is the request's header; actor and place are borrowed until the end. */
int download_start(struct core *c, const struct actor *a, const struct file_place *p, struct view range,
		   const struct download_ops *ops, struct download *d, struct err *e) _must_check_;
void download_writable(struct download *d);
void download_cancel(struct download *d);

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

/*
 * ---- sign_url.c ----
 * Signed URLs: a path of a box, one verb, a user and an end, under an HMAC with a
 * secret of this installation. Whoever holds one needs no key for exactly that.
 */

struct signed_url {
	char box[32]; /* its id, also where the wish named it */
	char signature[SIGN_SIZE];
	int64_t expires_s; /* since 1970 */
};

/* For GET (HEAD is that, too) or PUT. The actor must be permitted to do it. */
int sign_url(struct core *c, const struct actor *a, const struct file_place *p, struct view method,
	     uint32_t seconds, struct signed_url *ret, struct err *e) _must_check_;
/* Who may do this with such a signature: somebody of the box's tenant. ERR_FORBIDDEN. */
int sign_url_check(struct core *c, const struct file_place *p, struct view method, struct view expires,
		   struct view signature, struct actor *ret, struct err *e) _must_check_;
