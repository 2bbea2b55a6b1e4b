/*
 * The table of what tenants may use of models.
 */
#include "store_usage.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, DELETE, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO ai_limits (tenant, limits) VALUES (?1, ?2) ON CONFLICT (tenant) DO UPDATE"
		 " SET limits = excluded.limits"),
	[DELETE] = "DELETE FROM ai_limits WHERE tenant = ?1",
	[LIST] = "SELECT tenant, limits FROM ai_limits",
};

#define STMT(q, which) ((q)->stmt[STORE_AI_LIMITS][which])

static int ai_limits_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_ai_limits *l = args;

	store_sql_bind(STMT(q, PUT), 1, l->tenant);
	store_sql_bind(STMT(q, PUT), 2, l->limits);
	return store_sql_run(q, STMT(q, PUT), "storing what a tenant may use of models", e);
}

void store_ai_limits_put(struct store *s, const struct store_ai_limits *l, store_done *done, void *arg)
{
	static const size_t views[] = { offsetof(struct store_ai_limits, tenant),
					offsetof(struct store_ai_limits, limits) };
	store_submit(s, ai_limits_put, l, sizeof(*l), views, ELEMS(views), done, arg);
}

static int ai_limits_delete(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind(STMT(q, DELETE), 1, *(const struct view *)args);
	return store_sql_run(q, STMT(q, DELETE), "removing what a tenant may use of models", e);
}

void store_ai_limits_delete(struct store *s, struct view tenant, store_done *done, void *arg)
{
	static const size_t views[] = { 0 };
	store_submit(s, ai_limits_delete, &tenant, sizeof(tenant), views, ELEMS(views), done, arg);
}

static int visit_ai_limits(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_ai_limits l = { .tenant = store_sql_column(row, 0),
					   .limits = store_sql_column(row, 1) };

	if (v->ai_limits)
		v->ai_limits(arg, &l);
	return 0;
}

const struct store_table store_ai_limits_table = { sql, ELEMS(sql), LIST, visit_ai_limits };
