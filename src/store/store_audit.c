/*
 * The table of who changed what.
 */
#include "store_audit.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, TRIM, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO audit (id, kind, status, at_ms, role, tenant, key, via, action, target, detail)"
		 " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"),
	[TRIM] = "DELETE FROM audit WHERE kind = ?1 AND id < ?2",
	[LIST] = ("SELECT id, kind, status, at_ms, role, tenant, key, via, action, target, detail"
		  " FROM audit ORDER BY id"),
};

#define STMT(q, which) ((q)->stmt[STORE_AUDIT][which])

static int audit_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_audit *a = args;
	sqlite3_stmt *stmt = STMT(q, PUT);

	store_sql_bind_u64(stmt, 1, a->id);
	sqlite3_bind_int64(stmt, 2, a->kind);
	sqlite3_bind_int64(stmt, 3, a->status);
	sqlite3_bind_int64(stmt, 4, a->at_ms);
	sqlite3_bind_int64(stmt, 5, a->role);
	store_sql_bind(stmt, 6, a->tenant);
	store_sql_bind(stmt, 7, a->key);
	store_sql_bind(stmt, 8, a->via);
	store_sql_bind(stmt, 9, a->action);
	store_sql_bind(stmt, 10, a->target);
	store_sql_bind(stmt, 11, a->detail);
	return store_sql_run(q, stmt, "storing an entry of the audit log", e);
}

void store_audit_put(struct store *s, const struct store_audit *a, store_done *done, void *arg)
{
	STORE_SUBMIT(s, audit_put, a, done, arg, offsetof(struct store_audit, tenant),
		     offsetof(struct store_audit, key), offsetof(struct store_audit, via),
		     offsetof(struct store_audit, action), offsetof(struct store_audit, target),
		     offsetof(struct store_audit, detail));
}

struct trim {
	uint32_t kind;
	uint64_t first;
};

static int audit_trim(struct store_sql *q, const void *args, struct err *e)
{
	const struct trim *t = args;

	sqlite3_bind_int64(STMT(q, TRIM), 1, t->kind);
	store_sql_bind_u64(STMT(q, TRIM), 2, t->first);
	return store_sql_run(q, STMT(q, TRIM), "removing old entries of the audit log", e);
}

void store_audit_trim(struct store *s, uint32_t kind, uint64_t first, store_done *done, void *arg)
{
	const struct trim t = { kind, first };
	store_submit(s, audit_trim, &t, sizeof(t), NULL, 0, done, arg);
}

static int visit_audit(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_audit a = {
		.id = store_sql_column_u64(row, 0),
		.kind = (uint32_t)sqlite3_column_int64(row, 1),
		.status = (uint32_t)sqlite3_column_int64(row, 2),
		.at_ms = sqlite3_column_int64(row, 3),
		.role = (enum store_role)sqlite3_column_int(row, 4),
		.tenant = store_sql_column(row, 5),
		.key = store_sql_column(row, 6),
		.via = store_sql_column(row, 7),
		.action = store_sql_column(row, 8),
		.target = store_sql_column(row, 9),
		.detail = store_sql_column(row, 10),
	};

	if (v->audit)
		v->audit(arg, &a);
	return 0;
}

const struct store_table store_audit_table = { sql, ELEMS(sql), LIST, visit_audit };
