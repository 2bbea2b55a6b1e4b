/*
 * Landlock: inside and outside, by what a confined child can still do.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include <cmocka.h>

#include "child.h"
#include "fd.h"
#include "landlock.h"
#include "poison.h"

static char top[] = "/tmp/paddock-test-landlock-XXXXXX";
static int abi;

static int setup(void **state)
{
	abi = landlock_abi();
	if (!mkdtemp(top) || chdir(top) < 0)
		return -1;
	if (mkdir("in", 0755) < 0 || mkdir("in/a", 0755) < 0 || mkdir("in/b", 0755) < 0 ||
	    mkdir("out", 0755) < 0)
		return -1;
	return fd_replace(AT_FDCWD, "in/file", "text", 4, 0755, false) |
	       fd_replace(AT_FDCWD, "out/file", "text", 4, 0755, false);
}

static int teardown(void **state)
{
	char cmd[80];
	snprintf(cmd, sizeof(cmd), "rm -r %s", top);
	return system(cmd);
}

static int path_fd(const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static void confine(const char *path, enum landlock_access access)
{
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	const struct landlock_rule rule = { path_fd(path), access };
	CHECK(landlock_only(&rule, 1) == 0);
}

static void readable(void *arg)
{
	confine("in", LANDLOCK_READ);
	CHECK(open("in/file", O_RDONLY) >= 0);
	CHECK(open("in", O_RDONLY | O_DIRECTORY) >= 0);
	CHECK_FAILS(open("in/file", O_WRONLY), EACCES);
	CHECK_FAILS(open("in/new", O_WRONLY | O_CREAT, 0600), EACCES);
	CHECK_FAILS(mkdir("in/dir", 0700), EACCES);
	CHECK_FAILS(unlink("in/file"), EACCES);
	CHECK_FAILS(open("out/file", O_RDONLY), EACCES);
	CHECK_FAILS(open("out", O_RDONLY | O_DIRECTORY), EACCES);
	CHECK_FAILS(open("/etc/passwd", O_RDONLY), EACCES);
	CHECK_FAILS(open("in/../out/file", O_RDONLY), EACCES);
	CHECK_FAILS(execl("in/file", "file", NULL), EACCES);
}

static void writable(void *arg)
{
	confine("in", LANDLOCK_WRITE);
	CHECK(open("in/file", O_RDWR) >= 0);
	CHECK(open("in/file", O_RDONLY) >= 0);
	CHECK(open("in/new", O_WRONLY | O_CREAT | O_EXCL, 0600) >= 0);
	CHECK(rename("in/new", "in/new2") == 0);
	CHECK(unlink("in/new2") == 0);
	CHECK(mkdir("in/dir", 0700) == 0);
	CHECK(rmdir("in/dir") == 0);
	CHECK(symlink("../out/file", "in/link") == 0);
	CHECK_FAILS(open("in/link", O_RDONLY), EACCES); /* leads outside */
	CHECK(unlink("in/link") == 0);
	if (abi >= 3)
		CHECK(truncate("in/file", 2) == 0);
	if (abi >= 2) { /* from one directory to another, both inside */
		CHECK(open("in/a/x", O_WRONLY | O_CREAT, 0600) >= 0);
		CHECK(rename("in/a/x", "in/b/x") == 0);
		CHECK(unlink("in/b/x") == 0);
	}
	CHECK_FAILS(execl("in/file", "file", NULL), EACCES);
	if (geteuid() == 0)
		CHECK_FAILS(mknod("in/null", S_IFCHR | 0666, makedev(1, 3)), EACCES);
	CHECK_FAILS(open("out/file", O_RDONLY), EACCES);
	CHECK_FAILS(open("out/new", O_WRONLY | O_CREAT, 0600), EACCES);
	CHECK(rename("in/file", "out/moved") < 0);
	CHECK(link("out/file", "in/stolen") < 0);
}

static void everything(void *arg)
{
	confine("/", LANDLOCK_ALL);
	CHECK(open("out/new", O_WRONLY | O_CREAT, 0600) >= 0);
	CHECK(unlink("out/new") == 0);
	CHECK(rename("out/file", "in/here") == 0 || abi < 2);
	CHECK(rename("in/here", "out/file") == 0 || abi < 2);
	execl("/bin/true", "true", NULL);
	CHECK(!"exec");
}

