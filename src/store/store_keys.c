/*
 * The table of keys.
 */
#include <errno.h>

#include "store.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, DELETE, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO keys (id, tenant, name, role, hash, created_ms) VALUES (?1, ?2, ?3, ?4, ?5,"
		 " ?6)"),
	[DELETE] = "DELETE FROM keys WHERE id = ?1",
	[LIST] = "SELECT id, tenant, name, role, hash, created_ms FROM keys ORDER BY created_ms, id",
};

#define STMT(q, which) ((q)->stmt[STORE_KEYS][which])

static int put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_key *k = args;
	sqlite3_stmt *stmt = STMT(q, PUT);

	store_sql_bind(stmt, 1, k->id);
	store_sql_bind(stmt, 2, k->tenant);
	store_sql_bind(stmt, 3, k->name);
	sqlite3_bind_int(stmt, 4, (int)k->role);
	sqlite3_bind_blob(stmt, 5, k->hash, sizeof(k->hash), SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 6, k->created_ms);
	return store_sql_run(q, STMT(q, PUT), "storing the key", e);
}

void store_key_put(struct store *s, const struct store_key *k, store_done *done, void *arg)
{
	STORE_SUBMIT(s, put, k, done, arg, offsetof(struct store_key, id), offsetof(struct store_key, tenant),
		     offsetof(struct store_key, name));
}

static int delete_key(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind(STMT(q, DELETE), 1, *(const struct view *)args);
	return store_sql_run(q, STMT(q, DELETE), "removing the key", e);
}

void store_key_delete(struct store *s, struct view id, store_done *done, void *arg)
{
	STORE_SUBMIT(s, delete_key, &id, done, arg, 0);
}

static int visit_key(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	struct store_key k = {
		.id = store_sql_column(row, 0),
		.tenant = store_sql_column(row, 1),
		.name = store_sql_column(row, 2),
		.role = (enum store_role)sqlite3_column_int(row, 3),
		.created_ms = sqlite3_column_int64(row, 5),
	};
	const void *hash = sqlite3_column_blob(row, 4);

	/* The schema holds both; a file that was tampered with must not make a role. */
	if ((k.role != STORE_ROLE_ADMIN && k.role != STORE_ROLE_USER) || !hash ||
	    sqlite3_column_bytes(row, 4) != (int)sizeof(k.hash))
		return -EBADMSG;
	memcpy(k.hash, hash, sizeof(k.hash));
	if (v->key)
		v->key(arg, &k);
	return 0;
}

const struct store_table store_keys = { sql, ELEMS(sql), LIST, visit_key };
