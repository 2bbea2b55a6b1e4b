/*
 * The table of snapshots.
 */
#include "store.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, DELETE, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO snapshots (id, tenant, name, image, digest, source, backend, bytes,"
		 " stopped_us, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"),
	[DELETE] = "DELETE FROM snapshots WHERE id = ?1",
	[LIST] = ("SELECT id, tenant, name, image, digest, bytes, stopped_us, created_ms, source, backend"
		  " FROM snapshots ORDER BY created_ms, id"),
};

#define STMT(q, which) ((q)->stmt[STORE_SNAPSHOTS][which])

static int put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_snapshot *s = args;
	sqlite3_stmt *stmt = STMT(q, PUT);
	const struct view texts[] = { s->id, s->tenant, s->name, s->image, s->digest, s->source, s->backend };

	for (size_t i = 0; i < ELEMS(texts); i++)
		store_sql_bind(stmt, (int)i + 1, texts[i]);
	sqlite3_bind_int64(stmt, 8, s->bytes);
	sqlite3_bind_int64(stmt, 9, s->stopped_us);
	sqlite3_bind_int64(stmt, 10, s->created_ms);
	return store_sql_run(q, STMT(q, PUT), "storing the snapshot", e);
}

void store_snapshot_put(struct store *s, const struct store_snapshot *n, store_done *done, void *arg)
{
	STORE_SUBMIT(s, put, n, done, arg, offsetof(struct store_snapshot, id),
		     offsetof(struct store_snapshot, tenant), offsetof(struct store_snapshot, name),
		     offsetof(struct store_snapshot, image), offsetof(struct store_snapshot, digest),
		     offsetof(struct store_snapshot, source), offsetof(struct store_snapshot, backend));
}

static int delete_snapshot(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind(STMT(q, DELETE), 1, *(const struct view *)args);
	return store_sql_run(q, STMT(q, DELETE), "removing the snapshot", e);
}

void store_snapshot_delete(struct store *s, struct view id, store_done *done, void *arg)
{
	STORE_SUBMIT(s, delete_snapshot, &id, done, arg, 0);
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

const struct store_table store_snapshots = { sql, ELEMS(sql), LIST, visit_snapshot };
