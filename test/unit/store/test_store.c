/*
 * The store: what is acknowledged is on disk, one bad write does not spoil its batch,
 * the file is nobody else's, versions are respected.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "fd.h"
#include "num.h"
#include "store.h"
#include "store_events.h"
#include "store_audit.h"
#include "store_verdicts.h"

#include "poison.h"

struct fixture {
	char dir[64], db[80];
	struct loop *loop;
	struct store *store;
	size_t pending, failed;
	struct err last;
};

/* ---- helpers ---- */

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = { 0 };

	snprintf(f->dir, sizeof(f->dir), "/tmp/paddock-store.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->db, sizeof(f->db), "%s/paddock.db", f->dir);
	f->loop = loop_new(&e);
	assert_non_null(f->loop);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	DIR *dir;

	store_close(f->store);
	loop_free(f->loop);
	dir = opendir(f->dir);
	for (struct dirent *d; dir && (d = readdir(dir));)
		unlinkat(dirfd(dir), d->d_name, 0);
	closedir(dir);
	rmdir(f->dir);
	free(f);
	return 0;
}

static void open_store(struct fixture *f)
{
	struct err e = { 0 };

	f->store = store_open(f->loop, f->dir, &e);
	if (!f->store)
		fail_msg("%s", e.msg);
}

static void reopen_store(struct fixture *f)
{
	store_close(f->store);
	open_store(f);
}

static void on_done(void *arg, const struct err *e)
{
	struct fixture *f = arg;

	f->pending--;
	if (e) {
		f->failed++;
		f->last = *e;
	}
	if (f->pending == 0)
		loop_stop(f->loop, 0);
}

static void wait_all(struct fixture *f)
{
	if (f->pending)
		assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->pending, 0);
}

static void put_tenant(struct fixture *f, const char *id)
{
	f->pending++;
	store_tenant_put(f->store, &(struct store_tenant){ view_of(id), view_of(id), 1 }, on_done, f);
}

static void put_box(struct fixture *f, const char *id, const char *tenant, const char *name)
{
	const struct store_box b = {
		.id = view_of(id),
		.tenant = view_of(tenant),
		.name = view_of(name),
		.status = VIEW("creating"),
		.image = VIEW("machine"),
		.digest = VIEW("sha256:00"),
		.backend = VIEW("native"),
		.spec = VIEW("{\"user\":\"user\"}"),
		.metadata = VIEW("{}"),
		.created_ms = 5,
		.expires_ms = 0,
	};

	f->pending++;
	store_box_put(f->store, &b, on_done, f);
}

static void put_key(struct fixture *f, const char *id, const char *tenant, uint8_t fill)
{
	struct store_key k = { .id = view_of(id),
			       .tenant = view_of(tenant),
			       .name = VIEW("laptop"),
			       .role = STORE_ROLE_ADMIN,
			       .created_ms = 7 };

	memset(k.hash, fill, sizeof(k.hash));
	f->pending++;
	store_key_put(f->store, &k, on_done, f);
}

/* Everything in the store as lines of text. */
static void dump_tenant(void *arg, const struct store_tenant *t)
{
	buf_printf(arg, "tenant %.*s %.*s %lld\n", VIEW_ARG(t->id), VIEW_ARG(t->name),
		   (long long)t->created_ms);
}

static void dump_key(void *arg, const struct store_key *k)
{
	buf_printf(arg, "key %.*s %.*s %.*s %d %02x%02x %lld\n", VIEW_ARG(k->id), VIEW_ARG(k->tenant),
		   VIEW_ARG(k->name), (int)k->role, k->hash[0], k->hash[31], (long long)k->created_ms);
}

