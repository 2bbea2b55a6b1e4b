/*
 * The table of webhooks.
 */
#include "store_events.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, MOVE, DELETE, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO webhooks (id, tenant, url, events, secret, position, created_ms) VALUES (?1,"
		 " ?2, ?3, ?4, ?5, ?6, ?7)"),
	[MOVE] = "UPDATE webhooks SET position = ?2 WHERE id = ?1",
	[DELETE] = "DELETE FROM webhooks WHERE id = ?1",
	[LIST] = ("SELECT id, tenant, url, events, secret, position, created_ms FROM webhooks ORDER BY"
		  " created_ms, id"),
};

#define STMT(q, which) ((q)->stmt[STORE_WEBHOOKS][which])

static int webhook_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_webhook *w = args;
	const struct view texts[] = { w->id, w->tenant, w->url, w->events, w->secret };
	sqlite3_stmt *stmt = STMT(q, PUT);

	for (size_t i = 0; i < ELEMS(texts); i++)
		store_sql_bind(stmt, (int)i + 1, texts[i]);
	store_sql_bind_u64(stmt, 6, w->position);
	sqlite3_bind_int64(stmt, 7, w->created_ms);
	return store_sql_run(q, STMT(q, PUT), "storing the webhook", e);
}

void store_webhook_put(struct store *s, const struct store_webhook *w, store_done *done, void *arg)
{
	STORE_SUBMIT(s, webhook_put, w, done, arg, offsetof(struct store_webhook, id),
		     offsetof(struct store_webhook, tenant), offsetof(struct store_webhook, url),
		     offsetof(struct store_webhook, events), offsetof(struct store_webhook, secret));
}

struct place {
	struct view webhook;
	uint64_t event;
};

static int webhook_move(struct store_sql *q, const void *args, struct err *e)
{
	const struct place *p = args;

	store_sql_bind(STMT(q, MOVE), 1, p->webhook);
	store_sql_bind_u64(STMT(q, MOVE), 2, p->event);
	return store_sql_run(q, STMT(q, MOVE), "storing the webhook's position", e);
}

void store_webhook_move(struct store *s, struct view id, uint64_t position, store_done *done, void *arg)
{
	const struct place p = { id, position };

	STORE_SUBMIT(s, webhook_move, &p, done, arg, offsetof(struct place, webhook));
}

static int webhook_delete(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind(STMT(q, DELETE), 1, *(const struct view *)args);
	return store_sql_run(q, STMT(q, DELETE), "removing the webhook", e);
}

void store_webhook_delete(struct store *s, struct view id, store_done *done, void *arg)
{
	STORE_SUBMIT(s, webhook_delete, &id, done, arg, 0);
}

static int visit_webhook(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_webhook w = {
		.id = store_sql_column(row, 0),
		.tenant = store_sql_column(row, 1),
		.url = store_sql_column(row, 2),
		.events = store_sql_column(row, 3),
		.secret = store_sql_column(row, 4),
		.position = store_sql_column_u64(row, 5),
		.created_ms = sqlite3_column_int64(row, 6),
	};

	if (v->webhook)
		v->webhook(arg, &w);
	return 0;
}

const struct store_table store_webhooks = { sql, ELEMS(sql), LIST, visit_webhook };
