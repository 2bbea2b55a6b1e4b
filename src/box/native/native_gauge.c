/*
 * See native_gauge.h.
 *
 * The keeper holds a device of each file system and reads nothing from it but the kernel's
 * first words; each instance of paddock-gauge has clones. When it dies, they close, and the
 * kernel fails what that instance had taken and not answered; the rest waits for the next.
 */
#include "native_gauge.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "fd.h"
#include "mnt.h"
#include "spawn.h"
#include "poison.h"

#define DEVICE   "/dev/fuse"
#define READONLY (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* The kernel asks once, at the mount, and would never ask again. */
static int greet(int dev)
{
	char request[FUSE_MIN_READ_BUFFER];
	struct fuse_in_header in;
	struct {
		struct fuse_out_header h;
		struct fuse_init_out init;
	} out = { .init = { .major = FUSE_KERNEL_VERSION,
			    .minor = 31, /* as paddock-gauge understands it; Linux 5.4 */
			    .max_write = 4096,
			    .max_background = 64,
			    .congestion_threshold = 48,
			    .time_gran = 1 } };
	ssize_t n = read(dev, request, sizeof(request));
	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof(in))
		return -EPROTO;
	memcpy(&in, request, sizeof(in));
	if (in.opcode != FUSE_INIT)
		return -EPROTO;
	out.h = (struct fuse_out_header){ .len = sizeof(out), .unique = in.unique };
	return write(dev, &out, sizeof(out)) < 0 ? -errno : 0;
}

