/*
 * Signalling a process tree. A process group is not enough: job control and
 * `setsid` leave it. What belongs to the tree is found in /proc: the session of
 * the leader, and every child of what belongs. To kill it, what was found is
 * stopped before the next look, so that nothing can fork away from under it,
 * until a look finds nothing new; then all of it is killed. (Only a daemon that
 * had already cut both ties, session and parent, is not found.) Other signals go
 * to what one look finds.
 */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "clock.h"
#include "fd.h"
#include "num.h"
#include "poison.h"

#define PASSES 16
#define DEPTH  4096 /* of ancestors: pids are reused while we look, so a ring is thinkable */

/* What is looked for. */
struct pick {
	pid_t leader;
	bool below;
	uint64_t since; /* start times in ticks; those before are spared, with what they have started */
};

struct entry {
	pid_t pid, ppid, session;
	uint64_t start; /* ticks since boot */
};

struct table {
	struct entry *items;
	size_t n, cap;
};

static int table_add(struct table *t, const struct entry *entry)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 64;
		struct entry *items = reallocarray(t->items, cap, sizeof(*items));
		if (!items)
			return -ENOMEM;
		t->items = items;
		t->cap = cap;
	}
	t->items[t->n++] = *entry;
	return 0;
}

static int by_pid(const void *a, const void *b)
{
	pid_t x = ((const struct entry *)a)->pid, y = ((const struct entry *)b)->pid;
	return x < y ? -1 : x > y;
}

/* In a sorted one. */
static const struct entry *table_find(const struct table *t, pid_t pid)
{
	struct entry key = { .pid = pid };
	return t->n ? bsearch(&key, t->items, t->n, sizeof(key), by_pid) : NULL;
}

static bool next_number(struct view *rest, uint64_t *ret)
{
	return num_u64(view_split(*rest, ' ', rest), ret) == 0;
}

/* "pid (comm) state ppid pgrp session …"; comm may hold anything, so from the last ')'. */
static bool read_stat(int proc, const char *name, struct entry *ret)
{
	char path[32], text[512];
	snprintf(path, sizeof(path), "%.16s/stat", name);
	_cleanup_(closep) int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	const char *comm_end = n > 0 ? memrchr(text, ')', (size_t)n) : NULL;
	if (!comm_end)
		return false;
	struct view rest = { comm_end + 1, (size_t)(text + n - comm_end - 1) };
	rest = view_skip(rest, 1);
	struct view state = view_split(rest, ' ', &rest);
	uint64_t ppid, pgrp, session;
	if (view_is(state, "Z") || !next_number(&rest, &ppid) || !next_number(&rest, &pgrp) ||
	    !next_number(&rest, &session))
		return false;
	for (int i = 7; i < 22; i++) /* the 22nd field is the start */
		(void)view_split(rest, ' ', &rest);
	ret->ppid = (pid_t)ppid;
	ret->session = (pid_t)session;
	return next_number(&rest, &ret->start);
}

/* Everything that runs, but for PID 1, sorted. */
static int look(struct table *all)
{
	DIR *dir = opendir("/proc");
	if (!dir)
		return -errno;
	int r = 0;
	for (struct dirent *d; r == 0 && (d = readdir(dir));) {
		struct entry entry = { 0 };
		uint32_t pid;
		if (num_u32(view_of(d->d_name), &pid) < 0 || pid <= 1 ||
		    !read_stat(dirfd(dir), d->d_name, &entry))
			continue;
		entry.pid = (pid_t)pid;
		r = table_add(all, &entry);
	}
	closedir(dir);
	if (all->n)
		qsort(all->items, all->n, sizeof(struct entry), by_pid);
	return r;
}

/* Goes up through its parents until one says where it belongs. */
static bool belongs(const struct pick *pick, const struct table *all, const struct table *hit,
		    const struct entry *en)
{
	bool member = false;
	if (pick->below && en->pid == pick->leader)
		return false;
	for (int depth = 0; en && en->pid != pick->leader && depth < DEPTH; depth++) {
		if (en->start < pick->since)
			return false;
		member |= en->session == pick->leader || table_find(hit, en->pid) ||
			  table_find(hit, en->ppid) || en->ppid == pick->leader;
		en = table_find(all, en->ppid);
	}
	return member || (en && en->pid == pick->leader);
}

/* Adds what belongs and was not known, and signals it; how many, or -errno. */
static int signal_new(const struct pick *pick, struct table *hit, int signo)
{
	struct table all = { 0 }, found = { 0 };
	int r = look(&all), n = 0;
	for (size_t i = 0; i < all.n; i++) {
		const struct entry *en = &all.items[i];
		if (table_find(hit, en->pid) || !belongs(pick, &all, hit, en))
			continue;
		n += kill(en->pid, signo) == 0;
		if (table_add(&found, en) < 0) {
			(void)kill(en->pid, signo == SIGSTOP ? SIGKILL : signo); /* it cannot be remembered */
			r = -ENOMEM;
		}
	}
	for (size_t i = 0; i < found.n && r == 0; i++)
		r = table_add(hit, &found.items[i]);
	if (hit->n)
		qsort(hit->items, hit->n, sizeof(struct entry), by_pid);
	free(found.items);
	free(all.items);
	return r < 0 ? r : n;
}

static unsigned signal_all(const struct pick *pick, int signo)
{
	struct table hit = { 0 };
	unsigned n = 0;
	if (signo != SIGKILL) {
		int r = signal_new(pick, &hit, signo);
		free(hit.items);
		return r < 0 ? 0 : (unsigned)r;
	}
	for (int i = 0; i < PASSES && signal_new(pick, &hit, SIGSTOP) > 0; i++)
		;
	/* The group by its number too: it works without /proc and without memory. */
	if (!pick->below)
		(void)kill(-pick->leader, SIGKILL);
	for (size_t i = 0; i < hit.n; i++)
		n += kill(hit.items[i].pid, SIGKILL) == 0;
	free(hit.items);
	return n;
}

void tree_kill(pid_t leader)
{
	(void)signal_all(&(struct pick){ .leader = leader }, SIGKILL);
}

unsigned tree_signal(pid_t leader, int signo)
{
	return signal_all(&(struct pick){ .leader = leader }, signo);
}

/* A start time is cut to its tick: with one tick of margin nothing that started at the moment is missed. */
static uint64_t ticks_at(int64_t wall_ms)
{
	struct timespec boot;
	long hz = sysconf(_SC_CLK_TCK);
	if (wall_ms <= 0 || hz <= 0 || clock_gettime(CLOCK_BOOTTIME, &boot) < 0)
		return 0;
	int64_t ms = (int64_t)boot.tv_sec * 1000 + boot.tv_nsec / 1000000 - (clock_wall_ms() - wall_ms);
	int64_t ticks = ms > 0 ? ms * hz / 1000 - 1 : 0;
	return ticks > 0 ? (uint64_t)ticks : 0;
}

unsigned tree_signal_below(pid_t leader, int signo, int64_t since_ms)
{
	return signal_all(&(struct pick){ .leader = leader, .below = true, .since = ticks_at(since_ms) },
			  signo);
}
