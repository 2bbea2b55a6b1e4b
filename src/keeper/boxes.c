/*
 * Starting and ending boxes: see boxes.h.
 *
 * Order of a start, and so what a killed keeper can leave behind: run directory
 * (holds the uid range), storage, control group, processes, state file. Whatever
 * lacks its state file is cleared away by boxes_adopt.
 */
#include "boxes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adopt.h"
#include "ahead.h"
#include "calls.h"
#include "fd.h"
#include "gate.h"
#include "gauges.h"
#include "hostdirs.h"
#include "log.h"
#include "serve.h"
#include "spawn.h"
#include "sweep.h"
#include "poison.h"

#define TIDY_MS 5
#define IDLE_MS 20
#define LATER   16 /* detached mounts that are left open until there is nothing else to do */

int boxes_connect(struct keeper *k, const struct keeper_box *b, struct err *e)
{
	_cleanup_(closep) int dir =
		openat(k->run_boxes, b->spec.id, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int fd = dir < 0 ? -errno : b->in.walls->ops->connect(b->in.walls, &b->in, dir);
	return fd < 0 ? err_sys(e, ERR_UNAVAILABLE, fd, "cannot reach PID 1 of the sandbox") : fd;
}

static void remove_run_dir(struct keeper *k, const char *id)
{
	int dir = openat(k->run_boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir >= 0)
		sweep_tree(dir);
	(void)unlinkat(k->run_boxes, id, AT_REMOVEDIR);
}

int boxes_discard(struct keeper *k, const char *id)
{
	int r = storage_drop(&k->storage, id);
	if (r == 0)
		sweep_start(k);
	return r;
}

/* ---- ending ---- */

static void on_tidy(struct loop_timer *t);

void boxes_tidy_later(struct keeper *k)
{
	if (!loop_timer_active(&k->tidy))
		loop_timer_start(k->loop, &k->tidy, TIDY_MS, on_tidy);
}

/* A run directory without a box that we know is of one that is left alone: adopt.c. */
static bool is_known(void *arg, const char *id)
{
	struct keeper *k = arg;
	return box_table_get(&k->boxes, view_of(id)) || faccessat(k->run_boxes, id, F_OK, 0) == 0;
}

static void on_tidy(struct loop_timer *t)
{
	struct keeper *k = CONTAINER(t, struct keeper, tidy);
	for (unsigned i = 0; i < k->walls.n; i++) {
		struct walls *w = k->walls.all[i];
		if (w->ops->sweep && w->ops->sweep(w, is_known, k))
			boxes_tidy_later(k);
	}
}

/* One part of each kind, so that a request that comes meanwhile does not wait for all. True: some are
 * missing still. */
static bool refill(struct keeper *k)
{
	bool more = ahead_make(k);
	more = storage_refill(&k->storage) || more;
	for (unsigned i = 0; i < k->walls.n; i++) {
		struct walls *w = k->walls.all[i];
		more = (w->ops->refill && w->ops->refill(w)) || more;
	}
	return more;
}

/* Closes detached mounts, for each of which the kernel interrupts all processors. */
static void close_mounts(struct keeper *k, unsigned leave)
{
	for (unsigned i = 0; i < k->walls.n; i++) {
		struct walls *w = k->walls.all[i];
		if (w->ops->tidy)
			w->ops->tidy(w, leave);
	}
}

/* Nothing has happened for a while: make parts ahead. */
static void on_idle(struct loop_timer *t)
{
	struct keeper *k = CONTAINER(t, struct keeper, idle);
	close_mounts(k, 0);
	if (refill(k))
		loop_timer_start(k->loop, &k->idle, 1, on_idle);
}

/* The kernel takes a box apart, on another processor, and we would wait for it. A client that creates and
 * removes one box after another leaves no other pause, and would find no parts. */
static void on_ending(struct loop_task *t)
{
	struct keeper *k = CONTAINER(t, struct keeper, ending);
	close_mounts(k, 0);
	(void)refill(k);
}

/* Behind the answer, when many boxes were made without a pause: those of a few are left open, since the first
 * commands of a new box have more use for the processors. */
static void on_answered(struct loop_task *t)
{
	close_mounts(CONTAINER(t, struct keeper, answered), LATER);
}

void boxes_refill_later(struct keeper *k)
{
	loop_timer_start(k->loop, &k->idle, IDLE_MS, on_idle);
}

static void box_free(struct keeper *k, struct keeper_box *b)
{
	loop_io_stop(&b->exit);
	fd_close(b->in.pidfd);
	gate_box_gone(k, b);
	gauges_box_gone(k, b);
	map_del(&k->boxes.by_id, &b->node);
	box_table_free(b);
}

/* PID 1 is dead, and with it everything in its pid namespace. */
static void on_box_exit(struct loop_io *io, uint32_t events)
{
	(void)events;
	struct keeper_box *b = CONTAINER(io, struct keeper_box, exit);
	struct keeper *k = b->keeper;
	siginfo_t si = { 0 };
	/* An adopted box is not our child: somebody else reaps it, and its code is unknown. */
	if (waitid(P_PIDFD, (id_t)io->fd, &si, WEXITED) < 0)
		si.si_code = 0;
	struct walls_usage usage;
	b->in.pid = 0;
	(void)!walls_usage(&b->in, &usage);
	bool left = b->in.walls->ops->clear(b->in.walls, &b->in) < 0;
	remove_run_dir(k, b->spec.id);
	slots_free(&k->slots, b->slot);
	if (!b->dying) {
		bool by_signal = si.si_code == CLD_KILLED || si.si_code == CLD_DUMPED;
		log_info("sandbox %s has ended by itself (%s %d)", b->spec.id, by_signal ? "signal" : "exit",
			 si.si_status);
		calls_box_exited(k, b, by_signal ? 0 : (uint32_t)si.si_status,
				 by_signal ? (uint32_t)si.si_status : 0, usage.oom_kills > 0);
	}
	if (b->on_end)
		b->on_end(k, b);
	box_free(k, b);
	if (left)
		boxes_tidy_later(k);
}

void boxes_end(struct keeper *k, struct keeper_box *b, box_ended *on_end)
{
	b->dying = true;
	b->on_end = on_end;
	b->in.walls->ops->kill(b->in.walls, &b->in);
	if (list_empty(&k->ending.link))
		loop_defer(k->loop, &k->ending, on_ending);
}

void boxes_forget_calls(struct keeper *k)
{
	for (struct map_node *n = map_first(&k->boxes.by_id); n; n = map_next(&k->boxes.by_id, n))
		CONTAINER(n, struct keeper_box, node)->stream = 0;
}

/* ---- starting ---- */

int adopt_watch(struct keeper *k, struct keeper_box *b)
{
	b->keeper = k;
	int r = map_put(&k->boxes.by_id, &b->node, view_of(b->spec.id));
	if (r == 0) {
		r = loop_io_start(k->loop, &b->exit, b->in.pidfd, EPOLLIN, on_box_exit);
		if (r < 0)
			map_del(&k->boxes.by_id, &b->node);
	}
	return r;
}

/* Storage and processes; the caller undoes the rest. `ahead`: the storage that was made ahead, or -1. */
static int start_in(struct keeper *k, struct keeper_box *b, const struct plan_image *image, int unit,
		    int run_box, int ahead, struct err *e)
{
	_cleanup_(closep) int storage = ahead;
	struct plan plan;
	if (plan_make(&b->spec, image, b->slot, (uint32_t)k->config->uids.base, &plan, e) < 0)
		return -1;
	if (storage < 0)
		storage = storage_make(&k->storage, &plan, unit, e);
	if (storage < 0)
		return -1;
	_cleanup_(storage_close_workspaces) struct storage_workspaces workspaces = { .n = 0 };
	if (storage_open_workspaces(&k->storage, b->spec.workspaces, &workspaces, e) < 0)
		return -1;
	_cleanup_(hostdirs_close) struct hostdirs hosts = HOSTDIRS_INIT;
	if (b->spec.mounts && hostdirs_open(k->config, b->spec.mounts, &hosts, e) < 0)
		return -1;
	const struct walls_start s = { .plan = &plan,
				       .image = image,
				       .storage = storage,
				       .workspaces = workspaces.fds,
				       .run = run_box,
				       .hosts = hosts.fds,
				       .prepared = ahead >= 0 };
	b->features = b->in.walls->posture.features;
	gauges_box(k, b, 0);
	if (b->in.walls->ops->start(b->in.walls, &s, &b->in, &b->gate, e) < 0)
		return -1;
	int r = spawn_start_time(b->in.pid, &b->started);
	if (r == 0)
		r = box_table_save(b, run_box);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "cannot write the sandbox's state") : 0;
}

