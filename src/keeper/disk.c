/*
 * Storage below boxes: see disk.h.
 */
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "btrfs.h"
#include "fd.h"
#include "log.h"
#include "loopdev.h"
#include "mnt.h"
#include "poison.h"

#define LOOP_FILE     "disk.btrfs"
#define LEAST         (1ull << 30)
#define FIRST         (64ull << 30) /* sparse: takes what is used */
#define ROOM_TO_START (64ull << 20)
#define HELD_FILE     "reserved" /* beside boxes/ and the others */
#define HELD_STEP     (256ull << 20)
#define HELD_SPARE    (64ull << 20) /* left to btrfs, so that files can still be removed */
#define ASIDE_FILE    "aside"
#define ASIDE         (32ull << 20)

static uint64_t free_bytes(int fd)
{
	struct statvfs v;
	return fstatvfs(fd, &v) < 0 ? 0 : (uint64_t)v.f_bavail * v.f_frsize;
}

/* mkfs as a program: writing a file system by hand is nobody's business. */
static int make_filesystem(int file)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, 1);
		dup2(null, 2);
		fcntl(file, F_SETFD, 0);
		execlp("mkfs.btrfs", "mkfs.btrfs", "-q", "-m", "single", "-d", "single", path, (char *)NULL);
		_exit(127);
	}
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0
	       : WEXITSTATUS(status) == 127                  ? -ENOENT
							     : -EIO;
}

/* A device that ends within a block has a last block that cannot be read. */
static uint64_t whole_mb(uint64_t bytes)
{
	return bytes >> 20 << 20;
}

