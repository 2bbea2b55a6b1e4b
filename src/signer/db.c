/*
 * The signer's database: see db.h.
 */
#include "db.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "fd.h"
#include "poison.h"

#define VERSION 1
#define BUSY_MS 10000 /* the one before us, whose keeper was killed, is about to end */

/* `item` of a request is an encoded Item of api/signer.proto; the other columns are for looking it up.
 * states 2 and 6 are pending and approved. */
static const char schema[] =
	"CREATE TABLE meta(key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;"
	"CREATE TABLE wallets(id TEXT PRIMARY KEY, kind INTEGER NOT NULL, label TEXT NOT NULL, address BLOB "
	"NOT NULL,"
	" sealed BLOB NOT NULL, created INTEGER NOT NULL) STRICT;"
	"CREATE TABLE rules(scope TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT;"
	"CREATE TABLE requests(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, wallet "
	"TEXT NOT NULL,"
	" state INTEGER NOT NULL, idem TEXT NOT NULL, content BLOB NOT NULL, created INTEGER NOT NULL,"
	" expires INTEGER NOT NULL, gas_hint INTEGER NOT NULL, item BLOB NOT NULL, sure INTEGER NOT NULL "
	"DEFAULT 0) STRICT;"
	"CREATE UNIQUE INDEX requests_key ON requests(agent, idem) WHERE idem <> '';"
	"CREATE INDEX requests_state ON requests(state, expires);"
	"CREATE INDEX requests_agent ON requests(agent, state, created);"
	"CREATE INDEX requests_content ON requests(content, state);"
	"CREATE TABLE spends(id INTEGER PRIMARY KEY, request TEXT NOT NULL, agent TEXT NOT NULL, wallet TEXT "
	"NOT NULL,"
	" chain INTEGER NOT NULL, asset BLOB NOT NULL, amount BLOB NOT NULL, state INTEGER NOT NULL, ts "
	"INTEGER NOT NULL) STRICT;"
	"CREATE INDEX spends_request ON spends(request);"
	"CREATE INDEX spends_ts ON spends(ts, id);"
	"CREATE TABLE votes(request TEXT NOT NULL, who TEXT NOT NULL, ts INTEGER NOT NULL, PRIMARY "
	"KEY(request, who)) STRICT;"
	"CREATE TABLE nonces(chain INTEGER NOT NULL, address BLOB NOT NULL, next INTEGER NOT NULL,"
	" PRIMARY KEY(chain, address)) STRICT;"
	"CREATE TABLE signatures(request TEXT NOT NULL, generation INTEGER NOT NULL, chain INTEGER NOT NULL,"
	" address BLOB NOT NULL, nonce INTEGER, hash BLOB NOT NULL, raw BLOB NOT NULL, ts INTEGER NOT NULL,"
	" PRIMARY KEY(request, generation), UNIQUE(chain, address, nonce, generation)) STRICT;"
	"CREATE TABLE contacts(wallet TEXT NOT NULL, chain INTEGER NOT NULL, address BLOB NOT NULL,"
	" PRIMARY KEY(wallet, chain, address)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE audit(seq INTEGER PRIMARY KEY, ts INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT "
	"NOT NULL,"
	" object TEXT NOT NULL, detail TEXT NOT NULL, prev BLOB NOT NULL, hash BLOB NOT NULL) STRICT;"
	"CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is "
	"kept'); END;"
	"CREATE TRIGGER audit_fixed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is "
	"kept'); END;"
	"PRAGMA user_version = 1;";

#define REQUEST_COLUMNS "item, gas_hint, content, seq"