static void undo_start(struct keeper *k, struct keeper_box *b)
{
	netns_gate_close(&b->gate);
	b->in.walls->ops->kill(b->in.walls, &b->in);
	if (b->in.pidfd >= 0) {
		siginfo_t si;
		(void)waitid(P_PIDFD, (id_t)b->in.pidfd, &si, WEXITED);
		fd_close(b->in.pidfd);
	}
	if (b->in.walls->ops->clear(b->in.walls, &b->in) < 0)
		boxes_tidy_later(k);
	remove_run_dir(k, b->spec.id);
	slots_free(&k->slots, b->slot);
	if (!b->spec.existing)
		(void)!boxes_discard(k, b->spec.id);
	gate_box_gone(k, b);
	gauges_box_gone(k, b);
	box_table_free(b);
}

/* Its run directory, which holds its uid range. */
static int make_run_dir(struct keeper *k, struct keeper_box *b, struct err *e)
{
	char holder[640];
	snprintf(holder, sizeof(holder), "%s/boxes/%s", k->run_path, b->spec.id);
	if (mkdirat(k->run_boxes, b->spec.id, 0700) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "cannot make the sandbox's run directory");
	if (slots_take(&k->slots, holder, &b->slot, e) < 0) {
		(void)unlinkat(k->run_boxes, b->spec.id, AT_REMOVEDIR);
		return -1;
	}
	return 0;
}

