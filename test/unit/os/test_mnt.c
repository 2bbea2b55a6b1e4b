/*
 * Mounts by file descriptor, in mount namespaces of forked children. The overlay
 * is made both ways: from detached layers (Linux 6.15) and from attached ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "child.h"
#include "fd.h"
#include "mnt.h"
#include "spawn.h"
#include "poison.h"

#define BASE 2300065664u
#define IDS  65536u

static char top[] = "/tmp/paddock-test-mnt-XXXXXX";

/* The lower layer: a file of root, one of uid 1000, a directory. */
static int setup(void **state)
{
	if (geteuid() != 0)
		return 0;
	umask(022);
	if (!mkdtemp(top) || chmod(top, 0755) < 0 || chdir(top) < 0)
		return -1;
	static const char *const dirs[] = { "lower",         "lower/dir", "scratch", "scratch/lower",
					    "scratch/store", "at",        "over",    "scratch/over" };
	for (size_t i = 0; i < ELEMS(dirs); i++)
		if (mkdir(dirs[i], 0755) < 0)
			return -1;
	if (fd_replace(AT_FDCWD, "lower/root", "lower", 5, 0644, false) < 0 ||
	    fd_replace(AT_FDCWD, "lower/tool", "lower", 5, 0644, false) < 0 ||
	    fd_replace(AT_FDCWD, "over/tool", "over", 4, 0755, false) < 0 ||
	    fd_replace(AT_FDCWD, "lower/user", "lower", 5, 0644, false) < 0 ||
	    chown("lower/user", 1000, 1000) < 0)
		return -1;
	return symlink("lower", "link");
}

static int teardown(void **state)
{
	char cmd[80];
	if (geteuid() != 0)
		return 0;
	snprintf(cmd, sizeof(cmd), "rm -r %s", top);
	return system(cmd);
}

static void own_mounts(void)
{
	CHECK(unshare(CLONE_NEWNS) == 0);
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) == 0);
}