static const char *const sql[DB_STMTS] = {
	[DB_BEGIN] = "BEGIN IMMEDIATE",
	[DB_COMMIT] = "COMMIT",
	[DB_ROLLBACK] = "ROLLBACK",
	[DB_STEP] = "SAVEPOINT step",
	[DB_STEP_DONE] = "RELEASE step",
	[DB_STEP_UNDO] = "ROLLBACK TO step",
	[DB_META_GET] = "SELECT value FROM meta WHERE key = ?",
	[DB_META_PUT] = "INSERT INTO meta VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
	[DB_WALLET_ADD] = "INSERT INTO wallets VALUES(?, ?, ?, ?, ?, ?)",
	[DB_WALLET_GET] = "SELECT id, kind, label, address, sealed, created FROM wallets WHERE id = ?",
	[DB_WALLET_LIST] =
		"SELECT id, kind, label, address, sealed, created FROM wallets ORDER BY created, id",
	[DB_WALLET_REMOVE] = "DELETE FROM wallets WHERE id = ?",
	[DB_WALLET_BUSY] = "SELECT 1 FROM requests WHERE wallet = ? AND state IN (2, 6, 7, 8, 16) LIMIT 1",
	[DB_RULES_GET] = "SELECT body FROM rules WHERE scope = ?",
	[DB_RULES_PUT] =
		"INSERT INTO rules VALUES(?, ?) ON CONFLICT(scope) DO UPDATE SET body = excluded.body",
	[DB_RULES_AGENTS] = "SELECT scope, body FROM rules WHERE scope LIKE 'agent:%' ORDER BY scope",
	[DB_REQUEST_ADD] =
		"INSERT INTO requests(id, agent, wallet, state, idem, content, created, expires, gas_hint,"
		" item) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[DB_REQUEST_UPDATE] = "UPDATE requests SET state = ?, expires = ?, item = ?, sure = ? WHERE id = ?",
	[DB_REQUEST_GET] = "SELECT " REQUEST_COLUMNS " FROM requests WHERE id = ?",
	[DB_REQUEST_BY_KEY] = "SELECT " REQUEST_COLUMNS " FROM requests WHERE agent = ? AND idem = ?",
	[DB_REQUEST_SAME] = "SELECT " REQUEST_COLUMNS " FROM requests WHERE content = ? AND state IN (2, 6)"
			    " AND (idem = '' OR ? = '') ORDER BY seq LIMIT 1",
	[DB_REQUEST_PENDING] = "SELECT count(*) FROM requests WHERE agent = ? AND state IN (2, 6)",
	[DB_REQUEST_OPEN] = "SELECT count(*) FROM requests WHERE state IN (2, 6)",
	[DB_REQUEST_ANY_OPEN] = "SELECT 1 FROM requests WHERE state IN (2, 6) LIMIT 1",
	[DB_REQUEST_LIST] =
		"SELECT " REQUEST_COLUMNS
		" FROM requests WHERE (?1 = '' OR agent = ?1) AND (?2 = 0 OR state = ?2)"
		" AND (?3 = '' OR seq < (SELECT seq FROM requests WHERE id = ?3))"
		" AND (?5 = '' OR agent IN (SELECT value FROM json_each(?5))) AND (?6 = 0 OR sure = 0)"
		" ORDER BY seq DESC LIMIT ?4",
	[DB_REQUEST_OVERDUE] =
		"SELECT " REQUEST_COLUMNS " FROM requests WHERE state IN (2, 6) AND expires <= ? LIMIT 1",
	[DB_REQUEST_REFUSED] = "SELECT count(*) FROM requests WHERE agent = ? AND state = 1 AND created > ?",
	[DB_REQUEST_ENDED] =
		"SELECT count(*) FROM requests WHERE agent = ? AND state IN (1, 3, 4, 5) AND created > ?",
	[DB_SPEND_PUT] = "INSERT INTO spends(request, agent, wallet, chain, asset, amount, state, ts)"
			 " VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
	[DB_SPEND_RELEASE] = "UPDATE spends SET state = 3 WHERE request = ? AND state < 3",
	[DB_SPEND_SETTLE] = "UPDATE spends SET state = 4 WHERE request = ? AND state < 3",
	[DB_SPEND_AGAIN] = "UPDATE spends SET state = 2, ts = ?2 WHERE request = ?1 AND state = 4",
	[DB_SPEND_OF] = "SELECT asset, amount, ts FROM spends WHERE request = ? AND state = 1 ORDER BY id",
	[DB_SPEND_ALL_OF] =
		"SELECT asset, amount, ts FROM spends WHERE request = ? AND state < 3 ORDER BY id",
	[DB_SPEND_LOAD] =
		"SELECT request, agent, wallet, chain, asset, amount, state, ts FROM spends WHERE state < 3"
		" ORDER BY ts, id",
	[DB_VOTE_ADD] = "INSERT OR IGNORE INTO votes VALUES(?, ?, ?)",
	[DB_VOTE_COUNT] = "SELECT count(*), group_concat(who, ', ') FROM votes WHERE request = ?",
	[DB_NONCE_GET] = "SELECT next FROM nonces WHERE chain = ? AND address = ?",
	[DB_NONCE_PUT] = "INSERT INTO nonces VALUES(?, ?, ?) ON CONFLICT(chain, address) DO UPDATE SET next "
			 "= excluded.next",
	[DB_NONCE_BUSY] =
		"SELECT 1 FROM signatures s JOIN requests r ON r.id = s.request WHERE s.chain = ? AND "
		"s.address = ? AND s.nonce = ? AND r.state IN (7, 8) LIMIT 1",
	[DB_NONCE_FREE] = "UPDATE signatures SET nonce = NULL WHERE chain = ? AND address = ? AND nonce = ?",
	[DB_SIGNATURE_ADD] =
		"INSERT INTO signatures VALUES(?, ?, ?, ?, CASE WHEN ?5 < 0 THEN NULL ELSE ?5 END, ?, ?, ?)",
	[DB_SIGNATURE_LIST] = "SELECT generation, hash, nonce, raw, ts FROM signatures WHERE request = ?"
			      " ORDER BY generation",
	[DB_CONTACT_ADD] = "INSERT OR IGNORE INTO contacts VALUES(?, ?, ?)",
	[DB_CONTACT_GET] = "SELECT 1 FROM contacts WHERE wallet = ? AND chain = ? AND address = ?",
	/* By the first two bytes, along the key; the last two are compared by the caller. */
	[DB_CONTACT_ALIKE] = "SELECT address FROM contacts WHERE wallet = ?1 AND chain = ?2"
			     " AND address >= substr(?3, 1, 2) AND address < CAST(substr(?3, 1, 2) || "
			     "x'ffffffffff' AS BLOB)"
			     " ORDER BY address",
	[DB_AUDIT_ADD] = "INSERT INTO audit VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
	[DB_AUDIT_LAST] = "SELECT seq, hash, ts FROM audit ORDER BY seq DESC LIMIT 1",
	[DB_AUDIT_LIST] = "SELECT seq, ts, actor, action, object, detail, prev, hash FROM audit WHERE seq > "
			  "? ORDER BY seq LIMIT ?",
};

