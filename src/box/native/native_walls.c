/*
 * Native walls as walls.h wants them. A box's control group has the box's id as its name; its run
 * directory holds `init.sock`, on which PID 1 listens.
 */
#include "native_walls.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "native_gauge.h"
#include "log.h"
#include "netdev.h"
#include "sha256.h"
#include "text.h"
#include "poison.h"

#define BACKLOG 16

static struct native *of(struct walls *w)
{
	return CONTAINER(w, struct native, walls);
}

/* ---- the machine ---- */

/* One daemon, one subtree: named after the run directory. */
static void instance_name(const char *run_path, char dst[17])
{
	uint8_t hash[SHA256_SIZE];
	sha256_of(view_of(run_path), hash);
	text_hex(hash, 8, dst);
}

static int open_cgroups(struct native *n, const struct walls_setup *s, struct err *e)
{
	struct buf text = BUF_INIT(8192);
	int r = fd_slurp(s->run, "cgroups", &text);
	if (r == 0)
		r = cgroup_restore(&n->cgroups, buf_view(&text));
	if (r < 0) {
		char parent[128], instance[17];
		instance_name(s->run_path, instance);
		buf_clear(&text);
		if (view_to_str(s->cgroup_parent, parent, sizeof(parent)) < 0)
			r = err_set(e, ERR_INVALID, "cgroup.parent is too long");
		else
			r = cgroup_open(&n->cgroups, parent, instance, e);
		if (r < 0) {
			buf_done(&text);
			return -1;
		}
		r = cgroup_save(&n->cgroups, &text);
		if (r == 0)
			r = fd_replace(s->run, "cgroups", text.p ? text.p : "", text.n, 0600, false);
	}
	buf_done(&text);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "cannot write %s/cgroups", s->run_path) : 0;
}

static int probe(struct walls *w, const struct walls_setup *s, struct err *e)
{
	of(w)->scratch = of(w)->empty_ns = of(w)->init = of(w)->host_net = -1;
	of(w)->tools = of(w)->cpuset = of(w)->cpuset_tasks = -1;
	if (open_cgroups(of(w), s, e) < 0)
		return -1;
	of(w)->without = s->without;
	of(w)->cgroups.no_kill = s->without & FEATURE_BIT(FEATURE_CGROUP_KILL);
	of(w)->cgroups.no_freeze = s->without & FEATURE_BIT(FEATURE_FREEZER);
	posture_probe(&w->posture, &of(w)->cgroups, s->without);
	w->can = WALLS_SNAPSHOTS | WALLS_DISK_QUOTA;
	if (w->posture.features & FEATURE_BIT(FEATURE_FREEZER))
		w->can |= WALLS_PAUSE;
	return 0;
}

static int open_native(struct walls *w, const struct walls_setup *s, struct err *e)
{
	struct native *n = of(w);
	struct err failed = { 0 };
	char scratch[640];
	snprintf(scratch, sizeof(scratch), "%s/scratch", s->run_path);
	if (mkdir(scratch, 0700) < 0 && errno != EEXIST)
		return err_sys(e, ERR_INTERNAL, errno, "cannot make %s", scratch);
	n->run = s->run;
	if (native_open(n, scratch, s->init, &failed) < 0) {
		posture_add(&w->posture, "walls", false, true, "%.100s", failed.msg);
		return 0;
	}
	native_gauge_open(n, &w->posture);
	if (native_capture(n, s->capture, &w->posture, e) < 0)
		return -1;
	w->capture = n->capture;
	if (n->capture != NETNS_PROXY)
		w->can |= WALLS_CAPTURE;
	n->wanted_nets = s->parts;
	return 0;
}

static void close_native(struct walls *w, bool empty)
{
	struct native *n = of(w);
	native_close(n);
	if (!empty)
		return;
	cgroup_close(&n->cgroups);
	(void)unlinkat(n->run, "cgroups", 0);
}

static bool refill(struct walls *w)
{
	return native_refill(of(w));
}

static void tidy(struct walls *w, unsigned leave)
{
	native_tidy(of(w), leave);
}

/* ---- boxes ---- */

/* Through the directory's fd: a run directory's path may be longer than a socket address. */
static struct sockaddr_un socket_address(int run)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	snprintf(sun.sun_path, sizeof(sun.sun_path), "/proc/self/fd/%d/init.sock", run);
	return sun;
}

