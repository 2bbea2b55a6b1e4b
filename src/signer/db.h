/*
 * The signer's database: SQLite in one file, one connection, WAL with synchronous=FULL, so that what is
 * committed is on disk. Statements are prepared once and named by enum db_stmt.
 *
 * Arguments follow a text of their kinds: t text, b bytes (both struct view), i int64_t.
 */
#pragma once

#include <sqlite3.h>

#include "err.h"
#include "view.h"

enum db_stmt {
	DB_BEGIN,
	DB_COMMIT,
	DB_ROLLBACK,
	DB_STEP,
	DB_STEP_DONE,
	DB_STEP_UNDO,
	DB_META_GET,
	DB_META_PUT,
	DB_WALLET_ADD,
	DB_WALLET_GET,
	DB_WALLET_LIST,
	DB_WALLET_REMOVE,
	DB_WALLET_BUSY,
	DB_RULES_GET,
	DB_RULES_PUT,
	DB_RULES_AGENTS,
	DB_REQUEST_ADD,
	DB_REQUEST_UPDATE,
	DB_REQUEST_GET,
	DB_REQUEST_BY_KEY,
	DB_REQUEST_SAME,
	DB_REQUEST_PENDING,
	DB_REQUEST_OPEN,
	DB_REQUEST_ANY_OPEN,
	DB_REQUEST_LIST,
	DB_REQUEST_OVERDUE,
	DB_REQUEST_REFUSED,
	DB_REQUEST_ENDED,
	DB_SPEND_PUT,
	DB_SPEND_RELEASE,
	DB_SPEND_SETTLE,
	DB_SPEND_AGAIN,
	DB_SPEND_OF,
	DB_SPEND_ALL_OF,
	DB_SPEND_LOAD,
	DB_VOTE_ADD,
	DB_VOTE_COUNT,
	DB_NONCE_GET,
	DB_NONCE_PUT,
	DB_NONCE_BUSY,
	DB_NONCE_FREE,
	DB_SIGNATURE_ADD,
	DB_SIGNATURE_LIST,
	DB_CONTACT_ADD,
	DB_CONTACT_GET,
	DB_CONTACT_ALIKE,
	DB_AUDIT_ADD,
	DB_AUDIT_LAST,
	DB_AUDIT_LIST,
	DB_STMTS
};

struct db {
	sqlite3 *db;
	sqlite3_stmt *stmt[DB_STMTS];
	bool open, step; /* a transaction, and a step of it */
	struct err lost; /* set: why the transaction is gone */
};

int db_open(struct db *d, const char *path, struct err *e) _must_check_;
void db_close(struct db *d); /* accepts half-built */
/* A step: all of it is kept or nothing. It is on disk when db_flush has succeeded, with all steps since the
 * last one. */
int db_begin(struct db *d, struct err *e) _must_check_;
int db_commit(struct db *d, struct err *e) _must_check_;
void db_rollback(struct db *d); /* where there is a step */
/* -1: none of the steps since the last one is kept. */
int db_flush(struct db *d, struct err *e) _must_check_;
/* SQLite gave the transaction up, with all its steps: db_flush says why. */
static inline bool db_lost(const struct db *d)
{
	return d->lost.code != ERR_OK;
}
/* A statement without rows. ERR_CONFLICT: it is there already. */
int db_do(struct db *d, enum db_stmt s, struct err *e, const char *kinds, ...) _must_check_;
/* A statement with rows: ask, then db_row until it is not 1, then db_end. */
sqlite3_stmt *db_ask(struct db *d, enum db_stmt s, const char *kinds, ...);
int db_row(struct db *d, sqlite3_stmt *row, struct err *e) _must_check_; /* 1, 0 at the end, -1 */
void db_end(sqlite3_stmt *row);
struct view db_view(sqlite3_stmt *row, int at); /* of text or bytes; good until the next row */
