/*
 * Events, webhooks, deliveries, quotas: see store_events.h. Each call is a struct of
 * arguments and the function that binds them to its statement.
 */
#include "store_events.h"

#include "store_impl.h"

#include "poison.h"

#define SUBMIT(s, apply, args, done, arg, ...)                                                               \
	store_submit(s, apply, args, sizeof(*(args)), (const size_t[]){ __VA_ARGS__ },                       \
		     sizeof((const size_t[]){ __VA_ARGS__ }) / sizeof(size_t), done, arg)

/* SQLite's integers are signed; ids and limits stay far below. */
static void bind_u64(sqlite3_stmt *stmt, int at, uint64_t v)
{
	sqlite3_bind_int64(stmt, at, v > INT64_MAX ? INT64_MAX : (int64_t)v);
}

static uint64_t column_u64(sqlite3_stmt *row, int at)
{
	int64_t v = sqlite3_column_int64(row, at);

	return v < 0 ? 0 : (uint64_t)v;
}

/* ---- events ---- */

static int event_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_event *v = args;
	sqlite3_stmt *stmt = q->stmt[STMT_EVENT_PUT];

	bind_u64(stmt, 1, v->id);
	sqlite3_bind_int64(stmt, 2, v->at_ms);
	store_sql_bind(stmt, 3, v->tenant);
	store_sql_bind(stmt, 4, v->box);
	store_sql_bind(stmt, 5, v->type);
	store_sql_bind(stmt, 6, v->data);
	return store_sql_run(q, STMT_EVENT_PUT, "storing the event", e);
}

void store_event_put(struct store *s, const struct store_event *v, store_done *done, void *arg)
{
	SUBMIT(s, event_put, v, done, arg, offsetof(struct store_event, tenant),
	       offsetof(struct store_event, box), offsetof(struct store_event, type),
	       offsetof(struct store_event, data));
}

static int event_trim(struct store_sql *q, const void *args, struct err *e)
{
	bind_u64(q->stmt[STMT_EVENT_TRIM], 1, *(const uint64_t *)args);
	return store_sql_run(q, STMT_EVENT_TRIM, "removing old events", e);
}

void store_event_trim(struct store *s, uint64_t first_kept, store_done *done, void *arg)
{
	store_submit(s, event_trim, &first_kept, sizeof(first_kept), NULL, 0, done, arg);
}

/* ---- webhooks ---- */

static int webhook_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_webhook *w = args;
	const struct view texts[] = { w->id, w->tenant, w->url, w->events, w->secret };
	sqlite3_stmt *stmt = q->stmt[STMT_WEBHOOK_PUT];

	for (size_t i = 0; i < ELEMS(texts); i++)
		store_sql_bind(stmt, (int)i + 1, texts[i]);
	bind_u64(stmt, 6, w->position);
	sqlite3_bind_int64(stmt, 7, w->created_ms);
	return store_sql_run(q, STMT_WEBHOOK_PUT, "storing the webhook", e);
}

void store_webhook_put(struct store *s, const struct store_webhook *w, store_done *done, void *arg)
{
	SUBMIT(s, webhook_put, w, done, arg, offsetof(struct store_webhook, id),
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

	store_sql_bind(q->stmt[STMT_WEBHOOK_MOVE], 1, p->webhook);
	bind_u64(q->stmt[STMT_WEBHOOK_MOVE], 2, p->event);
	return store_sql_run(q, STMT_WEBHOOK_MOVE, "storing the webhook's position", e);
}

void store_webhook_move(struct store *s, struct view id, uint64_t position, store_done *done, void *arg)
{
	const struct place p = { id, position };

	SUBMIT(s, webhook_move, &p, done, arg, offsetof(struct place, webhook));
}

static int webhook_delete(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind(q->stmt[STMT_WEBHOOK_DELETE], 1, *(const struct view *)args);
	return store_sql_run(q, STMT_WEBHOOK_DELETE, "removing the webhook", e);
}

void store_webhook_delete(struct store *s, struct view id, store_done *done, void *arg)
{
	SUBMIT(s, webhook_delete, &id, done, arg, 0);
}

static int delivery_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_delivery *d = args;
	sqlite3_stmt *stmt = q->stmt[STMT_DELIVERY_PUT];

	store_sql_bind(stmt, 1, d->webhook);
	bind_u64(stmt, 2, d->event);
	bind_u64(stmt, 3, d->attempts);
	sqlite3_bind_int64(stmt, 4, d->first_ms);
	sqlite3_bind_int64(stmt, 5, d->next_ms);
	return store_sql_run(q, STMT_DELIVERY_PUT, "storing the delivery", e);
}