static int make_file(int data, uint64_t size_mb, struct err *e)
{
	static const char half[] = LOOP_FILE ".new";
	uint64_t room = free_bytes(data), size = size_mb ? size_mb << 20 : MIN(FIRST, whole_mb(room / 5 * 4));
	if (size < LEAST)
		return err_set(e, ERR_STORAGE,
			       "too little room for storage on btrfs; set data.backend: copy");
	(void)unlinkat(data, half, 0);
	_cleanup_(closep) int fd = openat(data, half, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return err_sys(e, ERR_STORAGE, errno, "cannot make %s", LOOP_FILE);
	int r = make_filesystem(fd);
	if (r == -ENOENT)
		return err_set(
			e, ERR_STORAGE,
			"mkfs.btrfs is not installed (package btrfs-progs); or set data.backend: copy");
	if (r == 0 && (fsync(fd) < 0 || renameat(data, half, data, LOOP_FILE) < 0))
		r = -errno;
	return r < 0 ? err_sys(e, ERR_STORAGE, r, "cannot make a btrfs in %s", LOOP_FILE) : TAKE_FD(fd);
}

/* A full disk beneath shows itself as any error: what to do about it is said here. */
static int explain_open(const struct disk *d, int r, const char *what, struct err *e)
{
	uint64_t left = d->file >= 0 ? free_bytes(d->file) : UINT64_MAX;
	if (left < ROOM_TO_START)
		return err_set(
			e, ERR_STORAGE,
			"%s: the disk that holds %s has %llu MiB left; free some space there and start again",
			what, LOOP_FILE, (unsigned long long)(left >> 20));
	return err_sys(e, ERR_STORAGE, r, "%s%s%s", what, mnt_why[0] ? ": " : "", mnt_why);
}

static int mount_loop(struct disk *d, const char *mount_point, struct err *e)
{
	char path[32];
	int r = loopdev_attach(d->file, path, &d->dev);
	if (r < 0)
		return err_sys(
			e, ERR_STORAGE, r,
			"no loop device for %s (put data_dir on btrfs, or set data.backend: copy, which "
			"has no disk limits)",
			LOOP_FILE);
	/* What boxes remove is given back to the disk beneath. */
	const struct mnt_option options[] = { { "source", path }, { "discard", "async" } };
	_cleanup_(closep) int fd = mnt_fs("btrfs", options, ELEMS(options),
					  MOUNT_ATTR_NOATIME | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
	if (fd == -ENODEV)
		return err_set(e, ERR_STORAGE,
			       "this kernel has no btrfs: set data.backend: copy, which has no disk limits");
	if (fd < 0)
		return explain_open(d, fd, "cannot mount " LOOP_FILE, e);
	r = mnt_move(fd, AT_FDCWD, mount_point);
	if (r < 0)
		return err_sys(e, ERR_STORAGE, r, "cannot mount %s", LOOP_FILE);
	d->root = open(mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return d->root < 0 ? err_sys(e, ERR_STORAGE, errno, "cannot open %s", mount_point) : 0;
}

static int resize(struct disk *d, uint64_t size)
{
	int r = ftruncate(d->file, (off_t)size) < 0 ? -errno : loopdev_refresh(d->dev);
	if (r == 0)
		r = btrfs_grow(d->root);
	if (r < 0)
		log_warn("storage cannot grow: %s", strerror(-r));
	else
		log_info("storage has grown to %llu MiB", (unsigned long long)(size >> 20));
	return r;
}

/* What is configured was changed since the file was made. It never shrinks: what boxes have is in it. */
static void fit(struct disk *d)
{
	struct stat st;
	if (!d->most || fstat(d->file, &st) < 0 || (uint64_t)st.st_size == d->most)
		return;
	if ((uint64_t)st.st_size < d->most)
		(void)resize(d, d->most);
	else
		log_warn("data.size_mb is %llu, but " LOOP_FILE " has %llu MiB already and does not shrink",
			 (unsigned long long)(d->most >> 20), (unsigned long long)st.st_size >> 20);
}

static int open_loop(struct disk *d, int data, uint64_t size_mb, const char *mount_point, struct err *e)
{
	d->file = openat(data, LOOP_FILE, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (d->file < 0 && errno == ENOENT) {
		d->file = make_file(data, size_mb, e);
		if (d->file < 0)
			return -1;
	}
	if (d->file < 0)
		return err_sys(e, ERR_STORAGE, errno, "cannot open %s", LOOP_FILE);
	d->most = size_mb << 20;
	if (mount_loop(d, mount_point, e) < 0)
		return -1;
	fit(d);
	return 0;
}

int disk_open(struct disk *d, int data, struct view backend, uint64_t size_mb, const char *mount_point,
	      struct err *e)
{
	*d = (struct disk){ .root = -1, .file = -1, .dev = -1 };
	if (view_is(backend, "copy")) {
		d->root = openat(data, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return d->root < 0 ? err_sys(e, ERR_STORAGE, errno, "cannot open the data directory") : 0;
	}
	d->btrfs = true;
	if (btrfs_is(data)) {
		d->root = openat(data, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (d->root < 0)
			return err_sys(e, ERR_STORAGE, errno, "cannot open the data directory");
	} else if (open_loop(d, data, size_mb, mount_point, e) < 0) {
		return -1;
	}
	int r = btrfs_quota_enable(d->root);
	return r < 0 ? explain_open(d, r, "cannot turn on quotas", e) : 0;
}

void disk_close(struct disk *d)
{
	fd_close(d->root);
	fd_close(d->dev);
	fd_close(d->file);
	*d = (struct disk){ .root = -1, .file = -1, .dev = -1 };
}

int disk_make(const struct disk *d, int dir, const char *name)
{
	if (d->btrfs)
		return btrfs_create(dir, name);
	return mkdirat(dir, name, 0700) < 0 ? -errno : 0;
}

int disk_snapshot(const struct disk *d, int from, int dir, const char *name, bool readonly)
{
	if (!d->btrfs)
		return -EOPNOTSUPP;
	/* btrfs leaves out subvolumes within, without a word. */
	int r = btrfs_nested(from);
	return r < 0 ? r : r > 0 ? -EXDEV : btrfs_snapshot(from, dir, name, readonly);
}

int disk_snapshot_error(int r, const char *what, struct err *e)
{
	if (r == -EXDEV)
		return err_set(e, ERR_CONFLICT,
			       "cannot make the %s: there are btrfs subvolumes among the files, which it "
			       "would lack; "
			       "remove them or copy them to directories",
			       what);
	if (r == -EOPNOTSUPP)
		return err_set(e, ERR_UNSUPPORTED, "cannot make the %s: this needs data.backend: btrfs",
			       what);
	return err_sys(e, r == -ENOENT ? ERR_NOT_FOUND : ERR_STORAGE, r, "cannot make the %s", what);
}

int disk_remove(const struct disk *d, int dir, const char *name, int trash)
{
	if (d->btrfs) {
		int r = btrfs_destroy(dir, name);
		return r == -ENOENT ? 0 : r;
	}
	if (renameat(dir, name, trash, name) < 0)
		return errno == ENOENT ? 0 : -errno;
	return 0;
}

int disk_limit(const struct disk *d, int unit, uint64_t bytes)
{
	if (!d->btrfs)
		return bytes ? -EOPNOTSUPP : 0;
	return btrfs_limit(unit, bytes);
}

int disk_usage(const struct disk *d, int unit, uint64_t *ret_bytes, uint64_t *ret_limit)
{
	return d->btrfs ? btrfs_usage(unit, ret_bytes, ret_limit) : -EOPNOTSUPP;
}

void disk_grow(struct disk *d)
{
	struct statvfs v;
	struct stat st;
	if (d->file < 0 || fstatvfs(d->root, &v) < 0 || fstat(d->file, &st) < 0)
		return;
	/* A third, since btrfs sets some apart for itself: the smallest file is full with a quarter of it
	 * left. */
	uint64_t left = (uint64_t)v.f_bavail * v.f_frsize, size = (uint64_t)st.st_size;
	if (d->most || left >= size / 3 || free_bytes(d->file) < size / 4)
		return;
	(void)resize(d, whole_mb(size + size / 4));
}

void disk_look(const struct disk *d, struct disk_room *ret)
{
	struct statvfs v;
	*ret = (struct disk_room){ 0 };
	if (fstatvfs(d->root, &v) < 0)
		return;
	ret->size = (uint64_t)v.f_blocks * v.f_frsize;
	ret->free = (uint64_t)v.f_bavail * v.f_frsize;
	ret->beneath = d->file >= 0 ? free_bytes(d->file) : ret->free;
}

void disk_hold(const struct disk *d)
{
	_cleanup_(closep) int fd =
		openat(d->root, HELD_FILE, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct statvfs v;
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	for (off_t at = st.st_size; fstatvfs(d->root, &v) == 0; at += (off_t)HELD_STEP) {
		uint64_t left = (uint64_t)v.f_bavail * v.f_frsize;
		if (left < HELD_SPARE + HELD_STEP || fallocate(fd, 0, at, (off_t)HELD_STEP) < 0)
			break;
	}
}

void disk_reclaim(const struct disk *d)
{
	if (d->btrfs)
		btrfs_sync(d->root);
}

void disk_discard(const struct disk *d, bool at_once)
{
	char path[32];
	if (d->file < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", d->root);
	if (mount(NULL, path, NULL, MS_REMOUNT | MS_NOATIME | MS_NODEV | MS_NOSUID,
		  at_once ? "discard=sync" : "discard=async") < 0)
		log_warn("cannot change when the storage gives removed files back: %s", strerror(errno));
}

bool disk_is_held(const struct disk *d)
{
	struct stat st;
	return fstatat(d->root, HELD_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void disk_release(const struct disk *d)
{
	(void)unlinkat(d->root, HELD_FILE, 0);
}

void disk_set_aside(int dir)
{
	struct stat st;
	if (fstatat(dir, ASIDE_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size == (off_t)ASIDE)
		return;
	_cleanup_(closep) int fd = openat(dir, ASIDE_FILE, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && (free_bytes(dir) < HELD_SPARE || fallocate(fd, 0, 0, (off_t)ASIDE) < 0))
		(void)unlinkat(dir, ASIDE_FILE, 0);
}

bool disk_use_aside(int dir)
{
	if (unlinkat(dir, ASIDE_FILE, 0) < 0)
		return false;
	(void)syncfs(dir); /* btrfs gives room back when the removal is written */
	return true;
}
