/*
 * The event loop: see loop.h.
 */
#include "loop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include "clock.h"
#include "fd.h"
#include "poison.h"

#define BATCH 512

struct loop {
	int epfd;
	uint64_t now;
	bool stopped;
	int value;

	struct epoll_event batch[BATCH];
	int batch_n, batch_at;

	struct loop_timer **heap;
	size_t heap_n, heap_cap;
	bool in_timers;

	struct list deferred;

	/* From other threads. */
	pthread_mutex_t lock;
	struct list posted;
	struct loop_io wake;
};

static void on_wake(struct loop_io *io, uint32_t events)
{
	(void)events;
	uint64_t n;
	ssize_t r = read(io->fd, &n, sizeof(n));
	(void)r;
	struct loop *l = io->loop;
	struct list mine = LIST_INIT(mine);
	pthread_mutex_lock(&l->lock);
	LIST_EACH (it, &l->posted) {
		list_del(it);
		list_append(&mine, it);
	}
	pthread_mutex_unlock(&l->lock);
	while (!list_empty(&mine)) {
		struct loop_task *t = CONTAINER(mine.next, struct loop_task, link);
		list_del(&t->link);
		t->run(t);
	}
}

struct loop *loop_new(struct err *e)
{
	struct loop *l = calloc(1, sizeof(*l));
	if (!l) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "event loop");
		return NULL;
	}
	list_init(&l->deferred);
	list_init(&l->posted);
	pthread_mutex_init(&l->lock, NULL);
	l->now = clock_mono_ms();
	l->wake.fd = -1;
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r = l->epfd < 0 || fd < 0 ? -errno : loop_io_start(l, &l->wake, fd, EPOLLIN, on_wake);
	if (r < 0) {
		err_sys(e, ERR_INTERNAL, r, "event loop");
		fd_close(fd);
		loop_free(l);
		return NULL;
	}
	return l;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	int fd = l->wake.fd;
	loop_io_stop(&l->wake);
	fd_close(fd);
	fd_close(l->epfd);
	pthread_mutex_destroy(&l->lock);
	free(l->heap);
	free(l);
}

uint64_t loop_now(const struct loop *l)
{
	return l->now;
}

void loop_stop(struct loop *l, int value)
{
	l->stopped = true;
	l->value = value;
}

/* ---- fds ---- */

int loop_io_start(struct loop *l, struct loop_io *io, int fd, uint32_t events,
		  void (*on_event)(struct loop_io *, uint32_t))
{
	struct epoll_event ev = { .events = events, .data.ptr = io };
	if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	*io = (struct loop_io){ .fd = fd, .events = events, .on_event = on_event, .loop = l };
	return 0;
}

int loop_io_want(struct loop_io *io, uint32_t events)
{
	if (io->events == events)
		return 0;
	struct epoll_event ev = { .events = events, .data.ptr = io };
	if (epoll_ctl(io->loop->epfd, EPOLL_CTL_MOD, io->fd, &ev) < 0)
		return -errno;
	io->events = events;
	return 0;
}

void loop_io_leave(struct loop_io *io)
{
	struct loop *l = io->loop;
	if (!l || io->fd < 0)
		return;
	io->fd = -1;
	/* What this batch still holds for it must not be delivered. */
	for (int i = l->batch_at; i < l->batch_n; i++)
		if (l->batch[i].data.ptr == io)
			l->batch[i].data.ptr = NULL;
}

void loop_io_stop(struct loop_io *io)
{
	if (!io->loop || io->fd < 0)
		return;
	epoll_ctl(io->loop->epfd, EPOLL_CTL_DEL, io->fd, NULL);
	loop_io_leave(io);
}

void loop_io_close(struct loop_io *io)
{
	int fd = io->fd;

	if (fd < 0)
		return;
	loop_io_stop(io);
	io->fd = -1; /* also of one that was never started */
	fd_close(fd);
}

/* ---- timers: a binary heap by time ---- */

static void heap_set(struct loop *l, size_t i, struct loop_timer *t)
{
	l->heap[i] = t;
	t->slot = i + 1;
}

