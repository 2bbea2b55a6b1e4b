/*
 * The table of deliveries that failed and will be tried again.
 */
#include "store_events.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, DELETE, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO deliveries (webhook, event, attempts, first_ms, next_ms) SELECT ?1, ?2, ?3,"
		 " ?4, ?5 WHERE EXISTS (SELECT 1 FROM webhooks WHERE id = ?1) ON CONFLICT (webhook, event)"
		 " DO UPDATE SET attempts = excluded.attempts, next_ms = excluded.next_ms"),
	[DELETE] = "DELETE FROM deliveries WHERE webhook = ?1 AND event = ?2",
	[LIST] = ("SELECT webhook, event, attempts, first_ms, next_ms FROM deliveries ORDER BY webhook,"
		  " event"),
};

#define STMT(q, which) ((q)->stmt[STORE_DELIVERIES][which])

static int delivery_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_delivery *d = args;
	sqlite3_stmt *stmt = STMT(q, PUT);

	store_sql_bind(stmt, 1, d->webhook);
	store_sql_bind_u64(stmt, 2, d->event);
	store_sql_bind_u64(stmt, 3, d->attempts);
	sqlite3_bind_int64(stmt, 4, d->first_ms);
	sqlite3_bind_int64(stmt, 5, d->next_ms);
	return store_sql_run(q, STMT(q, PUT), "storing the delivery", e);
}

void store_delivery_put(struct store *s, const struct store_delivery *d, store_done *done, void *arg)
{
	STORE_SUBMIT(s, delivery_put, d, done, arg, offsetof(struct store_delivery, webhook));
}

struct which {
	struct view webhook;
	uint64_t event;
};

static int delivery_delete(struct store_sql *q, const void *args, struct err *e)
{
	const struct which *p = args;

	store_sql_bind(STMT(q, DELETE), 1, p->webhook);
	store_sql_bind_u64(STMT(q, DELETE), 2, p->event);
	return store_sql_run(q, STMT(q, DELETE), "removing the delivery", e);
}

void store_delivery_delete(struct store *s, struct view webhook, uint64_t event, store_done *done, void *arg)
{
	const struct which p = { webhook, event };

	STORE_SUBMIT(s, delivery_delete, &p, done, arg, offsetof(struct which, webhook));
}

static int visit_delivery(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_delivery d = {
		.webhook = store_sql_column(row, 0),
		.event = store_sql_column_u64(row, 1),
		.attempts = store_sql_column_u64(row, 2),
		.first_ms = sqlite3_column_int64(row, 3),
		.next_ms = sqlite3_column_int64(row, 4),
	};

	if (v->delivery)
		v->delivery(arg, &d);
	return 0;
}

const struct store_table store_deliveries = { sql, ELEMS(sql), LIST, visit_delivery };
