/*
 * The table of workspaces.
 */
#include "store.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, DELETE, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO workspaces (id, tenant, name, disk_mb, created_ms, readonly) VALUES (?1, ?2,"
		 " ?3, ?4, ?5, ?6)"),
	[DELETE] = "DELETE FROM workspaces WHERE id = ?1",
	[LIST] = ("SELECT id, tenant, name, disk_mb, created_ms, readonly FROM workspaces ORDER BY"
		  " created_ms, id"),
};

#define STMT(q, which) ((q)->stmt[STORE_WORKSPACES][which])

static int put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_workspace *w = args;
	sqlite3_stmt *stmt = STMT(q, PUT);

	store_sql_bind(stmt, 1, w->id);
	store_sql_bind(stmt, 2, w->tenant);
	store_sql_bind(stmt, 3, w->name);
	sqlite3_bind_int64(stmt, 4, w->disk_mb);
	sqlite3_bind_int64(stmt, 5, w->created_ms);
	sqlite3_bind_int64(stmt, 6, w->readonly);
	return store_sql_run(q, STMT(q, PUT), "storing the workspace", e);
}

void store_workspace_put(struct store *s, const struct store_workspace *w, store_done *done, void *arg)
{
	STORE_SUBMIT(s, put, w, done, arg, offsetof(struct store_workspace, id),
		     offsetof(struct store_workspace, tenant), offsetof(struct store_workspace, name));
}

static int delete_workspace(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind(STMT(q, DELETE), 1, *(const struct view *)args);
	return store_sql_run(q, STMT(q, DELETE), "removing the workspace", e);
}

void store_workspace_delete(struct store *s, struct view id, store_done *done, void *arg)
{
	STORE_SUBMIT(s, delete_workspace, &id, done, arg, 0);
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

const struct store_table store_workspaces = { sql, ELEMS(sql), LIST, visit_workspace };