static void heap_up(struct loop *l, size_t i)
{
	struct loop_timer *t = l->heap[i];
	while (i > 0 && l->heap[(i - 1) / 2]->at_ms > t->at_ms) {
		heap_set(l, i, l->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_set(l, i, t);
}

static void heap_down(struct loop *l, size_t i)
{
	struct loop_timer *t = l->heap[i];
	for (;;) {
		size_t c = 2 * i + 1;
		if (c >= l->heap_n)
			break;
		if (c + 1 < l->heap_n && l->heap[c + 1]->at_ms < l->heap[c]->at_ms)
			c++;
		if (l->heap[c]->at_ms >= t->at_ms)
			break;
		heap_set(l, i, l->heap[c]);
		i = c;
	}
	heap_set(l, i, t);
}

void loop_timer_start(struct loop *l, struct loop_timer *t, uint64_t after_ms,
		      void (*on_time)(struct loop_timer *))
{
	loop_timer_stop(t);
	if (l->heap_n == l->heap_cap) {
		size_t cap = l->heap_cap ? l->heap_cap * 2 : 16;
		struct loop_timer **heap = realloc(l->heap, cap * sizeof(*heap));
		/* A program that cannot keep its time limits must not go on. */
		if (!heap)
			abort();
		l->heap = heap;
		l->heap_cap = cap;
	}
	t->loop = l;
	t->on_time = on_time;
	/* From the clock, not from the batch's start: a long handler must not shorten a wait. */
	if (__builtin_add_overflow(clock_mono_ms(), after_ms, &t->at_ms))
		t->at_ms = UINT64_MAX;
	/* Timers that a timer starts wait for the next round, even with 0 ms in the same millisecond. */
	if (l->in_timers && t->at_ms <= l->now)
		t->at_ms = l->now + 1;
	heap_set(l, l->heap_n++, t);
	heap_up(l, l->heap_n - 1);
}

void loop_timer_stop(struct loop_timer *t)
{
	if (!t->slot)
		return;
	struct loop *l = t->loop;
	size_t i = t->slot - 1;
	t->slot = 0;
	struct loop_timer *last = l->heap[--l->heap_n];
	if (last == t)
		return;
	heap_set(l, i, last);
	heap_up(l, i);
	heap_down(l, last->slot - 1);
}

static int next_wait(struct loop *l)
{
	if (!list_empty(&l->deferred))
		return 0;
	if (!l->heap_n)
		return -1;
	uint64_t at = l->heap[0]->at_ms;
	if (at <= l->now)
		return 0;
	return at - l->now > 3600000 ? 3600000 : (int)(at - l->now);
}

static void run_timers(struct loop *l)
{
	l->in_timers = true;
	while (!l->stopped && l->heap_n && l->heap[0]->at_ms <= l->now) {
		struct loop_timer *t = l->heap[0];
		loop_timer_stop(t);
		t->on_time(t);
	}
	l->in_timers = false;
}

/* ---- tasks ---- */

void loop_defer(struct loop *l, struct loop_task *task, void (*run)(struct loop_task *))
{
	task->run = run;
	list_append(&l->deferred, &task->link);
}

void loop_post(struct loop *l, struct loop_task *task, void (*run)(struct loop_task *))
{
	task->run = run;
	pthread_mutex_lock(&l->lock);
	bool first = list_empty(&l->posted);
	list_append(&l->posted, &task->link);
	pthread_mutex_unlock(&l->lock);
	if (!first)
		return;
	uint64_t one = 1;
	ssize_t r = write(l->wake.fd, &one, sizeof(one));
	(void)r; /* full means that the loop is awake anyway */
}

void loop_cancel(struct loop *l, struct loop_task *task)
{
	pthread_mutex_lock(&l->lock);
	list_del(&task->link);
	pthread_mutex_unlock(&l->lock);
}

static void run_deferred(struct loop *l)
{
	struct list mine = LIST_INIT(mine);
	LIST_EACH (it, &l->deferred) {
		list_del(it);
		list_append(&mine, it);
	}
	while (!list_empty(&mine)) {
		struct loop_task *t = CONTAINER(mine.next, struct loop_task, link);
		list_del(&t->link);
		t->run(t);
	}
}

int loop_run(struct loop *l)
{
	l->stopped = false;
	while (!l->stopped) {
		l->now = clock_mono_ms();
		l->batch_n = epoll_wait(l->epfd, l->batch, BATCH, next_wait(l));
		if (l->batch_n < 0 && errno != EINTR)
			return -errno;
		l->now = clock_mono_ms();
		for (l->batch_at = 0; l->batch_at < l->batch_n && !l->stopped;) {
			struct epoll_event *ev = &l->batch[l->batch_at++];
			struct loop_io *io = ev->data.ptr;
			if (io)
				io->on_event(io, ev->events);
		}
		l->batch_n = l->batch_at = 0;
		run_timers(l);
		run_deferred(l);
	}
	run_deferred(l);
	return l->value;
}

/* ---- signals ---- */

static void on_signalfd(struct loop_io *io, uint32_t events)
{
	(void)events;
	struct loop_signals *s = CONTAINER(io, struct loop_signals, io);
	struct signalfd_siginfo si;
	while (s->io.fd >= 0 && read(s->io.fd, &si, sizeof(si)) == (ssize_t)sizeof(si))
		s->on_signal(s, (int)si.ssi_signo);
}

int loop_signals_start(struct loop *l, struct loop_signals *s, const int *signos, size_t n,
		       void (*on_signal)(struct loop_signals *, int))
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < n; i++)
		sigaddset(&set, signos[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	s->on_signal = on_signal;
	int r = loop_io_start(l, &s->io, fd, EPOLLIN, on_signalfd);
	if (r < 0)
		fd_close(fd);
	return r;
}

void loop_signals_stop(struct loop_signals *s)
{
	if (!s->io.loop)
		return; /* never started */
	int fd = s->io.fd;
	loop_io_stop(&s->io);
	fd_close(fd);
}
