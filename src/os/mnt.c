/*
 * Mounts: see mnt.h.
 */
#include "mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"
#include "poison.h"

char mnt_why[120];
bool mnt_attached;

/* The context's log has the reason that errno cannot express. */
static int fail(int fs)
{
	int error = errno;
	ssize_t n = fs >= 0 ? read(fs, mnt_why, sizeof(mnt_why) - 1) : 0;
	mnt_why[n > 0 ? n : 0] = 0;
	return -error;
}

int mnt_tree(int dirfd, const char *path, uint64_t attr, int userns)
{
	unsigned flags =
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (path[0] ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH);
	_cleanup_(closep) int fd = open_tree(dirfd, path, flags);
	if (fd < 0)
		return -errno;
	struct mount_attr a = { .attr_set = attr };
	if (userns >= 0) {
		a.attr_set |= MOUNT_ATTR_IDMAP;
		a.userns_fd = (uint64_t)userns;
	}
	if (a.attr_set && mount_setattr(fd, "", AT_EMPTY_PATH, &a, sizeof(a)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int mnt_trees(int dirfd, const char *path)
{
	int fd = open_tree(dirfd, path,
			   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

int mnt_fs(const char *type, const struct mnt_option *options, size_t n, uint64_t attr)
{
	_cleanup_(closep) int fs = fsopen(type, FSOPEN_CLOEXEC);
	if (fs < 0)
		return fail(fs);
	for (size_t i = 0; i < n; i++) {
		int cmd = options[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
		if (fsconfig(fs, cmd, options[i].key, options[i].value, 0) < 0)
			return fail(fs);
	}
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fail(fs);
	int fd = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attr);
	return fd < 0 ? fail(fs) : fd;
}

/* A layer's directory as the context wants it: the fd, or a path to it. */
static int set_layer(int fs, const char *key, int fd, bool by_path)
{
	if (!by_path)
		return fsconfig(fs, FSCONFIG_SET_FD, key, NULL, fd);
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fsconfig(fs, FSCONFIG_SET_STRING, key, path, 0);
}

static int set_lowers(int fs, const struct mnt_overlay *o, bool by_path)
{
	char path[64];
	if (!by_path)
		return o->over && set_layer(fs, "lowerdir+", *o->over, false) < 0
			       ? -1
			       : set_layer(fs, "lowerdir+", o->lower, false);
	if (!o->over)
		return set_layer(fs, "lowerdir", o->lower, true);
	snprintf(path, sizeof(path), "/proc/self/fd/%d:/proc/self/fd/%d", *o->over, o->lower);
	return fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", path, 0);
}

static int set_upper(int fs, int upper, int work, bool by_path)
{
	if (set_layer(fs, "upperdir", upper, by_path) < 0 || set_layer(fs, "workdir", work, by_path) < 0)
		return -1;
	/* A box does not outlive a crash of the machine: no sync at each unmount. */
	return fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0);
}

static int make_overlay(const struct mnt_overlay *o, bool by_path)
{
	/* Open until the file system is there: Linux before 6.5 looks at the paths only then. */
	_cleanup_(closep) int upper =
		o->upper ? openat(o->store, o->upper, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	_cleanup_(closep) int work =
		o->upper ? openat(o->store, o->work, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (o->upper && (upper < 0 || work < 0))
		return -errno;
	_cleanup_(closep) int fs = fsopen("overlay", FSOPEN_CLOEXEC);
	if (fs < 0 || set_lowers(fs, o, by_path) < 0 ||
	    (o->upper && set_upper(fs, upper, work, by_path) < 0) ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fail(fs);
	unsigned attr = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | (o->upper ? 0 : MOUNT_ATTR_RDONLY);
	int fd = fsmount(fs, FSMOUNT_CLOEXEC, attr);
	if (fd < 0 || !o->upper)
		return fd < 0 ? fail(fs) : fd;
	/* Where it cannot make its work directory the kernel mounts read-only and
	 * says so in its log only; that is a failure here, not a weaker box. */
	struct statvfs v;
	if (fstatvfs(fd, &v) < 0 || v.f_flag & ST_RDONLY) {
		fd_close(fd);
		snprintf(mnt_why, sizeof(mnt_why), "the upper layer cannot be written");
		return -EROFS;
	}
	return fd;
}

static int make_overlay_attached(const struct mnt_overlay *o)
{
	const struct {
		int fd;
		const char *at;
	} layers[] = { { o->lower, "lower" },
		       { o->over ? *o->over : -1, "over" },
		       { o->upper ? o->store : -1, "store" } };
	size_t n = 0;
	int r = 0;
	for (; r == 0 && n < ELEMS(layers); n++)
		r = layers[n].fd < 0 ? 0 : mnt_move(layers[n].fd, o->scratch, layers[n].at);
	if (r == 0)
		r = make_overlay(o, true);
	else
		n--;
	/* By fd, since the layers are what is mounted there now; the overlay has its own clones. */
	char path[32];
	while (n--)
		if (layers[n].fd >= 0) {
			snprintf(path, sizeof(path), "/proc/self/fd/%d", layers[n].fd);
			(void)umount2(path, MNT_DETACH);
		}
	return r;
}

/* How kernels say that a layer cannot be given by a detached fd: EOPNOTSUPP where overlay knows no fds (6.1),
 * EBADF where it refuses O_PATH ones (6.12), EINVAL where it knows neither "lowerdir+" nor detached mounts.
 */
static bool wants_attached(int r)
{
	return r == -EINVAL || r == -EOPNOTSUPP || r == -EBADF;
}

int mnt_overlay(const struct mnt_overlay *o)
{
	/* The overlay keeps the credentials of its mounter and writes the upper
	 * layer with them: they must be ids that the idmapped mount can store. */
	setfsgid(o->owner);
	setfsuid(o->owner);
	/* What the kernel cannot do it will not learn: it is asked once. */
	static bool only_attached;
	bool attach = o->attach || only_attached;
	int r = attach ? -EINVAL : make_overlay(o, false);
	mnt_attached = wants_attached(r);
	if (mnt_attached) {
		r = make_overlay_attached(o);
		only_attached = only_attached || (!attach && r >= 0);
	}
	setfsuid(0);
	setfsgid(0);
	return r;
}

int mnt_merged(int upper, int lower, uint64_t attr)
{
	char path[64];
	_cleanup_(closep) int fs = fsopen("overlay", FSOPEN_CLOEXEC);
	if (fs < 0)
		return fail(fs);
	snprintf(path, sizeof(path), "/proc/self/fd/%d:/proc/self/fd/%d", upper, lower);
	if (fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", path, 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fail(fs);
	int fd = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)(attr | MOUNT_ATTR_RDONLY));
	return fd < 0 ? fail(fs) : fd;
}

const char *mnt_type(int fd)
{
	static const struct {
		unsigned long magic;
		const char *name;
	} types[] = {
		{ EXT4_SUPER_MAGIC, "ext4" },
		{ XFS_SUPER_MAGIC, "xfs" },
		{ BTRFS_SUPER_MAGIC, "btrfs" },
		{ TMPFS_MAGIC, "tmpfs" },
		{ OVERLAYFS_SUPER_MAGIC, "overlay" },
		{ F2FS_SUPER_MAGIC, "f2fs" },
		{ NFS_SUPER_MAGIC, "nfs" },
		{ FUSE_SUPER_MAGIC, "fuse" },
		{ SQUASHFS_MAGIC, "squashfs" },
		{ EROFS_SUPER_MAGIC_V1, "erofs" },
		{ 0x2fc12fc1, "zfs" },
		{ 0xca451a4e, "bcachefs" },
		{ V9FS_MAGIC, "9p" },
	};
	struct statfs s;
	if (fstatfs(fd, &s) < 0)
		return "unknown";
	for (size_t i = 0; i < ELEMS(types); i++)
		if (types[i].magic == ((unsigned long)s.f_type & 0xfffffffful))
			return types[i].name;
	return "unknown";
}

int mnt_move(int fd, int dirfd, const char *path)
{
	unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (path[0] ? 0 : MOVE_MOUNT_T_EMPTY_PATH);
	return move_mount(fd, "", dirfd, path, flags) < 0 ? -errno : 0;
}

int mnt_set_attr(int fd, uint64_t attr)
{
	struct mount_attr a = { .attr_set = attr };
	return mount_setattr(fd, "", AT_EMPTY_PATH, &a, sizeof(a)) < 0 ? -errno : 0;
}
