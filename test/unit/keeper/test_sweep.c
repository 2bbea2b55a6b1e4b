/*
 * Emptying hostile trees: everything goes, nothing outside is touched. Both as a
 * function and as the role that runs with almost no privileges.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "fd.h"
#include "sweep.h"
#include "poison.h"

/* sweep.c starts sweepers by it; here none is started. */
int child_exec(struct keeper *k, const char *program, char *const argv[], char *const envp[], const int *fds,
	       size_t n, pid_t *ret_pid, int *ret_pidfd)
{
	fail();
	return -1;
}

static char top[64];

static int setup(void **state)
{
	umask(022);
	/* In memory where that is possible: some disks take half a minute for these trees. */
	snprintf(top, sizeof(top), "%s/paddock-test-sweep-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(top) || chdir(top) < 0 || mkdir("out", 0755) < 0)
		return -1;
	return fd_replace(AT_FDCWD, "out/file", "stays", 5, 0644, false);
}

static int teardown(void **state)
{
	(void)unlink("out/file");
	return rmdir("out") | rmdir(top);
}

static void put(int dir, const char *path, mode_t mode)
{
	int fd = openat(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	close(fd);
}

/* A tree "t" that must be empty after each sweep. */
static int tree(void)
{
	assert_int_equal(mkdir("t", 0755), 0);
	int fd = open("t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* The sweeper's own way: the directory is fd 3, privileges are dropped. */
static void sweep_role(int dir)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (dir != 3 && dup2(dir, 3) < 0)
			_exit(99);
		_exit(sweep_main());
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(dir);
}

static void sweep(int dir, bool role)
{
	if (role)
		sweep_role(dir);
	else
		sweep_tree(dir);
	assert_int_equal(fcntl(dir, F_GETFD), -1); /* it closes what it was given */
	assert_int_equal(rmdir("t"), 0);           /* and nothing was left in it */
	struct stat st;
	assert_int_equal(stat("out/file", &st), 0);
	assert_int_equal(st.st_size, 5);
}

static void links(int dir)
{
	char out[80];
	snprintf(out, sizeof(out), "%s/out", top);
	assert_int_equal(symlinkat(out, dir, "absolute"), 0);
	assert_int_equal(symlinkat("../out", dir, "relative"), 0);
	assert_int_equal(symlinkat("../out/file", dir, "file"), 0);
	assert_int_equal(symlinkat("loop", dir, "loop"), 0);
	assert_int_equal(symlinkat("/", dir, "root"), 0);
	assert_int_equal(mkdirat(dir, "d", 0755), 0);
	assert_int_equal(symlinkat("../../out", dir, "d/up"), 0);
	assert_int_equal(linkat(AT_FDCWD, "out/file", dir, "hard", 0), 0);
}

static void names(int dir)
{
	static const char *const odd[] = { "new\nline", "tab\t",    " ", "-rf",      "...",    ". ",
					   "\x1b[2J",   "\xff\xfe", "*", "deep-1-0", "a'b\"c", "%s%n" };
	for (size_t i = 0; i < ELEMS(odd); i++) {
		char path[64];
		assert_int_equal(mkdirat(dir, odd[i], 0755), 0);
		snprintf(path, sizeof(path), "%s/%s", odd[i], odd[i]);
		put(dir, path, 0644);
	}
	char name[256];
	memset(name, 'n', 255);
	name[255] = 0;
	put(dir, name, 0644);
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
}

static void without_permissions(int dir)
{
	assert_int_equal(mkdirat(dir, "closed", 0755), 0);
	put(dir, "closed/file", 0);
	assert_int_equal(mkdirat(dir, "closed/inner", 0755), 0);
	put(dir, "closed/inner/file", 0);
	assert_int_equal(mkdirat(dir, "sticky", 01777), 0);
	put(dir, "sticky/file", 0444);
	if (geteuid() == 0) { /* owners as boxes leave them */
		assert_int_equal(fchownat(dir, "closed/inner/file", 12345, 12345, 0), 0);
		assert_int_equal(fchownat(dir, "closed/inner", 65535, 65535, 0), 0);
		assert_int_equal(fchownat(dir, "sticky/file", 1000, 1000, 0), 0);
		assert_int_equal(fchownat(dir, "sticky", 1001, 1001, 0), 0);
		assert_int_equal(fchmodat(dir, "closed/inner", 0, 0), 0);
		assert_int_equal(fchmodat(dir, "closed", 0, 0), 0);
	}
}

/* Deeper than any path can name, and than there are descriptors for. */
static void deep(int dir)
{
	int at = dup(dir);
	for (int i = 0; i < 2000; i++) {
		assert_int_equal(mkdirat(at, "directory", 0755), 0);
		if (i % 100 == 50)
			put(at, "file", 0644);
		int next = openat(at, "directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(at);
		at = next;
	}
	assert_int_equal(symlinkat("../../../../out", at, "link"), 0);
	close(at);
}

static void wide(int dir)
{
	for (int i = 0; i < 5000; i++) {
		char name[32];
		snprintf(name, sizeof(name), "entry-%d", i);
		if (i % 5)
			put(dir, name, 0644);
		else
			assert_int_equal(mkdirat(dir, name, 0755), 0);
	}
}

/* Many branches that all end beyond the depth at which directories are moved up. */
static void bushy(int dir)
{
	int at = dup(dir);
	for (int i = 0; i < 110; i++) {
		assert_int_equal(mkdirat(at, "d", 0755), 0);
		for (int k = 0; i > 90 && k < 5; k++) {
			char name[16];
			snprintf(name, sizeof(name), "b%d", k);
			assert_int_equal(mkdirat(at, name, 0755), 0);
		}
		int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = next;
	}
	close(at);
}

static void (*const shapes[])(int dir) = { links, names, without_permissions, deep, wide, bushy };

static void test_function(void **state)
{
	/* It must do with few descriptors. */
	struct rlimit old, few;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	for (size_t i = 0; i < ELEMS(shapes); i++) {
		int dir = tree();
		shapes[i](dir);
		few = (struct rlimit){ 256, old.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		sweep(dir, false);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	}
}

static void test_role(void **state)
{
	if (geteuid() != 0) {
		print_message("# skipped: needs root\n");
		skip();
	}
	for (size_t i = 0; i < ELEMS(shapes); i++) {
		int dir = tree();
		shapes[i](dir);
		sweep(dir, true);
	}
	int dir = tree(); /* of nothing */
	sweep(dir, true);
}

/* The keeper's own descriptor of the trash, read to its end by a sweep before. */
static void test_again(void **state)
{
	int dir = tree();
	for (int i = 0; i < 3; i++) {
		put(dir, "file", 0644);
		sweep_tree(dup(dir));
		assert_int_equal(faccessat(dir, "file", F_OK, 0), -1);
	}
	close(dir);
	assert_int_equal(rmdir("t"), 0);
	sweep_tree(-1); /* of what could not be opened */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function),
		cmocka_unit_test(test_role),
		cmocka_unit_test(test_again),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
