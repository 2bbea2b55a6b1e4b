/*
 * The table of tenants' quotas.
 */
#include "store_events.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, LIST };

#define COLUMNS                                                                                              \
	"tenant, creates_per_minute, boxes, cpu_milli, memory_mb, disk_mb, processes, helpers, workspaces,"  \
	" snapshots, templates, webhooks, secrets, secrets_kb"

static const char *const sql[] = {
	[PUT] = ("INSERT OR REPLACE INTO quotas (" COLUMNS ")"
		 " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"),
	[LIST] = "SELECT " COLUMNS " FROM quotas",
};

#define STMT(q, which) ((q)->stmt[STORE_QUOTAS][which])

static int quota_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_quota *v = args;
	sqlite3_stmt *stmt = STMT(q, PUT);

	store_sql_bind(stmt, 1, v->tenant);
	store_sql_bind_u64(stmt, 2, v->creates_per_minute);
	for (int i = 0; i < STORE_QUOTA_NUMBERS; i++)
		store_sql_bind_u64(stmt, i + 3, v->numbers[i]);
	return store_sql_run(q, STMT(q, PUT), "storing the quota", e);
}

void store_quota_put(struct store *s, const struct store_quota *q, store_done *done, void *arg)
{
	STORE_SUBMIT(s, quota_put, q, done, arg, offsetof(struct store_quota, tenant));
}

static int visit_quota(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	struct store_quota q = { .tenant = store_sql_column(row, 0),
				 .creates_per_minute = store_sql_column_u64(row, 1) };

	for (int i = 0; i < STORE_QUOTA_NUMBERS; i++)
		q.numbers[i] = store_sql_column_u64(row, i + 2);
	if (v->quota)
		v->quota(arg, &q);
	return 0;
}

const struct store_table store_quotas = { sql, ELEMS(sql), LIST, visit_quota };
