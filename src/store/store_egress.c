/*
 * The table of tenants' egress policies.
 */
#include "store_events.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, DELETE, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO egress (tenant, policy) VALUES (?1, ?2) ON CONFLICT (tenant) DO UPDATE SET"
		 " policy = excluded.policy"),
	[DELETE] = "DELETE FROM egress WHERE tenant = ?1",
	[LIST] = "SELECT tenant, policy FROM egress",
};

#define STMT(q, which) ((q)->stmt[STORE_EGRESS][which])

static int egress_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_egress *v = args;

	store_sql_bind(STMT(q, PUT), 1, v->tenant);
	store_sql_bind(STMT(q, PUT), 2, v->policy);
	return store_sql_run(q, STMT(q, PUT), "storing the egress policy", e);
}

void store_egress_put(struct store *s, const struct store_egress *v, store_done *done, void *arg)
{
	STORE_SUBMIT(s, egress_put, v, done, arg, offsetof(struct store_egress, tenant),
		     offsetof(struct store_egress, policy));
}

static int egress_delete(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind(STMT(q, DELETE), 1, *(const struct view *)args);
	return store_sql_run(q, STMT(q, DELETE), "removing the egress policy", e);
}

void store_egress_delete(struct store *s, struct view tenant, store_done *done, void *arg)
{
	STORE_SUBMIT(s, egress_delete, &tenant, done, arg, 0);
}

static int visit_egress(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_egress egress = { .tenant = store_sql_column(row, 0),
					     .policy = store_sql_column(row, 1) };

	if (v->egress)
		v->egress(arg, &egress);
	return 0;
}

const struct store_table store_egress_table = { sql, ELEMS(sql), LIST, visit_egress };
