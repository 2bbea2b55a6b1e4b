/*
 * The store's two sides. The loop's thread makes a `struct write` of each call and
 * gathers them until the end of the loop's batch: what one handler writes (a row and
 * its event) is one transaction. The writer thread takes all that wait as one batch, runs
 * them in one transaction and hands them back; one task on the loop runs their callbacks.
 *
 * While a batch is being synced the next one gathers by itself: the slower the disk,
 * the larger the batches. Nothing waits for company.
 *
 * Only `waiting`, `finished`, `posted` and `closing` are shared, under the lock. The
 * connection belongs to the writer thread from its start to its join.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "list.h"
#include "store_impl.h"

#include "poison.h"

#define STORE_FILE "paddock.db"
#define STACK_SIZE (512u * 1024)

/* A call, with a copy of its arguments; the views point into `text`. */
struct write {
	struct list link;
	store_apply *apply;
	store_done *done;
	void *arg;
	struct err err; /* code ERR_OK: on disk */
	max_align_t args[STORE_ARGS_MAX / sizeof(max_align_t)];
	char text[];
};

struct store {
	struct loop *loop;
	char path[PATH_MAX];
	struct store_sql sql;
	pthread_t thread;
	bool running;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct list waiting;  /* for the writer */
	struct list finished; /* for the loop */
	bool posted;          /* `delivery` is on its way */
	bool closing;

	struct list gathered; /* the loop's own, until the end of its batch */
	struct loop_task flush, delivery;
	atomic_uint_fast64_t writes, commits, failures;
};

static void move_all(struct list *to, struct list *from)
{
	LIST_EACH (it, from) {
		list_del(it);
		list_append(to, it);
	}
}

/* ---- the writer thread ---- */

/* One transaction. A write that fails by itself keeps its error and the others go on;
 * when the transaction is lost, *e says why and none of it happened. */
static int run_transaction(struct store_sql *q, struct list *batch, struct err *e)
{
	if (store_sql_begin(q, e) < 0)
		return -1;
	LIST_EACH (it, batch) {
		struct write *w = CONTAINER(it, struct write, link);

		if (w->apply(q, w->args, &w->err) < 0 && store_sql_lost(q)) {
			*e = w->err;
			return -1;
		}
	}
	if (store_sql_commit(q, e) < 0) {
		store_sql_rollback(q);
		return -1;
	}
	return 0;
}

static void run_batch(struct store *s, struct list *batch)
{
	struct err lost = { 0 };
	bool ok = run_transaction(&s->sql, batch, &lost) == 0;

	LIST_EACH (it, batch) {
		struct write *w = CONTAINER(it, struct write, link);

		if (!ok)
			w->err = lost;
		atomic_fetch_add(w->err.code == ERR_OK ? &s->writes : &s->failures, 1);
	}
	if (ok)
		atomic_fetch_add(&s->commits, 1);
}

static void deliver(struct loop_task *task);

static void *writer(void *arg)
{
	struct store *s = arg;
	struct list batch = LIST_INIT(batch);

	pthread_setname_np(pthread_self(), "store"); /* for itself it needs no file of /proc */
	for (;;) {
		bool post, idle;

		pthread_mutex_lock(&s->lock);
		while (list_empty(&s->waiting) && !s->closing)
			pthread_cond_wait(&s->wake, &s->lock);
		move_all(&batch, &s->waiting);
		pthread_mutex_unlock(&s->lock);
		if (list_empty(&batch))
			return NULL; /* closing, and all is written */

		run_batch(s, &batch);

		pthread_mutex_lock(&s->lock);
		move_all(&s->finished, &batch);
		post = !s->posted;
		idle = list_empty(&s->waiting);
		s->posted = true;
		pthread_mutex_unlock(&s->lock);
		if (post)
			loop_post(s->loop, &s->delivery, deliver);
		store_sql_tidy(&s->sql, idle);
	}
}

/* ---- the loop's thread ---- */

static void finish(struct write *w)
{
	if (w->done)
		w->done(w->arg, w->err.code == ERR_OK ? NULL : &w->err);
	free(w);
}

static void deliver(struct loop_task *task)
{
	struct store *s = CONTAINER(task, struct store, delivery);
	struct list mine = LIST_INIT(mine);

	pthread_mutex_lock(&s->lock);
	move_all(&mine, &s->finished);
	s->posted = false;
	pthread_mutex_unlock(&s->lock);
	LIST_EACH (it, &mine) {
		list_del(it);
		finish(CONTAINER(it, struct write, link));
	}
}