void store_delivery_put(struct store *s, const struct store_delivery *d, store_done *done, void *arg)
{
	SUBMIT(s, delivery_put, d, done, arg, offsetof(struct store_delivery, webhook));
}

static int delivery_delete(struct store_sql *q, const void *args, struct err *e)
{
	const struct place *p = args;

	store_sql_bind(q->stmt[STMT_DELIVERY_DELETE], 1, p->webhook);
	bind_u64(q->stmt[STMT_DELIVERY_DELETE], 2, p->event);
	return store_sql_run(q, STMT_DELIVERY_DELETE, "removing the delivery", e);
}

void store_delivery_delete(struct store *s, struct view webhook, uint64_t event, store_done *done, void *arg)
{
	const struct place p = { webhook, event };

	SUBMIT(s, delivery_delete, &p, done, arg, offsetof(struct place, webhook));
}

/* ---- quotas ---- */

static int quota_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_quota *v = args;
	sqlite3_stmt *stmt = q->stmt[STMT_QUOTA_PUT];

	store_sql_bind(stmt, 1, v->tenant);
	bind_u64(stmt, 2, v->creates_per_minute);
	for (int i = 0; i < STORE_QUOTA_NUMBERS; i++)
		bind_u64(stmt, i + 3, v->numbers[i]);
	return store_sql_run(q, STMT_QUOTA_PUT, "storing the quota", e);
}

void store_quota_put(struct store *s, const struct store_quota *q, store_done *done, void *arg)
{
	SUBMIT(s, quota_put, q, done, arg, offsetof(struct store_quota, tenant));
}

/* ---- egress ---- */

static int egress_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_egress *v = args;

	store_sql_bind(q->stmt[STMT_EGRESS_PUT], 1, v->tenant);
	store_sql_bind(q->stmt[STMT_EGRESS_PUT], 2, v->policy);
	return store_sql_run(q, STMT_EGRESS_PUT, "storing the egress policy", e);
}

void store_egress_put(struct store *s, const struct store_egress *v, store_done *done, void *arg)
{
	SUBMIT(s, egress_put, v, done, arg, offsetof(struct store_egress, tenant),
	       offsetof(struct store_egress, policy));
}

static int egress_delete(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind(q->stmt[STMT_EGRESS_DELETE], 1, *(const struct view *)args);
	return store_sql_run(q, STMT_EGRESS_DELETE, "removing the egress policy", e);
}

void store_egress_delete(struct store *s, struct view tenant, store_done *done, void *arg)
{
	SUBMIT(s, egress_delete, &tenant, done, arg, 0);
}

/* ---- templates ---- */

static int template_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_template *t = args;
	sqlite3_stmt *stmt = q->stmt[STMT_TEMPLATE_PUT];

	store_sql_bind(stmt, 1, t->id);
	store_sql_bind(stmt, 2, t->tenant);
	store_sql_bind(stmt, 3, t->name);
	store_sql_bind(stmt, 4, t->builds);
	sqlite3_bind_int64(stmt, 5, t->created_ms);
	return store_sql_run(q, STMT_TEMPLATE_PUT, "storing the template", e);
}

void store_template_put(struct store *s, const struct store_template *t, store_done *done, void *arg)
{
	SUBMIT(s, template_put, t, done, arg, offsetof(struct store_template, id),
	       offsetof(struct store_template, tenant), offsetof(struct store_template, name),
	       offsetof(struct store_template, builds));
}

static int template_delete(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind(q->stmt[STMT_TEMPLATE_DELETE], 1, *(const struct view *)args);
	return store_sql_run(q, STMT_TEMPLATE_DELETE, "removing the template", e);
}

