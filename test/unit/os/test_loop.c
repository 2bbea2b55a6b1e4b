/*
 * The event loop: what is delivered, in which order, and what must not be
 * delivered any more.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "fd.h"
#include "loop.h"
#include "poison.h"

static struct loop *l;

static int setup(void **state)
{
	struct err e = { 0 };
	l = loop_new(&e);
	return l ? 0 : -1;
}

static int teardown(void **state)
{
	loop_free(l);
	return 0;
}

/* A test that would wait for ever stops with this value. */
static void on_late(struct loop_timer *t)
{
	loop_stop(t->loop, -99);
}

static int run(void)
{
	struct loop_timer late = { 0 };
	loop_timer_start(l, &late, 20000, on_late);
	int r = loop_run(l);
	loop_timer_stop(&late);
	return r;
}

/* ---- fds ---- */

struct end {
	struct loop_io io;
	int other;
	unsigned hits;
	uint32_t events;
	bool leaves; /* instead of being stopped */
};

static void end_open(struct end *e, uint32_t events, void (*fn)(struct loop_io *, uint32_t))
{
	int p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	*e = (struct end){ .other = p[1] };
	assert_int_equal(loop_io_start(l, &e->io, p[0], events, fn), 0);
}

static void end_close(struct end *e)
{
	int fd = e->io.fd;
	e->leaves ? loop_io_leave(&e->io) : loop_io_stop(&e->io);
	fd_close(fd);
	fd_close(e->other);
}

static void on_read(struct loop_io *io, uint32_t events)
{
	struct end *e = CONTAINER(io, struct end, io);
	char c;
	e->events |= events;
	if (read(io->fd, &c, 1) == 1)
		e->hits++;
	if (events & EPOLLHUP || c == '!')
		loop_stop(io->loop, 7);
}

static void test_fds(void **state)
{
	struct end e;
	end_open(&e, EPOLLIN, on_read);
	assert_int_equal(write(e.other, "ab!", 3), 3);
	assert_int_equal(run(), 7);
	assert_int_equal(e.hits, 3); /* level-triggered: once per byte */
	/* Not wanted, not delivered. */
	assert_int_equal(loop_io_want(&e.io, 0), 0);
	assert_int_equal(write(e.other, "!", 1), 1);
	struct loop_timer t = { 0 };
	loop_timer_start(l, &t, 5, on_late);
	assert_int_equal(run(), -99);
	assert_int_equal(e.hits, 3);
	assert_int_equal(loop_io_want(&e.io, EPOLLIN), 0);
	assert_int_equal(run(), 7);
	assert_int_equal(e.hits, 4);
	closep(&e.other);
	assert_int_equal(run(), 7);
	assert_true(e.events & EPOLLHUP);
	int fd = e.io.fd;
	loop_io_stop(&e.io);
	assert_int_equal(e.io.fd, -1);
	assert_true(fcntl(fd, F_GETFD) >= 0); /* the loop never closes */
	loop_io_stop(&e.io);                  /* again: harmless */
	close(fd);
	assert_int_equal(loop_io_start(l, &e.io, fd, EPOLLIN, on_read), -EBADF);
}

/* Stops the loop behind the batch, so that the rest of it is delivered. */
static struct loop_task behind;

static void on_behind(struct loop_task *t)
{
	loop_stop(l, 0);
}

/* Two are ready at once; whoever comes first stops and frees the other. */
static struct end *pair[2];
static unsigned delivered;

static void on_kill_other(struct loop_io *io, uint32_t events)
{
	struct end *me = CONTAINER(io, struct end, io);
	struct end **other = me == pair[0] ? &pair[1] : &pair[0];
	delivered++;
	end_close(*other);
	memset(*other, 0xff, sizeof(**other));
	free(*other);
	*other = NULL;
	loop_defer(io->loop, &behind, on_behind);
}

static void test_stop_inside_batch(void **state)
{
	for (int round = 0; round < 20; round++) {
		delivered = 0;
		for (int i = 0; i < 2; i++) {
			pair[i] = malloc(sizeof(*pair[i]));
			end_open(pair[i], EPOLLIN, on_kill_other);
			pair[i]->leaves = round % 2;
			assert_int_equal(write(pair[i]->other, "x", 1), 1);
		}
		assert_int_equal(run(), 0);
		assert_int_equal(delivered, 1);
		for (int i = 0; i < 2; i++)
			if (pair[i]) {
				end_close(pair[i]);
				free(pair[i]);
			}
	}
}

/* The same object, started again on another fd in the batch: the old event is not its. */
static struct end reused[2];
static unsigned stale;

static void on_must_not(struct loop_io *io, uint32_t events)
{
	stale++;
}

static void on_restart_other(struct loop_io *io, uint32_t events)
{
	struct end *me = CONTAINER(io, struct end, io);
	struct end *other = me == &reused[0] ? &reused[1] : &reused[0];
	end_close(other);
	end_open(other, EPOLLIN, on_must_not); /* nothing to read there */
	loop_defer(io->loop, &behind, on_behind);
}

