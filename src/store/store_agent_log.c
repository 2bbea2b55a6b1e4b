/*
 * The table of what agents have logged.
 */
#include "store_agents.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, TRIM, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO agent_log (id, agent, at_ms, level, source, position, message, data) SELECT ?1,"
		 " ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE EXISTS (SELECT 1 FROM agents WHERE id = ?2)"),
	[TRIM] = "DELETE FROM agent_log WHERE agent = ?1 AND id <= ?2",
	[LIST] = ("SELECT id, agent, at_ms, level, source, position, message, data FROM agent_log ORDER BY"
		  " id"),
};

#define STMT(q, which) ((q)->stmt[STORE_AGENT_LOG][which])

static int log_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_agent_log *l = args;
	sqlite3_stmt *stmt = STMT(q, PUT);

	store_sql_bind_u64(stmt, 1, l->id);
	store_sql_bind(stmt, 2, l->agent);
	sqlite3_bind_int64(stmt, 3, l->at_ms);
	store_sql_bind_u64(stmt, 4, l->level);
	store_sql_bind_u64(stmt, 5, l->source);
	store_sql_bind_u64(stmt, 6, l->position);
	store_sql_bind(stmt, 7, l->message);
	store_sql_bind(stmt, 8, l->data);
	return store_sql_run(q, stmt, "storing what an agent has logged", e);
}

void store_agent_log_put(struct store *s, const struct store_agent_log *l, store_done *done, void *arg)
{
	STORE_SUBMIT(s, log_put, l, done, arg, offsetof(struct store_agent_log, agent),
		     offsetof(struct store_agent_log, message), offsetof(struct store_agent_log, data));
}

struct trim {
	struct view agent;
	uint64_t last;
};

static int log_trim(struct store_sql *q, const void *args, struct err *e)
{
	const struct trim *t = args;

	store_sql_bind(STMT(q, TRIM), 1, t->agent);
	store_sql_bind_u64(STMT(q, TRIM), 2, t->last);
	return store_sql_run(q, STMT(q, TRIM), "removing what an agent has logged", e);
}

void store_agent_log_trim(struct store *s, struct view agent, uint64_t last, store_done *done, void *arg)
{
	const struct trim t = { agent, last };

	STORE_SUBMIT(s, log_trim, &t, done, arg, offsetof(struct trim, agent));
}

static int visit_log(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_agent_log l = {
		.id = store_sql_column_u64(row, 0),
		.agent = store_sql_column(row, 1),
		.at_ms = sqlite3_column_int64(row, 2),
		.level = (uint32_t)store_sql_column_u64(row, 3),
		.source = (uint32_t)store_sql_column_u64(row, 4),
		.position = store_sql_column_u64(row, 5),
		.message = store_sql_column(row, 6),
		.data = store_sql_column(row, 7),
	};

	if (v->agent_log)
		v->agent_log(arg, &l);
	return 0;
}

const struct store_table store_agent_log = { sql, ELEMS(sql), LIST, visit_log };
