/*
 * How SQLite is set up, and statements are run: WAL with
 * synchronous=FULL, so that a commit is on disk when it returns; everything temporary
 * in memory, since the api may write nowhere but in the store's directory.
 *
 * On a full disk the store still opens and takes writes, so that sandboxes can be deleted: the log has its
 * blocks from the start (store_sql_widen), the index of the log stays when the store is closed, and the
 * database has free pages within (store_sql_reserve), so that neither a commit nor a checkpoint needs a new
 * block.
 *
 * A statement that breaks a constraint undoes itself and leaves its transaction as it
 * was: this is what lets a batch lose one write and keep the others.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fd.h"
#include "store_sql.h"

#include "poison.h"

#define BUSY_MS    5000 /* somebody else's lock, e.g. a backup's */
#define FILE_MODE  0600
#define WAL_PAGES  1000 /* in the log, of 4 KiB */
#define WAL_BYTES  (6u << 20)
#define FREE_LEAST 256 /* pages; below that, more are made */
#define FREE_MORE  512

static const struct store_table *const tables[STORE_TABLES] = {
	[STORE_TENANTS] = &store_tenants,       [STORE_KEYS] = &store_keys,
	[STORE_SNAPSHOTS] = &store_snapshots,   [STORE_WORKSPACES] = &store_workspaces,
	[STORE_BOXES] = &store_boxes,           [STORE_SETTINGS] = &store_settings,
	[STORE_EVENTS] = &store_events,         [STORE_WEBHOOKS] = &store_webhooks,
	[STORE_DELIVERIES] = &store_deliveries, [STORE_QUOTAS] = &store_quotas,
	[STORE_EGRESS] = &store_egress_table,   [STORE_TEMPLATES] = &store_templates,
	[STORE_USAGE] = &store_usage_table,     [STORE_AI_LIMITS] = &store_ai_limits_table,
	[STORE_AI_LOG] = &store_ai_log_table,   [STORE_AI_CALLS] = &store_ai_calls,
	[STORE_VERDICTS] = &store_verdicts,     [STORE_AUDIT] = &store_audit_table,
	[STORE_AGENTS] = &store_agents,         [STORE_AGENT_LOG] = &store_agent_log,
};

int store_sql_failed(sqlite3 *db, const char *what, struct err *e)
{
	int rc = db ? sqlite3_errcode(db) : SQLITE_NOMEM;
	enum err_code code = rc == SQLITE_FULL ? ERR_STORAGE : ERR_INTERNAL;

	return err_set(e, code, "%s: %s", what, db ? sqlite3_errmsg(db) : "out of memory");
}

/* ---- opening ---- */

/* SQLite gives its -wal and -shm the mode of the file. */
int store_sql_make(const char *path, struct err *e)
{
	_cleanup_(closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	struct stat st;

	if (fd < 0)
		return err_sys(e, ERR_INTERNAL, errno, "opening the store %s", path);
	if (fstat(fd, &st) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "the store %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INTERNAL, "the store %s is not a file", path);
	if ((st.st_mode & 07777) != FILE_MODE && fchmod(fd, FILE_MODE) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "the store %s: setting its mode", path);
	return 0;
}

int store_sql_widen(const char *path, struct err *e)
{
	static const char zeros[65536];
	char name[PATH_MAX];
	struct stat st;

	if (snprintf(name, sizeof(name), "%s-wal", path) >= (int)sizeof(name))
		return err_sys(e, ERR_INTERNAL, ENAMETOOLONG, "the store");
	_cleanup_(closep) int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "the store's log");
	/* Zeros behind its end are no frames: SQLite itself leaves old ones there. */
	for (off_t at = st.st_size; at < (off_t)WAL_BYTES; at += (off_t)sizeof(zeros))
		if (pwrite(fd, zeros, sizeof(zeros), at) != (ssize_t)sizeof(zeros))
			return 0; /* a full disk is told of by the writes */
	(void)!fdatasync(fd);
	return 0;
}

static int one_number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	int n = -1;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
		n = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	return n;
}

