/*
 * The table of settings: what belongs to the installation.
 */
#include "store.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, DELETE, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO settings (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET"
		 " value = excluded.value"),
	[DELETE] = "DELETE FROM settings WHERE name = ?1",
	[LIST] = "SELECT name, value FROM settings ORDER BY name",
};

#define STMT(q, which) ((q)->stmt[STORE_SETTINGS][which])

static int put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_setting *v = args;
	sqlite3_stmt *stmt = STMT(q, PUT);

	store_sql_bind(stmt, 1, v->name);
	sqlite3_bind_blob64(stmt, 2, v->value.n ? v->value.p : "", v->value.n, SQLITE_STATIC);
	return store_sql_run(q, STMT(q, PUT), "storing the setting", e);
}

void store_setting_put(struct store *s, const struct store_setting *v, store_done *done, void *arg)
{
	STORE_SUBMIT(s, put, v, done, arg, offsetof(struct store_setting, name),
		     offsetof(struct store_setting, value));
}

static int delete_one(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind(STMT(q, DELETE), 1, *(const struct view *)args);
	return store_sql_run(q, STMT(q, DELETE), "removing the setting", e);
}

void store_setting_delete(struct store *s, struct view name, store_done *done, void *arg)
{
	STORE_SUBMIT(s, delete_one, &name, done, arg, 0);
}

static int visit_setting(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const void *value = sqlite3_column_blob(row, 1);
	const struct store_setting s = {
		.name = store_sql_column(row, 0),
		.value = { value ? value : "", (size_t)sqlite3_column_bytes(row, 1) },
	};

	if (v->setting)
		v->setting(arg, &s);
	return 0;
}

const struct store_table store_settings = { sql, ELEMS(sql), LIST, visit_setting };
