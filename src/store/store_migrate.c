/*
 * The schema, as the ordered steps that lead to it. PRAGMA user_version is the number
 * of steps that a database has taken; each is one transaction together with its
 * number, so that a kill leaves a whole version behind.
 *
 * A step that was released never changes: the next one corrects it.
 */
#include "store_sql.h"

#include "poison.h"

#define APPLICATION_ID 0x5061646b /* "Padk": tells our files from other SQLite databases */

static const char *const STEPS[] = {
	/* 1: tenants, keys, boxes */
	"CREATE TABLE tenants ("
	"  id TEXT PRIMARY KEY NOT NULL,"
	"  name TEXT NOT NULL,"
	"  created_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE TABLE keys ("
	"  id TEXT PRIMARY KEY NOT NULL,"
	"  tenant TEXT NOT NULL REFERENCES tenants (id),"
	"  name TEXT NOT NULL,"
	"  role INTEGER NOT NULL CHECK (role IN (1, 2)),"
	"  hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),"
	"  created_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE TABLE boxes ("
	"  id TEXT PRIMARY KEY NOT NULL,"
	"  tenant TEXT NOT NULL REFERENCES tenants (id),"
	"  name TEXT NOT NULL,"
	"  status TEXT NOT NULL,"
	"  image TEXT NOT NULL,"
	"  digest TEXT NOT NULL,"
	"  backend TEXT NOT NULL,"
	"  spec TEXT NOT NULL,"
	"  metadata TEXT NOT NULL,"
	"  created_ms INTEGER NOT NULL,"
	"  expires_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE UNIQUE INDEX boxes_name ON boxes (tenant, name) WHERE name <> '';"
	"PRAGMA application_id = 1348559979;",
	/* 2: what belongs to the installation, such as the secret that signs URLs */
	"CREATE TABLE settings ("
	"  name TEXT PRIMARY KEY NOT NULL,"
	"  value BLOB NOT NULL"
	") STRICT;",
	/* 3: idle boxes, snapshots, workspaces */
	"ALTER TABLE boxes ADD COLUMN used_ms INTEGER NOT NULL DEFAULT 0;"
	"CREATE TABLE snapshots ("
	"  id TEXT PRIMARY KEY NOT NULL,"
	"  tenant TEXT NOT NULL REFERENCES tenants (id),"
	"  name TEXT NOT NULL,"
	"  image TEXT NOT NULL,"
	"  digest TEXT NOT NULL,"
	"  bytes INTEGER NOT NULL,"
	"  stopped_us INTEGER NOT NULL,"
	"  created_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE UNIQUE INDEX snapshots_name ON snapshots (tenant, name) WHERE name <> '';"
	"CREATE TABLE workspaces ("
	"  id TEXT PRIMARY KEY NOT NULL,"
	"  tenant TEXT NOT NULL REFERENCES tenants (id),"
	"  name TEXT NOT NULL,"
	"  disk_mb INTEGER NOT NULL,"
	"  created_ms INTEGER NOT NULL,"
	"  UNIQUE (tenant, name)"
	") STRICT;",
	/* 4: events, webhooks with what they still owe, quotas */
	"CREATE TABLE events ("
	"  id INTEGER PRIMARY KEY NOT NULL,"
	"  at_ms INTEGER NOT NULL,"
	"  tenant TEXT NOT NULL REFERENCES tenants (id),"
	"  box TEXT NOT NULL,"
	"  type TEXT NOT NULL,"
	"  data TEXT NOT NULL"
	") STRICT;"
	"CREATE TABLE webhooks ("
	"  id TEXT PRIMARY KEY NOT NULL,"
	"  tenant TEXT NOT NULL REFERENCES tenants (id),"
	"  url TEXT NOT NULL,"
	"  events TEXT NOT NULL,"
	"  secret TEXT NOT NULL,"
	"  position INTEGER NOT NULL,"
	"  created_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE TABLE deliveries ("
	"  webhook TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,"
	"  event INTEGER NOT NULL,"
	"  attempts INTEGER NOT NULL,"
	"  first_ms INTEGER NOT NULL,"
	"  next_ms INTEGER NOT NULL,"
	"  PRIMARY KEY (webhook, event)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE quotas ("
	"  tenant TEXT PRIMARY KEY NOT NULL REFERENCES tenants (id),"
	"  boxes INTEGER NOT NULL,"
	"  cpu_milli INTEGER NOT NULL,"
	"  memory_mb INTEGER NOT NULL,"
	"  disk_mb INTEGER NOT NULL,"
	"  creates_per_minute INTEGER NOT NULL"
	") STRICT;",
	/* 5: what a tenant's boxes may reach that have no policy of their own */
	"CREATE TABLE egress ("
	"  tenant TEXT PRIMARY KEY NOT NULL REFERENCES tenants (id),"
	"  policy TEXT NOT NULL"
	") STRICT;",
	/* 6: workspaces that do not change */
	"ALTER TABLE workspaces ADD COLUMN readonly INTEGER NOT NULL DEFAULT 0;",
	/* 7: whose files a snapshot has; of older ones nobody knows */
	"ALTER TABLE snapshots ADD COLUMN source TEXT NOT NULL DEFAULT '';",
	/* 8: templates; `builds` says what their tags mean */
	"CREATE TABLE templates ("
	"  id TEXT PRIMARY KEY NOT NULL,"
	"  tenant TEXT NOT NULL REFERENCES tenants (id),"
	"  name TEXT NOT NULL,"
	"  builds TEXT NOT NULL,"
	"  created_ms INTEGER NOT NULL,"
	"  UNIQUE (tenant, name)"
	") STRICT;",
	/* 9: what calls to models used, day by day, and those that are under way. Boxes may be gone. */
	"CREATE TABLE ai_usage ("
	"  day INTEGER NOT NULL,"
	"  tenant TEXT NOT NULL REFERENCES tenants (id),"
	"  box TEXT NOT NULL,"
	"  provider TEXT NOT NULL,"
	"  model TEXT NOT NULL,"
	"  requests INTEGER NOT NULL,"
	"  estimated INTEGER NOT NULL,"
	"  input INTEGER NOT NULL,"
	"  cache_read INTEGER NOT NULL,"
	"  cache_write INTEGER NOT NULL,"
	"  output INTEGER NOT NULL,"
	"  cost INTEGER NOT NULL,"
	"  PRIMARY KEY (day, tenant, box, provider, model)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE ai_calls ("
	"  id INTEGER PRIMARY KEY NOT NULL,"
	"  day INTEGER NOT NULL,"
	"  tenant TEXT NOT NULL REFERENCES tenants (id),"
	"  box TEXT NOT NULL,"
	"  provider TEXT NOT NULL,"
	"  model TEXT NOT NULL,"
	"  tokens INTEGER NOT NULL,"
	"  cost INTEGER NOT NULL"
	") STRICT;",
	/* 10: what tenants may use of models; calls to them that are over */
	"CREATE TABLE ai_limits ("
	"  tenant TEXT PRIMARY KEY NOT NULL REFERENCES tenants (id),"
	"  limits TEXT NOT NULL"
	") STRICT;"
	"ALTER TABLE ai_calls ADD COLUMN at_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE ai_calls ADD COLUMN endpoint TEXT NOT NULL DEFAULT '';"
	"CREATE TABLE ai_log ("
	"  id INTEGER PRIMARY KEY NOT NULL,"
	"  at_ms INTEGER NOT NULL,"
	"  duration_ms INTEGER NOT NULL,"
	"  tenant TEXT NOT NULL REFERENCES tenants (id),"
	"  box TEXT NOT NULL,"
	"  provider TEXT NOT NULL,"
	"  endpoint TEXT NOT NULL,"
	"  model TEXT NOT NULL,"
	"  status INTEGER NOT NULL,"
	"  finish TEXT NOT NULL,"
	"  estimated INTEGER NOT NULL,"
	"  input INTEGER NOT NULL,"
	"  cache_read INTEGER NOT NULL,"
	"  cache_write INTEGER NOT NULL,"
	"  output INTEGER NOT NULL,"
	"  cost INTEGER NOT NULL"
	") STRICT;",
	/* 11: what the gate said about boxes, the newest of each */
	"CREATE TABLE verdicts ("
	"  id INTEGER PRIMARY KEY NOT NULL,"
	"  box TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,"
	"  first_ms INTEGER NOT NULL,"
	"  at_ms INTEGER NOT NULL,"
	"  count INTEGER NOT NULL,"
	"  allowed INTEGER NOT NULL,"
	"  reason INTEGER NOT NULL,"
	"  port INTEGER NOT NULL,"
	"  protocol TEXT NOT NULL,"
	"  host TEXT NOT NULL,"
	"  address TEXT NOT NULL,"
	"  rule TEXT NOT NULL,"
	"  method TEXT NOT NULL,"
	"  path TEXT NOT NULL,"
	"  via TEXT NOT NULL"
	") STRICT;"
	"CREATE INDEX verdicts_box ON verdicts (box);",
	/* 12: the text of calls to models, where it is kept; it goes with the box */
	"CREATE TABLE ai_bodies ("
	"  id INTEGER PRIMARY KEY NOT NULL,"
	"  box TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,"
	"  request TEXT NOT NULL,"
	"  response TEXT NOT NULL,"
	"  cut INTEGER NOT NULL"
	") STRICT;"
	"CREATE INDEX ai_bodies_box ON ai_bodies (box);",
	/* 13: whose walls the box of a snapshot had; before there was a choice it was this */
	"ALTER TABLE snapshots ADD COLUMN backend TEXT NOT NULL DEFAULT 'native';",
	/* 14: quotas of everything that a tenant holds */
	"ALTER TABLE quotas ADD COLUMN processes INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE quotas ADD COLUMN helpers INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE quotas ADD COLUMN workspaces INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE quotas ADD COLUMN snapshots INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE quotas ADD COLUMN templates INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE quotas ADD COLUMN webhooks INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE quotas ADD COLUMN secrets INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE quotas ADD COLUMN secrets_kb INTEGER NOT NULL DEFAULT 0;",

	/* 15: events have a number among their tenant's, too. Clients remember the ids of before: those stay
	 * as numbers, and the next ones come after all of them. */
	"ALTER TABLE events ADD COLUMN number INTEGER NOT NULL DEFAULT 0;"
	"UPDATE events SET number = id;"
	"ALTER TABLE tenants ADD COLUMN events_from INTEGER NOT NULL DEFAULT 0;"
	"UPDATE tenants SET events_from = (SELECT coalesce(max(id), 0) FROM events);",

	/* 16: who changed what */
	"CREATE TABLE audit ("
	"  id INTEGER PRIMARY KEY NOT NULL,"
	"  kind INTEGER NOT NULL,"
	"  status INTEGER NOT NULL,"
	"  at_ms INTEGER NOT NULL,"
	"  role INTEGER NOT NULL,"
	"  tenant TEXT NOT NULL,"
	"  key TEXT NOT NULL,"
	"  via TEXT NOT NULL,"
	"  action TEXT NOT NULL,"
	"  target TEXT NOT NULL,"
	"  detail TEXT NOT NULL"
	") STRICT;"
	"CREATE INDEX audit_kind ON audit (kind, id);",

	/* 17: agents, and what they log */
	"CREATE TABLE agents ("
	"  id TEXT PRIMARY KEY NOT NULL,"
	"  tenant TEXT NOT NULL REFERENCES tenants (id),"
	"  name TEXT NOT NULL,"
	"  manifest TEXT NOT NULL,"
	"  status TEXT NOT NULL,"
	"  reason TEXT NOT NULL,"
	"  box TEXT NOT NULL,"
	"  consented TEXT NOT NULL,"
	"  wanted INTEGER NOT NULL,"
	"  created_ms INTEGER NOT NULL,"
	"  crashes INTEGER NOT NULL,"
	"  next_start_ms INTEGER NOT NULL,"
	"  next TEXT NOT NULL,"
	"  next_consented TEXT NOT NULL,"
	"  next_builds INTEGER NOT NULL,"
	"  UNIQUE (tenant, name)"
	") STRICT;"
	"CREATE TABLE agent_log ("
	"  id INTEGER PRIMARY KEY NOT NULL,"
	"  agent TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,"
	"  at_ms INTEGER NOT NULL,"
	"  level INTEGER NOT NULL,"
	"  source INTEGER NOT NULL,"
	"  position INTEGER NOT NULL,"
	"  message TEXT NOT NULL,"
	"  data TEXT NOT NULL"
	") STRICT;"
	"CREATE INDEX agent_log_agent ON agent_log (agent, id);",

	/* 18: whose calls they were: an agent outlives its boxes */
	"ALTER TABLE ai_usage ADD COLUMN agent TEXT NOT NULL DEFAULT '';",

	/* 19: entries of the audit log are chained, each kind for itself, and users' sandboxes are a kind of
	 * their own. What was written before is in no chain. */
	"ALTER TABLE audit ADD COLUMN number INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE audit ADD COLUMN origin TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE audit ADD COLUMN request TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE audit ADD COLUMN verdict TEXT NOT NULL DEFAULT 'done';"
	"ALTER TABLE audit ADD COLUMN code TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE audit ADD COLUMN hash BLOB NOT NULL DEFAULT x'';"
	"UPDATE audit SET verdict = 'refused', code = 'forbidden' WHERE status = 403;"
	"UPDATE audit SET kind = 3 WHERE kind = 1 AND role = 2;"
	"ALTER TABLE audit DROP COLUMN status;",
};

