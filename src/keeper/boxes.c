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
#include "calls.h"
#include "fd.h"
#include "gate.h"
#include "log.h"
#include "spawn.h"
#include "sweep.h"
#include "poison.h"

#define TIDY_MS 5
#define IDLE_MS 20
#define BACKLOG 16

/* Through the directory's fd: a run directory's path may be longer than a socket address. */
static struct sockaddr_un socket_address(int run_box)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	snprintf(sun.sun_path, sizeof(sun.sun_path), "/proc/self/fd/%d/init.sock", run_box);
	return sun;
}

static int make_listener(int run_box)
{
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un sun = socket_address(run_box);
	/* The directory is ours alone (0700): no moment in which another could connect. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int boxes_connect(struct keeper *k, const struct box *b, struct err *e)
{
	_cleanup_(closep) int dir =
		openat(k->run_boxes, b->spec.id, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	/* Never blocking: a PID 1 that does not accept is its own problem. */
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un sun = socket_address(dir);
	if (dir < 0 || fd < 0 || connect(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0)
		return err_sys(e, ERR_UNAVAILABLE, errno, "cannot reach PID 1 of the box");
	return TAKE_FD(fd);
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

static void drop_stray_group(void *arg, const char *name)
{
	struct keeper *k = arg;
	if (!spec_id_ok(view_of(name)) || box_table_get(&k->boxes, view_of(name)))
		return;
	if (cgroup_kill(&k->native.cgroups, name) < 0 || cgroup_remove(&k->native.cgroups, name) < 0)
		boxes_tidy_later(k);
}

static void on_tidy(struct loop_timer *t)
{
	struct keeper *k = CONTAINER(t, struct keeper, tidy);
	cgroup_each(&k->native.cgroups, drop_stray_group, k);
}

/* Nothing has happened for a while: make parts ahead, one of each at a time, so that a
 * request that comes meanwhile does not wait for all. */
static void on_idle(struct loop_timer *t)
{
	struct keeper *k = CONTAINER(t, struct keeper, idle);
	bool more = storage_refill(&k->storage);
	if (native_refill(&k->native) || more)
		loop_timer_start(k->loop, &k->idle, 1, on_idle);
}

/* Behind the answer: the closing of detached mounts waits for the kernel. */
static void on_answered(struct loop_task *t)
{
	native_tidy(&CONTAINER(t, struct keeper, answered)->native);
}

void boxes_refill_later(struct keeper *k)
{
	loop_timer_start(k->loop, &k->idle, IDLE_MS, on_idle);
}

static void box_free(struct keeper *k, struct box *b)
{
	int pidfd = b->exit.fd;
	loop_io_stop(&b->exit);
	fd_close(pidfd);
	gate_box_gone(k, b);
	map_del(&k->boxes.by_id, &b->node);
	free(b);
}

/* PID 1 is dead, and with it everything in its pid namespace. */
static void on_box_exit(struct loop_io *io, uint32_t events)
{
	(void)events;
	struct box *b = CONTAINER(io, struct box, exit);
	struct keeper *k = b->keeper;
	siginfo_t si = { 0 };
	/* An adopted box is not our child: somebody else reaps it, and its code is unknown. */
	if (waitid(P_PIDFD, (id_t)io->fd, &si, WEXITED) < 0)
		si.si_code = 0;
	struct cgroup_usage usage = { 0 };
	(void)!cgroup_usage(&k->native.cgroups, b->spec.id, &usage);
	bool groups_left = cgroup_remove(&k->native.cgroups, b->spec.id) < 0;
	remove_run_dir(k, b->spec.id);
	slots_free(&k->slots, b->slot);
	if (!b->dying) {
		bool by_signal = si.si_code == CLD_KILLED || si.si_code == CLD_DUMPED;
		log_info("box %s has ended by itself (%s %d)", b->spec.id, by_signal ? "signal" : "exit",
			 si.si_status);
		calls_box_exited(k, b, by_signal ? 0 : (uint32_t)si.si_status,
				 by_signal ? (uint32_t)si.si_status : 0, usage.oom_kills > 0);
	}
	if (b->on_end)
		b->on_end(k, b);
	box_free(k, b);
	if (groups_left)
		boxes_tidy_later(k);
}

void boxes_end(struct keeper *k, struct box *b, box_ended *on_end)
{
	b->dying = true;
	b->on_end = on_end;
	(void)!cgroup_kill(&k->native.cgroups, b->spec.id);
	(void)syscall(SYS_pidfd_send_signal, b->exit.fd, SIGKILL, NULL, 0);
}

void boxes_forget_calls(struct keeper *k)
{
	for (struct map_node *n = map_first(&k->boxes.by_id); n; n = map_next(&k->boxes.by_id, n))
		CONTAINER(n, struct box, node)->stream = 0;
}

/* ---- starting ---- */

int adopt_watch(struct keeper *k, struct box *b, int pidfd)
{
	b->keeper = k;
	int r = map_put(&k->boxes.by_id, &b->node, view_of(b->spec.id));
	if (r == 0) {
		r = loop_io_start(k->loop, &b->exit, pidfd, EPOLLIN, on_box_exit);
		if (r < 0)
			map_del(&k->boxes.by_id, &b->node);
	}
	return r;
}

/* Storage and processes; the caller undoes the rest. */
static int start_in(struct keeper *k, struct box *b, const struct plan_image *image, int unit, int run_box,
		    int *ret_pidfd, struct err *e)
{
	struct plan plan;
	if (plan_make(&b->spec, image, b->slot, (uint32_t)k->config->uids.base, &plan, e) < 0)
		return -1;
	_cleanup_(closep) int storage = storage_make(&k->storage, &plan, unit, e);
	if (storage < 0)
		return -1;
	_cleanup_(closep) int listener = make_listener(run_box);
	if (listener < 0)
		return err_sys(e, ERR_INTERNAL, listener, "cannot make the box's socket");
	struct native_box nb;
	_cleanup_(closep) int workspace =
		b->spec.workspace[0] ? storage_open_workspace(&k->storage, b->spec.workspace, e) : -1;
	if (b->spec.workspace[0] && workspace < 0)
		return -1;
	const struct native_files files = { storage, workspace, listener };
	if (native_start(&k->native, &plan, image, &files, &nb, e) < 0)
		return -1;
	b->pid = nb.pid;
	b->capture = k->native.capture;
	*ret_pidfd = nb.pidfd;
	gate_box(k, b, &nb.gate);
	int r = spawn_start_time(nb.pid, &b->started);
	if (r == 0)
		r = box_table_save(b, run_box);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "cannot write the box's state") : 0;
}

static void undo_start(struct keeper *k, struct box *b, int pidfd)
{
	(void)!cgroup_kill(&k->native.cgroups, b->spec.id);
	if (pidfd >= 0) {
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
		siginfo_t si;
		(void)waitid(P_PIDFD, (id_t)pidfd, &si, WEXITED);
		fd_close(pidfd);
	}
	if (cgroup_remove(&k->native.cgroups, b->spec.id) < 0)
		boxes_tidy_later(k);
	remove_run_dir(k, b->spec.id);
	slots_free(&k->slots, b->slot);
	if (!b->spec.existing)
		(void)!boxes_discard(k, b->spec.id);
	gate_box_gone(k, b);
	free(b);
}

static int start_box(struct keeper *k, struct box *b, const struct image *image, int *ret_link, struct err *e)
{
	char holder[640];
	snprintf(holder, sizeof(holder), "%s/boxes/%s", k->run_path, b->spec.id);
	if (mkdirat(k->run_boxes, b->spec.id, 0700) < 0) {
		err_sys(e, ERR_INTERNAL, errno, "cannot make the box's run directory");
		free(b);
		return -1;
	}
	if (slots_take(&k->slots, holder, &b->slot, e) < 0) {
		(void)unlinkat(k->run_boxes, b->spec.id, AT_REMOVEDIR);
		free(b);
		return -1;
	}
	_cleanup_(closep) int run_box = openat(k->run_boxes, b->spec.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct plan_image layers = { 0 };
	int pidfd = -1, link = -1;
	_cleanup_(closep) int unit = images_unit(&k->images, image);
	int r = unit < 0 && unit != -ENOENT ? err_sys(e, ERR_STORAGE, unit, "cannot open the image's files")
					    : images_layers(&k->images, image, &layers, e);
	if (r == 0)
		r = start_in(k, b, &layers, unit, run_box, &pidfd, e);
	images_release(&layers);
	if (r == 0)
		r = link = boxes_connect(k, b, e);
	if (r >= 0 && (r = adopt_watch(k, b, pidfd)) < 0)
		err_sys(e, ERR_INTERNAL, r, "cannot watch the box");
	if (r < 0) {
		fd_close(link);
		undo_start(k, b, pidfd);
		return -1;
	}
	*ret_link = link;
	return 0;
}

int boxes_start(struct keeper *k, const struct spec *s, struct view digest, struct box **ret, int *ret_link,
		struct err *e)
{
	if (spec_check(s, &k->ceiling, e) < 0)
		return -1;
	if (!k->posture.ok)
		for (unsigned i = 0; i < k->posture.n; i++)
			if (k->posture.parts[i].required && !k->posture.parts[i].ok)
				return err_set(e, ERR_WALLS, "this machine cannot isolate a box: %s: %s",
					       k->posture.parts[i].name, k->posture.parts[i].detail);
	if (box_table_get(&k->boxes, view_of(s->id)))
		return err_set(e, ERR_CONFLICT, "a box with this id exists");
	const struct image *image = images_find(&k->images, digest);
	if (!image)
		return err_set(e, ERR_NOT_FOUND, "no such image");
	struct box *b = calloc(1, sizeof(*b));
	if (!b)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "a new box");
	list_init(&b->gate_wait);
	b->spec = *s;
	b->spec.thrash_s = (uint32_t)k->config->max.thrash_seconds;
	b->exit.fd = -1;
	snprintf(b->image, sizeof(b->image), "%s", image->digest);
	if (start_box(k, b, image, ret_link, e) < 0)
		return -1; /* b is gone */
	*ret = b;
	if (list_empty(&k->answered.link))
		loop_defer(k->loop, &k->answered, on_answered);
	boxes_refill_later(k);
	return 0;
}
