/*
 * Watchers that are polled: what happens below a path of a box is kept until
 * somebody asks. Each holds a bounded number of bytes (past it all is dropped and
 * an overflow is told) and goes away by itself when nobody has asked for a while.
 */
#pragma once

#include "files.h"
#include "list.h"
#include "loop.h"

#define WATCHERS_ID     20
#define WATCHERS_OF_BOX 16

struct watcher;
struct tenant;

/* `ready` once, later: the watcher, which the core keeps, or an error. Until then it may be abandoned. */
struct watcher *watchers_add(struct core *c, const struct actor *a, const struct file_place *p,
			     bool recursive,
			     void (*ready)(void *arg, const struct watcher *w, const struct err *e),
			     void *arg, struct err *e) _must_check_;
void watchers_abandon(struct watcher *w); /* before `ready` */
const char *watchers_id(const struct watcher *w);

/* What has happened since the last time. */
struct watcher_news {
	struct arena *arena; /* set by the caller: of the events */
	const struct wire_file_event *events;
	size_t n;
	bool overflow;
	bool ended; /* nothing more will come: what was watched is gone, or the box has stopped */
};
int watchers_poll(struct core *c, const struct actor *a, struct view box, struct view id,
		  struct watcher_news *ret, struct err *e) _must_check_;
int watchers_remove(struct core *c, const struct actor *a, struct view box, struct view id,
		    struct err *e) _must_check_;
void watchers_done(struct core *c);