static void test_restart_inside_batch(void **state)
{
	stale = 0;
	for (int i = 0; i < 2; i++) {
		end_open(&reused[i], EPOLLIN, on_restart_other);
		assert_int_equal(write(reused[i].other, "x", 1), 1);
	}
	assert_int_equal(run(), 0);
	assert_int_equal(stale, 0);
	end_close(&reused[0]);
	end_close(&reused[1]);
}

/* What a stopped loop has not delivered comes when it runs again. */
static void on_stop(struct loop_io *io, uint32_t events)
{
	struct end *e = CONTAINER(io, struct end, io);
	char c;
	e->hits += read(io->fd, &c, 1) == 1;
	loop_stop(io->loop, 3);
}

static void test_stop_and_go(void **state)
{
	struct end e[3];
	for (int i = 0; i < 3; i++) {
		end_open(&e[i], EPOLLIN, on_stop);
		assert_int_equal(write(e[i].other, "x", 1), 1);
	}
	for (unsigned n = 1; n <= 3; n++) {
		assert_int_equal(run(), 3);
		assert_int_equal(e[0].hits + e[1].hits + e[2].hits, n);
	}
	for (int i = 0; i < 3; i++)
		end_close(&e[i]);
}

/* ---- timers ---- */

#define TIMERS 300
static struct loop_timer timers[TIMERS];
static uint64_t last_at;
static unsigned fired;

static void on_time(struct loop_timer *t)
{
	assert_true(t->at_ms >= last_at);         /* in order */
	assert_true(clock_mono_ms() >= t->at_ms); /* and never early */
	assert_false(loop_timer_active(t));
	last_at = t->at_ms;
	if (++fired == TIMERS - TIMERS / 3)
		loop_stop(t->loop, 0);
}

static void test_timer_order(void **state)
{
	fired = 0;
	last_at = 0;
	uint32_t seed = 7;
	for (int i = 0; i < TIMERS; i++) {
		seed = seed * 1103515245u + 12345u;
		loop_timer_start(l, &timers[i], seed >> 16 & 31, on_time);
	}
	/* A third of them, from all over the heap, will not fire; another third is moved. */
	for (int i = 0; i < TIMERS; i += 3) {
		loop_timer_stop(&timers[i]);
		assert_false(loop_timer_active(&timers[i]));
		loop_timer_start(l, &timers[i + 1], (uint64_t)(i % 40), on_time);
	}
	assert_int_equal(run(), 0);
	assert_int_equal(fired, TIMERS - TIMERS / 3);
	for (int i = 0; i < TIMERS; i++)
		assert_false(loop_timer_active(&timers[i]));
	/* so far away that the sum overflows: never, not at once */
	loop_timer_start(l, &timers[0], UINT64_MAX, on_late);
	assert_true(timers[0].at_ms == UINT64_MAX);
	loop_timer_stop(&timers[0]);
}

static struct loop_timer first, second, third;

static void on_first(struct loop_timer *t)
{
	fired++;
	/* Both are due by now: one is taken back, itself is started again. */
	loop_timer_stop(t == &first ? &second : &first);
	loop_timer_start(t->loop, t, 3, on_late);
}

static void test_timer_stop_inside(void **state)
{
	fired = 0;
	loop_timer_start(l, &first, 0, on_first);
	loop_timer_start(l, &second, 0, on_first);
	assert_int_equal(run(), -99);
	assert_int_equal(fired, 1);
	assert_false(loop_timer_active(&first));
	assert_false(loop_timer_active(&second));
}

/* A timer that starts itself with 0 ms lets the others have their turn each time. */
static struct loop_task turn;
static unsigned turns;

static void on_turn(struct loop_task *t)
{
	turns++;
}

static void on_zero(struct loop_timer *t)
{
	assert_int_equal(turns, fired); /* the batch before has ended */
	if (++fired == 20) {
		loop_stop(t->loop, 0);
		return;
	}
	loop_defer(t->loop, &turn, on_turn);
	loop_timer_start(t->loop, t, 0, on_zero);
}

static void test_timer_zero(void **state)
{
	fired = turns = 0;
	loop_timer_start(l, &third, 0, on_zero);
	assert_int_equal(run(), 0);
	assert_int_equal(fired, 20);
}

/* ---- tasks ---- */

struct counted {
	struct loop_task task;
	unsigned *count;
	unsigned number;
};

static unsigned order[8], n_order;

static void on_task(struct loop_task *t)
{
	struct counted *c = CONTAINER(t, struct counted, task);
	if (n_order < ELEMS(order))
		order[n_order++] = c->number;
	(*c->count)++;
}

static struct counted deferred[4];

static void on_defer_all(struct loop_io *io, uint32_t events)
{
	for (int i = 0; i < 4; i++)
		loop_defer(io->loop, &deferred[i].task, on_task);
	loop_cancel(io->loop, &deferred[2].task);
	assert_int_equal(*deferred[0].count, 0); /* not at once */
	loop_stop(io->loop, 0);
}

