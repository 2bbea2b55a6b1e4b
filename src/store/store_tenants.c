/*
 * The table of tenants.
 */
#include "store.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO tenants (id, name, created_ms) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO"
		 " UPDATE SET name = excluded.name"),
	[LIST] = "SELECT id, name, created_ms, events_from FROM tenants ORDER BY created_ms, id",
};

#define STMT(q, which) ((q)->stmt[STORE_TENANTS][which])

static int put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_tenant *t = args;
	sqlite3_stmt *stmt = STMT(q, PUT);

	store_sql_bind(stmt, 1, t->id);
	store_sql_bind(stmt, 2, t->name);
	sqlite3_bind_int64(stmt, 3, t->created_ms);
	return store_sql_run(q, STMT(q, PUT), "storing the tenant", e);
}

void store_tenant_put(struct store *s, const struct store_tenant *t, store_done *done, void *arg)
{
	STORE_SUBMIT(s, put, t, done, arg, offsetof(struct store_tenant, id),
		     offsetof(struct store_tenant, name));
}

static int visit_tenant(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_tenant t = { .id = store_sql_column(row, 0),
					.name = store_sql_column(row, 1),
					.created_ms = sqlite3_column_int64(row, 2),
					.events_from = store_sql_column_u64(row, 3) };

	if (v->tenant)
		v->tenant(arg, &t);
	return 0;
}

const struct store_table store_tenants = { sql, ELEMS(sql), LIST, visit_tenant };