static void dump_box(void *arg, const struct store_box *b)
{
	buf_printf(arg, "box %.*s %.*s [%.*s] %.*s %.*s %.*s %.*s %.*s %.*s %lld %lld\n", VIEW_ARG(b->id),
		   VIEW_ARG(b->tenant), VIEW_ARG(b->name), VIEW_ARG(b->status), VIEW_ARG(b->image),
		   VIEW_ARG(b->digest), VIEW_ARG(b->backend), VIEW_ARG(b->spec), VIEW_ARG(b->metadata),
		   (long long)b->created_ms, (long long)b->expires_ms);
}

static void dump_setting(void *arg, const struct store_setting *s)
{
	buf_printf(arg, "setting %.*s %zu %.*s\n", VIEW_ARG(s->name), s->value.n, VIEW_ARG(s->value));
}

static void assert_dump(struct fixture *f, const char *want)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
	const struct store_visitor v = { dump_tenant, dump_key, dump_box, dump_setting };
	struct err e = { 0 };

	assert_int_equal(store_load(f->store, &v, &b, &e), 0);
	buf_putc(&b, 0);
	assert_string_equal(buf_view(&b).p, want);
}

/* Runs SQL from outside, as another program would. */
static void outside(struct fixture *f, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* Holds the store's write lock, so that writes gather. */
static sqlite3 *hold(struct fixture *f)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	return db;
}