static void test_defer(void **state)
{
	unsigned count = 0;
	n_order = 0;
	for (unsigned i = 0; i < 4; i++)
		deferred[i] = (struct counted){ .count = &count, .number = i };
	struct end e;
	end_open(&e, EPOLLIN, on_defer_all);
	assert_int_equal(write(e.other, "x", 1), 1);
	assert_int_equal(run(), 0); /* and also when the batch stops the loop */
	assert_int_equal(count, 3);
	assert_int_equal(order[0], 0);
	assert_int_equal(order[1], 1);
	assert_int_equal(order[2], 3);
	loop_cancel(l, &deferred[2].task); /* what has run, or was cancelled: harmless */
	loop_cancel(l, &deferred[0].task);
	end_close(&e);
}

/* A task that defers itself runs in the next round: events are not starved. */
static void on_again(struct loop_task *t)
{
	struct counted *c = CONTAINER(t, struct counted, task);
	if (++*c->count < 100000)
		loop_defer(l, t, on_again);
}

static void test_defer_again(void **state)
{
	unsigned count = 0;
	struct counted c = { .count = &count };
	struct loop_timer t = { 0 };
	loop_defer(l, &c.task, on_again);
	loop_timer_start(l, &t, 1, on_late);
	assert_int_equal(run(), -99);
	assert_in_range(count, 1, 99999);
	loop_cancel(l, &c.task);
}

#define POSTS 10000
static unsigned posted_runs;
static pthread_t loop_thread;

static void on_posted(struct loop_task *t)
{
	assert_true(pthread_equal(pthread_self(), loop_thread));
	struct counted *c = CONTAINER(t, struct counted, task);
	assert_int_equal(c->number, posted_runs); /* in the order of posting */
	if (++posted_runs == POSTS)
		loop_stop(l, 0);
}

static void *poster(void *arg)
{
	struct counted *all = arg;
	for (unsigned i = 0; i < POSTS; i++) {
		all[i].number = i;
		loop_post(l, &all[i].task, on_posted);
	}
	return NULL;
}

static void test_post(void **state)
{
	struct counted *all = calloc(POSTS, sizeof(*all));
	pthread_t t;
	posted_runs = 0;
	loop_thread = pthread_self();
	assert_int_equal(pthread_create(&t, NULL, poster, all), 0);
	assert_int_equal(run(), 0);
	assert_int_equal(posted_runs, POSTS);
	pthread_join(t, NULL);
	free(all);
}

static void on_posted_stop(struct loop_task *t)
{
	CONTAINER(t, struct counted, task)->number++;
	loop_stop(l, 0);
}

static struct counted victim;

static void on_cancel_victim(struct loop_task *t)
{
	loop_cancel(l, &victim.task); /* it is in the batch that is being run */
	loop_stop(l, 0);
}

static void test_cancel_posted(void **state)
{
	struct counted a = { 0 }, b = { 0 };
	loop_post(l, &a.task, on_posted_stop);
	loop_post(l, &b.task, on_posted_stop);
	loop_cancel(l, &a.task);
	assert_int_equal(run(), 0);
	assert_int_equal(a.number, 0);
	assert_int_equal(b.number, 1);

	victim = (struct counted){ 0 };
	loop_post(l, &b.task, on_cancel_victim);
	loop_post(l, &victim.task, on_posted_stop);
	assert_int_equal(run(), 0);
	assert_int_equal(victim.number, 0);
}

/* ---- signals ---- */

static unsigned got[65];

static void on_signal(struct loop_signals *s, int signo)
{
	got[signo]++;
	if (signo == SIGUSR2)
		loop_stop(s->io.loop, 0);
}

static void test_signals(void **state)
{
	struct loop_signals s;
	const int signos[] = { SIGUSR1, SIGUSR2 };
	assert_int_equal(loop_signals_start(l, &s, signos, 2, on_signal), 0);
	kill(getpid(), SIGUSR1);
	kill(getpid(), SIGUSR2);
	assert_int_equal(run(), 0);
	assert_int_equal(got[SIGUSR1], 1);
	assert_int_equal(got[SIGUSR2], 1);
	int fd = s.io.fd;
	loop_signals_stop(&s);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	loop_signals_stop(&s);

	/* One that was never started has no fd, least of all number 0. */
	struct loop_signals none = { 0 };
	int zero = fcntl(0, F_GETFD) < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
	loop_signals_stop(&none);
	assert_true(fcntl(0, F_GETFD) >= 0);
	fd_close(zero);
}

static void test_now(void **state)
{
	assert_true(loop_now(l) <= clock_mono_ms());
	loop_free(NULL);
}

#define LOOP_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOOP_TEST(test_fds),
		LOOP_TEST(test_stop_inside_batch),
		LOOP_TEST(test_restart_inside_batch),
		LOOP_TEST(test_stop_and_go),
		LOOP_TEST(test_timer_order),
		LOOP_TEST(test_timer_stop_inside),
		LOOP_TEST(test_timer_zero),
		LOOP_TEST(test_defer),
		LOOP_TEST(test_defer_again),
		LOOP_TEST(test_post),
		LOOP_TEST(test_cancel_posted),
		LOOP_TEST(test_signals),
		LOOP_TEST(test_now),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
