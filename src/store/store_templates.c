/*
 * The table of templates.
 */
#include "store_events.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, DELETE, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO templates (id, tenant, name, builds, created_ms) VALUES (?1, ?2, ?3, ?4, ?5)"
		 " ON CONFLICT (id) DO UPDATE SET builds = excluded.builds"),
	[DELETE] = "DELETE FROM templates WHERE id = ?1",
	[LIST] = "SELECT id, tenant, name, builds, created_ms FROM templates ORDER BY created_ms, id",
};

#define STMT(q, which) ((q)->stmt[STORE_TEMPLATES][which])

static int template_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_template *t = args;
	sqlite3_stmt *stmt = STMT(q, PUT);

	store_sql_bind(stmt, 1, t->id);
	store_sql_bind(stmt, 2, t->tenant);
	store_sql_bind(stmt, 3, t->name);
	store_sql_bind(stmt, 4, t->builds);
	sqlite3_bind_int64(stmt, 5, t->created_ms);
	return store_sql_run(q, STMT(q, PUT), "storing the template", e);
}

void store_template_put(struct store *s, const struct store_template *t, store_done *done, void *arg)
{
	STORE_SUBMIT(s, template_put, t, done, arg, offsetof(struct store_template, id),
		     offsetof(struct store_template, tenant), offsetof(struct store_template, name),
		     offsetof(struct store_template, builds));
}

static int template_delete(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind(STMT(q, DELETE), 1, *(const struct view *)args);
	return store_sql_run(q, STMT(q, DELETE), "removing the template", e);
}

void store_template_delete(struct store *s, struct view id, store_done *done, void *arg)
{
	STORE_SUBMIT(s, template_delete, &id, done, arg, 0);
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

const struct store_table store_templates = { sql, ELEMS(sql), LIST, visit_template };