void store_template_delete(struct store *s, struct view id, store_done *done, void *arg)
{
	SUBMIT(s, template_delete, &id, done, arg, 0);
}

/* ---- boxes: all of a row ---- */

static int box_claim(struct store_sql *q, const void *args, struct err *e)
{
	return store_sql_box_claim(q, args, e);
}

void store_box_claim(struct store *s, const struct store_box *b, store_done *done, void *arg)
{
	static_assert(sizeof(struct store_box) <= STORE_ARGS_MAX, "store_submit takes it");
	SUBMIT(s, box_claim, b, done, arg, offsetof(struct store_box, id), offsetof(struct store_box, tenant),
	       offsetof(struct store_box, name), offsetof(struct store_box, status),
	       offsetof(struct store_box, image), offsetof(struct store_box, digest),
	       offsetof(struct store_box, backend), offsetof(struct store_box, spec),
	       offsetof(struct store_box, metadata));
}

/* ---- loading ---- */

static int visit_event(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_event event = {
		.id = column_u64(row, 0),
		.at_ms = sqlite3_column_int64(row, 1),
		.tenant = store_sql_column(row, 2),
		.box = store_sql_column(row, 3),
		.type = store_sql_column(row, 4),
		.data = store_sql_column(row, 5),
	};

	if (v->event)
		v->event(arg, &event);
	return 0;
}

static int visit_webhook(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_webhook w = {
		.id = store_sql_column(row, 0),
		.tenant = store_sql_column(row, 1),
		.url = store_sql_column(row, 2),
		.events = store_sql_column(row, 3),
		.secret = store_sql_column(row, 4),
		.position = column_u64(row, 5),
		.created_ms = sqlite3_column_int64(row, 6),
	};

	if (v->webhook)
		v->webhook(arg, &w);
	return 0;
}

static int visit_delivery(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_delivery d = {
		.webhook = store_sql_column(row, 0),
		.event = column_u64(row, 1),
		.attempts = column_u64(row, 2),
		.first_ms = sqlite3_column_int64(row, 3),
		.next_ms = sqlite3_column_int64(row, 4),
	};

	if (v->delivery)
		v->delivery(arg, &d);
	return 0;
}

static int visit_quota(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	struct store_quota q = { .tenant = store_sql_column(row, 0),
				 .creates_per_minute = column_u64(row, 1) };

	for (int i = 0; i < STORE_QUOTA_NUMBERS; i++)
		q.numbers[i] = column_u64(row, i + 2);

	if (v->quota)
		v->quota(arg, &q);
	return 0;
}

static int visit_egress(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_egress egress = { .tenant = store_sql_column(row, 0),
					     .policy = store_sql_column(row, 1) };

	if (v->egress)
		v->egress(arg, &egress);
	return 0;
}

static int visit_template(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_template t = {
		.id = store_sql_column(row, 0),
		.tenant = store_sql_column(row, 1),
		.name = store_sql_column(row, 2),
		.builds = store_sql_column(row, 3),
		.created_ms = sqlite3_column_int64(row, 4),
	};

	if (v->template)
		v->template(arg, &t);
	return 0;
}

int store_events_load(struct store_sql *q, const struct store_visitor *v, void *arg, struct err *e)
{
	int ret = store_sql_each(q, STMT_EVENT_LIST, visit_event, v, arg, e);

	if (ret == 0)
		ret = store_sql_each(q, STMT_WEBHOOK_LIST, visit_webhook, v, arg, e);
	if (ret == 0)
		ret = store_sql_each(q, STMT_DELIVERY_LIST, visit_delivery, v, arg, e);
	if (ret == 0)
		ret = store_sql_each(q, STMT_QUOTA_LIST, visit_quota, v, arg, e);
	if (ret == 0)
		ret = store_sql_each(q, STMT_EGRESS_LIST, visit_egress, v, arg, e);
	if (ret == 0)
		ret = store_sql_each(q, STMT_TEMPLATE_LIST, visit_template, v, arg, e);
	return ret;
}