static int failed(struct db *d, const char *what, struct err *e)
{
	const int rc = d->db ? sqlite3_extended_errcode(d->db) : SQLITE_NOMEM;
	const enum err_code code = (rc & 0xff) == SQLITE_FULL         ? ERR_STORAGE
				   : (rc & 0xff) == SQLITE_CONSTRAINT ? ERR_CONFLICT
								      : ERR_INTERNAL;

	struct err why = { 0 };
	int r = err_set(&why, code, "%s: %s", what, d->db ? sqlite3_errmsg(d->db) : "out of memory");
	if (d->open && sqlite3_get_autocommit(d->db)) { /* a full disk, or one that fails, ends all of it */
		d->open = d->step = false;
		d->lost = why;
	}
	if (e)
		*e = why;
	return r;
}

static int migrate(struct db *d, struct err *e)
{
	sqlite3_stmt *row = NULL;
	int version = -1;

	if (sqlite3_prepare_v2(d->db, "PRAGMA user_version", -1, &row, NULL) == SQLITE_OK &&
	    sqlite3_step(row) == SQLITE_ROW)
		version = sqlite3_column_int(row, 0);
	sqlite3_finalize(row);
	if (version == VERSION)
		return 0;
	if (version != 0)
		return err_set(e, ERR_UNAVAILABLE,
			       "the signer's database is of version %d, and this program knows %d", version,
			       VERSION);
	if (sqlite3_exec(d->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(d->db, schema, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(d->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return failed(d, "making the signer's database", e);
	return 0;
}

int db_open(struct db *d, const char *path, struct err *e)
{
	_cleanup_(closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_sys(e, ERR_UNAVAILABLE, errno, "opening the signer's database");
	closep(&fd);
	/* Exclusive: nobody else has it open, and the index of the log needs no shared memory. */
	if (sqlite3_open_v2(path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
	    sqlite3_busy_timeout(d->db, BUSY_MS) != SQLITE_OK ||
	    sqlite3_exec(
		    d->db,
		    "PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY; PRAGMA journal_mode = WAL;"
		    "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
		    "PRAGMA cache_size = -1024;",
		    NULL, NULL, NULL) != SQLITE_OK)
		return failed(d, "opening the signer's database", e);
	if (migrate(d, e) < 0)
		return -1;
	for (size_t i = 0; i < DB_STMTS; i++)
		if (sqlite3_prepare_v3(d->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &d->stmt[i], NULL) !=
		    SQLITE_OK)
			return failed(d, "preparing a statement", e);
	return 0;
}

void db_close(struct db *d)
{
	for (size_t i = 0; i < DB_STMTS; i++)
		sqlite3_finalize(d->stmt[i]);
	sqlite3_close(d->db);
	*d = (struct db){ 0 };
}

static void bind(sqlite3_stmt *s, const char *kinds, va_list ap)
{
	for (int i = 0; kinds[i]; i++) {
		if (kinds[i] == 'i') {
			sqlite3_bind_int64(s, i + 1, va_arg(ap, int64_t));
			continue;
		}
		const struct view v = va_arg(ap, struct view);
		/* An empty view may have no address, which SQLite would take for NULL. */
		if (kinds[i] == 't')
			sqlite3_bind_text64(s, i + 1, v.n ? v.p : "", v.n, SQLITE_TRANSIENT, SQLITE_UTF8);
		else
			sqlite3_bind_blob64(s, i + 1, v.n ? v.p : "", v.n, SQLITE_TRANSIENT);
	}
}

int db_do(struct db *d, enum db_stmt s, struct err *e, const char *kinds, ...)
{
	va_list ap;

	va_start(ap, kinds);
	bind(d->stmt[s], kinds, ap);
	va_end(ap);
	int r = sqlite3_step(d->stmt[s]) == SQLITE_DONE ? 0 : failed(d, "the signer's database", e);
	db_end(d->stmt[s]);
	return r;
}

sqlite3_stmt *db_ask(struct db *d, enum db_stmt s, const char *kinds, ...)
{
	va_list ap;

	va_start(ap, kinds);
	bind(d->stmt[s], kinds, ap);
	va_end(ap);
	return d->stmt[s];
}

int db_row(struct db *d, sqlite3_stmt *row, struct err *e)
{
	const int rc = sqlite3_step(row);

	return rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : failed(d, "the signer's database", e);
}

void db_end(sqlite3_stmt *row)
{
	sqlite3_reset(row);
	sqlite3_clear_bindings(row);
}

struct view db_view(sqlite3_stmt *row, int at)
{
	const char *p = sqlite3_column_blob(row, at);

	return (struct view){ p ? p : "", (size_t)sqlite3_column_bytes(row, at) };
}

int db_begin(struct db *d, struct err *e)
{
	if (db_lost(d)) {
		*e = d->lost;
		return -1;
	}
	if (!d->open && db_do(d, DB_BEGIN, e, "") < 0)
		return -1;
	d->open = true;
	if (db_do(d, DB_STEP, e, "") < 0)
		return -1;
	d->step = true;
	return 0;
}

int db_commit(struct db *d, struct err *e)
{
	if (db_do(d, DB_STEP_DONE, e, "") < 0)
		return -1;
	d->step = false;
	return 0;
}

void db_rollback(struct db *d)
{
	struct err e = { 0 };

	if (!d->step)
		return;
	d->step = false;
	if ((db_do(d, DB_STEP_UNDO, &e, "") < 0 || db_do(d, DB_STEP_DONE, &e, "") < 0) && d->open) {
		(void)!db_do(d, DB_ROLLBACK, NULL, "");
		d->open = false;
		d->lost = e;
	}
}

int db_flush(struct db *d, struct err *e)
{
	if (db_lost(d)) {
		*e = d->lost;
		d->lost = (struct err){ 0 };
		return -1;
	}
	if (!d->open)
		return 0;
	const int r = db_do(d, DB_COMMIT, e, "");
	d->open = false;
	d->lost = (struct err){ 0 };
	if (r < 0 && !sqlite3_get_autocommit(d->db))
		(void)!db_do(d, DB_ROLLBACK, NULL, "");
	return r;
}
