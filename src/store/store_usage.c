/*
 * The table of what was used of models, by day, box, provider and model.
 */
#include "store_usage.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, TRIM, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT OR REPLACE INTO ai_usage (day, tenant, box, provider, model, requests, estimated,"
		 " input, cache_read, cache_write, output, cost, agent) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,"
		 " ?8, ?9, ?10, ?11, ?12, ?13)"),
	[TRIM] = "DELETE FROM ai_usage WHERE day < ?1",
	[LIST] = ("SELECT day, tenant, box, provider, model, requests, estimated, input, cache_read,"
		  " cache_write, output, cost, agent FROM ai_usage"),
};

#define STMT(q, which) ((q)->stmt[STORE_USAGE][which])

static int usage_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_usage *u = args;
	sqlite3_stmt *stmt = STMT(q, PUT);

	sqlite3_bind_int64(stmt, 1, u->day);
	store_sql_bind(stmt, 2, u->tenant);
	store_sql_bind(stmt, 3, u->box);
	store_sql_bind(stmt, 4, u->provider);
	store_sql_bind(stmt, 5, u->model);
	store_sql_bind_u64(stmt, 6, u->requests);
	store_sql_bind_u64(stmt, 7, u->estimated);
	store_sql_bind_u64(stmt, 8, u->input);
	store_sql_bind_u64(stmt, 9, u->cache_read);
	store_sql_bind_u64(stmt, 10, u->cache_write);
	store_sql_bind_u64(stmt, 11, u->output);
	sqlite3_bind_int64(stmt, 12, u->cost);
	store_sql_bind(stmt, 13, u->agent);
	return store_sql_run(q, STMT(q, PUT), "storing what a model was used for", e);
}

void store_usage_put(struct store *s, const struct store_usage *u, store_done *done, void *arg)
{
	static const size_t views[] = { offsetof(struct store_usage, tenant),
					offsetof(struct store_usage, box),
					offsetof(struct store_usage, provider),
					offsetof(struct store_usage, model),
					offsetof(struct store_usage, agent) };
	store_submit(s, usage_put, u, sizeof(*u), views, ELEMS(views), done, arg);
}

static int usage_trim(struct store_sql *q, const void *args, struct err *e)
{
	sqlite3_bind_int64(STMT(q, TRIM), 1, *(const int64_t *)args);
	return store_sql_run(q, STMT(q, TRIM), "removing old usage", e);
}

void store_usage_trim(struct store *s, int64_t first_kept, store_done *done, void *arg)
{
	store_submit(s, usage_trim, &first_kept, sizeof(first_kept), NULL, 0, done, arg);
}

static int visit_usage(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_usage u = {
		.day = sqlite3_column_int64(row, 0),
		.tenant = store_sql_column(row, 1),
		.box = store_sql_column(row, 2),
		.provider = store_sql_column(row, 3),
		.model = store_sql_column(row, 4),
		.requests = store_sql_column_u64(row, 5),
		.estimated = store_sql_column_u64(row, 6),
		.input = store_sql_column_u64(row, 7),
		.cache_read = store_sql_column_u64(row, 8),
		.cache_write = store_sql_column_u64(row, 9),
		.output = store_sql_column_u64(row, 10),
		.cost = sqlite3_column_int64(row, 11),
		.agent = store_sql_column(row, 12),
	};

	if (v->usage)
		v->usage(arg, &u);
	return 0;
}

const struct store_table store_usage_table = { sql, ELEMS(sql), LIST, visit_usage };
