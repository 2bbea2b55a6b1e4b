/*
 * The table of tenants' quotas.
 */
#include "store_events.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO quotas (tenant, boxes, cpu_milli, memory_mb, disk_mb, creates_per_minute)"
		 " VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (tenant) DO UPDATE SET boxes ="
		 " excluded.boxes, cpu_milli = excluded.cpu_milli, memory_mb = excluded.memory_mb, disk_mb"
		 " = excluded.disk_mb, creates_per_minute = excluded.creates_per_minute"),
	[LIST] = "SELECT tenant, boxes, cpu_milli, memory_mb, disk_mb, creates_per_minute FROM quotas",
};

#define STMT(q, which) ((q)->stmt[STORE_QUOTAS][which])

static int quota_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_quota *v = args;
	const uint64_t numbers[] = { v->boxes, v->cpu_milli, v->memory_mb, v->disk_mb,
				     v->creates_per_minute };
	sqlite3_stmt *stmt = STMT(q, PUT);

	store_sql_bind(stmt, 1, v->tenant);
	for (size_t i = 0; i < ELEMS(numbers); i++)
		store_sql_bind_u64(stmt, (int)i + 2, numbers[i]);
	return store_sql_run(q, STMT(q, PUT), "storing the quota", e);
}

void store_quota_put(struct store *s, const struct store_quota *q, store_done *done, void *arg)
{
	STORE_SUBMIT(s, quota_put, q, done, arg, offsetof(struct store_quota, tenant));
}

static int visit_quota(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_quota q = {
		.tenant = store_sql_column(row, 0),
		.boxes = store_sql_column_u64(row, 1),
		.cpu_milli = store_sql_column_u64(row, 2),
		.memory_mb = store_sql_column_u64(row, 3),
		.disk_mb = store_sql_column_u64(row, 4),
		.creates_per_minute = store_sql_column_u64(row, 5),
	};

	if (v->quota)
		v->quota(arg, &q);
	return 0;
}

const struct store_table store_quotas = { sql, ELEMS(sql), LIST, visit_quota };
