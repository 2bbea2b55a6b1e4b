/*
 * The statements of the store and how SQLite is set up for them: WAL with
 * synchronous=FULL, so that a commit is on disk when it returns; everything temporary
 * in memory, since the api may write nowhere but in the store's directory.
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

#define BUSY_MS   5000 /* somebody else's lock, e.g. a backup's */
#define FILE_MODE 0600
#define WAL_PAGES 1000 /* in the log, of 4 KiB */
#define WAL_BYTES (6u << 20)

static const char *const SQL[STMTS] = {
	[STMT_BEGIN] = "BEGIN IMMEDIATE",
	[STMT_COMMIT] = "COMMIT",
	[STMT_ROLLBACK] = "ROLLBACK",
	[STMT_TENANT_PUT] = "INSERT INTO tenants (id, name, created_ms) VALUES (?1, ?2, ?3)"
			    " ON CONFLICT (id) DO UPDATE SET name = excluded.name",
	[STMT_KEY_PUT] = "INSERT INTO keys (id, tenant, name, role, hash, created_ms)"
			 " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[STMT_KEY_DELETE] = "DELETE FROM keys WHERE id = ?1",
	[STMT_BOX_PUT] =
		"INSERT INTO boxes (id, tenant, name, status, image, digest, backend, spec, metadata,"
		" created_ms, expires_ms, used_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
		"?12)",
	[STMT_BOX_SET_STATUS] = "UPDATE boxes SET status = ?2 WHERE id = ?1",
	[STMT_BOX_UPDATE] =
		"UPDATE boxes SET spec = ?2, metadata = ?3, expires_ms = ?4, used_ms = ?5 WHERE id = ?1",
	[STMT_BOX_SET_USED] = "UPDATE boxes SET used_ms = ?2 WHERE id = ?1",
	[STMT_BOX_DELETE] = "DELETE FROM boxes WHERE id = ?1",
	[STMT_SNAPSHOT_PUT] = "INSERT INTO snapshots (id, tenant, name, image, digest, source, "
			      "backend, bytes, stopped_us, created_ms)"
			      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
	[STMT_SNAPSHOT_DELETE] = "DELETE FROM snapshots WHERE id = ?1",
	[STMT_SNAPSHOT_LIST] =
		"SELECT id, tenant, name, image, digest, bytes, stopped_us, created_ms, source, backend"
		" FROM snapshots"
		" ORDER BY created_ms, id",
	[STMT_WORKSPACE_PUT] = "INSERT INTO workspaces (id, tenant, name, disk_mb, created_ms, readonly)"
			       " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[STMT_WORKSPACE_DELETE] = "DELETE FROM workspaces WHERE id = ?1",
	[STMT_WORKSPACE_LIST] = "SELECT id, tenant, name, disk_mb, created_ms, readonly FROM workspaces"
				" ORDER BY created_ms, id",
	[STMT_SETTING_PUT] = "INSERT INTO settings (name, value) VALUES (?1, ?2)"
			     " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
	[STMT_BOX_CLAIM] =
		"UPDATE boxes SET tenant = ?2, name = ?3, status = ?4, image = ?5, digest = ?6,"
		" backend = ?7, spec = ?8, metadata = ?9, created_ms = ?10, expires_ms = ?11, used_ms = ?12"
		" WHERE id = ?1",
	[STMT_EVENT_PUT] =
		"INSERT INTO events (id, at_ms, tenant, box, type, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
	[STMT_EVENT_TRIM] = "DELETE FROM events WHERE id < ?1",
	[STMT_WEBHOOK_PUT] = "INSERT INTO webhooks (id, tenant, url, events, secret, position, created_ms)"
			     " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[STMT_WEBHOOK_MOVE] = "UPDATE webhooks SET position = ?2 WHERE id = ?1",
	[STMT_WEBHOOK_DELETE] = "DELETE FROM webhooks WHERE id = ?1",
	[STMT_DELIVERY_PUT] = "INSERT INTO deliveries (webhook, event, attempts, first_ms, next_ms)"
			      " SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM webhooks WHERE id = ?1)"
			      " ON CONFLICT (webhook, event) DO UPDATE SET attempts = excluded.attempts,"
			      " next_ms = excluded.next_ms",
	[STMT_DELIVERY_DELETE] = "DELETE FROM deliveries WHERE webhook = ?1 AND event = ?2",
	[STMT_QUOTA_PUT] =
		"INSERT INTO quotas (tenant, boxes, cpu_milli, memory_mb, disk_mb, creates_per_minute)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (tenant) DO UPDATE SET"
		" boxes = excluded.boxes, cpu_milli = excluded.cpu_milli,"
		" memory_mb = excluded.memory_mb, disk_mb = excluded.disk_mb,"
		" creates_per_minute = excluded.creates_per_minute",
	[STMT_EGRESS_PUT] = "INSERT INTO egress (tenant, policy) VALUES (?1, ?2)"
			    " ON CONFLICT (tenant) DO UPDATE SET policy = excluded.policy",
	[STMT_EGRESS_DELETE] = "DELETE FROM egress WHERE tenant = ?1",
	[STMT_TEMPLATE_PUT] =
		"INSERT INTO templates (id, tenant, name, builds, created_ms) VALUES (?1, ?2, ?3, ?4, ?5)"
		" ON CONFLICT (id) DO UPDATE SET builds = excluded.builds",
	[STMT_TEMPLATE_DELETE] = "DELETE FROM templates WHERE id = ?1",
	[STMT_TEMPLATE_LIST] =
		"SELECT id, tenant, name, builds, created_ms FROM templates ORDER BY created_ms, id",
	[STMT_VERDICT_PUT] =
		"INSERT INTO verdicts (id, box, first_ms, at_ms, count, allowed, reason, port, protocol, "
		"host,"
		" address, rule, method, path, via) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"
		" ?13, ?14, ?15 WHERE EXISTS (SELECT 1 FROM boxes WHERE id = ?2)",
	[STMT_VERDICT_DELETE] = "DELETE FROM verdicts WHERE id = ?1",
	[STMT_VERDICT_LIST] = "SELECT id, box, first_ms, at_ms, count, allowed, reason, port, protocol, "
			      "host, address, rule,"
			      " method, path, via FROM verdicts ORDER BY id",
	[STMT_USAGE_PUT] = "INSERT OR REPLACE INTO ai_usage (day, tenant, box, provider, model, requests, "
			   "estimated, input,"
			   " cache_read, cache_write, output, cost) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
			   "?9, ?10, ?11, ?12)",
	[STMT_USAGE_TRIM] = "DELETE FROM ai_usage WHERE day < ?1",
	[STMT_AI_CALL_PUT] =
		"INSERT INTO ai_calls (id, day, tenant, box, provider, model, tokens, cost, at_ms, endpoint)"
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
	[STMT_AI_CALL_DELETE] = "DELETE FROM ai_calls WHERE id = ?1",
	[STMT_AI_LOG_PUT] = "INSERT INTO ai_log (id, at_ms, duration_ms, tenant, box, provider, endpoint, "
			    "model, status, finish,"
			    " estimated, input, cache_read, cache_write, output, cost)"
			    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
	[STMT_AI_LOG_DELETE] = "DELETE FROM ai_log WHERE id = ?1",
	[STMT_AI_BODIES_PUT] =
		"INSERT INTO ai_bodies (id, box, request, response, cut) SELECT ?1, ?2, ?3, ?4, ?5"
		" WHERE EXISTS (SELECT 1 FROM boxes WHERE id = ?2)",
	[STMT_AI_BODIES_DELETE] = "DELETE FROM ai_bodies WHERE id = ?1",
	[STMT_AI_LIMITS_PUT] = "INSERT INTO ai_limits (tenant, limits) VALUES (?1, ?2)"
			       " ON CONFLICT (tenant) DO UPDATE SET limits = excluded.limits",
	[STMT_AI_LIMITS_DELETE] = "DELETE FROM ai_limits WHERE tenant = ?1",
	[STMT_USAGE_LIST] = "SELECT day, tenant, box, provider, model, requests, estimated, input, "
			    "cache_read, cache_write,"
			    " output, cost FROM ai_usage",
	[STMT_AI_CALL_LIST] =
		"SELECT id, day, tenant, box, provider, model, tokens, cost, at_ms, endpoint FROM ai_calls"
		" ORDER BY id",
	[STMT_AI_LOG_LIST] =
		"SELECT l.id, at_ms, duration_ms, tenant, l.box, provider, endpoint, model, status, finish, "
		"estimated,"
		" input, cache_read, cache_write, output, cost, b.id IS NOT NULL, request, response, cut"
		" FROM ai_log l LEFT JOIN ai_bodies b ON b.id = l.id ORDER BY l.id",
	[STMT_AI_LIMITS_LIST] = "SELECT tenant, limits FROM ai_limits",
	[STMT_EVENT_LIST] = "SELECT id, at_ms, tenant, box, type, data FROM events ORDER BY id",
	[STMT_WEBHOOK_LIST] = "SELECT id, tenant, url, events, secret, position, created_ms FROM webhooks"
			      " ORDER BY created_ms, id",
	[STMT_DELIVERY_LIST] = "SELECT webhook, event, attempts, first_ms, next_ms FROM deliveries"
			       " ORDER BY webhook, event",
	[STMT_QUOTA_LIST] =
		"SELECT tenant, boxes, cpu_milli, memory_mb, disk_mb, creates_per_minute FROM quotas",
	[STMT_EGRESS_LIST] = "SELECT tenant, policy FROM egress",
	[STMT_SETTING_LIST] = "SELECT name, value FROM settings ORDER BY name",
	[STMT_TENANT_LIST] = "SELECT id, name, created_ms FROM tenants ORDER BY created_ms, id",
	[STMT_KEY_LIST] = "SELECT id, tenant, name, role, hash, created_ms FROM keys ORDER BY created_ms, id",
	[STMT_BOX_LIST] =
		"SELECT id, tenant, name, status, image, digest, backend, spec, metadata, created_ms,"
		" expires_ms, used_ms FROM boxes ORDER BY created_ms, id",
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

static int set_up(sqlite3 *db, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	bool wal;

	sqlite3_busy_timeout(db, BUSY_MS);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
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

int store_sql_prepare(struct store_sql *q, struct err *e)
{
	for (int i = 0; i < STMTS; i++)
		if (sqlite3_prepare_v3(q->db, SQL[i], -1, SQLITE_PREPARE_PERSISTENT, &q->stmt[i], NULL) !=
		    SQLITE_OK)
			return store_sql_failed(q->db, "preparing the store's statements", e);
	return 0;
}

void store_sql_done(struct store_sql *q)
{
	for (int i = 0; i < STMTS; i++)
		sqlite3_finalize(q->stmt[i]);
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
int store_sql_run(struct store_sql *q, enum store_stmt which, const char *what, struct err *e)
{
	sqlite3_stmt *stmt = q->stmt[which];
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
	return store_sql_run(q, STMT_BEGIN, "the store", e);
}

int store_sql_commit(struct store_sql *q, struct err *e)
{
	return store_sql_run(q, STMT_COMMIT, "the store", e);
}

void store_sql_rollback(struct store_sql *q)
{
	if (!sqlite3_get_autocommit(q->db))
		(void)!store_sql_run(q, STMT_ROLLBACK, "the store", NULL);
}

bool store_sql_lost(const struct store_sql *q)
{
	return sqlite3_get_autocommit(q->db);
}

int store_sql_tenant_put(struct store_sql *q, const struct store_tenant *t, struct err *e)
{
	sqlite3_stmt *stmt = q->stmt[STMT_TENANT_PUT];

	store_sql_bind(stmt, 1, t->id);
	store_sql_bind(stmt, 2, t->name);
	sqlite3_bind_int64(stmt, 3, t->created_ms);
	return store_sql_run(q, STMT_TENANT_PUT, "storing the tenant", e);
}

int store_sql_key_put(struct store_sql *q, const struct store_key *k, struct err *e)
{
	sqlite3_stmt *stmt = q->stmt[STMT_KEY_PUT];

	store_sql_bind(stmt, 1, k->id);
	store_sql_bind(stmt, 2, k->tenant);
	store_sql_bind(stmt, 3, k->name);
	sqlite3_bind_int(stmt, 4, (int)k->role);
	sqlite3_bind_blob(stmt, 5, k->hash, sizeof(k->hash), SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 6, k->created_ms);
	return store_sql_run(q, STMT_KEY_PUT, "storing the key", e);
}

int store_sql_key_delete(struct store_sql *q, struct view id, struct err *e)
{
	store_sql_bind(q->stmt[STMT_KEY_DELETE], 1, id);
	return store_sql_run(q, STMT_KEY_DELETE, "removing the key", e);
}

static int write_box(struct store_sql *q, enum store_stmt which, const struct store_box *b, struct err *e)
{
	sqlite3_stmt *stmt = q->stmt[which];
	const struct view texts[] = { b->id,     b->tenant,  b->name, b->status,  b->image,
				      b->digest, b->backend, b->spec, b->metadata };

	for (size_t i = 0; i < ELEMS(texts); i++)
		store_sql_bind(stmt, (int)i + 1, texts[i]);
	sqlite3_bind_int64(stmt, 10, b->created_ms);
	sqlite3_bind_int64(stmt, 11, b->expires_ms);
	sqlite3_bind_int64(stmt, 12, b->used_ms);
	return store_sql_run(q, which, "storing the sandbox", e);
}

int store_sql_box_put(struct store_sql *q, const struct store_box *b, struct err *e)
{
	return write_box(q, STMT_BOX_PUT, b, e);
}

int store_sql_box_claim(struct store_sql *q, const struct store_box *b, struct err *e)
{
	if (write_box(q, STMT_BOX_CLAIM, b, e) < 0)
		return -1;
	return sqlite3_changes(q->db) ? 0 : err_set(e, ERR_NOT_FOUND, "storing the sandbox: no such sandbox");
}

int store_sql_box_set_status(struct store_sql *q, struct view id, struct view status, struct err *e)
{
	sqlite3_stmt *stmt = q->stmt[STMT_BOX_SET_STATUS];

	store_sql_bind(stmt, 1, id);
	store_sql_bind(stmt, 2, status);
	if (store_sql_run(q, STMT_BOX_SET_STATUS, "storing the status", e) < 0)
		return -1;
	if (sqlite3_changes(q->db) == 0)
		return err_set(e, ERR_NOT_FOUND, "storing the status: no such sandbox");
	return 0;
}

/* A change of a row that must be there. */
static int run_change(struct store_sql *q, enum store_stmt which, const char *what, struct err *e)
{
	if (store_sql_run(q, which, what, e) < 0)
		return -1;
	return sqlite3_changes(q->db) ? 0 : err_set(e, ERR_NOT_FOUND, "%s: no such sandbox", what);
}

int store_sql_box_update(struct store_sql *q, const struct store_box_change *b, struct err *e)
{
	sqlite3_stmt *stmt = q->stmt[STMT_BOX_UPDATE];

	store_sql_bind(stmt, 1, b->id);
	store_sql_bind(stmt, 2, b->spec);
	store_sql_bind(stmt, 3, b->metadata);
	sqlite3_bind_int64(stmt, 4, b->expires_ms);
	sqlite3_bind_int64(stmt, 5, b->used_ms);
	return run_change(q, STMT_BOX_UPDATE, "changing the sandbox", e);
}

int store_sql_box_set_used(struct store_sql *q, struct view id, int64_t used_ms, struct err *e)
{
	sqlite3_stmt *stmt = q->stmt[STMT_BOX_SET_USED];

	store_sql_bind(stmt, 1, id);
	sqlite3_bind_int64(stmt, 2, used_ms);
	return run_change(q, STMT_BOX_SET_USED, "storing the sandbox's last use", e);
}

int store_sql_snapshot_put(struct store_sql *q, const struct store_snapshot *s, struct err *e)
{
	sqlite3_stmt *stmt = q->stmt[STMT_SNAPSHOT_PUT];
	const struct view texts[] = { s->id, s->tenant, s->name, s->image, s->digest, s->source, s->backend };

	for (size_t i = 0; i < ELEMS(texts); i++)
		store_sql_bind(stmt, (int)i + 1, texts[i]);
	sqlite3_bind_int64(stmt, 8, s->bytes);
	sqlite3_bind_int64(stmt, 9, s->stopped_us);
	sqlite3_bind_int64(stmt, 10, s->created_ms);
	return store_sql_run(q, STMT_SNAPSHOT_PUT, "storing the snapshot", e);
}

int store_sql_snapshot_delete(struct store_sql *q, struct view id, struct err *e)
{
	store_sql_bind(q->stmt[STMT_SNAPSHOT_DELETE], 1, id);
	return store_sql_run(q, STMT_SNAPSHOT_DELETE, "removing the snapshot", e);
}

int store_sql_workspace_put(struct store_sql *q, const struct store_workspace *w, struct err *e)
{
	sqlite3_stmt *stmt = q->stmt[STMT_WORKSPACE_PUT];

	store_sql_bind(stmt, 1, w->id);
	store_sql_bind(stmt, 2, w->tenant);
	store_sql_bind(stmt, 3, w->name);
	sqlite3_bind_int64(stmt, 4, w->disk_mb);
	sqlite3_bind_int64(stmt, 5, w->created_ms);
	sqlite3_bind_int64(stmt, 6, w->readonly);
	return store_sql_run(q, STMT_WORKSPACE_PUT, "storing the workspace", e);
}

int store_sql_workspace_delete(struct store_sql *q, struct view id, struct err *e)
{
	store_sql_bind(q->stmt[STMT_WORKSPACE_DELETE], 1, id);
	return store_sql_run(q, STMT_WORKSPACE_DELETE, "removing the workspace", e);
}

int store_sql_box_delete(struct store_sql *q, struct view id, struct err *e)
{
	store_sql_bind(q->stmt[STMT_BOX_DELETE], 1, id);
	return store_sql_run(q, STMT_BOX_DELETE, "removing the sandbox", e);
}

int store_sql_setting_put(struct store_sql *q, const struct store_setting *v, struct err *e)
{
	sqlite3_stmt *stmt = q->stmt[STMT_SETTING_PUT];

	store_sql_bind(stmt, 1, v->name);
	sqlite3_bind_blob64(stmt, 2, v->value.n ? v->value.p : "", v->value.n, SQLITE_STATIC);
	return store_sql_run(q, STMT_SETTING_PUT, "storing the setting", e);
}

/* ---- loading ---- */

static int visit_tenant(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_tenant t = { .id = store_sql_column(row, 0),
					.name = store_sql_column(row, 1),
					.created_ms = sqlite3_column_int64(row, 2) };

	if (v->tenant)
		v->tenant(arg, &t);
	return 0;
}

static int visit_key(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	struct store_key k = {
		.id = store_sql_column(row, 0),
		.tenant = store_sql_column(row, 1),
		.name = store_sql_column(row, 2),
		.role = (enum store_role)sqlite3_column_int(row, 3),
		.created_ms = sqlite3_column_int64(row, 5),
	};
	const void *hash = sqlite3_column_blob(row, 4);

	/* The schema holds both; a file that was tampered with must not make a role. */
	if ((k.role != STORE_ROLE_ADMIN && k.role != STORE_ROLE_USER) || !hash ||
	    sqlite3_column_bytes(row, 4) != (int)sizeof(k.hash))
		return -EBADMSG;
	memcpy(k.hash, hash, sizeof(k.hash));
	if (v->key)
		v->key(arg, &k);
	return 0;
}

static int visit_box(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_box b = {
		.id = store_sql_column(row, 0),
		.tenant = store_sql_column(row, 1),
		.name = store_sql_column(row, 2),
		.status = store_sql_column(row, 3),
		.image = store_sql_column(row, 4),
		.digest = store_sql_column(row, 5),
		.backend = store_sql_column(row, 6),
		.spec = store_sql_column(row, 7),
		.metadata = store_sql_column(row, 8),
		.created_ms = sqlite3_column_int64(row, 9),
		.expires_ms = sqlite3_column_int64(row, 10),
		.used_ms = sqlite3_column_int64(row, 11),
	};

	if (v->box)
		v->box(arg, &b);
	return 0;
}

static int visit_snapshot(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_snapshot s = {
		.id = store_sql_column(row, 0),
		.tenant = store_sql_column(row, 1),
		.name = store_sql_column(row, 2),
		.image = store_sql_column(row, 3),
		.digest = store_sql_column(row, 4),
		.bytes = sqlite3_column_int64(row, 5),
		.stopped_us = sqlite3_column_int64(row, 6),
		.created_ms = sqlite3_column_int64(row, 7),
		.source = store_sql_column(row, 8),
		.backend = store_sql_column(row, 9),
	};

	if (v->snapshot)
		v->snapshot(arg, &s);
	return 0;
}

static int visit_workspace(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_workspace w = {
		.id = store_sql_column(row, 0),
		.tenant = store_sql_column(row, 1),
		.name = store_sql_column(row, 2),
		.disk_mb = sqlite3_column_int64(row, 3),
		.created_ms = sqlite3_column_int64(row, 4),
		.readonly = sqlite3_column_int64(row, 5) != 0,
	};

	if (v->workspace)
		v->workspace(arg, &w);
	return 0;
}

static int visit_setting(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const void *value = sqlite3_column_blob(row, 1);
	const struct store_setting s = {
		.name = store_sql_column(row, 0),
		.value = { value ? value : "", (size_t)sqlite3_column_bytes(row, 1) },
	};

	if (v->setting)
		v->setting(arg, &s);
	return 0;
}

int store_sql_each(struct store_sql *q, enum store_stmt which,
		   int (*visit)(sqlite3_stmt *, const struct store_visitor *, void *),
		   const struct store_visitor *v, void *arg, struct err *e)
{
	sqlite3_stmt *stmt = q->stmt[which];
	int rc, ret = 0;

	while (ret == 0 && (rc = sqlite3_step(stmt)) != SQLITE_DONE) {
		if (rc != SQLITE_ROW)
			ret = store_sql_failed(q->db, "loading the store", e);
		else if (visit(stmt, v, arg) < 0)
			ret = err_set(e, ERR_INTERNAL, "loading the store: a row is damaged");
	}
	sqlite3_reset(stmt);
	return ret;
}

int store_sql_load(struct store_sql *q, const struct store_visitor *v, void *arg, struct err *e)
{
	int ret;

	/* One moment for all tables, and no lock that the writer would wait for. */
	if (sqlite3_exec(q->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		return store_sql_failed(q->db, "loading the store", e);
	/* What boxes refer to comes before them. */
	ret = store_sql_each(q, STMT_TENANT_LIST, visit_tenant, v, arg, e);
	if (ret == 0)
		ret = store_sql_each(q, STMT_KEY_LIST, visit_key, v, arg, e);
	if (ret == 0)
		ret = store_sql_each(q, STMT_SNAPSHOT_LIST, visit_snapshot, v, arg, e);
	if (ret == 0)
		ret = store_sql_each(q, STMT_WORKSPACE_LIST, visit_workspace, v, arg, e);
	if (ret == 0)
		ret = store_sql_each(q, STMT_BOX_LIST, visit_box, v, arg, e);
	if (ret == 0)
		ret = store_sql_each(q, STMT_SETTING_LIST, visit_setting, v, arg, e);
	if (ret == 0)
		ret = store_events_load(q, v, arg, e);
	if (ret == 0)
		ret = store_usage_load(q, v, arg, e);
	if (ret == 0)
		ret = store_verdicts_load(q, v, arg, e);
	store_sql_rollback(q); /* nothing was written */
	return ret;
}