/* A write with copies of the views that lie at the given offsets of its arguments. */
static struct write *write_new(store_apply *apply, const void *args, size_t args_size, const size_t *views,
			       size_t n_views)
{
	size_t size = sizeof(struct write);
	struct write *w;
	char *text;

	for (size_t i = 0; i < n_views; i++)
		size += ((const struct view *)((const char *)args + views[i]))->n;
	w = calloc(1, size);
	if (!w)
		return NULL;
	w->apply = apply;
	memcpy(w->args, args, args_size);
	text = w->text;
	for (size_t i = 0; i < n_views; i++) {
		struct view *v = (struct view *)((char *)w->args + views[i]);

		if (v->n > 0)
			memcpy(text, v->p, v->n);
		v->p = text;
		text += v->n;
	}
	return w;
}

static void flush(struct loop_task *task)
{
	struct store *s = CONTAINER(task, struct store, flush);

	pthread_mutex_lock(&s->lock);
	move_all(&s->waiting, &s->gathered);
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

static void submit(struct store *s, struct write *w, store_done *done, void *arg)
{
	if (!w) {
		struct err e;

		err_set(&e, ERR_INTERNAL, "the store: out of memory");
		atomic_fetch_add(&s->failures, 1);
		if (done)
			done(arg, &e);
		return;
	}
	w->done = done;
	w->arg = arg;
	if (list_empty(&s->gathered))
		loop_defer(s->loop, &s->flush, flush);
	list_append(&s->gathered, &w->link);
}

void store_submit(struct store *s, store_apply *apply, const void *args, size_t size, const size_t *views,
		  size_t n_views, store_done *done, void *arg)
{
	submit(s, size <= STORE_ARGS_MAX ? write_new(apply, args, size, views, n_views) : NULL, done, arg);
}

/* ---- opening and closing ---- */

/* The thread takes no signals: they belong to the loop's signalfd. */
static int start_thread(struct store *s)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	rc = pthread_create(&s->thread, &attr, writer, s);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	s->running = rc == 0;
	return rc;
}

struct store *store_open(struct loop *l, const char *dir, struct err *e)
{
	struct store *s = calloc(1, sizeof(*s));
	int n, rc;

	if (!s) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "the store");
		return NULL;
	}
	s->loop = l;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	list_init(&s->waiting);
	list_init(&s->finished);
	list_init(&s->gathered);
	list_init(&s->flush.link);
	list_init(&s->delivery.link);
	n = snprintf(s->path, sizeof(s->path), "%s/" STORE_FILE, strcmp(dir, "/") == 0 ? "" : dir);
	if (n < 0 || (size_t)n >= sizeof(s->path)) {
		err_sys(e, ERR_INTERNAL, ENAMETOOLONG, "the store");
		goto fail;
	}
	if (store_sql_make(s->path, e) < 0 || store_sql_open(&s->sql, s->path, e) < 0 ||
	    store_migrate(s->sql.db, e) < 0 || store_sql_prepare(&s->sql, e) < 0 ||
	    store_sql_widen(s->path, e) < 0)
		goto fail;
	store_sql_reserve(s->sql.db);
	rc = start_thread(s);
	if (rc != 0) {
		err_sys(e, ERR_INTERNAL, rc, "starting the store's thread");
		goto fail;
	}
	return s;
fail:
	store_close(s);
	return NULL;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	loop_cancel(s->loop, &s->flush);
	flush(&s->flush);
	if (s->running) {
		pthread_mutex_lock(&s->lock);
		s->closing = true;
		pthread_cond_signal(&s->wake);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
	}
	store_sql_done(&s->sql);
	/* The loop may never run again: what it would have called is called here. */
	loop_cancel(s->loop, &s->delivery);
	deliver(&s->delivery);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int store_load(struct store *s, const struct store_visitor *v, void *arg, struct err *e)
{
	struct store_sql q;
	int ret;

	/* A connection of its own: the other one is the writer thread's. */
	ret = store_sql_open(&q, s->path, e);
	if (ret == 0)
		ret = store_sql_prepare(&q, e);
	if (ret == 0)
		ret = store_sql_load(&q, v, arg, e);
	store_sql_done(&q);
	return ret;
}

struct store_stats store_stats(const struct store *s)
{
	return (struct store_stats){
		.writes = atomic_load(&s->writes),
		.commits = atomic_load(&s->commits),
		.failures = atomic_load(&s->failures),
	};
}