static_assert(APPLICATION_ID == 1348559979, "the number in step 1");

static int read_pragma(sqlite3 *db, const char *sql, int *ret, struct err *e)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? 0 : store_sql_failed(db, "reading the store's version", e);
}

static int take_step(sqlite3 *db, int version, struct err *e)
{
	char number[64];

	sqlite3_snprintf(sizeof(number), number, "PRAGMA user_version = %d", version);
	if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK &&
	    sqlite3_exec(db, STEPS[version - 1], NULL, NULL, NULL) == SQLITE_OK &&
	    sqlite3_exec(db, number, NULL, NULL, NULL) == SQLITE_OK &&
	    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	store_sql_failed(db, "bringing the store to a newer version", e);
	sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return -1;
}

int store_migrate(sqlite3 *db, struct err *e)
{
	int version = 0, application = 0, newest = (int)ELEMS(STEPS);

	if (read_pragma(db, "PRAGMA user_version", &version, e) < 0 ||
	    read_pragma(db, "PRAGMA application_id", &application, e) < 0)
		return -1;
	if (version > newest && application == APPLICATION_ID)
		return err_set(
			e, ERR_STATE,
			"the store has version %d, this program knows versions up to %d: use a newer paddock",
			version, newest);
	if (version < 0 || (version > 0 && application != APPLICATION_ID))
		return err_set(e, ERR_STATE, "the file is not a store of paddock");
	while (version < newest)
		if (take_step(db, ++version, e) < 0)
			return -1;
	return 0;
}