static int start_box(struct keeper *k, struct keeper_box *b, const struct image *image, int *ret_link,
		     struct err *e)
{
	_cleanup_(closep) int unit = images_unit(&k->images, image);
	bool plain = unit == -ENOENT;
	int ahead = -1;
	if (!ahead_take(k, b, plain, &ahead) && make_run_dir(k, b, e) < 0) {
		box_table_free(b);
		return -1;
	}
	_cleanup_(closep) int run_box = openat(k->run_boxes, b->spec.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct plan_image layers = { 0 };
	int link = -1;
	int r = unit < 0 && unit != -ENOENT ? err_sys(e, ERR_STORAGE, unit, "cannot open the image's files")
					    : images_layers(&k->images, image, &layers, e);
	if (r == 0)
		r = start_in(k, b, &layers, unit, run_box, ahead, e);
	else
		fd_close(ahead);
	images_release(&layers);
	if (r == 0)
		r = link = boxes_connect(k, b, e);
	if (r >= 0 && (r = adopt_watch(k, b)) < 0)
		err_sys(e, ERR_INTERNAL, r, "cannot watch the sandbox");
	if (r < 0) {
		fd_close(link);
		undo_start(k, b);
		return -1;
	}
	ahead_learn(k, b, plain);
	*ret_link = link;
	return 0;
}

int boxes_start(struct keeper *k, const struct spec *s, struct view digest, struct keeper_box **ret,
		int *ret_link, struct err *e)
{
	if (spec_check(s, &k->ceiling, e) < 0)
		return -1;
	struct walls *walls = walls_find(&k->walls, view_of(s->backend), e);
	if (!walls)
		return -1;
	if (!s->existing && room_admit(k, e) < 0)
		return -1;
	if (!walls->posture.ok && walls->untried.ok)
		serve_try_walls(k, walls);
	if (walls_usable(walls, e) < 0 ||
	    posture_require(&walls->posture, s->require | k->config->posture.required, e) < 0)
		return -1;
	if (box_table_get(&k->boxes, view_of(s->id)))
		return err_set(e, ERR_CONFLICT, "a sandbox with this id exists");
	const struct image *image = images_find(&k->images, digest);
	if (!image)
		return err_set(e, ERR_NOT_FOUND, "no such image");
	struct keeper_box *b = calloc(1, sizeof(*b));
	if (!b)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "a new sandbox");
	list_init(&b->gate_wait);
	b->gate = NETNS_GATE_NONE;
	b->spec = *s;
	if (box_table_take(b, s->workspaces) < 0) {
		free(b);
		return err_sys(e, ERR_INTERNAL, ENOMEM, "a new sandbox");
	}
	b->spec.thrash_s = (uint32_t)k->config->max.thrash_seconds;
	b->exit.fd = -1;
	b->in = (struct walls_box){ .walls = walls, .id = b->spec.id, .pidfd = -1 };
	snprintf(b->image, sizeof(b->image), "%s", image->digest);
	if (start_box(k, b, image, ret_link, e) < 0)
		return -1; /* b is gone */
	b->spec.mounts = NULL;
	*ret = b;
	if (list_empty(&k->answered.link))
		loop_defer(k->loop, &k->answered, on_answered);
	boxes_refill_later(k);
	return 0;
}
