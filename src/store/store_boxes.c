/*
 * The table of boxes.
 */
#include "store.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, CLAIM, SET_STATUS, UPDATE, SET_USED, DELETE, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO boxes (id, tenant, name, status, image, digest, backend, spec, metadata,"
		 " created_ms, expires_ms, used_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"
		 " ?12)"),
	[CLAIM] = ("UPDATE boxes SET tenant = ?2, name = ?3, status = ?4, image = ?5, digest = ?6, backend ="
		   " ?7, spec = ?8, metadata = ?9, created_ms = ?10, expires_ms = ?11, used_ms = ?12 WHERE"
		   " id = ?1"),
	[SET_STATUS] = "UPDATE boxes SET status = ?2 WHERE id = ?1",
	[UPDATE] = "UPDATE boxes SET spec = ?2, metadata = ?3, expires_ms = ?4, used_ms = ?5 WHERE id = ?1",
	[SET_USED] = "UPDATE boxes SET used_ms = ?2 WHERE id = ?1",
	[DELETE] = "DELETE FROM boxes WHERE id = ?1",
	[LIST] = ("SELECT id, tenant, name, status, image, digest, backend, spec, metadata, created_ms,"
		  " expires_ms, used_ms FROM boxes ORDER BY created_ms, id"),
};

#define STMT(q, which) ((q)->stmt[STORE_BOXES][which])

static int write_box(struct store_sql *q, int which, const struct store_box *b, struct err *e)
{
	sqlite3_stmt *stmt = STMT(q, which);
	const struct view texts[] = { b->id,     b->tenant,  b->name, b->status,  b->image,
				      b->digest, b->backend, b->spec, b->metadata };

	for (size_t i = 0; i < ELEMS(texts); i++)
		store_sql_bind(stmt, (int)i + 1, texts[i]);
	sqlite3_bind_int64(stmt, 10, b->created_ms);
	sqlite3_bind_int64(stmt, 11, b->expires_ms);
	sqlite3_bind_int64(stmt, 12, b->used_ms);
	return store_sql_run(q, stmt, "storing the sandbox", e);
}

/* The change of a row that must be there. */
static int run_change(struct store_sql *q, int which, const char *what, struct err *e)
{
	if (store_sql_run(q, STMT(q, which), what, e) < 0)
		return -1;
	return sqlite3_changes(q->db) ? 0 : err_set(e, ERR_NOT_FOUND, "%s: no such sandbox", what);
}

static int put(struct store_sql *q, const void *args, struct err *e)
{
	return write_box(q, PUT, args, e);
}

void store_box_put(struct store *s, const struct store_box *b, store_done *done, void *arg)
{
	STORE_SUBMIT(s, put, b, done, arg, offsetof(struct store_box, id), offsetof(struct store_box, tenant),
		     offsetof(struct store_box, name), offsetof(struct store_box, status),
		     offsetof(struct store_box, image), offsetof(struct store_box, digest),
		     offsetof(struct store_box, backend), offsetof(struct store_box, spec),
		     offsetof(struct store_box, metadata));
}

/* All of a row that must be there. */
static int claim(struct store_sql *q, const void *args, struct err *e)
{
	if (write_box(q, CLAIM, args, e) < 0)
		return -1;
	return sqlite3_changes(q->db) ? 0 : err_set(e, ERR_NOT_FOUND, "storing the sandbox: no such sandbox");
}

void store_box_claim(struct store *s, const struct store_box *b, store_done *done, void *arg)
{
	STORE_SUBMIT(s, claim, b, done, arg, offsetof(struct store_box, id),
		     offsetof(struct store_box, tenant), offsetof(struct store_box, name),
		     offsetof(struct store_box, status), offsetof(struct store_box, image),
		     offsetof(struct store_box, digest), offsetof(struct store_box, backend),
		     offsetof(struct store_box, spec), offsetof(struct store_box, metadata));
}

struct status_change {
	struct view id, status;
};

static int set_status(struct store_sql *q, const void *args, struct err *e)
{
	const struct status_change *c = args;

	store_sql_bind(STMT(q, SET_STATUS), 1, c->id);
	store_sql_bind(STMT(q, SET_STATUS), 2, c->status);
	return run_change(q, SET_STATUS, "storing the status", e);
}

void store_box_set_status(struct store *s, struct view id, struct view status, store_done *done, void *arg)
{
	const struct status_change c = { id, status };

	STORE_SUBMIT(s, set_status, &c, done, arg, offsetof(struct status_change, id),
		     offsetof(struct status_change, status));
}

static int update(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_box_change *b = args;
	sqlite3_stmt *stmt = STMT(q, UPDATE);

	store_sql_bind(stmt, 1, b->id);
	store_sql_bind(stmt, 2, b->spec);
	store_sql_bind(stmt, 3, b->metadata);
	sqlite3_bind_int64(stmt, 4, b->expires_ms);
	sqlite3_bind_int64(stmt, 5, b->used_ms);
	return run_change(q, UPDATE, "changing the sandbox", e);
}

void store_box_update(struct store *s, const struct store_box_change *b, store_done *done, void *arg)
{
	STORE_SUBMIT(s, update, b, done, arg, offsetof(struct store_box_change, id),
		     offsetof(struct store_box_change, spec), offsetof(struct store_box_change, metadata));
}

struct use {
	struct view id;
	int64_t used_ms;
};

static int set_used(struct store_sql *q, const void *args, struct err *e)
{
	const struct use *u = args;

	store_sql_bind(STMT(q, SET_USED), 1, u->id);
	sqlite3_bind_int64(STMT(q, SET_USED), 2, u->used_ms);
	return run_change(q, SET_USED, "storing the sandbox's last use", e);
}

void store_box_set_used(struct store *s, struct view id, int64_t used_ms, store_done *done, void *arg)
{
	const struct use u = { id, used_ms };

	STORE_SUBMIT(s, set_used, &u, done, arg, offsetof(struct use, id));
}

static int delete_box(struct store_sql *q, const void *args, struct err *e)
{
	store_sql_bind(STMT(q, DELETE), 1, *(const struct view *)args);
	return store_sql_run(q, STMT(q, DELETE), "removing the sandbox", e);
}

void store_box_delete(struct store *s, struct view id, store_done *done, void *arg)
{
	STORE_SUBMIT(s, delete_box, &id, done, arg, 0);
}

static int visit_box(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_box b = {
		.id = store_sql_column(row, 0),
		.tenant = store_sql_column(row, 1),
		.name = store_sql_column(row, 2),
		.status = store_sql_column(row, 3),
		.image = store_sql_column(row, 4),
		.digest = store_sql_column(row, 5),
		.backend = store_sql_column(row, 6),
		.spec = store_sql_column(row, 7),
		.metadata = store_sql_column(row, 8),
		.created_ms = sqlite3_column_int64(row, 9),
		.expires_ms = sqlite3_column_int64(row, 10),
		.used_ms = sqlite3_column_int64(row, 11),
	};

	if (v->box)
		v->box(arg, &b);
	return 0;
}

const struct store_table store_boxes = { sql, ELEMS(sql), LIST, visit_box };
