/*
 * The table of the gate's verdicts.
 */
#include "store_verdicts.h"

#include "store_impl.h"

#include "poison.h"

enum { PUT, DELETE, LIST };

static const char *const sql[] = {
	[PUT] = ("INSERT INTO verdicts (id, box, first_ms, at_ms, count, allowed, reason, port, protocol,"
		 " host, address, rule, method, path, via) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"
		 " ?11, ?12, ?13, ?14, ?15 WHERE EXISTS (SELECT 1 FROM boxes WHERE id = ?2)"),
	[DELETE] = "DELETE FROM verdicts WHERE id = ?1",
	[LIST] = ("SELECT id, box, first_ms, at_ms, count, allowed, reason, port, protocol, host, address,"
		  " rule, method, path, via FROM verdicts ORDER BY id"),
};

#define STMT(q, which) ((q)->stmt[STORE_VERDICTS][which])

static int delete_row(struct store_sql *q, uint64_t id, struct err *e)
{
	sqlite3_bind_int64(STMT(q, DELETE), 1, (int64_t)id);
	return store_sql_run(q, STMT(q, DELETE), "removing a verdict", e);
}

static int verdict_put(struct store_sql *q, const void *args, struct err *e)
{
	const struct store_verdict *v = args;
	const struct view texts[] = { v->protocol, v->host, v->address, v->rule, v->method, v->path, v->via };
	sqlite3_stmt *stmt = STMT(q, PUT);

	if (v->was && delete_row(q, v->was, e) < 0)
		return -1;
	sqlite3_bind_int64(stmt, 1, (int64_t)v->id);
	store_sql_bind(stmt, 2, v->box);
	sqlite3_bind_int64(stmt, 3, v->first_ms);
	sqlite3_bind_int64(stmt, 4, v->at_ms);
	sqlite3_bind_int64(stmt, 5, (int64_t)v->count);
	sqlite3_bind_int64(stmt, 6, v->allowed);
	sqlite3_bind_int64(stmt, 7, v->reason);
	sqlite3_bind_int64(stmt, 8, v->port);
	for (size_t i = 0; i < ELEMS(texts); i++)
		store_sql_bind(stmt, (int)(9 + i), texts[i]);
	return store_sql_run(q, STMT(q, PUT), "storing a verdict", e);
}

void store_verdict_put(struct store *s, const struct store_verdict *v, store_done *done, void *arg)
{
	static const size_t views[] = {
		offsetof(struct store_verdict, box),  offsetof(struct store_verdict, protocol),
		offsetof(struct store_verdict, host), offsetof(struct store_verdict, address),
		offsetof(struct store_verdict, rule), offsetof(struct store_verdict, method),
		offsetof(struct store_verdict, path), offsetof(struct store_verdict, via),
	};
	store_submit(s, verdict_put, v, sizeof(*v), views, ELEMS(views), done, arg);
}

static int verdict_delete(struct store_sql *q, const void *args, struct err *e)
{
	struct view ids = *(const struct view *)args;
	uint64_t id;

	for (; ids.n >= sizeof(id); ids = view_skip(ids, sizeof(id))) {
		memcpy(&id, ids.p, sizeof(id));
		if (delete_row(q, id, e) < 0)
			return -1;
	}
	return 0;
}

void store_verdict_delete(struct store *s, struct view ids, store_done *done, void *arg)
{
	static const size_t views[] = { 0 };
	store_submit(s, verdict_delete, &ids, sizeof(ids), views, ELEMS(views), done, arg);
}

static int visit(sqlite3_stmt *row, const struct store_visitor *v, void *arg)
{
	const struct store_verdict one = {
		.id = (uint64_t)sqlite3_column_int64(row, 0),
		.box = store_sql_column(row, 1),
		.first_ms = sqlite3_column_int64(row, 2),
		.at_ms = sqlite3_column_int64(row, 3),
		.count = (uint64_t)sqlite3_column_int64(row, 4),
		.allowed = sqlite3_column_int64(row, 5) == 1,
		.reason = (uint32_t)sqlite3_column_int64(row, 6),
		.port = (uint16_t)sqlite3_column_int64(row, 7),
		.protocol = store_sql_column(row, 8),
		.host = store_sql_column(row, 9),
		.address = store_sql_column(row, 10),
		.rule = store_sql_column(row, 11),
		.method = store_sql_column(row, 12),
		.path = store_sql_column(row, 13),
		.via = store_sql_column(row, 14),
	};

	if (v->verdict)
		v->verdict(arg, &one);
	return 0;
}

const struct store_table store_verdicts = { sql, ELEMS(sql), LIST, visit };
