/*
 * SQLite, and what the tables have in common. A struct store_sql belongs to one thread at a
 * time. Internal to src/store.
 */
#pragma once

#include <sqlite3.h>

#include "store.h"

/* In the order in which they are loaded: what a row refers to comes before it. */
enum store_table_id {
	STORE_TENANTS,
	STORE_KEYS,
	STORE_SNAPSHOTS,
	STORE_WORKSPACES,
	STORE_BOXES,
	STORE_SETTINGS,
	STORE_EVENTS,
	STORE_WEBHOOKS,
	STORE_DELIVERIES,
	STORE_QUOTAS,
	STORE_EGRESS,
	STORE_TEMPLATES,
	STORE_USAGE,
	STORE_AI_LIMITS,
	STORE_AI_LOG,
	STORE_AI_CALLS,
	STORE_VERDICTS,
	STORE_AUDIT,
	STORE_AGENTS,
	STORE_AGENT_LOG,
	STORE_TABLES
};

#define STORE_STMTS 8 /* of a table, at most */

/* A table is one file, which has its statements and reads its rows. */
struct store_table {
	const char *const *sql;
	size_t n;
	size_t list; /* the statement that yields all rows */
	int (*visit)(sqlite3_stmt *row, const struct store_visitor *v,
		     void *arg); /* negative: it is damaged */
};
extern const struct store_table store_tenants, store_keys, store_snapshots, store_workspaces, store_boxes,
	store_settings, store_events, store_webhooks, store_deliveries, store_quotas, store_egress_table,
	store_templates, store_usage_table, store_ai_limits_table, store_ai_log_table, store_ai_calls,
	store_verdicts, store_audit_table, store_agents, store_agent_log;

struct store_sql {
	sqlite3 *db;
	sqlite3_stmt *begin, *commit, *rollback;
	sqlite3_stmt *stmt[STORE_TABLES][STORE_STMTS];
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
/* Gives the WAL the room it needs between two checkpoints, in blocks that are written: a commit that
 * writes over them waits for these alone, one that makes the file longer waits for the file system's
 * journal and so for everybody's data. */
int store_sql_widen(const char *path, struct err *e) _must_check_;
/* Keeps free pages in the database: rows of a full disk can still be changed and removed. */
void store_sql_reserve(sqlite3 *db);
/* Whether SQLite itself rolled back, as it does for a full disk. */
bool store_sql_lost(const struct store_sql *q);
/* Moves what commits left in the WAL to the database, when there is much of it: work that nobody should wait
 * for. */
void store_sql_tidy(struct store_sql *q, bool idle);

int store_sql_load(struct store_sql *q, const struct store_visitor *v, void *arg, struct err *e) _must_check_;

/* For the tables. */
void store_sql_bind(sqlite3_stmt *stmt, int at, struct view v);
struct view store_sql_column(sqlite3_stmt *stmt, int at);
/* SQLite's integers are signed; ids and limits stay far below. */
void store_sql_bind_u64(sqlite3_stmt *stmt, int at, uint64_t v);
uint64_t store_sql_column_u64(sqlite3_stmt *row, int at);
/* A statement that yields no rows; it is ready for the next time when this returns. */
int store_sql_run(struct store_sql *q, sqlite3_stmt *stmt, const char *what, struct err *e) _must_check_;

/* Sets e from what SQLite says last; returns -1. */
int store_sql_failed(sqlite3 *db, const char *what, struct err *e);

/* Brings the schema to the newest version (store_migrate.c). */
int store_migrate(sqlite3 *db, struct err *e) _must_check_;
