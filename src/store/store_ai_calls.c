/*
 * The table of calls to models that are under way.
 */
#include "store_usage.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, DELETE, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO ai_calls (id, day, tenant, box, provider, model, tokens, cost, at_ms,"
		 " endpoint) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"),
	[DELETE] = "DELETE FROM ai_calls WHERE id = ?1",
	[LIST] = ("SELECT id, day, tenant, box, provider, model, tokens, cost, at_ms, endpoint FROM"
		  " ai_calls ORDER BY id"),
};

#define STMT(q, which) ((q)->stmt[STORE_AI_CALLS][which])

static int ai_call_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_ai_call *c = args;
	sqlite3_stmt *stmt = STMT(q, PUT);

	store_sql_bind_u64(stmt, 1, c->id);
	sqlite3_bind_int64(stmt, 2, c->day);
	store_sql_bind(stmt, 3, c->tenant);
	store_sql_bind(stmt, 4, c->box);
	store_sql_bind(stmt, 5, c->provider);
	store_sql_bind(stmt, 6, c->model);
	store_sql_bind_u64(stmt, 7, c->tokens);
	sqlite3_bind_int64(stmt, 8, c->cost);
	sqlite3_bind_int64(stmt, 9, c->at_ms);
	store_sql_bind(stmt, 10, c->endpoint);
	return store_sql_run(q, STMT(q, PUT), "storing a call to a model", e);
}

void store_ai_call_put(struct store *s, const struct store_ai_call *c, store_done *done, void *arg)
{
	static const size_t views[] = { offsetof(struct store_ai_call, tenant),
					offsetof(struct store_ai_call, box),
					offsetof(struct store_ai_call, provider),
					offsetof(struct store_ai_call, model),
					offsetof(struct store_ai_call, endpoint) };
	store_submit(s, ai_call_put, c, sizeof(*c), views, ELEMS(views), done, arg);
}

static int ai_call_delete(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind_u64(STMT(q, DELETE), 1, *(const uint64_t *)args);
	return store_sql_run(q, STMT(q, DELETE), "removing a call to a model", e);
}

void store_ai_call_delete(struct store *s, uint64_t id, store_done *done, void *arg)
{
	store_submit(s, ai_call_delete, &id, sizeof(id), NULL, 0, done, arg);
}

static int visit_ai_call(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_ai_call c = {
		.id = store_sql_column_u64(row, 0),
		.day = sqlite3_column_int64(row, 1),
		.tenant = store_sql_column(row, 2),
		.box = store_sql_column(row, 3),
		.provider = store_sql_column(row, 4),
		.model = store_sql_column(row, 5),
		.tokens = store_sql_column_u64(row, 6),
		.cost = sqlite3_column_int64(row, 7),
		.at_ms = sqlite3_column_int64(row, 8),
		.endpoint = store_sql_column(row, 9),
	};

	if (v->ai_call)
		v->ai_call(arg, &c);
	return 0;
}

const struct store_table store_ai_calls = { sql, ELEMS(sql), LIST, visit_ai_call };
