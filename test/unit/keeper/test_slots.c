/*
 * The machine's table of uid ranges: no two hold the same one, whoever dies.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fd.h"
#include "slots.h"
#include "poison.h"

static char top[] = "/tmp/paddock-test-slots-XXXXXX", table[64];
static uint32_t base;

static int setup(void **state)
{
	/* No keeper has a base like this: ranges would not fit behind it. */
	base = 4200000000u + (uint32_t)getpid();
	snprintf(table, sizeof(table), "/run/paddock-uids.%u", base);
	return mkdtemp(top) && chdir(top) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)unlink(table);
	return rmdir(top);
}

static int clean(void **state)
{
	(void)unlink(table);
	return system("rm -rf ./* ") == 0 ? 0 : -1;
}

static void need_run(void)
{
	if (access("/run", W_OK) < 0) {
		print_message("# skipped: /run is not ours to write\n");
		skip();
	}
}

/* A box's run directory; its absolute path. */
static const char *holder(const char *name)
{
	static char path[4][128];
	static unsigned n;
	char *p = path[n++ % 4];
	snprintf(p, sizeof(path[0]), "%s/%s", top, name);
	(void)mkdir(p, 0700);
	return p;
}

static struct slots open_table(uint32_t n)
{
	struct slots s;
	struct err e = { 0 };
	assert_int_equal(slots_open(&s, base, n, &e), 0);
	return s;
}

static uint32_t take(struct slots *s, const char *name)
{
	struct err e = { 0 };
	uint32_t slot = UINT32_MAX;
	assert_int_equal(slots_take(s, holder(name), &slot, &e), 0);
	assert_true(slot < s->n);
	return slot;
}

static void test_private(void **state)
{
	need_run();
	struct slots s = open_table(4);
	struct stat st;
	assert_int_equal(stat(table, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(fcntl(s.fd, F_GETFD) & FD_CLOEXEC);
	slots_close(&s);
	assert_int_equal(unlink(table), 0);
	/* Somebody who could plant a link there does not choose what we write. */
	struct err e = { 0 };
	assert_int_equal(symlink("/tmp/paddock-test-victim", table), 0);
	assert_int_equal(slots_open(&s, base, 4, &e), -1);
	assert_int_equal(e.sys, ELOOP);
}

static void test_move(void **state)
{
	need_run();
	struct slots a = open_table(2), b = open_table(2);
	uint32_t slot = take(&a, "before");
	char from[128], to[160];
	snprintf(from, sizeof(from), "%s", holder("before"));
	snprintf(to, sizeof(to), "%s.moved", from);
	assert_int_equal(slots_move(&a, slot, to, AT_FDCWD, from, AT_FDCWD, to), 0);
	assert_int_equal(access(to, F_OK), 0);
	assert_int_not_equal(take(&b, "other"), slot);
	/* The holder is gone: it is free. */
	assert_int_equal(rmdir(to), 0);
	assert_int_equal(take(&b, "third"), slot);
	assert_true(slots_move(&a, slot, to, AT_FDCWD, from, AT_FDCWD, to) < 0);
	slots_close(&a);
	slots_close(&b);
}

static void test_two_openers(void **state)
{
	need_run();
	struct slots a = open_table(6), b = open_table(6);
	bool used[6] = { false };
	for (int i = 0; i < 6; i++) {
		char name[16];
		snprintf(name, sizeof(name), "box%d", i);
		uint32_t slot = take(i % 2 ? &a : &b, name);
		assert_false(used[slot]);
		used[slot] = true;
	}
	uint32_t slot = 77;
	struct err e = { 0 };
	assert_int_equal(slots_take(&a, holder("one-more"), &slot, &e), -1);
	assert_int_equal(e.code, ERR_QUOTA);
	assert_int_equal(slots_take(&b, holder("one-more"), &slot, &e), -1);
	/* One ends: its range, and only that, is there for the other. */
	assert_int_equal(rmdir("box3"), 0);
	slots_free(&a, 3);
	assert_int_equal(take(&b, "one-more"), 3);
	slots_close(&a);
	slots_close(&b);
}

/* A killed keeper frees nothing; its run directories go, and so its ranges. */
static void test_stale_holder(void **state)
{
	need_run();
	struct slots dead = open_table(3), s;
	for (int i = 0; i < 3; i++)
		take(&dead, (const char *[]){ "x", "y", "z" }[i]);
	slots_close(&dead);
	s = open_table(3);
	struct err e = { 0 };
	uint32_t slot;
	assert_int_equal(slots_take(&s, holder("new"), &slot, &e), -1); /* they may live */
	assert_int_equal(rmdir("y"), 0);
	assert_int_equal(take(&s, "new"), 1);
	assert_int_equal(slots_take(&s, holder("more"), &slot, &e), -1);
	slots_close(&s);
}

/* Between the end of A's box and A's word about it, B has taken the range. */
static void test_late_free(void **state)
{
	need_run();
	struct slots a = open_table(2), b = open_table(2), c = open_table(2);
	uint32_t slot = take(&a, "of-a");
	assert_int_equal(rmdir("of-a"), 0);
	assert_int_equal(take(&b, "of-b"), slot);
	slots_free(&a, slot);
	assert_int_not_equal(take(&c, "of-c"), slot);
	slots_close(&a);
	slots_close(&b);
	slots_close(&c);
}

static void test_many_processes(void **state)
{
	need_run();
	enum { PROCS = 6, EACH = 20 };
	int p[2];
	assert_int_equal(pipe(p), 0);
	for (int k = 0; k < PROCS; k++) {
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid > 0)
			continue;
		struct slots s;
		struct err e = { 0 };
		if (slots_open(&s, base, PROCS * EACH, &e) < 0)
			_exit(1);
		for (int i = 0; i < EACH; i++) {
			char name[32];
			uint32_t slot;
			snprintf(name, sizeof(name), "p%d-%d", k, i);
			if (slots_take(&s, holder(name), &slot, &e) < 0 ||
			    write(p[1], &slot, sizeof(slot)) != sizeof(slot))
				_exit(1);
		}
		_exit(0);
	}
	int status;
	while (wait(&status) > 0)
		assert_int_equal(status, 0);
	close(p[1]);
	bool used[PROCS * EACH] = { false };
	unsigned n = 0;
	for (uint32_t slot; read(p[0], &slot, sizeof(slot)) == sizeof(slot); n++) {
		assert_true(slot < PROCS * EACH);
		assert_false(used[slot]);
		used[slot] = true;
	}
	assert_int_equal(n, PROCS * EACH);
	close(p[0]);
}

static void test_bad_holder(void **state)
{
	need_run();
	struct slots s = open_table(2);
	struct err e = { 0 };
	uint32_t slot;
	char path[1000];
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[999] = 0;
	assert_int_equal(slots_take(&s, path, &slot, &e), -1); /* never cut to another's path */
	assert_int_equal(e.code, ERR_INTERNAL);
	take(&s, "a");
	take(&s, "b");
	slots_close(&s);
	slots_close(&s);
}

#define SLOTS_TEST(fn) cmocka_unit_test_setup_teardown(fn, NULL, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SLOTS_TEST(test_private),      SLOTS_TEST(test_move),      SLOTS_TEST(test_two_openers),
		SLOTS_TEST(test_stale_holder), SLOTS_TEST(test_late_free), SLOTS_TEST(test_many_processes),
		SLOTS_TEST(test_bad_holder),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
