/*
 * The store: SQLite in WAL mode with synchronous=FULL behind one writer thread
 * with group commit. At start everything is loaded into memory by the callbacks
 * of store_load; after that the loop thread only writes, and each write's `done`
 * runs on the loop thread once its batch is on disk (or failed).
 *
 * Writes are applied in the order of the calls; those of one batch of the loop (of one
 * handler, therefore) are on disk together or not at all. Views in the arguments are copied. A
 * write that breaks a rule fails alone: ERR_CONFLICT for an id, a key's hash or the name of
 * a box, snapshot or workspace (within its tenant) that exists, ERR_NOT_FOUND for an unknown
 * tenant, or a change of an unknown box. Without memory for the call, `done` runs before it returns.
 *
 * seccomp and Landlock hold for the thread that applies them and those it makes later:
 * apply them before store_open, or to all threads.
 */
#pragma once

#include "err.h"
#include "loop.h"
#include "view.h"

struct store;

enum store_role { STORE_ROLE_NONE = 0, STORE_ROLE_ADMIN, STORE_ROLE_USER };

struct store_tenant {
	struct view id; /* "t_…"; the first is "default" */
	struct view name;
	int64_t created_ms;
	uint64_t events_from; /* read only: not put */
};

struct store_key {
	struct view id; /* public, "k_…" */
	struct view tenant;
	struct view name;
	enum store_role role;
	uint8_t hash[32]; /* SHA-256 of the 20 bytes of the key's hex part */
	int64_t created_ms;
};

struct store_box {
	struct view id, tenant, name;   /* name may be empty */
	struct view status;             /* "creating", "running", "stopped" */
	struct view image;              /* as asked for: a name */
	struct view digest;             /* what the name meant then */
	struct view backend;            /* the kind of its walls: "native" */
	struct view spec;               /* JSON: user, env, workdir, limits, readonly_root */
	struct view metadata;           /* JSON object of strings */
	int64_t created_ms, expires_ms; /* 0 = never */
	int64_t used_ms;                /* when it was last used, about; 0 = never */
};

/* What of a box may change besides its status. */
struct store_box_change {
	struct view id, spec, metadata;
	int64_t expires_ms, used_ms;
};

struct store_snapshot {
	struct view id, tenant, name; /* name may be empty */
	struct view image, digest;    /* of the box that it was taken of */
	struct view source;           /* the id of that box; may be empty */
	struct view backend;          /* of that box */
	int64_t bytes, stopped_us, created_ms;
};

struct store_workspace {
	struct view id, tenant, name;
	int64_t disk_mb; /* 0 = no quota */
	int64_t created_ms;
	bool readonly;
};

struct store_setting {
	struct view name, value; /* the value: any bytes */
};

struct store_event;
struct store_webhook;
struct store_delivery;
struct store_quota;
struct store_egress;
struct store_template;
struct store_usage;
struct store_ai_call;
struct store_verdict;
struct store_ai_log;
struct store_ai_limits;
struct store_audit;
struct store_agent;
struct store_agent_log;

/* ok: e is NULL */
typedef void store_done(void *arg, const struct err *e);

struct store_visitor {
	void (*tenant)(void *arg, const struct store_tenant *t);
	void (*key)(void *arg, const struct store_key *k);
	void (*box)(void *arg, const struct store_box *b);
	void (*setting)(void *arg, const struct store_setting *s);
	/* see store_events.h */
	void (*event)(void *arg, const struct store_event *e); /* in the order of their ids */
	void (*webhook)(void *arg, const struct store_webhook *w);
	void (*delivery)(void *arg, const struct store_delivery *d); /* after all webhooks */
	void (*quota)(void *arg, const struct store_quota *q);
	void (*egress)(void *arg, const struct store_egress *v);
	void (*template)(void *arg, const struct store_template *t); /* after all snapshots */
	/* see store_usage.h */
	void (*usage)(void *arg, const struct store_usage *u);
	void (*ai_limits)(void *arg, const struct store_ai_limits *l);
	void (*ai_log)(void *arg, const struct store_ai_log *l); /* in the order of their ids */
	void (*ai_call)(void *arg, const struct store_ai_call *c);
	/* see store_verdicts.h */
	void (*verdict)(void *arg,
			const struct store_verdict *v); /* in the order of their ids, after all boxes */
	/* see store_audit.h */
	void (*audit)(void *arg, const struct store_audit *a); /* in the order of their ids */
	/* see store_agents.h; after all boxes and templates */
	void (*agent)(void *arg, const struct store_agent *a);
	void (*agent_log)(void *arg, const struct store_agent_log *l); /* in the order of their ids */
	void (*snapshot)(void *arg, const struct store_snapshot *s);
	void (*workspace)(void *arg, const struct store_workspace *w);
};

/* Opens or makes `dir`/paddock.db, migrates it, starts the thread. A database of a
 * newer version than this program knows is refused. */
struct store *store_open(struct loop *l, const char *dir, struct err *e) _must_check_;
/* Waits for what was submitted and runs what `done`s are due. Before loop_free; not from a `done`. */
void store_close(struct store *s);
/* What is on disk; views last for their callback. */
int store_load(struct store *s, const struct store_visitor *v, void *arg, struct err *e) _must_check_;

/* `done` may be NULL. Deleting what is not there is no error. */
void store_tenant_put(struct store *s, const struct store_tenant *t, store_done *done,
		      void *arg);                                                            /* or rename */
void store_key_put(struct store *s, const struct store_key *k, store_done *done, void *arg); /* insert */
void store_setting_put(struct store *s, const struct store_setting *v, store_done *done,
		       void *arg); /* or replace */
void store_setting_delete(struct store *s, struct view name, store_done *done, void *arg);
void store_key_delete(struct store *s, struct view id, store_done *done, void *arg);
void store_box_put(struct store *s, const struct store_box *b, store_done *done, void *arg); /* insert */
void store_box_claim(struct store *s, const struct store_box *b, store_done *done,
		     void *arg); /* all of the row */
void store_box_set_status(struct store *s, struct view id, struct view status, store_done *done, void *arg);
void store_box_update(struct store *s, const struct store_box_change *b, store_done *done, void *arg);
void store_box_set_used(struct store *s, struct view id, int64_t used_ms, store_done *done, void *arg);
void store_box_delete(struct store *s, struct view id, store_done *done, void *arg);
void store_snapshot_put(struct store *s, const struct store_snapshot *n, store_done *done,
			void *arg); /* insert */
void store_snapshot_delete(struct store *s, struct view id, store_done *done, void *arg);
void store_workspace_put(struct store *s, const struct store_workspace *w, store_done *done,
			 void *arg); /* insert */
void store_workspace_delete(struct store *s, struct view id, store_done *done, void *arg);

struct store_stats {
	uint64_t writes, commits, failures;
} store_stats(const struct store *s);
