/*
 * Usage of models: see store_usage.h. Like store_events.c.
 */
#include "store_usage.h"

#include "store_impl.h"

#include "poison.h"

enum { CUT_REQUEST = 1, CUT_RESPONSE = 2 }; /* ai_bodies.cut */

static void bind_u64(sqlite3_stmt *stmt, int at, uint64_t v)
{
	sqlite3_bind_int64(stmt, at, v > INT64_MAX ? INT64_MAX : (int64_t)v);
}

static uint64_t column_u64(sqlite3_stmt *row, int at)
{
	int64_t v = sqlite3_column_int64(row, at);

	return v < 0 ? 0 : (uint64_t)v;
}

static int usage_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_usage *u = args;
	sqlite3_stmt *stmt = q->stmt[STMT_USAGE_PUT];

	sqlite3_bind_int64(stmt, 1, u->day);
	store_sql_bind(stmt, 2, u->tenant);
	store_sql_bind(stmt, 3, u->box);
	store_sql_bind(stmt, 4, u->provider);
	store_sql_bind(stmt, 5, u->model);
	bind_u64(stmt, 6, u->requests);
	bind_u64(stmt, 7, u->estimated);
	bind_u64(stmt, 8, u->input);
	bind_u64(stmt, 9, u->cache_read);
	bind_u64(stmt, 10, u->cache_write);
	bind_u64(stmt, 11, u->output);
	sqlite3_bind_int64(stmt, 12, u->cost);
	return store_sql_run(q, STMT_USAGE_PUT, "storing what a model was used for", e);
}

void store_usage_put(struct store *s, const struct store_usage *u, store_done *done, void *arg)
{
	static const size_t views[] = { offsetof(struct store_usage, tenant),
					offsetof(struct store_usage, box),
					offsetof(struct store_usage, provider),
					offsetof(struct store_usage, model) };
	store_submit(s, usage_put, u, sizeof(*u), views, ELEMS(views), done, arg);
}

static int usage_trim(struct store_sql *q, const void *args, struct err *e)
{
	sqlite3_bind_int64(q->stmt[STMT_USAGE_TRIM], 1, *(const int64_t *)args);
	return store_sql_run(q, STMT_USAGE_TRIM, "removing old usage", e);
}

void store_usage_trim(struct store *s, int64_t first_kept, store_done *done, void *arg)
{
	store_submit(s, usage_trim, &first_kept, sizeof(first_kept), NULL, 0, done, arg);
}

static int ai_call_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_ai_call *c = args;
	sqlite3_stmt *stmt = q->stmt[STMT_AI_CALL_PUT];

	bind_u64(stmt, 1, c->id);
	sqlite3_bind_int64(stmt, 2, c->day);
	store_sql_bind(stmt, 3, c->tenant);
	store_sql_bind(stmt, 4, c->box);
	store_sql_bind(stmt, 5, c->provider);
	store_sql_bind(stmt, 6, c->model);
	bind_u64(stmt, 7, c->tokens);
	sqlite3_bind_int64(stmt, 8, c->cost);
	sqlite3_bind_int64(stmt, 9, c->at_ms);
	store_sql_bind(stmt, 10, c->endpoint);
	return store_sql_run(q, STMT_AI_CALL_PUT, "storing a call to a model", e);
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
	bind_u64(q->stmt[STMT_AI_CALL_DELETE], 1, *(const uint64_t *)args);
	return store_sql_run(q, STMT_AI_CALL_DELETE, "removing a call to a model", e);
}

void store_ai_call_delete(struct store *s, uint64_t id, store_done *done, void *arg)
{
	store_submit(s, ai_call_delete, &id, sizeof(id), NULL, 0, done, arg);
}

static int ai_bodies_put(struct store_sql *q, const struct store_ai_log *l, struct err *e)
{
	const struct store_ai_bodies *b = &l->bodies;
	sqlite3_stmt *stmt = q->stmt[STMT_AI_BODIES_PUT];

	bind_u64(stmt, 1, l->id);
	store_sql_bind(stmt, 2, l->box);
	store_sql_bind(stmt, 3, b->request);
	store_sql_bind(stmt, 4, b->response);
	bind_u64(stmt, 5, (b->request_cut ? CUT_REQUEST : 0u) | (b->response_cut ? CUT_RESPONSE : 0u));
	return store_sql_run(q, STMT_AI_BODIES_PUT, "storing the text of a call to a model", e);
}

static int ai_log_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_ai_log *l = args;
	sqlite3_stmt *stmt = q->stmt[STMT_AI_LOG_PUT];
	const struct view texts[] = { l->tenant, l->box, l->provider, l->endpoint, l->model };
	const uint64_t numbers[] = { l->estimated, l->input, l->cache_read, l->cache_write, l->output };

	bind_u64(stmt, 1, l->id);
	sqlite3_bind_int64(stmt, 2, l->at_ms);
	sqlite3_bind_int64(stmt, 3, l->duration_ms);
	for (size_t i = 0; i < ELEMS(texts); i++)
		store_sql_bind(stmt, 4 + (int)i, texts[i]);
	bind_u64(stmt, 9, l->status);
	store_sql_bind(stmt, 10, l->finish);
	for (size_t i = 0; i < ELEMS(numbers); i++)
		bind_u64(stmt, 11 + (int)i, numbers[i]);
	sqlite3_bind_int64(stmt, 16, l->cost);
	if (store_sql_run(q, STMT_AI_LOG_PUT, "storing what a call to a model was", e) < 0)
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
	bind_u64(q->stmt[STMT_AI_BODIES_DELETE], 1, *(const uint64_t *)args);
	return store_sql_run(q, STMT_AI_BODIES_DELETE, "removing the text of a call to a model", e);
}

