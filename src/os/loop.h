/*
 * The event loop: one thread, one loop per program. Level-triggered epoll,
 * timers in a heap, signals by signalfd, children by pidfd (a plain fd), and
 * work posted from other threads by eventfd.
 *
 * An fd belongs to the object that embeds its `struct loop_io`. Handlers may
 * stop and free any object in a handler: loop_io_stop removes it from the batch
 * that is being delivered, and loop_defer postpones a free to the batch's end.
 */
#pragma once

#include <sys/epoll.h>

#include "err.h"
#include "list.h"

struct loop;

struct loop_io {
	int fd; /* -1 while stopped; the loop never closes it */
	uint32_t events;
	void (*on_event)(struct loop_io *io, uint32_t events);
	struct loop *loop;
};

struct loop_timer {
	uint64_t at_ms; /* monotonic */
	size_t slot;    /* place in the heap + 1, 0 while stopped */
	void (*on_time)(struct loop_timer *t);
	struct loop *loop;
};

struct loop_task {
	struct list link;
	void (*run)(struct loop_task *task);
};

struct loop *loop_new(struct err *e) _must_check_;
void loop_free(struct loop *l);
int loop_run(struct loop *l) _must_check_; /* until loop_stop; returns its value */
void loop_stop(struct loop *l, int value);
/* Monotonic milliseconds, read once per batch. */
uint64_t loop_now(const struct loop *l);

int loop_io_start(struct loop *l, struct loop_io *io, int fd, uint32_t events,
		  void (*on_event)(struct loop_io *, uint32_t)) _must_check_;
int loop_io_want(struct loop_io *io, uint32_t events) _must_check_; /* no syscall when unchanged */
void loop_io_stop(struct loop_io *io);
/* The same without a syscall, where the fd is closed next and nobody has a copy of it: the close takes it
 * out. */
void loop_io_leave(struct loop_io *io);
/* Stops it and closes its fd, if it has one; for those who own it. */
void loop_io_close(struct loop_io *io);

void loop_timer_start(struct loop *l, struct loop_timer *t, uint64_t after_ms,
		      void (*on_time)(struct loop_timer *));
void loop_timer_stop(struct loop_timer *t);
static inline bool loop_timer_active(const struct loop_timer *t)
{
	return t->slot != 0;
}

/* Runs `task` once, after the batch that is being delivered; same thread. */
void loop_defer(struct loop *l, struct loop_task *task, void (*run)(struct loop_task *));
/* The same from any thread; wakes the loop. */
void loop_post(struct loop *l, struct loop_task *task, void (*run)(struct loop_task *));
/* Takes back a task that has not run yet; by the loop's thread, and nobody posts it any more.
 * The task must have been deferred or posted once, or have its link initialised. */
void loop_cancel(struct loop *l, struct loop_task *task);

/* Blocks the signals of `mask` and delivers them as ordinary events. */
struct loop_signals {
	struct loop_io io;
	void (*on_signal)(struct loop_signals *s, int signo);
};
int loop_signals_start(struct loop *l, struct loop_signals *s, const int *signos, size_t n,
		       void (*on_signal)(struct loop_signals *, int)) _must_check_;
void loop_signals_stop(struct loop_signals *s);
