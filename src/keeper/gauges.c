/*
 * Starting paddock-gauge, and its table: see gauges.h.
 */
#include "gauges.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"
#include "fd.h"
#include "gauge.h"
#include "log.h"
#include "poison.h"

#define AGAIN_MS  200
#define STEADY_MS 2000
#define LOOK_MS   5000
#define HZ        100u /* of the kernel's interfaces */

static int open_beat(struct keeper *k, struct err *e)
{
	_cleanup_(closep) int fd = memfd_create("paddock-gauge-beat", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, sizeof(*k->gauge_beat)) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "the beat of paddock-gauge");
	void *p = mmap(NULL, sizeof(*k->gauge_beat), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_sys(e, ERR_INTERNAL, errno, "the beat of paddock-gauge");
	k->gauge_beat = p;
	k->gauge_beat_fd = TAKE_FD(fd);
	k->gauge_answered = UINT64_MAX;
	return 0;
}

int gauges_open(struct keeper *k, struct err *e)
{
	if (open_beat(k, e) < 0)
		return -1;
	size_t n = (size_t)k->config->uids.slots * sizeof(struct gauge_slot);
	char path[32];
	_cleanup_(closep) int fd = memfd_create("paddock-gauge", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)n) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "the table of boxes");
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	/* The program gets a descriptor that cannot be written through. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	k->gauge_table = p == MAP_FAILED ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	if (k->gauge_table < 0 || fchmod(fd, 0) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "the table of boxes");
	k->gauge_slots = p;
	return 0;
}

void gauges_box(struct keeper *k, const struct keeper_box *b, uint64_t started)
{
	struct timespec now = { 0 };
	if (!started) {
		(void)clock_gettime(CLOCK_BOOTTIME, &now);
		started = (uint64_t)now.tv_sec * HZ + (uint64_t)now.tv_nsec / (1000000000u / HZ);
	}
	if (b->slot < k->config->uids.slots)
		gauge_put(&k->gauge_slots[b->slot], b->spec.id, started,
			  b->features & FEATURE_BIT(FEATURE_OWN_UPTIME));
}

void gauges_box_gone(struct keeper *k, const struct keeper_box *b)
{
	char id[GAUGE_ID];
	uint64_t started;
	bool own_uptime;
	if (b->slot >= k->config->uids.slots)
		return;
	/* The range may be another box's by now. */
	if (gauge_get(&k->gauge_slots[b->slot], id, &started, &own_uptime) == 0 &&
	    strcmp(id, b->spec.id) == 0)
		gauge_put(&k->gauge_slots[b->slot], "", 0, false);
}

/* ---- the program ---- */

static void on_again(struct loop_timer *t)
{
	gauges_start(CONTAINER(t, struct keeper, gauge_again));
}