void store_ai_bodies_delete(struct store *s, uint64_t id, store_done *done, void *arg)
{
	store_submit(s, ai_bodies_delete, &id, sizeof(id), NULL, 0, done, arg);
}

static int ai_log_delete(struct store_sql *q, const void *args, struct err *e)
{
	if (ai_bodies_delete(q, args, e) < 0)
		return -1;
	bind_u64(q->stmt[STMT_AI_LOG_DELETE], 1, *(const uint64_t *)args);
	return store_sql_run(q, STMT_AI_LOG_DELETE, "removing an old call to a model", e);
}

void store_ai_log_delete(struct store *s, uint64_t id, store_done *done, void *arg)
{
	store_submit(s, ai_log_delete, &id, sizeof(id), NULL, 0, done, arg);
}

static int ai_limits_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_ai_limits *l = args;

	store_sql_bind(q->stmt[STMT_AI_LIMITS_PUT], 1, l->tenant);
	store_sql_bind(q->stmt[STMT_AI_LIMITS_PUT], 2, l->limits);
	return store_sql_run(q, STMT_AI_LIMITS_PUT, "storing what a tenant may use of models", e);
}

void store_ai_limits_put(struct store *s, const struct store_ai_limits *l, store_done *done, void *arg)
{
	static const size_t views[] = { offsetof(struct store_ai_limits, tenant),
					offsetof(struct store_ai_limits, limits) };
	store_submit(s, ai_limits_put, l, sizeof(*l), views, ELEMS(views), done, arg);
}

static int ai_limits_delete(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind(q->stmt[STMT_AI_LIMITS_DELETE], 1, *(const struct view *)args);
	return store_sql_run(q, STMT_AI_LIMITS_DELETE, "removing what a tenant may use of models", e);
}

void store_ai_limits_delete(struct store *s, struct view tenant, store_done *done, void *arg)
{
	static const size_t views[] = { 0 };
	store_submit(s, ai_limits_delete, &tenant, sizeof(tenant), views, ELEMS(views), done, arg);
}

/* ---- loading ---- */

static int visit_usage(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_usage u = {
		.day = sqlite3_column_int64(row, 0),
		.tenant = store_sql_column(row, 1),
		.box = store_sql_column(row, 2),
		.provider = store_sql_column(row, 3),
		.model = store_sql_column(row, 4),
		.requests = column_u64(row, 5),
		.estimated = column_u64(row, 6),
		.input = column_u64(row, 7),
		.cache_read = column_u64(row, 8),
		.cache_write = column_u64(row, 9),
		.output = column_u64(row, 10),
		.cost = sqlite3_column_int64(row, 11),
	};

	if (v->usage)
		v->usage(arg, &u);
	return 0;
}

static int visit_ai_call(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_ai_call c = {
		.id = column_u64(row, 0),
		.day = sqlite3_column_int64(row, 1),
		.tenant = store_sql_column(row, 2),
		.box = store_sql_column(row, 3),
		.provider = store_sql_column(row, 4),
		.model = store_sql_column(row, 5),
		.tokens = column_u64(row, 6),
		.cost = sqlite3_column_int64(row, 7),
		.at_ms = sqlite3_column_int64(row, 8),
		.endpoint = store_sql_column(row, 9),
	};

	if (v->ai_call)
		v->ai_call(arg, &c);
	return 0;
}

static int visit_ai_log(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_ai_log l = {
		.id = column_u64(row, 0),
		.at_ms = sqlite3_column_int64(row, 1),
		.duration_ms = sqlite3_column_int64(row, 2),
		.tenant = store_sql_column(row, 3),
		.box = store_sql_column(row, 4),
		.provider = store_sql_column(row, 5),
		.endpoint = store_sql_column(row, 6),
		.model = store_sql_column(row, 7),
		.status = column_u64(row, 8),
		.finish = store_sql_column(row, 9),
		.estimated = column_u64(row, 10),
		.input = column_u64(row, 11),
		.cache_read = column_u64(row, 12),
		.cache_write = column_u64(row, 13),
		.output = column_u64(row, 14),
		.cost = sqlite3_column_int64(row, 15),
		.bodies = { .kept = column_u64(row, 16),
			    .request = store_sql_column(row, 17),
			    .response = store_sql_column(row, 18),
			    .request_cut = column_u64(row, 19) & CUT_REQUEST,
			    .response_cut = column_u64(row, 19) & CUT_RESPONSE },
	};

	if (v->ai_log)
		v->ai_log(arg, &l);
	return 0;
}

static int visit_ai_limits(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_ai_limits l = { .tenant = store_sql_column(row, 0),
					   .limits = store_sql_column(row, 1) };

	if (v->ai_limits)
		v->ai_limits(arg, &l);
	return 0;
}

int store_usage_load(struct store_sql *q, const struct store_visitor *v, void *arg, struct err *e)
{
	int ret = store_sql_each(q, STMT_USAGE_LIST, visit_usage, v, arg, e);

	if (ret == 0)
		ret = store_sql_each(q, STMT_AI_LIMITS_LIST, visit_ai_limits, v, arg, e);
	if (ret == 0)
		ret = store_sql_each(q, STMT_AI_LOG_LIST, visit_ai_log, v, arg, e);
	if (ret == 0)
		ret = store_sql_each(q, STMT_AI_CALL_LIST, visit_ai_call, v, arg, e);
	return ret;
}