void store_sql_reserve(sqlite3 *db)
{
	int n = one_number(db, "PRAGMA freelist_count"), size = one_number(db, "PRAGMA page_size");
	char sql[256];

	if (n < 0 || n >= FREE_LEAST || size <= 0)
		return;
	/* A row as large as the pages are together, which is undone in the same moment. */
	snprintf(sql, sizeof(sql),
		 "BEGIN IMMEDIATE; CREATE TABLE room (bytes BLOB); INSERT INTO room VALUES (zeroblob(%d));"
		 "DROP TABLE room; COMMIT",
		 (FREE_MORE - n) * size);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK && !sqlite3_get_autocommit(db))
		(void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL); /* no room now; later, perhaps */
	else
		(void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

static int set_up(sqlite3 *db, struct err *e)
{
	int keep = 1;
	sqlite3_stmt *stmt = NULL;
	bool wal;

	sqlite3_busy_timeout(db, BUSY_MS);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_file_control(db, NULL, SQLITE_FCNTL_PERSIST_WAL, &keep);
	if (sqlite3_exec(db,
			 "PRAGMA temp_store = MEMORY;"
			 "PRAGMA synchronous = FULL;"
			 "PRAGMA foreign_keys = ON;"
			 "PRAGMA trusted_schema = OFF;"
			 "PRAGMA cell_size_check = ON;"
			 "PRAGMA journal_size_limit = 8388608;",
			 NULL, NULL, NULL) != SQLITE_OK)
		return store_sql_failed(db, "setting the store up", e);
	/* Where WAL cannot be had, SQLite answers with the mode that it stays in. */
	if (sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &stmt, NULL) != SQLITE_OK ||
	    sqlite3_step(stmt) != SQLITE_ROW) {
		sqlite3_finalize(stmt);
		return store_sql_failed(db, "setting the store up", e);
	}
	wal = view_is(view_of((const char *)sqlite3_column_text(stmt, 0)), "wal");
	sqlite3_finalize(stmt);
	return wal ? 0
		   : err_set(e, ERR_INTERNAL,
			     "the store's file system has no shared memory for SQLite's WAL");
}

static int on_wal(void *arg, sqlite3 *db, const char *name, int pages)
{
	(void)db, (void)name;
	((struct store_sql *)arg)->wal_pages = pages;
	return SQLITE_OK;
}