static void runnable(void *arg)
{
	confine("/", LANDLOCK_RUN);
	CHECK(open("out/file", O_RDONLY) >= 0);
	CHECK_FAILS(open("out/file", O_WRONLY), EACCES);
	CHECK_FAILS(open("out/new", O_WRONLY | O_CREAT, 0600), EACCES);
	execl("/bin/true", "true", NULL);
	CHECK(!"exec");
}

/* A rule may name a file: it alone is open. */
static void one_file(void *arg)
{
	const enum landlock_access access = *(enum landlock_access *)arg;
	confine("out/file", access);
	CHECK(open("out/file", O_RDONLY) >= 0);
	if (access == LANDLOCK_READ || access == LANDLOCK_RUN)
		CHECK_FAILS(open("out/file", O_WRONLY), EACCES);
	else
		CHECK(open("out/file", O_WRONLY) >= 0);
	CHECK_FAILS(open("in/file", O_RDONLY), EACCES);
	CHECK_FAILS(open("out", O_RDONLY | O_DIRECTORY), EACCES);
}

static void nothing(void *arg)
{
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	int fd = open("in/file", O_RDWR | O_CLOEXEC);
	CHECK(landlock_only(NULL, 0) == 0);
	CHECK_FAILS(open("in/file", O_RDONLY), EACCES);
	CHECK_FAILS(open("/", O_RDONLY), EACCES);
	char c;
	CHECK(read(fd, &c, 1) == 1); /* what was open stays open */
	if (abi >= 6) {
		CHECK_FAILS(kill(getppid(), 0), EPERM);
		int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK_FAILS(connect(s, arg, sizeof(struct sockaddr_un)), EPERM);
	}
}

/* As on an older kernel: files are out of reach, what the parts guard is not. */
static void fewer_parts(void *arg)
{
	const unsigned parts = *(const unsigned *)arg, have = parts & landlock_parts(abi);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(landlock_only_with(parts, NULL, 0) == 0);
	CHECK_FAILS(open("in/file", O_RDONLY), EACCES);
	if (have & LANDLOCK_TRUNCATE)
		CHECK_FAILS(truncate("in/file", 4), EACCES);
	else
		CHECK(truncate("in/file", 4) == 0);
	if (have & LANDLOCK_SCOPES)
		CHECK_FAILS(kill(getppid(), 0), EPERM);
	else
		CHECK(kill(getppid(), 0) == 0);
}

static void bad_fd(void *arg)
{
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(landlock_only(&(struct landlock_rule){ -1, LANDLOCK_ALL }, 1) < 0);
	CHECK(open("out/file", O_RDONLY) >= 0); /* an error confines nothing: the caller must not go on */
}

static void need_landlock(void)
{
	if (abi < 1) {
		print_message("# skipped: this kernel has no Landlock\n");
		skip();
	}
}

static void test_read(void **state)
{
	need_landlock();
	in_child(readable, NULL);
}

static void test_write(void **state)
{
	need_landlock();
	in_child(writable, NULL);
}

static void test_all(void **state)
{
	need_landlock();
	in_child(everything, NULL);
	in_child(runnable, NULL);
}

static void test_one_file(void **state)
{
	need_landlock();
	for (enum landlock_access a = LANDLOCK_READ; a <= LANDLOCK_ALL; a++)
		in_child(one_file, &a);
}

static void test_parts(void **state)
{
	assert_int_equal(landlock_parts(1), 0);
	assert_int_equal(landlock_parts(2), 0); /* Linux 6.1 */
	assert_int_equal(landlock_parts(4), LANDLOCK_TRUNCATE);
	assert_int_equal(landlock_parts(5), LANDLOCK_TRUNCATE | LANDLOCK_IOCTL_DEV);
	assert_int_equal(landlock_parts(6), LANDLOCK_PARTS);
	need_landlock();
	for (unsigned parts = 0; parts <= LANDLOCK_PARTS; parts++)
		in_child(fewer_parts, &parts);
}

static void test_nothing(void **state)
{
	need_landlock();
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1, "paddock-test-%d", getpid());
	_cleanup_(closep) int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(s, 1), 0);
	in_child(nothing, &sun);
}

static void test_bad_fd(void **state)
{
	need_landlock();
	in_child(bad_fd, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),     cmocka_unit_test(test_write), cmocka_unit_test(test_all),
		cmocka_unit_test(test_one_file), cmocka_unit_test(test_parts), cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_bad_fd),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
