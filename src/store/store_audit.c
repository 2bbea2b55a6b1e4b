/*
 * The table of who changed what.
 */
#include "store_audit.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, TRIM, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO audit (id, kind, number, at_ms, role, tenant, key, via, origin, request, "
		 "action,"
		 " target, detail, verdict, code, hash)"
		 " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"),
	[TRIM] = "DELETE FROM audit WHERE kind = ?1 AND id < ?2",
	[LIST] = ("SELECT id, kind, number, at_ms, role, tenant, key, via, origin, request, action, target,"
		  " detail, verdict, code, hash FROM audit ORDER BY id"),
};

/* The texts, in the order of their columns from the sixth on; the hash is a blob. */
#define TEXTS                                                                                                \
	AT(tenant), AT(key), AT(via), AT(origin), AT(request), AT(action), AT(target), AT(detail),           \
		AT(verdict), AT(code)
#define AT(f) offsetof(struct store_audit, f)
static const size_t texts[] = { TEXTS }, views[] = { TEXTS, AT(hash) };
#undef AT
#define FIRST_TEXT 6

#define STMT(q, which) ((q)->stmt[STORE_AUDIT][which])

static int audit_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_audit *a = args;
	sqlite3_stmt *stmt = STMT(q, PUT);

	store_sql_bind_u64(stmt, 1, a->id);
	sqlite3_bind_int64(stmt, 2, a->kind);
	store_sql_bind_u64(stmt, 3, a->number);
	sqlite3_bind_int64(stmt, 4, a->at_ms);
	sqlite3_bind_int64(stmt, 5, a->role);
	for (size_t i = 0; i < ELEMS(texts); i++)
		store_sql_bind(stmt, FIRST_TEXT + (int)i,
			       *(const struct view *)((const char *)args + texts[i]));
	sqlite3_bind_blob(stmt, FIRST_TEXT + (int)ELEMS(texts), a->hash.p ? a->hash.p : "", (int)a->hash.n,
			  SQLITE_STATIC);
	return store_sql_run(q, stmt, "storing an entry of the audit log", e);
}

void store_audit_put(struct store *s, const struct store_audit *a, store_done *done, void *arg)
{
	store_submit(s, audit_put, a, sizeof(*a), views, ELEMS(views), done, arg);
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
	struct store_audit a = {
		.id = store_sql_column_u64(row, 0),
		.kind = (uint32_t)sqlite3_column_int64(row, 1),
		.number = store_sql_column_u64(row, 2),
		.at_ms = sqlite3_column_int64(row, 3),
		.role = (enum store_role)sqlite3_column_int(row, 4),
	};

	for (size_t i = 0; i < ELEMS(texts); i++)
		*(struct view *)((char *)&a + texts[i]) = store_sql_column(row, FIRST_TEXT - 1 + (int)i);
	a.hash = store_sql_column(row, FIRST_TEXT - 1 + (int)ELEMS(texts));
	if (v->audit)
		v->audit(arg, &a);
	return 0;
}

const struct store_table store_audit_table = { sql, ELEMS(sql), LIST, visit_audit };
