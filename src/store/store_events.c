/*
 * The table of events.
 */
#include "store_events.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, DROP, TRIM, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO events (id, at_ms, tenant, box, type, data, number)"
		 " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"),
	[DROP] = "DELETE FROM events WHERE id = ?1",
	[TRIM] = ("DELETE FROM events WHERE at_ms < ?1 AND id NOT IN"
		  " (SELECT max(id) FROM events GROUP BY tenant)"),
	[LIST] = "SELECT id, at_ms, tenant, box, type, data, number FROM events ORDER BY id",
};

#define STMT(q, which) ((q)->stmt[STORE_EVENTS][which])

static int event_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_event *v = args;
	sqlite3_stmt *stmt = STMT(q, PUT);

	store_sql_bind_u64(stmt, 1, v->id);
	sqlite3_bind_int64(stmt, 2, v->at_ms);
	store_sql_bind(stmt, 3, v->tenant);
	store_sql_bind(stmt, 4, v->box);
	store_sql_bind(stmt, 5, v->type);
	store_sql_bind(stmt, 6, v->data);
	store_sql_bind_u64(stmt, 7, v->number);
	return store_sql_run(q, STMT(q, PUT), "storing the event", e);
}

void store_event_put(struct store *s, const struct store_event *v, store_done *done, void *arg)
{
	STORE_SUBMIT(s, event_put, v, done, arg, offsetof(struct store_event, tenant),
		     offsetof(struct store_event, box), offsetof(struct store_event, type),
		     offsetof(struct store_event, data));
}

static int event_drop(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind_u64(STMT(q, DROP), 1, *(const uint64_t *)args);
	return store_sql_run(q, STMT(q, DROP), "removing an event", e);
}

void store_event_drop(struct store *s, uint64_t id, store_done *done, void *arg)
{
	store_submit(s, event_drop, &id, sizeof(id), NULL, 0, done, arg);
}

static int event_trim(struct store_sql *q, const void *args, struct err *e)
{
	sqlite3_bind_int64(STMT(q, TRIM), 1, *(const int64_t *)args);
	return store_sql_run(q, STMT(q, TRIM), "removing old events", e);
}

void store_event_trim(struct store *s, int64_t oldest_ms, store_done *done, void *arg)
{
	store_submit(s, event_trim, &oldest_ms, sizeof(oldest_ms), NULL, 0, done, arg);
}

static int visit_event(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_event event = {
		.id = store_sql_column_u64(row, 0),
		.at_ms = sqlite3_column_int64(row, 1),
		.tenant = store_sql_column(row, 2),
		.box = store_sql_column(row, 3),
		.type = store_sql_column(row, 4),
		.data = store_sql_column(row, 5),
		.number = store_sql_column_u64(row, 6),
	};

	if (v->event)
		v->event(arg, &event);
	return 0;
}

const struct store_table store_events = { sql, ELEMS(sql), LIST, visit_event };