void store_sql_tidy(struct store_sql *q, bool idle)
{
	if (q->wal_pages < (idle ? WAL_PAGES : 4 * WAL_PAGES))
		return;
	q->wal_pages = 0;
	sqlite3_wal_checkpoint_v2(q->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	store_sql_reserve(q->db);
}

int store_sql_open(struct store_sql *q, const char *path, struct err *e)
{
	*q = (struct store_sql){ 0 };
	if (sqlite3_open_v2(path, &q->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
		return store_sql_failed(q->db, "opening the store", e);
	if (set_up(q->db, e) < 0)
		return -1;
	sqlite3_wal_hook(q->db, on_wal, q); /* takes the place of the automatic checkpoint */
	return 0;
}

static int prepare(struct store_sql *q, const char *sql, sqlite3_stmt **ret, struct err *e)
{
	if (sqlite3_prepare_v3(q->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL) != SQLITE_OK)
		return store_sql_failed(q->db, "preparing the store's statements", e);
	return 0;
}

int store_sql_prepare(struct store_sql *q, struct err *e)
{
	if (prepare(q, "BEGIN IMMEDIATE", &q->begin, e) < 0 || prepare(q, "COMMIT", &q->commit, e) < 0 ||
	    prepare(q, "ROLLBACK", &q->rollback, e) < 0)
		return -1;
	for (size_t t = 0; t < STORE_TABLES; t++)
		for (size_t i = 0; i < tables[t]->n; i++)
			if (i >= STORE_STMTS || prepare(q, tables[t]->sql[i], &q->stmt[t][i], e) < 0)
				return i < STORE_STMTS
					       ? -1
					       : err_set(e, ERR_INTERNAL, "a table has too many statements");
	return 0;
}

void store_sql_done(struct store_sql *q)
{
	for (size_t t = 0; t < STORE_TABLES; t++)
		for (size_t i = 0; i < STORE_STMTS; i++)
			sqlite3_finalize(q->stmt[t][i]);
	sqlite3_finalize(q->begin);
	sqlite3_finalize(q->commit);
	sqlite3_finalize(q->rollback);
	/* With a limit the log would lose its blocks. */
	if (q->db)
		(void)sqlite3_exec(q->db, "PRAGMA journal_size_limit = -1", NULL, NULL, NULL);
	sqlite3_close(q->db);
	*q = (struct store_sql){ 0 };
}

/* ---- running ---- */

void store_sql_bind(sqlite3_stmt *stmt, int at, struct view v)
{
	/* An empty view may have no address, which SQLite would take for NULL. */
	sqlite3_bind_text64(stmt, at, v.n ? v.p : "", v.n, SQLITE_STATIC, SQLITE_UTF8);
}

struct view store_sql_column(sqlite3_stmt *stmt, int at)
{
	const char *p = (const char *)sqlite3_column_text(stmt, at);

	return (struct view){ p ? p : "", (size_t)sqlite3_column_bytes(stmt, at) };
}

void store_sql_bind_u64(sqlite3_stmt *stmt, int at, uint64_t v)
{
	sqlite3_bind_int64(stmt, at, v > INT64_MAX ? INT64_MAX : (int64_t)v);
}

uint64_t store_sql_column_u64(sqlite3_stmt *row, int at)
{
	int64_t v = sqlite3_column_int64(row, at);

	return v < 0 ? 0 : (uint64_t)v;
}

static int constraint_failed(sqlite3 *db, const char *what, struct err *e)
{
	switch (sqlite3_extended_errcode(db)) {
	case SQLITE_CONSTRAINT_UNIQUE:
	case SQLITE_CONSTRAINT_PRIMARYKEY:
		return err_set(e, ERR_CONFLICT, "%s: there is one already", what);
	case SQLITE_CONSTRAINT_FOREIGNKEY:
		return err_set(e, ERR_NOT_FOUND, "%s: no such tenant", what);
	default:
		return err_set(e, ERR_INVALID, "%s: %s", what, sqlite3_errmsg(db));
	}
}

/* Runs a statement that yields no rows and leaves it ready for the next time. A failed
 * bind (memory) shows as a failed step, since the parameters are NOT NULL. */
int store_sql_run(struct store_sql *q, sqlite3_stmt *stmt, const char *what, struct err *e)
{
	int rc = sqlite3_step(stmt), ret = 0;

	if (rc == SQLITE_CONSTRAINT)
		ret = constraint_failed(q->db, what, e);
	else if (rc != SQLITE_DONE)
		ret = store_sql_failed(q->db, what, e);
	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
	return ret;
}

int store_sql_begin(struct store_sql *q, struct err *e)
{
	return store_sql_run(q, q->begin, "the store", e);
}

int store_sql_commit(struct store_sql *q, struct err *e)
{
	return store_sql_run(q, q->commit, "the store", e);
}

void store_sql_rollback(struct store_sql *q)
{
	if (!sqlite3_get_autocommit(q->db))
		(void)!store_sql_run(q, q->rollback, "the store", NULL);
}

bool store_sql_lost(const struct store_sql *q)
{
	return sqlite3_get_autocommit(q->db);
}

/* ---- loading ---- */

static int load(struct store_sql *q, enum store_table_id id, const struct store_visitor *v, void *arg,
		struct err *e)
{
	sqlite3_stmt *stmt = q->stmt[id][tables[id]->list];
	int rc, ret = 0;

	while (ret == 0 && (rc = sqlite3_step(stmt)) != SQLITE_DONE) {
		if (rc != SQLITE_ROW)
			ret = store_sql_failed(q->db, "loading the store", e);
		else if (tables[id]->visit(stmt, v, arg) < 0)
			ret = err_set(e, ERR_INTERNAL, "loading the store: a row is damaged");
	}
	sqlite3_reset(stmt);
	return ret;
}

int store_sql_load(struct store_sql *q, const struct store_visitor *v, void *arg, struct err *e)
{
	int ret = 0;

	/* One moment for all tables, and no lock that the writer would wait for. */
	if (sqlite3_exec(q->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		return store_sql_failed(q->db, "loading the store", e);
	for (enum store_table_id id = 0; ret == 0 && id < STORE_TABLES; id++)
		ret = load(q, id, v, arg, e);
	store_sql_rollback(q); /* nothing was written */
	return ret;
}
