/*
 * SQLite, one function per statement. A struct store_sql belongs to one thread at a
 * time. Internal to src/store.
 */
#pragma once

#include <sqlite3.h>

#include "store.h"

enum store_stmt {
	STMT_BEGIN,
	STMT_COMMIT,
	STMT_ROLLBACK,
	STMT_TENANT_PUT,
	STMT_KEY_PUT,
	STMT_KEY_DELETE,
	STMT_BOX_PUT,
	STMT_BOX_SET_STATUS,
	STMT_BOX_UPDATE,
	STMT_BOX_SET_USED,
	STMT_BOX_DELETE,
	STMT_SNAPSHOT_PUT,
	STMT_SNAPSHOT_DELETE,
	STMT_WORKSPACE_PUT,
	STMT_WORKSPACE_DELETE,
	STMT_SETTING_PUT,
	STMT_BOX_CLAIM,
	STMT_EVENT_PUT,
	STMT_EVENT_TRIM,
	STMT_WEBHOOK_PUT,
	STMT_WEBHOOK_MOVE,
	STMT_WEBHOOK_DELETE,
	STMT_DELIVERY_PUT,
	STMT_DELIVERY_DELETE,
	STMT_QUOTA_PUT,
	STMT_EGRESS_PUT,
	STMT_EGRESS_DELETE,
	STMT_TEMPLATE_PUT,
	STMT_TEMPLATE_DELETE,
	STMT_USAGE_PUT,
	STMT_USAGE_TRIM,
	STMT_AI_CALL_PUT,
	STMT_AI_CALL_DELETE,
	STMT_VERDICT_PUT,
	STMT_VERDICT_DELETE,
	STMT_VERDICT_LIST,
	STMT_AI_LOG_PUT,
	STMT_AI_LOG_DELETE,
	STMT_AI_BODIES_PUT,
	STMT_AI_BODIES_DELETE,
	STMT_AI_LIMITS_PUT,
	STMT_AI_LIMITS_DELETE,
	STMT_TENANT_LIST,
	STMT_KEY_LIST,
	STMT_BOX_LIST,
	STMT_SETTING_LIST,
	STMT_SNAPSHOT_LIST,
	STMT_WORKSPACE_LIST,
	STMT_EVENT_LIST,
	STMT_WEBHOOK_LIST,
	STMT_DELIVERY_LIST,
	STMT_QUOTA_LIST,
	STMT_EGRESS_LIST,
	STMT_TEMPLATE_LIST,
	STMT_USAGE_LIST,
	STMT_AI_CALL_LIST,
	STMT_AI_LOG_LIST,
	STMT_AI_LIMITS_LIST,
	STMTS
};

struct store_sql {
	sqlite3 *db;
	sqlite3_stmt *stmt[STMTS];
	int wal_pages; /* after the last commit */
};

/* Makes the file where it is missing, with mode 0600. Only before the process has it open:
 * POSIX drops a process's locks on a file with the first fd of it that is closed. */
int store_sql_make(const char *path, struct err *e) _must_check_;
int store_sql_open(struct store_sql *q, const char *path, struct err *e) _must_check_;
int store_sql_prepare(struct store_sql *q, struct err *e) _must_check_; /* after the migration */
void store_sql_done(struct store_sql *q);                               /* accepts half-built and zeroed */

int store_sql_begin(struct store_sql *q, struct err *e) _must_check_;
int store_sql_commit(struct store_sql *q, struct err *e) _must_check_;
void store_sql_rollback(struct store_sql *q); /* where there is a transaction */
/* Whether SQLite itself rolled back, as it does for a full disk. */
/* Gives the WAL the room it needs between two checkpoints, in blocks that are written: a commit that
 * writes over them waits for these alone, one that makes the file longer waits for the file system's
 * journal and so for everybody's data. */
int store_sql_widen(const char *path, struct err *e) _must_check_;
bool store_sql_lost(const struct store_sql *q);
/* Moves what commits left in the WAL to the database, when there is much of it: work that nobody should wait
 * for. */
void store_sql_tidy(struct store_sql *q, bool idle);

int store_sql_tenant_put(struct store_sql *q, const struct store_tenant *t, struct err *e) _must_check_;
int store_sql_key_put(struct store_sql *q, const struct store_key *k, struct err *e) _must_check_;
int store_sql_key_delete(struct store_sql *q, struct view id, struct err *e) _must_check_;
int store_sql_box_put(struct store_sql *q, const struct store_box *b, struct err *e) _must_check_;
int store_sql_box_claim(struct store_sql *q, const struct store_box *b, struct err *e) _must_check_;
int store_sql_box_set_status(struct store_sql *q, struct view id, struct view status,
			     struct err *e) _must_check_;
int store_sql_box_update(struct store_sql *q, const struct store_box_change *b, struct err *e) _must_check_;
int store_sql_box_set_used(struct store_sql *q, struct view id, int64_t used_ms, struct err *e) _must_check_;
int store_sql_snapshot_put(struct store_sql *q, const struct store_snapshot *s, struct err *e) _must_check_;
int store_sql_snapshot_delete(struct store_sql *q, struct view id, struct err *e) _must_check_;
int store_sql_workspace_put(struct store_sql *q, const struct store_workspace *w, struct err *e) _must_check_;
int store_sql_workspace_delete(struct store_sql *q, struct view id, struct err *e) _must_check_;
int store_sql_setting_put(struct store_sql *q, const struct store_setting *v, struct err *e) _must_check_;
int store_sql_box_delete(struct store_sql *q, struct view id, struct err *e) _must_check_;

int store_sql_load(struct store_sql *q, const struct store_visitor *v, void *arg, struct err *e) _must_check_;

/* For the files that hold more statements (store_events.c). A run leaves the statement ready for the next
 * time. */
void store_sql_bind(sqlite3_stmt *stmt, int at, struct view v);
struct view store_sql_column(sqlite3_stmt *stmt, int at);
int store_sql_run(struct store_sql *q, enum store_stmt which, const char *what, struct err *e) _must_check_;
int store_sql_each(struct store_sql *q, enum store_stmt which,
		   int (*visit)(sqlite3_stmt *, const struct store_visitor *, void *),
		   const struct store_visitor *v, void *arg, struct err *e) _must_check_;
/* What store_events.c adds to the load. */
int store_events_load(struct store_sql *q, const struct store_visitor *v, void *arg,
		      struct err *e) _must_check_;

/* What store_usage.c adds. */
int store_usage_load(struct store_sql *q, const struct store_visitor *v, void *arg,
		     struct err *e) _must_check_;

/* What store_verdicts.c adds. */
int store_verdicts_load(struct store_sql *q, const struct store_visitor *v, void *arg,
			struct err *e) _must_check_;

/* Sets e from what SQLite says last; returns -1. */
int store_sql_failed(sqlite3 *db, const char *what, struct err *e);

/* Brings the schema to the newest version (store_migrate.c). */
int store_migrate(sqlite3 *db, struct err *e) _must_check_;
