/*
 * The child between clone and exec: see native_child.h. The order matters and
 * is on one screen, in native_child_main.
 */
#include "native_child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/fsuid.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "caps.h"
#include "fd.h"
#include "landlock.h"
#include "mnt.h"
#include "native_space.h"
#include "poison.h"

#define READONLY  (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
#define BOOT_ID   37
#define BOOT_NAME ".boot_id"

/* The image's tree is hostile: a mount point that is a symlink is refused. */
static int open_point(int root, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	while (*path == '/')
		path++;
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

static int join_cgroups(const struct native_child *c)
{
	for (unsigned i = 0; i < c->n_tasks; i++)
		if (write(c->tasks[i], "0", 1) != 1)
			return -errno;
	return unshare(CLONE_NEWCGROUP) < 0 ? -errno : 0;
}

/* Written with CAP_SYS_RESOURCE, it is also the least that the box can choose for its processes: what the
 * keeper was given is not theirs. */
static int expose(void)
{
	return fd_put(AT_FDCWD, "/proc/self/oom_score_adj", "0");
}

/* A mount namespace with only an empty root, over which the box's is put. Ours stays the empty one, with what
 * native_open put there, until enter_root. */
static int attach_root(const struct native_child *c)
{
	if (setns(c->native->empty_ns, CLONE_NEWNS) < 0 || unshare(CLONE_NEWNS) < 0)
		return -errno;
	return mnt_move(c->mounts[0], AT_FDCWD, "/");
}

static int enter_root(const struct native_child *c)
{
	return fchdir(c->mounts[0]) < 0 || chroot(".") < 0 ? -errno : 0;
}

static int mount_proc(const struct plan_mount *m, int point, int *ret_proc)
{
	_cleanup_(closep) int proc = mnt_fs("proc", NULL, 0, m->attr);
	int r = proc < 0 ? proc : mnt_move(proc, point, "");
	if (r == 0)
		*ret_proc = TAKE_FD(proc);
	return r;
}

/* In a directory of the box, as the directory's owner makes it: one of the box, or nothing is made. */
static int make_dir(const struct native_child *c, int at, const char *name)
{
	struct stat st;
	if (fstat(at, &st) < 0)
		return -errno;
	if (st.st_uid - c->plan->uid_base >= PLAN_IDS || st.st_gid - c->plan->uid_base >= PLAN_IDS)
		return -EPERM;
	(void)setfsgid(st.st_gid);
	(void)setfsuid(st.st_uid);
	int r = mkdirat(at, name, 0755) < 0 ? -errno : 0;
	(void)setfsuid(0);
	(void)setfsgid(0);
	return r;
}

/* The mount point, with what is missing of the way to it. Nobody of the box runs yet. */
static int make_point(const struct native_child *c, int root, const char *path)
{
	_cleanup_(closep) int at = fcntl(root, F_DUPFD_CLOEXEC, 3);
	if (at < 0)
		return -errno;
	for (struct view rest = view_skip(view_of(path), 1); rest.p;) {
		char name[SPEC_MOUNT_PATH];
		if (view_to_str(view_split(rest, '/', &rest), name, sizeof(name)) < 0)
			return -ENAMETOOLONG;
		int next = open_point(at, name, O_DIRECTORY);
		if (next == -ENOENT) {
			int r = make_dir(c, at, name);
			next = r < 0 ? r : open_point(at, name, O_DIRECTORY);
		}
		if (next < 0)
			return next;
		fd_close(at);
		at = next;
	}
	return TAKE_FD(at);
}

static int attach_mounts(struct native_child *c, int root, int *ret_proc)
{
	for (unsigned i = 1; i < c->plan->n_mounts; i++) {
		const struct plan_mount *m = &c->plan->mounts[i];
		bool chosen = m->kind == PLAN_HOST || m->kind == PLAN_WORKSPACE;
		_cleanup_(closep) int point =
			chosen ? make_point(c, root, m->target) : open_point(root, m->target, O_DIRECTORY);
		int r = point < 0              ? point
			: m->kind == PLAN_PROC ? mount_proc(m, point, ret_proc)
					       : mnt_move(c->mounts[i], point, "");
		if (r < 0) {
			c->failed_point = chosen && point < 0 ? m->target : NULL;
			return r;
		}
	}
	return 0;
}

static int attach_views(const struct native_child *c, int root)
{
	if (!c->n_views)
		return 0;
	_cleanup_(closep) int sys = open_point(root, c->views[0].at, O_DIRECTORY);
	if (sys == -ENOENT)
		return 0; /* an image without /sys */
	int r = sys < 0 ? sys : mnt_move(c->views[0].fd, sys, "");
	for (unsigned i = 1; r == 0 && i < c->n_views; i++)
		r = mnt_move(c->views[i].fd, c->views[0].fd, c->views[i].at); /* in a tree of ours */
	return r;
}

/* Names are those of /proc, where we stand, and of our root, which is not the image's: native_open. mount is
 * one call where copies by descriptor are three, and there are dozens of masks. It would follow a link, of
 * which there is none: look_at_proc. */
static int put(const char *from, const char *at, unsigned long flags)
{
	return mount(from, at, NULL, flags, NULL) < 0 ? -errno : 0;
}

static int mask_proc(const struct native_child *c, int proc)
{
	const unsigned long quiet = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
	if (fchdir(proc) < 0)
		return -errno;
	for (unsigned i = 0; i < c->native->n_masks; i++) {
		const struct native_mask *m = &c->native->masks[i];
		int r = put(m->dir ? "/" NATIVE_EMPTY : "/" NATIVE_NULL, m->name, MS_BIND);
		/* A module was unloaded. Nothing else is a reason to go without a mask. */
		if (r < 0 && (r != -ENOENT || faccessat(proc, m->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0))
			return r;
	}
	for (unsigned i = 0; plan_readonly[i]; i++) {
		int r = put(plan_readonly[i], plan_readonly[i], MS_BIND);
		if (r == -ENOENT)
			continue;
		if (r == 0)
			r = put(NULL, plan_readonly[i], MS_BIND | MS_REMOUNT | quiet);
		if (r < 0)
			return r;
	}
	return 0;
}

/* We stand in /proc. What is moved are this namespace's own copies. */
static int attach_gauges(const struct native_child *c)
{
	char from[32];
	for (unsigned i = 0; c->native->gauge_mounts[0] >= 0 && i < GAUGE_FILES; i++) {
		snprintf(from, sizeof(from), "/%s", gauge_names[i]);
		int r = put(from, gauge_names[i], MS_MOVE);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A random UUID and a newline: what the file of /proc has, and as long. */
static int make_boot_id(char ret[BOOT_ID])
{
	uint8_t raw[16];
	size_t n = 0;
	if (getrandom(raw, sizeof(raw), GRND_NONBLOCK) != sizeof(raw))
		return -EAGAIN;
	raw[6] = (uint8_t)((raw[6] & 0x0f) | 0x40);
	raw[8] = (uint8_t)((raw[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof(raw); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			ret[n++] = '-';
		ret[n++] = "0123456789abcdef"[raw[i] >> 4];
		ret[n++] = "0123456789abcdef"[raw[i] & 15];
	}
	ret[n] = '\n';
	return 0;
}

/* A boot of the box is its start: a file in the box's own memory, over the machine's. It loses its name
 * behind the mount, which needs it. */
static int attach_boot_id(const struct native_child *c, int proc)
{
	char text[BOOT_ID];
	unsigned i = 1;
	while (i < c->plan->n_mounts && strcmp(c->plan->mounts[i].target, "/run") != 0)
		i++;
	_cleanup_(closep) int point = open_point(proc, "sys/kernel/random/boot_id", O_NOFOLLOW);
	if (i == c->plan->n_mounts || point == -ENOENT)
		return 0;
	int r = point < 0 ? point : make_boot_id(text);
	if (r < 0)
		return r;
	_cleanup_(closep) int fd =
		openat(c->mounts[i], BOOT_NAME, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, text, sizeof(text));
	_cleanup_(closep) int copy = r < 0 ? r : mnt_tree(fd, "", READONLY, -1);
	r = copy < 0 ? copy : mnt_move(copy, point, "");
	return unlinkat(c->mounts[i], BOOT_NAME, 0) < 0 ? -errno : r;
}

/* With cgroup v1 the kernel lets each connection hold one packet in each direction beyond the limit of socket
 * memory: packets are no larger than these windows, and over lo larger ones are not faster. The box cannot
 * change them, and its filter ignores SO_RCVBUF. */
static int bound_buffers(int proc)
{
	int r = fd_put(proc, "sys/net/ipv4/tcp_rmem", "4096 16384 32768");

	return r < 0 ? r : fd_put(proc, "sys/net/ipv4/tcp_wmem", "4096 16384 65536");
}

/* Only lo, and up; low ports are everybody's, since there is nobody else. */
int native_child_network(int proc)
{
	_cleanup_(closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		return -errno;
	/* The address of the box's own name. Resolvers that are asked for the families that this host has
	 * (AI_ADDRCONFIG) do not count 127.0.0.1 itself, and would find nothing. */
	struct ifreq own = { .ifr_name = "lo:1" };
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 0x100) };
	memcpy(&own.ifr_addr, &at, sizeof(at));
	if (ioctl(fd, SIOCSIFADDR, &own) < 0)
		return -errno;
	int r = bound_buffers(proc);
	return r < 0 ? r : fd_put(proc, "sys/net/ipv4/ip_unprivileged_port_start", "0");
}

static int set_rlimits(const struct plan *p)
{
	for (unsigned i = 0; i < p->n_rlimits; i++) {
		struct rlimit rl = { p->rlimits[i].value, p->rlimits[i].value };
		if (setrlimit((__rlimit_resource_t)p->rlimits[i].resource, &rl) < 0)
			return -errno;
	}
	return 0;
}

/* 0, 1, 2: the box's /dev/null; 3: the listener; nothing else survives the exec but what native_space_load
 * lets through. */
static int set_fds(const struct native_child *c)
{
	_cleanup_(closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -errno;
	for (int i = 0; i < 3; i++)
		if (dup3(null, i, 0) < 0)
			return -errno;
	if (dup3(c->listener, 3, 0) < 0)
		return -errno;
	return syscall(SYS_close_range, 4u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */) < 0 ? -errno : 0;
}

/* The box's boot is its start: /proc/uptime, and what ps reckons from it. Between the box's user namespace,
 * which gives the right to, and its uid, whose files of /proc are not ours. */
static int begin_time(void)
{
	struct timespec now;
	char text[48];
	if (unshare(CLONE_NEWTIME) < 0 || clock_gettime(CLOCK_BOOTTIME, &now) < 0)
		return -errno;
	snprintf(text, sizeof(text), "boottime -%lld 0\n", (long long)now.tv_sec);
	return fd_put(AT_FDCWD, "/proc/self/timens_offsets", text);
}

static int become_root_of_box(const struct native_child *c)
{
	if (setns(c->userns, CLONE_NEWUSER) < 0)
		return -errno;
	bool own_uptime = c->native->walls.posture.features & FEATURE_BIT(FEATURE_OWN_UPTIME);
	int r = own_uptime ? begin_time() : 0;
	if (r < 0)
		return r;
	/* The raw calls: glibc's would try to change "all threads" of the parent's memory. */
	if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
	    syscall(SYS_setresuid, 0, 0, 0) < 0)
		return -errno;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	/* With an empty bounding set, what root keeps over an exec is what is inheritable,
	 * and that can be raised only while it is in the bounding set. */
	struct caps c0;
	uint64_t keep = c->plan->root_caps;
	r = caps_get(&c0);
	if (r == 0) {
		c0.inheritable = keep;
		r = caps_set(&c0);
	}
	if (r == 0)
		r = caps_bound(0);
	return r < 0 ? r
		     : caps_set(&(struct caps){ .effective = keep, .permitted = keep, .inheritable = keep });
}

static int restrict_files(uint32_t without)
{
	_cleanup_(closep) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	return landlock_only_with(posture_landlock(without), &(struct landlock_rule){ root, LANDLOCK_ALL },
				  1);
}

static int fail(struct native_child *c, const char *step, int r)
{
	c->failed_step = step;
	c->failed_errno = -r;
	return 1;
}

#define STEP(what, call)                                                                                     \
	do {                                                                                                 \
		int _r = (call);                                                                             \
		if (_r < 0)                                                                                  \
			return fail(c, what, _r);                                                            \
	} while (0)
#define SYS(call) ((call) < 0 ? -errno : 0)

int native_child_main(void *arg)
{
	struct native_child *c = arg;
	const struct plan *p = c->plan;
	int proc = -1;

	umask(022);
	STEP("session", SYS(setsid()));
	if (c->native->spared)
		STEP("order of the end by memory", expose());
	if (c->net >= 0)
		STEP("network namespace", SYS(setns(c->net, CLONE_NEWNET)));
	STEP("root of the sandbox", attach_root(c));
	STEP("mount points of the image", attach_mounts(c, c->mounts[0], &proc));
	STEP("limits that the sandbox sees", attach_views(c, c->mounts[0]));
	if (c->net < 0)
		STEP("network", native_child_network(proc));
	STEP("masks of /proc", mask_proc(c, proc)); /* from here on /proc/sys is read-only */
	STEP("figures in /proc", attach_gauges(c));
	STEP("boot id", attach_boot_id(c, proc));
	STEP("root of the sandbox", enter_root(c));
	STEP("host name", SYS(sethostname(p->spec.hostname, strlen(p->spec.hostname))));
	STEP("file descriptors", set_fds(c));
	/* Only now, as what the box does: each mount waits for whoever looks at mounts, in this box's turn it
	 * would wait for the turns of all others as well, and the keeper with it. */
	STEP("priority", SYS(setpriority(PRIO_PROCESS, 0, 0)));
	STEP("control groups", join_cgroups(c));
	STEP("user namespace", become_root_of_box(c));
	STEP("no_new_privs", SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
	STEP("Landlock", restrict_files(c->native->without));
	char says[NATIVE_SPACE_LINES][NATIVE_SPACE_LINE];
	STEP("seccomp", native_space_load(c, says));
	/* Last: the keeper may have more files open than the box may, and each step needs one more. */
	STEP("resource limits", set_rlimits(p));

	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	char cpus[NATIVE_ARGUMENT];
	native_sys_argument(p, cpus);
	char thrash[24];
	snprintf(thrash, sizeof(thrash), "thrash=%u", p->spec.thrash_s);
	char *const argv[] = { (char[]){ "paddock-init" }, cpus, thrash,
			       p->spec.sudo ? NULL : (char[]){ "no-sudo" }, NULL };
	char *envp[NATIVE_SPACE_LINES + 1] = { 0 };
	for (unsigned i = 0, n = 0; i < NATIVE_SPACE_LINES; i++)
		if (says[i][0])
			envp[n++] = says[i];
	syscall(SYS_execveat, c->native->init, "", argv, envp, AT_EMPTY_PATH);
	return fail(c, "execution of PID 1", -errno);
}