static int make_listener(int run)
{
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un sun = socket_address(run);
	/* The directory is ours alone (0700): no moment in which another could connect. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int start(struct walls *w, const struct walls_start *s, struct walls_box *ret,
		 struct netns_gate *ret_gate, struct err *e)
{
	_cleanup_(closep) int listener = make_listener(s->run);
	if (listener < 0)
		return err_sys(e, ERR_INTERNAL, listener, "cannot make the sandbox's socket");
	const struct native_files files = { s->storage, listener, s->workspaces, s->hosts, s->prepared };
	struct native_box nb;
	if (native_start(of(w), s->plan, s->image, &files, &nb, e) < 0)
		return -1;
	ret->pid = nb.pid;
	ret->pidfd = nb.pidfd;
	ret->capture = of(w)->capture;
	*ret_gate = nb.gate;
	return 0;
}

static int prepare(struct walls *w, const struct walls_start *s, struct err *e)
{
	const struct native_files files = { .storage = s->storage, .listener = -1 };
	return native_prepare(of(w), s->plan, s->image, &files, e);
}

static void forget(struct walls *w)
{
	native_forget(of(w));
}

static int connect_to(struct walls *w, const struct walls_box *b, int run)
{
	/* Never blocking: a PID 1 that does not accept is its own problem. */
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un sun = socket_address(run);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static void end(struct walls *w, const struct walls_box *b)
{
	(void)!cgroup_kill(&of(w)->cgroups, b->id);
	if (b->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
}

static int clear(struct walls *w, struct walls_box *b)
{
	return cgroup_remove(&of(w)->cgroups, b->id);
}

struct sweep {
	struct native *n;
	bool (*known)(void *arg, const char *id);
	void *arg;
	bool left;
};

static void sweep_group(void *arg, const char *name)
{
	struct sweep *s = arg;
	if (strcmp(name, NATIVE_NEXT) == 0 && !s->n->next) /* a keeper's that was killed; nobody is in it */
		(void)!cgroup_remove(&s->n->cgroups, name);
	if (!spec_id_ok(view_of(name)) || s->known(s->arg, name))
		return;
	if (cgroup_kill(&s->n->cgroups, name) < 0 || cgroup_remove(&s->n->cgroups, name) < 0)
		s->left = true;
}

static bool sweep(struct walls *w, bool (*known)(void *arg, const char *id), void *arg)
{
	struct sweep s = { .n = of(w), .known = known, .arg = arg };
	if (!s.n->swept) /* once is enough: daemons that die later leave theirs to the next start */
		cgroup_remove_stale(&s.n->cgroups);
	s.n->swept = true;
	cgroup_each(&s.n->cgroups, sweep_group, &s);
	return s.left;
}

#define FREEZE_TRY_MS 5
#define FREEZE_TRIES  5 /* at least, also where the machine stood still for longer than it was to take */

/* Programs that wait for PID 1's answer cannot be frozen, and a frozen PID 1 does not answer. Then they go on
 * until PID 1 has answered and takes no more questions, and it is tried anew. */
static int freeze(struct walls *w, const struct walls_box *b, bool on, int wait_ms)
{
	const struct cgroup_host *h = &of(w)->cgroups;
	uint64_t until = clock_mono_ms() + (uint64_t)wait_ms;
	int r = cgroup_freeze(h, b->id, on, FREEZE_TRY_MS);
	for (int i = 0; r == -ETIMEDOUT && (i < FREEZE_TRIES || clock_mono_ms() < until); i++) {
		int rest_ms = MIN(1 << MIN(i, 8), SECCOMP_REST_MS / 4);
		(void)syscall(SYS_pidfd_send_signal, b->pidfd, SECCOMP_REST_SIGNAL, NULL, 0);
		(void)ppoll(NULL, 0, &(struct timespec){ .tv_nsec = rest_ms * 1000000l }, NULL);
		r = cgroup_freeze(h, b->id, true, 2 * FREEZE_TRY_MS * rest_ms);
	}
	return r;
}

static int limit(struct walls *w, const struct walls_box *b, const struct box_limits *l)
{
	const struct cgroup_limits to = { .memory_bytes = l->memory_mb << 20,
					  .cpu_milli = l->cpu_milli,
					  .pids = l->pids };
	return cgroup_limit(&of(w)->cgroups, b->id, &to);
}

static int frozen(struct walls *w, const struct walls_box *b, bool *ret)
{
	return cgroup_frozen(&of(w)->cgroups, b->id, ret);
}

static int usage(struct walls *w, const struct walls_box *b, struct walls_usage *ret)
{
	struct cgroup_usage u;
	struct netdev_usage net = { 0 };
	int r = cgroup_usage(&of(w)->cgroups, b->id, &u);
	if (r < 0)
		return r;
	if (b->pid)
		(void)!netdev_usage(b->pid, &net); /* it may just have ended */
	*ret = (struct walls_usage){ .memory_bytes = u.memory_bytes,
				     .cpu_usec = u.cpu_usec,
				     .pids = u.pids,
				     .oom_kills = u.oom_kills,
				     .net_rx_bytes = net.rx_bytes,
				     .net_tx_bytes = net.tx_bytes };
	return 0;
}

static int gate(struct walls *w, const struct walls_box *b, enum netns_capture how, struct netns_gate *ret)
{
	return native_gate(of(w), b->pid, b->pidfd, how, ret);
}

static int gauge_files(struct walls *w, struct walls_gauge *ret)
{
	return native_gauge_hand_out(of(w), ret);
}

static bool gauge_waits(struct walls *w)
{
	return native_gauge_waits(of(w));
}

/* The box can do without. */
static int adopt(struct walls *w, struct walls_box *b, int run)
{
	(void)run;
	int r = native_gauge_renew(of(w), b->pidfd);
	if (r < 0)
		log_warn("box %s has no figures of its own in /proc any more: %s", b->id, strerror(-r));
	return 0;
}

static int furnish(struct walls *w, int disk, struct err *e)
{
	return of(w)->init < 0 ? 0 : native_tools(of(w), disk, e);
}

const struct walls_ops native_walls = {
	.name = SPEC_BACKEND_NATIVE,
	.size = sizeof(struct native),
	.probe = probe,
	.open = open_native,
	.furnish = furnish,
	.close = close_native,
	.prepare = prepare,
	.forget = forget,
	.start = start,
	.adopt = adopt,
	.connect = connect_to,
	.kill = end,
	.clear = clear,
	.sweep = sweep,
	.freeze = freeze,
	.limit = limit,
	.frozen = frozen,
	.usage = usage,
	.gate = gate,
	.gauge = gauge_files,
	.gauge_waits = gauge_waits,
	.refill = refill,
	.tidy = tidy,
};