static int mount_one(struct native *n, unsigned i)
{
	char fd[16], at[32];
	_cleanup_(closep) int dev = open(DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (dev < 0)
		return -errno;
	snprintf(fd, sizeof(fd), "%d", dev);
	snprintf(at, sizeof(at), "gauge.%s", gauge_names[i]);
	const struct mnt_option options[] = { { "fd", fd },
					      { "rootmode", "100444" },
					      { "user_id", "0" },
					      { "group_id", "0" },
					      { "allow_other", NULL } };
	_cleanup_(closep) int point = openat(n->scratch, at, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0444);
	if (point < 0)
		return -errno;
	_cleanup_(closep) int mount = mnt_fs("fuse", options, ELEMS(options), READONLY);
	int r = mount < 0 ? mount : greet(dev);
	if (r == 0)
		r = mnt_move(mount, n->scratch, at);
	if (r < 0)
		return r;
	n->gauge_devs[i] = TAKE_FD(dev);
	n->gauge_mounts[i] = TAKE_FD(mount);
	return 0;
}

/* Detached, one for each; the caller closes them. */
static int copy_all(const struct native *n, int ret[GAUGE_FILES])
{
	int r = 0;
	memset(ret, 0xff, GAUGE_FILES * sizeof(*ret));
	for (unsigned i = 0; r == 0 && i < GAUGE_FILES; i++) {
		ret[i] = mnt_tree(n->gauge_mounts[i], "", 0, -1);
		r = ret[i] < 0 ? ret[i] : 0;
	}
	return r;
}

struct laying {
	const struct native *n;
	int copies[GAUGE_FILES], error;
};

/* In our memory, in the namespace that those of boxes are copies of. */
static int lay_child(void *arg)
{
	struct laying *a = arg;
	int r = setns(a->n->empty_ns, CLONE_NEWNS) < 0 ? -errno : 0;
	for (unsigned i = 0; r == 0 && i < GAUGE_FILES; i++)
		r = mnt_move(a->copies[i], AT_FDCWD, gauge_names[i]);
	a->error = -r;
	return r < 0;
}

static int run(int (*fn)(void *), void *arg)
{
	pid_t pid;
	int own = -1;
	int r = spawn_vfork(&(struct spawn){ .cgroup = -1, .fn = fn, .arg = arg }, &pid, &own);
	if (r < 0)
		return r;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	fd_close(own);
	return 0;
}

static void close_copies(int copies[GAUGE_FILES])
{
	for (unsigned i = 0; i < GAUGE_FILES; i++)
		fd_close(copies[i]);
}

/* So a box's start copies them with its namespace, and has only to move them to their places. */
static int lay_out(const struct native *n)
{
	struct laying a = { .n = n };
	int r = copy_all(n, a.copies);
	if (r == 0)
		r = run(lay_child, &a);
	close_copies(a.copies);
	return r < 0 ? r : -a.error;
}

void native_gauge_open(struct native *n, struct posture *p)
{
	bool left_out = n->without & FEATURE_BIT(FEATURE_OWN_PROC);
	int r = 0;
	for (unsigned i = 0; !left_out && r == 0 && i < GAUGE_FILES; i++)
		r = mount_one(n, i);
	if (!left_out && r == 0)
		r = lay_out(n);
	if (r < 0)
		native_gauge_close(n);
	char why[160];
	snprintf(why, sizeof(why), "%s (" DEVICE ": %s)", feature_texts[FEATURE_OWN_PROC].lacks,
		 strerror(-r));
	posture_feature(p, FEATURE_OWN_PROC, r == 0, n->without, r < 0 ? why : NULL);
}

void native_gauge_close(struct native *n)
{
	for (unsigned i = 0; i < GAUGE_FILES; i++) {
		fd_close(n->gauge_devs[i]);
		fd_close(n->gauge_mounts[i]);
		n->gauge_devs[i] = n->gauge_mounts[i] = -1;
	}
}

int native_gauge_hand_out(const struct native *n, struct walls_gauge *ret)
{
	*ret = (struct walls_gauge){ .n_dirs = n->cgroups.n };
	if (n->gauge_devs[0] < 0)
		return -EOPNOTSUPP;
	memset(ret->devices, 0xff, sizeof(ret->devices));
	for (unsigned i = 0; i < GAUGE_FILES; i++) {
		uint32_t of = (uint32_t)n->gauge_devs[i];
		ret->devices[i] = open(DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
		if (ret->devices[i] < 0 || ioctl(ret->devices[i], FUSE_DEV_IOC_CLONE, &of) < 0) {
			int r = -errno;
			for (unsigned j = 0; j <= i; j++)
				fd_close(ret->devices[j]);
			return r;
		}
	}
	for (unsigned i = 0; i < n->cgroups.n; i++)
		ret->dirs[i] = n->cgroups.trees[i].dir;
	return 0;
}

bool native_gauge_waits(const struct native *n)
{
	struct pollfd polls[GAUGE_FILES];
	for (unsigned i = 0; i < GAUGE_FILES; i++)
		polls[i] = (struct pollfd){ .fd = n->gauge_devs[i], .events = POLLIN };
	return poll(polls, GAUGE_FILES, 0) > 0;
}

/* ---- after a restart of the keeper ---- */

struct renewal {
	int pidfd, copies[GAUGE_FILES], error;
};

/* In our memory, in the box's mount namespace: nobody in the box can move or hide /proc there. */
static int renew_child(void *arg)
{
	struct renewal *a = arg;
	char path[32];
	if (setns(a->pidfd, CLONE_NEWNS) < 0) {
		a->error = errno;
		return 1;
	}
	for (unsigned i = 0; i < GAUGE_FILES; i++) {
		snprintf(path, sizeof(path), "/proc/%s", gauge_names[i]);
		/* EINVAL: the box was made without them, and stays so. */
		if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ||
		    move_mount(a->copies[i], "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0) {
			a->error = errno == EINVAL ? 0 : errno;
			return 1;
		}
	}
	return 0;
}

int native_gauge_renew(const struct native *n, int pidfd)
{
	struct renewal a = { .pidfd = pidfd };
	if (n->gauge_mounts[0] < 0)
		return 0;
	int r = copy_all(n, a.copies);
	if (r == 0)
		r = run(renew_child, &a);
	close_copies(a.copies);
	return r < 0 ? r : -a.error;
}
