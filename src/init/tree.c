/*
 * Killing a process tree. A process group is not enough: job control and
 * `setsid` leave it. What belongs to the tree is found in /proc: the session of
 * the leader, and every child of what belongs. What was found is stopped
 * before the next look, so that nothing can fork away from under it, until a
 * look finds nothing new; then all of it is killed. (Only a daemon that had
 * already cut both ties, session and parent, is not found.)
 */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "fd.h"
#include "num.h"
#include "poison.h"

#define PASSES 16

struct entry {
	pid_t pid, ppid, session;
	bool member;
};

struct table {
	struct entry *items;
	size_t n, cap;
};

static struct entry *table_add(struct table *t, struct entry entry)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 64;
		struct entry *items = reallocarray(t->items, cap, sizeof(*items));
		if (!items)
			return NULL;
		t->items = items;
		t->cap = cap;
	}
	t->items[t->n] = entry;
	return &t->items[t->n++];
}

static struct entry *table_find(const struct table *t, pid_t pid)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->items[i].pid == pid)
			return &t->items[i];
	return NULL;
}

static bool next_number(struct view *rest, pid_t *ret)
{
	uint32_t v;
	if (num_u32(view_split(*rest, ' ', rest), &v) < 0)
		return false;
	*ret = (pid_t)v;
	return true;
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
	pid_t pgrp;
	return !view_is(state, "Z") && next_number(&rest, &ret->ppid) && next_number(&rest, &pgrp) &&
	       next_number(&rest, &ret->session);
}

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
		r = table_add(all, entry) ? 0 : -ENOMEM;
	}
	closedir(dir);
	return r;
}

/* A parent may stand behind its child in the table: again until nothing changes. */
static void mark(struct table *all, const struct table *hit, pid_t leader)
{
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t i = 0; i < all->n; i++) {
			struct entry *en = &all->items[i];
			struct entry *parent;
			if (en->member)
				continue;
			en->member = en->pid == leader || en->session == leader || table_find(hit, en->pid) ||
				     table_find(hit, en->ppid) ||
				     ((parent = table_find(all, en->ppid)) && parent->member);
			changed |= en->member;
		}
	}
}

/* Stops what belongs and was not known; how many, or -errno. */
static int stop_new(struct table *hit, pid_t leader)
{
	struct table all = { 0 };
	int r = look(&all), n = 0;
	mark(&all, hit, leader);
	for (size_t i = 0; i < all.n; i++) {
		struct entry *en = &all.items[i];
		if (!en->member || table_find(hit, en->pid))
			continue;
		(void)kill(en->pid, SIGSTOP);
		n++;
		if (!table_add(hit, *en)) {
			(void)kill(en->pid, SIGKILL);
			r = -ENOMEM;
		}
	}
	free(all.items);
	return r < 0 ? r : n;
}

void tree_kill(pid_t leader)
{
	struct table hit = { 0 };
	for (int i = 0; i < PASSES && stop_new(&hit, leader) > 0; i++)
		;
	/* The group by its number too: it works without /proc and without memory. */
	(void)kill(-leader, SIGKILL);
	for (size_t i = 0; i < hit.n; i++)
		(void)kill(hit.items[i].pid, SIGKILL);
	free(hit.items);
}
