/*
 * Watchers that are polled: see watchers.h.
 */
#include "files_info.h"
#include "watchers.h"

#include <errno.h>
#include <stdlib.h>

#include "boxes.h"
#include "core_base.h"
#include "rnd.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define IDLE_MS   600000
#define BYTES_MAX (256u * 1024) /* of events that wait */

struct watcher {
	struct file_op op;
	struct core *core;
	struct list link;
	char id[WATCHERS_ID + 1], box[BOX_ID + 1];
	struct buf events; /* FileEvents, one behind the other: together they are one */
	bool started, overflow, ended;
	struct loop_timer idle;
	void (*ready)(void *arg, const struct watcher *w, const struct err *e);
	void *arg;
};

static void free_watcher(struct watcher *w)
{
	loop_timer_stop(&w->idle);
	files_cancel(&w->op);
	list_del(&w->link);
	buf_done(&w->events);
	free(w);
}

static void on_idle(struct loop_timer *t)
{
	free_watcher(CONTAINER(t, struct watcher, idle));
}

static void on_started(struct file_op *op)
{
	struct watcher *w = CONTAINER(op, struct watcher, op);
	w->started = true;
	loop_timer_start(w->core->loop, &w->idle, IDLE_MS, on_idle);
	w->ready(w->arg, w, NULL);
}

static void on_data(struct file_op *op, struct view data)
{
	struct watcher *w = CONTAINER(op, struct watcher, op);
	if (data.n > buf_room(&w->events) || buf_add(&w->events, data) < 0) {
		buf_done(&w->events);
		w->overflow = true;
	}
	files_consumed(op, data.n);
}

static void done(struct file_op *op, const struct file_info *info, bool created, const struct err *e)
{
	struct watcher *w = CONTAINER(op, struct watcher, op);
	struct err gone = { 0 };
	w->ended = true;
	if (w->started)
		return; /* it is told by the next poll */
	if (!e)
		err_set(&gone, ERR_NOT_FOUND, "what was to be watched is gone");
	w->ready(w->arg, NULL, e ? e : &gone);
	free_watcher(w);
}

static const struct file_ops watch_ops = { .on_started = on_started, .on_data = on_data, .done = done };

static unsigned count(struct core *c, const char *box)
{
	unsigned n = 0;
	LIST_EACH (it, &c->watchers->all)
		n += strcmp(CONTAINER(it, struct watcher, link)->box, box) == 0;
	return n;
}

struct watcher *watchers_add(struct core *c, const struct actor *a, const struct file_place *p,
			     bool recursive,
			     void (*ready)(void *arg, const struct watcher *w, const struct err *e),
			     void *arg, struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_FILE_READ, p->box, e);
	if (!b)
		return NULL;
	if (count(c, b->id) >= WATCHERS_OF_BOX) {
		err_set(e, ERR_QUOTA, "a sandbox has at most %d watchers", WATCHERS_OF_BOX);
		return NULL;
	}
	struct watcher *w = calloc(1, sizeof(*w));
	if (!w) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "watcher");
		return NULL;
	}
	w->core = c;
	w->op.ops = &watch_ops;
	w->op.call.background = true; /* asking for what it saw is use; its being there is not */
	w->ready = ready;
	w->arg = arg;
	w->events = BUF_INIT(BYTES_MAX);
	rnd_name(w->id, WATCHERS_ID);
	memcpy(w->box, b->id, sizeof(w->box));
	list_append(&c->watchers->all, &w->link);
	if (files_watch(c, a, p, recursive, &w->op, e) >= 0)
		return w;
	free_watcher(w);
	return NULL;
}

void watchers_abandon(struct watcher *w)
{
	free_watcher(w);
}

const char *watchers_id(const struct watcher *w)
{
	return w->id;
}

static struct watcher *find(struct core *c, const struct actor *a, struct view box, struct view id,
			    struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_FILE_READ, box, e);
	if (!b)
		return NULL;
	LIST_EACH (it, &c->watchers->all) {
		struct watcher *w = CONTAINER(it, struct watcher, link);
		if (w->started && view_is(id, w->id) && strcmp(w->box, b->id) == 0)
			return w;
	}
	err_set(e, ERR_NOT_FOUND, "there is no such watcher");
	return NULL;
}

int watchers_poll(struct core *c, const struct actor *a, struct view box, struct view id,
		  struct watcher_news *ret, struct err *e)
{
	struct wire_file_events *all = arena_alloc(ret->arena, sizeof(*all));
	struct watcher *w = find(c, a, box, id, e);
	if (!w)
		return -1;
	struct view bytes = arena_view(ret->arena, buf_view(&w->events));
	/* It was decoded before, in pieces: only memory can fail. */
	struct file_event *events;
	if (!all || !bytes.p ||
	    pb_decode(&wire_file_events_msg, bytes, PB_SKIP_UNKNOWN, ret->arena, all) < 0 ||
	    files_info_events(ret->arena, all, &events) < 0)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "events");
	buf_done(&w->events);
	loop_timer_start(c->loop, &w->idle, IDLE_MS, on_idle);
	ret->events = events;
	ret->n = all->events.n;
	ret->overflow = w->overflow;
	ret->ended = w->ended;
	w->overflow = false;
	return 0;
}

int watchers_remove(struct core *c, const struct actor *a, struct view box, struct view id, struct err *e)
{
	struct watcher *w = find(c, a, box, id, e);
	if (!w)
		return -1;
	free_watcher(w);
	return 0;
}

void watchers_done(struct core *c)
{
	LIST_EACH (it, &c->watchers->all)
		free_watcher(CONTAINER(it, struct watcher, link));
}
