/*
 * The tables of calls to models that are over, and of their text.
 */
#include "store_usage.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, DELETE, BODIES_PUT, BODIES_DELETE, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO ai_log (id, at_ms, duration_ms, tenant, box, provider, endpoint, model,"
		 " status, finish, estimated, input, cache_read, cache_write, output, cost) VALUES (?1,"
		 " ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"),
	[DELETE] = "DELETE FROM ai_log WHERE id = ?1",
	[BODIES_PUT] =
		("INSERT INTO ai_bodies (id, box, request, response, cut) SELECT ?1, ?2, ?3, ?4, ?5 WHERE"
		 " EXISTS (SELECT 1 FROM boxes WHERE id = ?2)"),
	[BODIES_DELETE] = "DELETE FROM ai_bodies WHERE id = ?1",
	[LIST] = ("SELECT l.id, at_ms, duration_ms, tenant, l.box, provider, endpoint, model, status,"
		  " finish, estimated, input, cache_read, cache_write, output, cost, b.id IS NOT NULL,"
		  " request, response, cut FROM ai_log l LEFT JOIN ai_bodies b ON b.id = l.id ORDER BY l.id"),
};

#define STMT(q, which) ((q)->stmt[STORE_AI_LOG][which])

enum { CUT_REQUEST = 1, CUT_RESPONSE = 2 }; /* ai_bodies.cut */

static int ai_bodies_put(struct store_sql *q, const struct store_ai_log *l, struct err *e)
{
	const struct store_ai_bodies *b = &l->bodies;
	sqlite3_stmt *stmt = STMT(q, BODIES_PUT);

	store_sql_bind_u64(stmt, 1, l->id);
	store_sql_bind(stmt, 2, l->box);
	store_sql_bind(stmt, 3, b->request);
	store_sql_bind(stmt, 4, b->response);
	store_sql_bind_u64(stmt, 5,
			   (b->request_cut ? CUT_REQUEST : 0u) | (b->response_cut ? CUT_RESPONSE : 0u));
	return store_sql_run(q, STMT(q, BODIES_PUT), "storing the text of a call to a model", e);
}

static int ai_log_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_ai_log *l = args;
	sqlite3_stmt *stmt = STMT(q, PUT);
	const struct view texts[] = { l->tenant, l->box, l->provider, l->endpoint, l->model };
	const uint64_t numbers[] = { l->estimated, l->input, l->cache_read, l->cache_write, l->output };

	store_sql_bind_u64(stmt, 1, l->id);
	sqlite3_bind_int64(stmt, 2, l->at_ms);
	sqlite3_bind_int64(stmt, 3, l->duration_ms);
	for (size_t i = 0; i < ELEMS(texts); i++)
		store_sql_bind(stmt, 4 + (int)i, texts[i]);
	store_sql_bind_u64(stmt, 9, l->status);
	store_sql_bind(stmt, 10, l->finish);
	for (size_t i = 0; i < ELEMS(numbers); i++)
		store_sql_bind_u64(stmt, 11 + (int)i, numbers[i]);
	sqlite3_bind_int64(stmt, 16, l->cost);
	if (store_sql_run(q, STMT(q, PUT), "storing what a call to a model was", e) < 0)
		return -1;
	return l->bodies.kept ? ai_bodies_put(q, l, e) : 0;
}

void store_ai_log_put(struct store *s, const struct store_ai_log *l, store_done *done, void *arg)
{
	static const size_t views[] = {
		offsetof(struct store_ai_log, tenant),         offsetof(struct store_ai_log, box),
		offsetof(struct store_ai_log, provider),       offsetof(struct store_ai_log, endpoint),
		offsetof(struct store_ai_log, model),          offsetof(struct store_ai_log, finish),
		offsetof(struct store_ai_log, bodies.request), offsetof(struct store_ai_log, bodies.response)
	};
	static_assert(sizeof(*l) <= STORE_ARGS_MAX, "a row is the arguments of one call");
	store_submit(s, ai_log_put, l, sizeof(*l), views, ELEMS(views), done, arg);
}

static int ai_bodies_delete(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind_u64(STMT(q, BODIES_DELETE), 1, *(const uint64_t *)args);
	return store_sql_run(q, STMT(q, BODIES_DELETE), "removing the text of a call to a model", e);
}

void store_ai_bodies_delete(struct store *s, uint64_t id, store_done *done, void *arg)
{
	store_submit(s, ai_bodies_delete, &id, sizeof(id), NULL, 0, done, arg);
}

static int ai_log_delete(struct store_sql *q, const void *args, struct err *e)
{
	if (ai_bodies_delete(q, args, e) < 0)
		return -1;
	store_sql_bind_u64(STMT(q, DELETE), 1, *(const uint64_t *)args);
	return store_sql_run(q, STMT(q, DELETE), "removing an old call to a model", e);
}

void store_ai_log_delete(struct store *s, uint64_t id, store_done *done, void *arg)
{
	store_submit(s, ai_log_delete, &id, sizeof(id), NULL, 0, done, arg);
}

static int visit_ai_log(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_ai_log l = {
		.id = store_sql_column_u64(row, 0),
		.at_ms = sqlite3_column_int64(row, 1),
		.duration_ms = sqlite3_column_int64(row, 2),
		.tenant = store_sql_column(row, 3),
		.box = store_sql_column(row, 4),
		.provider = store_sql_column(row, 5),
		.endpoint = store_sql_column(row, 6),
		.model = store_sql_column(row, 7),
		.status = store_sql_column_u64(row, 8),
		.finish = store_sql_column(row, 9),
		.estimated = store_sql_column_u64(row, 10),
		.input = store_sql_column_u64(row, 11),
		.cache_read = store_sql_column_u64(row, 12),
		.cache_write = store_sql_column_u64(row, 13),
		.output = store_sql_column_u64(row, 14),
		.cost = sqlite3_column_int64(row, 15),
		.bodies = { .kept = store_sql_column_u64(row, 16),
			    .request = store_sql_column(row, 17),
			    .response = store_sql_column(row, 18),
			    .request_cut = store_sql_column_u64(row, 19) & CUT_REQUEST,
			    .response_cut = store_sql_column_u64(row, 19) & CUT_RESPONSE },
	};

	if (v->ai_log)
		v->ai_log(arg, &l);
	return 0;
}

const struct store_table store_ai_log_table = { sql, ELEMS(sql), LIST, visit_ai_log };