static int dir_fd(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void check_text(const char *path, const char *want)
{
	struct buf b = BUF_INIT(100);
	CHECK(fd_slurp(AT_FDCWD, path, &b) == 0);
	CHECK(view_is(buf_view(&b), want));
	buf_done(&b);
}

static void check_owner(const char *path, uid_t want)
{
	struct stat st;
	CHECK(lstat(path, &st) == 0);
	if (st.st_uid != want || st.st_gid != want)
		dprintf(2, "# %s is owned by %u:%u, not %u\n", path, st.st_uid, st.st_gid, want);
	CHECK(st.st_uid == want && st.st_gid == want);
}

/* What a box does to its files, as its root and as its user. */
static void be_the_box(int userns)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(setns(userns, CLONE_NEWUSER) == 0);
		CHECK(setgroups(0, NULL) == 0 && setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0);
		check_owner("at/root", 0);
		check_owner("at/user", 1000);
		check_owner("at/tool", 0);
		check_text("at/tool", "over");
		CHECK(fd_replace(AT_FDCWD, "at/new", "upper", 5, 0644, false) == 0);
		int fd = open("at/root", O_WRONLY | O_TRUNC); /* is copied up */
		CHECK(fd >= 0 && write(fd, "upper", 5) == 5);
		CHECK(mkdir("at/dir/sub", 0755) == 0);
		CHECK(unlink("at/dir/../user") == 0);
		CHECK(mkdir("at/home", 0755) == 0 && chown("at/home", 1000, 1000) == 0);
		CHECK(setresgid(1000, 1000, 1000) == 0 && setresuid(1000, 1000, 1000) == 0);
		CHECK_FAILS(open("at/new", O_WRONLY), EACCES);
		CHECK(fd_replace(AT_FDCWD, "at/home/mine", "mine", 4, 0600, false) == 0);
		_exit(0);
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void overlay(void *arg)
{
	const bool attach = *(bool *)arg;
	own_mounts();
	const char *store = attach ? "store-a" : "store-d";
	CHECK(mkdir(store, 0755) == 0 && chdir(store) == 0);
	CHECK(mkdir("upper", 0755) == 0 && mkdir("work", 0700) == 0 && chdir("..") == 0);
	int userns = -1;
	CHECK(spawn_userns(BASE, IDS, &userns) == 0);
	spawn_collect();
	const uint64_t quiet = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID;
	int over = mnt_tree(dir_fd("over"), "", quiet | MOUNT_ATTR_RDONLY, userns);
	struct mnt_overlay o = { .over = &over,
				 .lower = mnt_tree(dir_fd("lower"), "", quiet | MOUNT_ATTR_RDONLY, userns),
				 .store = mnt_tree(dir_fd(store), "", quiet, userns),
				 .upper = "upper",
				 .work = "work",
				 .owner = BASE,
				 .scratch = dir_fd("scratch"),
				 .attach = attach };
	CHECK(o.lower >= 0 && over >= 0);
	CHECK(o.store >= 0);
	int fd = mnt_overlay(&o);
	if (fd < 0)
		dprintf(2, "# overlay: %s: %s\n", strerror(-fd), mnt_why);
	CHECK(fd >= 0);
	/* Nobody is left as whom the layers were made, nor where. */
	CHECK(setfsuid((uid_t)-1) == 0 && setfsgid((gid_t)-1) == 0);
	CHECK(rmdir("scratch/lower") == 0 && mkdir("scratch/lower", 0755) == 0);
	CHECK(rmdir("scratch/store") == 0 && mkdir("scratch/store", 0755) == 0);
	CHECK(mnt_move(fd, AT_FDCWD, "at") == 0);
	close(o.lower);
	close(o.store);
	check_text("at/root", "lower");
	be_the_box(userns);
	check_text("at/root", "upper");
	CHECK_FAILS(access("at/user", F_OK), ENOENT);
	check_owner("at/new", BASE); /* through the mount it is the box's range … */
	check_owner("at/home/mine", BASE + 1000);
	CHECK(chdir(store) == 0); /* … on the disk what the box sees */
	check_text("upper/new", "upper");
	check_owner("upper/new", 0);
	check_owner("upper/root", 0);
	check_owner("upper/dir/sub", 0);
	check_owner("upper/home/mine", 1000);
	CHECK(chdir("../lower") == 0);
	check_text("root", "lower"); /* the image is as it was */
	check_text("user", "lower");
	check_owner("user", 1000);
}

static void test_overlay_detached(void **state)
{
	NEED_ROOT();
	bool attach = false;
	in_child(overlay, &attach);
}

static void test_overlay_attached(void **state)
{
	NEED_ROOT();
	bool attach = true;
	in_child(overlay, &attach);
}

/* An upper layer that cannot be written makes no overlay, not a read-only one. */
static void overlay_unwritable(void *arg)
{
	own_mounts();
	int userns = -1;
	CHECK(spawn_userns(BASE, IDS, &userns) == 0);
	CHECK(mkdir("store-w", 0755) == 0 && mkdir("store-w/upper", 0755) == 0 &&
	      mkdir("store-w/work", 0700) == 0);
	CHECK(chown("store-w/work", 70000, 70000) == 0); /* no id of the box */
	struct mnt_overlay o = { .lower = mnt_tree(dir_fd("lower"), "", MOUNT_ATTR_RDONLY, userns),
				 .store = mnt_tree(dir_fd("store-w"), "", 0, userns),
				 .upper = "upper",
				 .work = "work",
				 .owner = BASE,
				 .scratch = dir_fd("scratch") };
	CHECK(mnt_overlay(&o) < 0);
	o.upper = "missing";
	CHECK(mnt_overlay(&o) == -ENOENT);
	o.attach = true;
	CHECK(mnt_overlay(&o) == -ENOENT);
	CHECK(rmdir("scratch/lower") == 0 && mkdir("scratch/lower", 0755) == 0); /* and nothing hangs there */
	CHECK(rmdir("scratch/store") == 0 && mkdir("scratch/store", 0755) == 0);
	CHECK(setfsuid((uid_t)-1) == 0 && setfsgid((gid_t)-1) == 0);
}

static void test_overlay_unwritable(void **state)
{
	NEED_ROOT();
	in_child(overlay_unwritable, NULL);
}

static void file_systems(void *arg)
{
	own_mounts();
	const struct mnt_option options[] = { { "size", "64k" }, { "mode", "0700" } };
	int fd = mnt_fs("tmpfs", options, ELEMS(options), MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NODEV);
	CHECK(fd >= 0);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	struct stat st;
	CHECK(fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0700);
	/* Detached: nobody sees it, and it can be used already. */
	CHECK(mkdirat(fd, "made", 0755) == 0);
	CHECK_FAILS(access("at/made", F_OK), ENOENT);
	CHECK(mnt_move(fd, AT_FDCWD, "at") == 0);
	CHECK(access("at/made", F_OK) == 0);
	static char much[100000];
	CHECK(fd_replace(AT_FDCWD, "at/large", much, sizeof(much), 0600, false) == -ENOSPC);
	CHECK(mnt_set_attr(fd, MOUNT_ATTR_RDONLY) == 0);
	CHECK_FAILS(mkdir("at/more", 0755), EROFS);

	CHECK(mnt_fs("tmpfs", (struct mnt_option[]){ { "no_such_option", "1" } }, 1, 0) == -EINVAL);
	CHECK(strstr(mnt_why, "no_such_option") != NULL);
	CHECK(mnt_fs("no_such_type", NULL, 0, 0) == -ENODEV);
	CHECK(mnt_why[0] == 0); /* nothing of the failure before */
	CHECK(mnt_move(fd, AT_FDCWD, "missing") == -ENOENT);
	CHECK(mnt_set_attr(-1, MOUNT_ATTR_RDONLY) == -EBADF);
}

static void test_file_systems(void **state)
{
	NEED_ROOT();
	in_child(file_systems, NULL);
}

static void trees(void *arg)
{
	own_mounts();
	int here = dir_fd(".");
	int fd = mnt_tree(here, "lower", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, -1);
	CHECK(fd >= 0);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK(faccessat(fd, "root", F_OK, 0) == 0);
	CHECK_FAILS(mkdirat(fd, "new", 0755), EROFS);
	CHECK(mkdir("lower/new", 0755) == 0 && rmdir("lower/new") == 0); /* the original is as it was */
	int point = dir_fd("at");
	CHECK(mnt_move(fd, point, "") == 0); /* onto a directory by its fd */
	check_text("at/root", "lower");
	/* A link is never followed to what it names. */
	int link = mnt_tree(here, "link", 0, -1);
	CHECK(link < 0 || faccessat(link, "root", F_OK, 0) < 0);
	CHECK(mnt_tree(here, "missing", 0, -1) == -ENOENT);
	CHECK(mnt_tree(here, "lower", 0, here) < 0); /* no user namespace */
	/* Owners as the namespace maps them. */
	int userns = -1;
	CHECK(spawn_userns(BASE, IDS, &userns) == 0);
	int mapped = mnt_tree(here, "lower", 0, userns);
	struct stat st;
	CHECK(mapped >= 0 && fstatat(mapped, "user", &st, 0) == 0);
	CHECK(st.st_uid == BASE + 1000 && st.st_gid == BASE + 1000);
}

static void test_trees(void **state)
{
	NEED_ROOT();
	in_child(trees, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overlay_detached),
		cmocka_unit_test(test_overlay_attached),
		cmocka_unit_test(test_overlay_unwritable),
		cmocka_unit_test(test_file_systems),
		cmocka_unit_test(test_trees),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