static void release(sqlite3 *db)
{
	assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* ---- tests ---- */

static void test_all_survives(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	put_tenant(f, "default");
	put_key(f, "k_1", "default", 0xab);
	put_key(f, "k_2", "default", 0xcd);
	put_box(f, "b1", "default", "web");
	put_box(f, "b2", "default", "");
	put_box(f, "b3", "default", "");
	f->pending += 5;
	store_setting_put(f->store, &(struct store_setting){ VIEW("secret"), VIEW("old") }, on_done, f);
	store_setting_put(f->store, &(struct store_setting){ VIEW("secret"), VIEW("n\0ew") }, on_done, f);
	store_box_set_status(f->store, VIEW("b2"), VIEW("running"), on_done, f);
	store_box_delete(f->store, VIEW("b3"), on_done, f);
	store_key_delete(f->store, VIEW("k_2"), on_done, f);
	wait_all(f);
	assert_int_equal(f->failed, 0);
	reopen_store(f);
	assert_dump(f, "tenant default default 1\n"
		       "key k_1 default laptop 1 abab 7\n"
		       "box b1 default [web] creating machine sha256:00 native {\"user\":\"user\"} {} 5 0\n"
		       "box b2 default [] running machine sha256:00 native {\"user\":\"user\"} {} 5 0\n"
		       "setting secret 4 n\n");
	assert_int_equal(store_stats(f->store).writes, 0);
}

static void test_names_are_unique_per_tenant(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	put_tenant(f, "t1");
	put_tenant(f, "t2");
	put_box(f, "b1", "t1", "web");
	put_box(f, "b2", "t2", "web");
	wait_all(f);
	assert_int_equal(f->failed, 0);
	put_box(f, "b3", "t1", "web");
	wait_all(f);
	assert_int_equal(f->failed, 1);
	assert_int_equal(f->last.code, ERR_CONFLICT);

	/* The name is free again with its box gone. */
	f->pending++;
	store_box_delete(f->store, VIEW("b1"), on_done, f);
	put_box(f, "b3", "t1", "web");
	wait_all(f);
	assert_int_equal(f->failed, 1);
}

static void test_refused_writes(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	put_tenant(f, "t1");
	put_key(f, "k1", "t1", 1);
	put_box(f, "b1", "t1", "");
	wait_all(f);

	put_box(f, "b1", "t1", "");
	wait_all(f);
	assert_int_equal(f->last.code, ERR_CONFLICT);
	put_key(f, "k2", "t1", 1); /* the same hash */
	wait_all(f);
	assert_int_equal(f->last.code, ERR_CONFLICT);
	put_box(f, "b2", "nobody", "");
	wait_all(f);
	assert_int_equal(f->last.code, ERR_NOT_FOUND);
	f->pending++;
	store_box_set_status(f->store, VIEW("b9"), VIEW("running"), on_done, f);
	wait_all(f);
	assert_int_equal(f->last.code, ERR_NOT_FOUND);
	f->pending++;
	store_key_put(f->store, &(struct store_key){ .id = VIEW("k3"), .tenant = VIEW("t1") }, on_done, f);
	wait_all(f);
	assert_int_equal(f->last.code, ERR_INVALID); /* no role */
	assert_int_equal(f->failed, 5);
	assert_int_equal(store_stats(f->store).failures, 5);

	f->pending += 2;
	store_box_delete(f->store, VIEW("b9"), on_done, f);
	store_key_delete(f->store, VIEW("k9"), on_done, f);
	put_tenant(f, "t1");
	wait_all(f);
	assert_int_equal(f->failed, 5);
}

/* What gathers behind a lock goes out in one transaction; at most one write went ahead. */
static void test_group_commit(void **state)
{
	struct fixture *f = *state;
	char ids[500][8];
	uint64_t before;
	sqlite3 *lock;

	open_store(f);
	put_tenant(f, "t");
	wait_all(f);
	before = store_stats(f->store).commits;
	lock = hold(f);
	for (size_t i = 0; i < ELEMS(ids); i++) {
		snprintf(ids[i], sizeof(ids[i]), "b%zu", i);
		put_box(f, ids[i], "t", "");
	}
	release(lock);
	wait_all(f);
	assert_int_equal(f->failed, 0);
	assert_int_equal(store_stats(f->store).writes, 1 + ELEMS(ids));
	assert_in_range(store_stats(f->store).commits - before, 1, 2);
}

/* The middle of a batch fails; what stands before and behind it is kept, in order. */
static void test_one_bad_write_in_a_batch(void **state)
{
	struct fixture *f = *state;
	sqlite3 *lock;

	open_store(f);
	put_tenant(f, "t");
	wait_all(f);
	lock = hold(f);
	put_box(f, "b1", "t", "one");
	put_box(f, "b2", "t", "one");
	put_box(f, "b3", "nobody", "two");
	put_box(f, "b4", "t", "two");
	f->pending++;
	store_box_set_status(f->store, VIEW("b4"), VIEW("running"), on_done, f);
	release(lock);
	wait_all(f);
	assert_int_equal(f->failed, 2);
	reopen_store(f);
	assert_dump(f, "tenant t t 1\n"
		       "box b1 t [one] creating machine sha256:00 native {\"user\":\"user\"} {} 5 0\n"
		       "box b4 t [two] running machine sha256:00 native {\"user\":\"user\"} {} 5 0\n");
}

static void test_arguments_are_copied(void **state)
{
	struct fixture *f = *state;
	char id[] = "b1", tenant[] = "t";
	sqlite3 *lock;

	open_store(f);
	put_tenant(f, "t");
	wait_all(f);
	lock = hold(f);
	put_box(f, id, tenant, "");
	memset(id, 'x', 2);
	memset(tenant, 'x', 1);
	release(lock);
	wait_all(f);
	assert_dump(f, "tenant t t 1\n"
		       "box b1 t [] creating machine sha256:00 native {\"user\":\"user\"} {} 5 0\n");
}

/* Closing writes what was submitted and calls back, though the loop runs no more. */
static void test_close_waits(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	put_tenant(f, "t");
	put_box(f, "b1", "t", "");
	store_close(f->store);
	f->store = NULL;
	assert_int_equal(f->pending, 0);
	assert_int_equal(f->failed, 0);
	open_store(f);
	assert_dump(f, "tenant t t 1\n"
		       "box b1 t [] creating machine sha256:00 native {\"user\":\"user\"} {} 5 0\n");
}

static void test_no_callback_wanted(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	store_tenant_put(f->store, &(struct store_tenant){ VIEW("t"), VIEW("t"), 1 }, NULL, NULL);
	reopen_store(f);
	assert_dump(f, "tenant t t 1\n");
}

/* Loading neither waits for a writer nor sees what is not committed. */
static void test_load_beside_a_writer(void **state)
{
	struct fixture *f = *state;
	sqlite3 *lock;

	open_store(f);
	put_tenant(f, "t");
	wait_all(f);
	lock = hold(f);
	put_box(f, "b1", "t", "");
	assert_dump(f, "tenant t t 1\n");
	release(lock);
	wait_all(f);
	assert_int_equal(f->failed, 0);
}

static void test_file_modes(void **state)
{
	struct fixture *f = *state;
	const char *const names[] = { "paddock.db", "paddock.db-wal", "paddock.db-shm" };
	mode_t before = umask(0);
	struct stat st;

	open_store(f);
	umask(before);
	put_tenant(f, "t");
	wait_all(f);
	for (size_t i = 0; i < ELEMS(names); i++) {
		char path[96];

		snprintf(path, sizeof(path), "%s/%s", f->dir, names[i]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
	store_close(f->store);
	f->store = NULL;
	assert_int_equal(chmod(f->db, 0644), 0);
	open_store(f);
	assert_int_equal(stat(f->db, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void assert_refused(struct fixture *f, const char *why)
{
	struct err e = { 0 };

	f->store = store_open(f->loop, f->dir, &e);
	assert_null(f->store);
	if (!strstr(e.msg, why))
		fail_msg("\"%s\" does not say \"%s\"", e.msg, why);
}

/* ---- verdicts ---- */

struct verdicts {
	size_t n;
	uint64_t ids[8], counts[8];
	char last[128];
};

static void on_verdict(void *arg, const struct store_verdict *v)
{
	struct verdicts *all = arg;

	assert_true(all->n < ELEMS(all->ids));
	all->ids[all->n] = v->id;
	all->counts[all->n++] = v->count;
	snprintf(all->last, sizeof(all->last), "%.*s %d %u %u %.*s %.*s%.*s", VIEW_ARG(v->box), v->allowed,
		 v->reason, v->port, VIEW_ARG(v->protocol), VIEW_ARG(v->host), VIEW_ARG(v->path));
}

static struct verdicts load_verdicts(struct fixture *f)
{
	static const struct store_visitor visitor = { .verdict = on_verdict };
	struct verdicts all = { 0 };
	struct err e = { 0 };

	if (store_load(f->store, &visitor, &all, &e) < 0)
		fail_msg("%s", e.msg);
	return all;
}

static void put_verdict(struct fixture *f, uint64_t id, uint64_t was, uint64_t count, const char *box)
{
	const struct store_verdict v = { .id = id,
					 .was = was,
					 .count = count,
					 .first_ms = 1,
					 .at_ms = 2,
					 .reason = 3,
					 .port = 443,
					 .allowed = true,
					 .box = view_of(box),
					 .protocol = VIEW("tls"),
					 .host = VIEW("a.test"),
					 .address = VIEW("192.0.2.1"),
					 .rule = VIEW(""),
					 .method = VIEW(""),
					 .path = VIEW("/x"),
					 .via = VIEW("direct") };

	f->pending++;
	store_verdict_put(f->store, &v, on_done, f);
}

/* One takes another's place, some go, and all of a box go with it; of a box that is not there nothing is
 * kept. */
static void test_verdicts(void **state)
{
	struct fixture *f = *state;
	const uint64_t gone[] = { 2, 99 };

	open_store(f);
	put_tenant(f, "t");
	put_box(f, "b1", "t", "");
	put_box(f, "b2", "t", "");
	for (uint64_t id = 1; id <= 3; id++)
		put_verdict(f, id, 0, 1, "b1");
	put_verdict(f, 4, 0, 1, "b2");
	put_verdict(f, 5, 0, 1, "nobody");
	put_verdict(f, 6, 1, 7, "b1");
	f->pending++;
	store_verdict_delete(f->store, (struct view){ (const char *)gone, sizeof(gone) }, on_done, f);
	wait_all(f);
	assert_int_equal(f->failed, 0);
	reopen_store(f);
	struct verdicts all = load_verdicts(f);
	assert_int_equal(all.n, 3);
	assert_true(all.ids[0] == 3 && all.ids[1] == 4 && all.ids[2] == 6 && all.counts[2] == 7);
	assert_string_equal(all.last, "b1 1 3 443 tls a.test/x");
	f->pending++;
	store_box_delete(f->store, VIEW("b1"), on_done, f);
	wait_all(f);
	all = load_verdicts(f);
	assert_true(all.n == 1 && all.ids[0] == 4);
}

static void see_snapshot(void *arg, const struct store_snapshot *n)
{
	buf_printf(arg, "%.*s %.*s %.*s\n", VIEW_ARG(n->id), VIEW_ARG(n->source), VIEW_ARG(n->backend));
}

static void see_audit(void *arg, const struct store_audit *a)
{
	buf_printf(arg, "%llu %u %llu %lld %d %.*s %.*s %.*s %.*s %.*s %.*s\n", (unsigned long long)a->id,
		   a->kind, (unsigned long long)a->number, (long long)a->at_ms, a->role, VIEW_ARG(a->tenant),
		   VIEW_ARG(a->key), VIEW_ARG(a->via), VIEW_ARG(a->action), VIEW_ARG(a->target),
		   VIEW_ARG(a->detail));
}

/* Each kind is trimmed for itself. */
static void test_audit(void **state)
{
	struct fixture *f = *state;
	const struct store_visitor v = { .audit = see_audit };
	struct err e = { 0 };

	open_store(f);
	for (uint32_t id = 1; id <= 4; id++) {
		f->pending++;
		store_audit_put(f->store,
				&(struct store_audit){ .id = id,
						       .kind = id % 2,
						       .number = 201,
						       .at_ms = 5,
						       .role = STORE_ROLE_USER,
						       .tenant = VIEW("t"),
						       .key = VIEW("k"),
						       .via = VIEW("rest"),
						       .action = VIEW("key.create"),
						       .target = VIEW("x"),
						       .detail = VIEW("{}") },
				on_done, f);
	}
	f->pending++;
	store_audit_trim(f->store, 1, 3, on_done, f);
	wait_all(f);
	assert_int_equal(f->failed, 0);
	reopen_store(f);
	_cleanup_(buf_done) struct buf b = BUF_INIT(1024);
	assert_int_equal(store_load(f->store, &v, &b, &e), 0);
	assert_true(view_is(buf_view(&b), "2 0 201 5 2 t k rest key.create x {}\n"
					  "3 1 201 5 2 t k rest key.create x {}\n"
					  "4 0 201 5 2 t k rest key.create x {}\n"));
}

/* Snapshots of a version that had one kind of walls. */
#define UNDO_18 "ALTER TABLE ai_usage DROP COLUMN agent;"
#define UNDO_17 UNDO_18 "DROP TABLE agent_log; DROP TABLE agents;"
#define UNDO_16 UNDO_17 "DROP TABLE audit;"
#define UNDO_15 UNDO_16 "ALTER TABLE events DROP COLUMN number; ALTER TABLE tenants DROP COLUMN events_from;"
#define UNDO_14                                                                                              \
	UNDO_15                                                                                              \
	"ALTER TABLE quotas DROP COLUMN processes; ALTER TABLE quotas DROP COLUMN helpers;"                  \
	"ALTER TABLE quotas DROP COLUMN workspaces; ALTER TABLE quotas DROP COLUMN snapshots;"               \
	"ALTER TABLE quotas DROP COLUMN templates; ALTER TABLE quotas DROP COLUMN webhooks;"                 \
	"ALTER TABLE quotas DROP COLUMN secrets; ALTER TABLE quotas DROP COLUMN secrets_kb;"

static void see_quota(void *arg, const struct store_quota *q)
{
	buf_printf(arg, "%.*s %llu:", VIEW_ARG(q->tenant), (unsigned long long)q->creates_per_minute);
	for (size_t i = 0; i < ELEMS(q->numbers); i++)
		buf_printf(arg, " %llu", (unsigned long long)q->numbers[i]);
	buf_puts(arg, "\n");
}

/* An old quota keeps its numbers; new ones have all of theirs. */
static void test_old_quotas(void **state)
{
	struct fixture *f = *state;
	const struct store_visitor v = { .quota = see_quota };
	struct err e = { 0 };

	open_store(f);
	put_tenant(f, "t");
	put_tenant(f, "u");
	wait_all(f);
	store_close(f->store);
	outside(f, UNDO_14
		"PRAGMA user_version = 13;"
		"INSERT INTO quotas (tenant, boxes, cpu_milli, memory_mb, disk_mb, creates_per_minute)"
		" VALUES ('t', 1, 2, 3, 4, 5)");
	open_store(f);
	f->pending++;
	store_quota_put(f->store,
			&(struct store_quota){ .tenant = VIEW("u"),
					       .numbers = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 },
					       .creates_per_minute = 13 },
			on_done, f);
	wait_all(f);
	assert_int_equal(f->failed, 0);
	reopen_store(f);
	_cleanup_(buf_done) struct buf b = BUF_INIT(1024);
	assert_int_equal(store_load(f->store, &v, &b, &e), 0);
	assert_true(
		view_is(buf_view(&b), "t 5: 1 2 3 4 0 0 0 0 0 0 0 0\nu 13: 1 2 3 4 5 6 7 8 9 10 11 12\n"));
}

static void see_event(void *arg, const struct store_event *v)
{
	buf_printf(arg, "%.*s %llu %llu\n", VIEW_ARG(v->tenant), (unsigned long long)v->id,
		   (unsigned long long)v->number);
}

static void see_start(void *arg, const struct store_tenant *t)
{
	buf_printf(arg, "%.*s from %llu\n", VIEW_ARG(t->id), (unsigned long long)t->events_from);
}

static void put_event(struct fixture *f, uint64_t id, uint64_t number, const char *tenant, int64_t at_ms)
{
	f->pending++;
	store_event_put(f->store,
			&(struct store_event){ .id = id,
					       .number = number,
					       .at_ms = at_ms,
					       .tenant = view_of(tenant),
					       .box = VIEW("b"),
					       .type = VIEW("created"),
					       .data = VIEW("{}") },
			on_done, f);
}

/* Clients remember ids: of an older version they stay as numbers, and new ones come after all of them. Old
 * ones go, but for the newest of each tenant. */
static void test_numbers_of_events(void **state)
{
	struct fixture *f = *state;
	const struct store_visitor v = { .event = see_event, .tenant = see_start };
	struct err e = { 0 };

	open_store(f);
	put_tenant(f, "t");
	put_tenant(f, "u");
	wait_all(f);
	store_close(f->store);
	outside(f, UNDO_15 "PRAGMA user_version = 14;"
			   "INSERT INTO events (id, at_ms, tenant, box, type, data) VALUES"
			   " (3, 1, 't', 'b', 'created', '{}'), (7, 2, 'u', 'b', 'created', '{}')");
	open_store(f);
	put_tenant(f, "w");
	put_event(f, 8, 8, "t", 10);
	put_event(f, 9, 1, "w", 3);
	put_event(f, 10, 2, "w", 10);
	wait_all(f);
	reopen_store(f);
	_cleanup_(buf_done) struct buf b = BUF_INIT(1024), left = BUF_INIT(1024);
	assert_int_equal(store_load(f->store, &v, &b, &e), 0);
	assert_true(
		view_is(buf_view(&b), "t from 7\nu from 7\nw from 0\nt 3 3\nu 7 7\nt 8 8\nw 9 1\nw 10 2\n"));

	const struct store_visitor events = { .event = see_event };
	f->pending += 2;
	store_event_trim(f->store, 5, on_done, f);
	store_event_drop(f->store, 8, on_done, f);
	wait_all(f);
	assert_int_equal(f->failed, 0);
	assert_int_equal(store_load(f->store, &events, &left, &e), 0);
	assert_true(view_is(buf_view(&left), "u 7 7\nw 10 2\n"));
}

static void test_backend_of_snapshots(void **state)
{
	struct fixture *f = *state;
	const struct store_visitor v = { .snapshot = see_snapshot };
	struct err e = { 0 };

	open_store(f);
	put_tenant(f, "t");
	wait_all(f);
	store_close(f->store);
	outside(f, UNDO_14
		"ALTER TABLE snapshots DROP COLUMN backend; PRAGMA user_version = 12;"
		"INSERT INTO snapshots (id, tenant, name, image, digest, bytes, stopped_us, created_ms,"
		" source) VALUES ('s1', 't', '', 'machine', 'sha256:00', 1, 2, 3, 'b1')");
	open_store(f);
	f->pending++;
	store_snapshot_put(f->store,
			   &(struct store_snapshot){ .id = VIEW("s2"),
						     .tenant = VIEW("t"),
						     .image = VIEW("machine"),
						     .digest = VIEW("sha256:00"),
						     .source = VIEW("b2"),
						     .backend = VIEW("other"),
						     .created_ms = 4 },
			   on_done, f);
	wait_all(f);
	assert_int_equal(f->failed, 0);
	reopen_store(f);
	_cleanup_(buf_done) struct buf b = BUF_INIT(1024);
	assert_int_equal(store_load(f->store, &v, &b, &e), 0);
	assert_true(view_is(buf_view(&b), "s1 b1 native\ns2 b2 other\n"));
}

static void test_newer_version(void **state)
{
	struct fixture *f = *state;

	open_store(f);
	store_close(f->store);
	outside(f, "PRAGMA user_version = 99");
	assert_refused(f, "the store has version 99, this program knows versions up to");
}

static void test_strange_files(void **state)
{
	struct fixture *f = *state;
	char path[96];

	outside(f, "CREATE TABLE other (x); PRAGMA user_version = 3");
	assert_refused(f, "not a store of paddock");
	assert_int_equal(truncate(f->db, 0), 0);
	assert_int_equal(
		fd_replace(AT_FDCWD, f->db, "this is text, not a database, and long enough", 45, 0600, false),
		0);
	assert_refused(f, "not a database");
	assert_int_equal(unlink(f->db), 0);
	snprintf(path, sizeof(path), "%s/target", f->dir);
	assert_int_equal(symlink(path, f->db), 0);
	assert_refused(f, "paddock.db");
	assert_int_equal(unlink(f->db), 0);
}

static void test_missing_directory(void **state)
{
	struct fixture *f = *state;
	struct err e = { 0 };

	assert_null(store_open(f->loop, "/nonexistent/paddock", &e));
	assert_int_equal(e.sys, ENOENT);
}

/* A disk that takes no more: the batch fails as a whole, and the store goes on afterwards. */
static void test_no_room(void **state)
{
	struct fixture *f = *state;
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct rlimit before, little = { 0 };
	char *big = calloc(1, 1 << 20);
	struct store_box b = { .id = VIEW("big"), .tenant = VIEW("t"), .metadata = VIEW("{}") };
	sqlite3 *lock;

	memset(big, 'x', 1 << 20);
	b.spec = (struct view){ big, 1 << 20 };
	open_store(f);
	put_tenant(f, "t");
	wait_all(f);
	assert_int_equal(sigaction(SIGXFSZ, &ignore, NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	little.rlim_max = before.rlim_max;
	little.rlim_cur = 256 * 1024;
	lock = hold(f);
	put_box(f, "first", "t", ""); /* may go out ahead of the batch */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	f->pending++;
	store_box_put(f->store, &b, on_done, f);
	release(lock);
	wait_all(f);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(f->failed >= 1);
	assert_int_equal(store_stats(f->store).failures, f->failed);
	free(big);

	put_box(f, "later", "t", "");
	f->failed = 0;
	wait_all(f);
	assert_int_equal(f->failed, 0);
}

/* ---- kill -9 ---- */

#define CHAIN 16 /* writes on their way at any moment */

struct killed {
	struct fixture *f;
	unsigned next;
};

struct acknowledged {
	struct killed *k;
	unsigned number;
};

static void write_next(struct killed *k);

/* Tells the parent, by one write(2), that this box is on disk. */
static void acknowledge(void *arg, const struct err *e)
{
	struct acknowledged *a = arg;

	if (e || write(STDOUT_FILENO, &a->number, sizeof(a->number)) != sizeof(a->number))
		_exit(1);
	write_next(a->k);
	free(a);
}

static void write_next(struct killed *k)
{
	struct acknowledged *a = malloc(sizeof(*a));
	char id[16];

	*a = (struct acknowledged){ k, k->next++ };
	snprintf(id, sizeof(id), "b%u", a->number);
	store_box_put(k->f->store,
		      &(struct store_box){ .id = view_of(id),
					   .tenant = VIEW("t"),
					   .status = VIEW("running"),
					   .spec = VIEW("{}"),
					   .metadata = VIEW("{}") },
		      acknowledge, a);
}

static _noreturn_ void child(struct fixture *f, int out)
{
	struct killed k = { .f = f };
	struct err e = { 0 };

	dup2(out, STDOUT_FILENO);
	f->loop = loop_new(&e);
	f->store = store_open(f->loop, f->dir, &e);
	if (!f->store)
		_exit(1);
	store_tenant_put(f->store, &(struct store_tenant){ VIEW("t"), VIEW("t"), 1 }, NULL, NULL);
	for (int i = 0; i < CHAIN; i++)
		write_next(&k);
	_exit(loop_run(f->loop));
}

static void note_box(void *arg, const struct store_box *b)
{
	bool *found = arg;
	uint32_t n;

	assert_int_equal(num_u32(view_skip(b->id, 1), &n), 0);
	if (n < 4096)
		found[n] = true;
}

static void test_kill(void **state)
{
	struct fixture *f = *state;
	const struct store_visitor v = { .box = note_box };
	bool acked[4096] = { false }, found[4096] = { false };
	unsigned n = 0, total = 0;
	int fds[2], status;
	struct err e = { 0 };
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(f, fds[1]);
	fd_close(fds[1]);
	/* Kill it in the midst of its work, then take what it had still acknowledged. */
	for (ssize_t r; (r = read(fds[0], &n, sizeof(n))) == sizeof(n);) {
		assert_true(n < ELEMS(acked));
		acked[n] = true;
		if (++total == 200)
			assert_int_equal(kill(pid, SIGKILL), 0);
	}
	fd_close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_true(total >= 200);

	open_store(f);
	assert_int_equal(store_load(f->store, &v, found, &e), 0);
	for (size_t i = 0; i < ELEMS(acked); i++)
		if (acked[i] && !found[i])
			fail_msg("box %zu was acknowledged and is lost", i);
	put_tenant(f, "t"); /* and it takes writes again */
	wait_all(f);
	assert_int_equal(f->failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_survives, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_are_unique_per_tenant, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_writes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_group_commit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_bad_write_in_a_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_arguments_are_copied, setup, teardown),
		cmocka_unit_test_setup_teardown(test_close_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_callback_wanted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_load_beside_a_writer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_modes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_verdicts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_audit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_old_quotas, setup, teardown),
		cmocka_unit_test_setup_teardown(test_numbers_of_events, setup, teardown),
		cmocka_unit_test_setup_teardown(test_backend_of_snapshots, setup, teardown),
		cmocka_unit_test_setup_teardown(test_newer_version, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strange_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kill, setup, teardown),
	};

	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
