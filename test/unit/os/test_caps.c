/*
 * Dropping capabilities, as /proc/self/status shows it afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "caps.h"
#include "child.h"
#include "fd.h"
#include "num.h"
#include "poison.h"

/* A line of /proc/self/status as a hexadecimal number. */
static uint64_t status_line(const char *key)
{
	struct buf b = BUF_INIT(16384);
	CHECK(fd_slurp(AT_FDCWD, "/proc/self/status", &b) == 0);
	struct view rest = buf_view(&b), value;
	uint64_t n = UINT64_MAX;
	while (rest.n) {
		struct view line = view_split(rest, '\n', &rest);
		if (view_is(view_split(line, ':', &value), key))
			CHECK(num_hex(view_trim(value), &n) == 0);
	}
	CHECK(n != UINT64_MAX);
	buf_done(&b);
	return n;
}

static void drop(void *arg)
{
	CHECK(status_line("CapEff") != 0); /* else this shows nothing */
	CHECK(caps_drop_all() == 0);
	CHECK(status_line("CapInh") == 0);
	CHECK(status_line("CapPrm") == 0);
	CHECK(status_line("CapEff") == 0);
	CHECK(status_line("CapBnd") == 0);
	CHECK(status_line("CapAmb") == 0);
	CHECK(status_line("NoNewPrivs") == 1);
	struct caps c;
	CHECK(caps_get(&c) == 0);
	CHECK(c.effective == 0 && c.permitted == 0 && c.inheritable == 0);
	/* and it is so: root can no longer be root */
	CHECK_FAILS(setgid(12345), EPERM);
	CHECK_FAILS(socket(AF_INET, SOCK_RAW, 1), EPERM);
	const struct caps want = { .effective = CAPS(CAP_CHOWN), .permitted = CAPS(CAP_CHOWN) };
	CHECK(caps_set(&want) == -EPERM);
	CHECK(caps_drop_all() == 0); /* of nothing */
}

static void bound(void *arg)
{
	const uint64_t keep = CAPS(CAP_CHOWN) | CAPS(CAP_SETUID) | CAPS(CAP_LAST_CAP);
	uint64_t before = status_line("CapBnd");
	CHECK(caps_bound(keep) == 0);
	CHECK(status_line("CapBnd") == (before & keep));
	CHECK(status_line("CapEff") != 0); /* the others are as they were */
	CHECK(caps_bound(0) == 0);
	CHECK(status_line("CapBnd") == 0);
	/* What is dropped from the bounding set does not come back by an exec of root. */
	const struct caps none = { 0 };
	CHECK(caps_set(&none) == 0);
	CHECK(caps_bound(0) == 0); /* nothing left to drop: fine without CAP_SETPCAP */
}

static void both_halves(void *arg)
{
	/* One of the lower, one of the upper word. */
	const uint64_t two = CAPS(CAP_CHOWN) | CAPS(CAP_BPF);
	struct caps c = { .effective = two, .permitted = two | CAPS(CAP_KILL), .inheritable = CAPS(CAP_BPF) },
		    now;
	CHECK(caps_set(&c) == 0);
	CHECK(caps_get(&now) == 0);
	CHECK(now.effective == c.effective && now.permitted == c.permitted &&
	      now.inheritable == c.inheritable);
	CHECK(status_line("CapEff") == two);
	CHECK(caps_bound(0) == -EPERM); /* needs CAP_SETPCAP */
}

static void test_drop_all(void **state)
{
	NEED_ROOT();
	in_child(drop, NULL);
}

static void test_bound(void **state)
{
	NEED_ROOT();
	in_child(bound, NULL);
}

static void test_both_halves(void **state)
{
	NEED_ROOT();
	in_child(both_halves, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drop_all),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_both_halves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