static void on_exit(struct loop_io *io, uint32_t events)
{
	struct keeper *k = CONTAINER(io, struct keeper, gauge_exit);
	int fd = io->fd, status = 0;
	(void)events;
	loop_io_stop(io);
	fd_close(fd);
	(void)waitpid(k->gauge_pid, &status, 0);
	k->gauge_pid = 0;
	if (k->stopping)
		return;
	log_warn("paddock-gauge ended (%s %d), starting it again", WIFSIGNALED(status) ? "signal" : "exit",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	bool steady = clock_mono_ms() - k->gauge_started_ms > STEADY_MS;
	loop_timer_start(k->loop, &k->gauge_again, steady ? 0 : AGAIN_MS, on_again);
}

/* ---- one that hangs ----
 *
 * Who reads such a file waits for it and cannot even be killed once the program has read the request, so that
 * a box with such a reader could not be removed. A second look without progress ends the program: requests
 * that it had taken fail, the next instance answers the rest.
 */

static bool anything_waits(struct keeper *k)
{
	for (unsigned i = 0; i < k->walls.n; i++) {
		struct walls *w = k->walls.all[i];
		if (w->ops->gauge_waits && w->ops->gauge_waits(w))
			return true;
	}
	return false;
}

static void on_look(struct loop_timer *t)
{
	struct keeper *k = CONTAINER(t, struct keeper, gauge_look);
	uint64_t taken = __atomic_load_n(&k->gauge_beat->taken, __ATOMIC_RELAXED);
	uint64_t answered = __atomic_load_n(&k->gauge_beat->answered, __ATOMIC_RELAXED);
	bool waits = k->gauge_pid && (taken != answered || anything_waits(k));
	if (waits && answered == k->gauge_answered) {
		log_error("paddock-gauge has answered nothing for %d s, ending it", LOOK_MS / 1000);
		(void)kill(k->gauge_pid, SIGKILL);
		waits = false;
	}
	k->gauge_answered = waits ? answered : UINT64_MAX;
	loop_timer_start(k->loop, t, LOOK_MS, on_look);
}

/* -EOPNOTSUPP: no kind of walls has such files here. */
static int hand_out(struct keeper *k, struct walls_gauge *ret)
{
	int r = -EOPNOTSUPP;
	for (unsigned i = 0; r == -EOPNOTSUPP && i < k->walls.n; i++) {
		struct walls *w = k->walls.all[i];
		r = w->ops->gauge ? w->ops->gauge(w, ret) : -EOPNOTSUPP;
	}
	return r;
}

static int start(struct keeper *k)
{
	struct walls_gauge g;
	int r = hand_out(k, &g), pidfd,
	    fds[2 + GAUGE_FILES + CGROUP_TREES] = { k->gauge_table, k->gauge_beat_fd };
	if (r < 0)
		return r == -EOPNOTSUPP ? 0 : r;
	*k->gauge_beat = (struct gauge_beat){ 0 };
	k->gauge_answered = UINT64_MAX;
	memcpy(fds + 2, g.devices, sizeof(g.devices));
	memcpy(fds + 2 + GAUGE_FILES, g.dirs, g.n_dirs * sizeof(int));
	char uid[48], base[48], groups[48];
	snprintf(uid, sizeof(uid), "PADDOCK_GAUGE_UID=%llu", (unsigned long long)k->config->uids.gauge);
	snprintf(base, sizeof(base), "PADDOCK_GAUGE_BASE=%llu", (unsigned long long)k->config->uids.base);
	snprintf(groups, sizeof(groups), "PADDOCK_GAUGE_GROUPS=%u", g.n_dirs);
	char *const argv[] = { (char[]){ "paddock-gauge" }, NULL };
	char *const envp[] = { uid, base, groups, NULL };
	r = child_exec(k, "paddock-gauge", argv, envp, fds, 2 + GAUGE_FILES + g.n_dirs, &k->gauge_pid,
		       &pidfd);
	/* Ours must not stay: when the program dies, what it had taken fails with its last descriptor. */
	for (unsigned i = 0; i < GAUGE_FILES; i++)
		fd_close(g.devices[i]);
	if (r < 0) {
		k->gauge_pid = 0;
		return r;
	}
	r = loop_io_start(k->loop, &k->gauge_exit, pidfd, EPOLLIN, on_exit);
	if (r < 0) {
		(void)kill(k->gauge_pid, SIGKILL);
		(void)waitpid(k->gauge_pid, NULL, 0);
		fd_close(pidfd);
		k->gauge_pid = 0;
	} else {
		loop_timer_start(k->loop, &k->gauge_look, LOOK_MS, on_look);
	}
	return r;
}

void gauges_start(struct keeper *k)
{
	k->gauge_started_ms = clock_mono_ms();
	int r = start(k);
	if (r < 0) { /* who reads such a file waits */
		log_error("cannot start paddock-gauge: %s", strerror(-r));
		loop_timer_start(k->loop, &k->gauge_again, AGAIN_MS * 5, on_again);
	}
}
