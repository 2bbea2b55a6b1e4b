/*
 * The tables of agents and of what they log.
 */
#include "store_agents.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, DELETE, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO agents (id, tenant, name, manifest, status, reason, box, consented, wanted,"
		 " created_ms, crashes, next_start_ms, next, next_consented, next_builds) VALUES (?1, ?2, ?3,"
		 " ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) ON CONFLICT (id) DO UPDATE SET"
		 " manifest = excluded.manifest, status = excluded.status, reason = excluded.reason,"
		 " box = excluded.box, consented = excluded.consented, wanted = excluded.wanted,"
		 " crashes = excluded.crashes, next_start_ms = excluded.next_start_ms,"
		 " next = excluded.next, next_consented = excluded.next_consented,"
		 " next_builds = excluded.next_builds"),
	[DELETE] = "DELETE FROM agents WHERE id = ?1",
	[LIST] = ("SELECT id, tenant, name, manifest, status, reason, box, consented, wanted, created_ms,"
		  " crashes, next_start_ms, next, next_consented, next_builds FROM agents ORDER BY "
		  "created_ms, id"),
};

#define STMT(q, which) ((q)->stmt[STORE_AGENTS][which])

static int agent_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_agent *a = args;
	const struct view texts[] = { a->id,     a->tenant, a->name, a->manifest,
				      a->status, a->reason, a->box,  a->consented };
	sqlite3_stmt *stmt = STMT(q, PUT);

	for (size_t i = 0; i < ELEMS(texts); i++)
		store_sql_bind(stmt, (int)i + 1, texts[i]);
	store_sql_bind_u64(stmt, 9, a->wanted);
	sqlite3_bind_int64(stmt, 10, a->created_ms);
	store_sql_bind_u64(stmt, 11, a->crashes);
	sqlite3_bind_int64(stmt, 12, a->next_start_ms);
	store_sql_bind(stmt, 13, a->next);
	store_sql_bind(stmt, 14, a->next_consented);
	store_sql_bind_u64(stmt, 15, a->next_builds);
	return store_sql_run(q, stmt, "storing the agent", e);
}

void store_agent_put(struct store *s, const struct store_agent *a, store_done *done, void *arg)
{
	STORE_SUBMIT(s, agent_put, a, done, arg, offsetof(struct store_agent, id),
		     offsetof(struct store_agent, tenant), offsetof(struct store_agent, name),
		     offsetof(struct store_agent, manifest), offsetof(struct store_agent, status),
		     offsetof(struct store_agent, reason), offsetof(struct store_agent, box),
		     offsetof(struct store_agent, consented), offsetof(struct store_agent, next),
		     offsetof(struct store_agent, next_consented));
}

static int agent_delete(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind(STMT(q, DELETE), 1, *(const struct view *)args);
	return store_sql_run(q, STMT(q, DELETE), "removing the agent", e);
}

void store_agent_delete(struct store *s, struct view id, store_done *done, void *arg)
{
	STORE_SUBMIT(s, agent_delete, &id, done, arg, 0);
}

static int visit_agent(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_agent a = {
		.id = store_sql_column(row, 0),
		.tenant = store_sql_column(row, 1),
		.name = store_sql_column(row, 2),
		.manifest = store_sql_column(row, 3),
		.status = store_sql_column(row, 4),
		.reason = store_sql_column(row, 5),
		.box = store_sql_column(row, 6),
		.consented = store_sql_column(row, 7),
		.wanted = store_sql_column_u64(row, 8) != 0,
		.created_ms = sqlite3_column_int64(row, 9),
		.crashes = store_sql_column_u64(row, 10),
		.next_start_ms = sqlite3_column_int64(row, 11),
		.next = store_sql_column(row, 12),
		.next_consented = store_sql_column(row, 13),
		.next_builds = store_sql_column_u64(row, 14) != 0,
	};

	if (v->agent)
		v->agent(arg, &a);
	return 0;
}

const struct store_table store_agents = { sql, ELEMS(sql), LIST, visit_agent };
