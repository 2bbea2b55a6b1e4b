/*
 * A box's state in its run directory: written, read back, and believed only when
 * the process is still the same one.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "box_table.h"
#include "fd.h"
#include "spawn.h"
#include "poison.h"

static char top[] = "/tmp/paddock-test-boxes-XXXXXX";
static int dir;

static int setup(void **state)
{
	if (!mkdtemp(top))
		return -1;
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0;
}

static int clean(void **state)
{
	unlinkat(dir, "pid", 0);
	unlinkat(dir, "state", 0);
	return 0;
}

static struct spec_workspaces *loaded; /* by the last load() */

static int teardown(void **state)
{
	free(loaded);
	close(dir);
	return rmdir(top);
}

static const struct spec_workspaces named = { .items = { { "workspace0123456789a", "/workspace", true },
							 { "another0123456789abc", "/mnt/data", false } },
					      .n = 2 };

static struct keeper_box sample(pid_t pid)
{
	struct keeper_box b = {
		.spec = { .id = "0123456789abcdefghij",
			  .backend = "other",
			  .hostname = "name",
			  .readonly_root = true,
			  .workspaces = &named,
			  .limits = { .cpu_milli = 1500,
				      .memory_mb = 5 << 10,
				      .pids = 99,
				      .nofile = 1000,
				      .disk_mb = 7 << 10 } },
		.image = "sha256:00000000000000000000000000000000000000000000000000000000000000ff",
		.in = { .pid = pid, .capture = NETNS_NFT },
		.slot = 4000
	};
	assert_int_equal(spawn_start_time(pid, &b.started), 0);
	return b;
}

static pid_t start(void)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when a check fails */
		pause();
		_exit(0);
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int load(struct keeper_box *b)
{
	free(loaded);
	b->workspaces = NULL;
	int r = box_table_load(dir, b);
	loaded = b->workspaces;
	return r;
}

static void test_round(void **state)
{
	pid_t pid = start();
	struct keeper_box b = sample(pid), c = { .in = { .pidfd = -7 } };
	assert_int_equal(load(&c), -ENOENT);
	assert_int_equal(box_table_save(&b, dir), 0);
	struct stat st;
	assert_int_equal(fstatat(dir, "state", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	struct buf text = BUF_INIT(64);
	char want[16];
	assert_int_equal(fd_slurp(dir, "pid", &text), 0);
	snprintf(want, sizeof(want), "%d\n", pid);
	assert_true(view_is(buf_view(&text), want));
	buf_done(&text);

	assert_int_equal(load(&c), 0);
	assert_string_equal(c.spec.id, b.spec.id);
	assert_string_equal(c.spec.hostname, b.spec.hostname);
	assert_string_equal(c.image, b.image);
	assert_true(c.spec.readonly_root);
	assert_true(box_limits_equal(&c.spec.limits, &b.spec.limits));
	assert_non_null(c.spec.workspaces);
	assert_memory_equal(c.spec.workspaces, &named, sizeof(named));
	assert_true(spec_has_workspace(&c.spec, "workspace0123456789a", false));
	assert_false(spec_has_workspace(&c.spec, "workspace0123456789a", true));
	assert_true(spec_has_workspace(&c.spec, "another0123456789abc", true));
	assert_int_equal(c.in.pid, b.in.pid);
	assert_int_equal(c.started, b.started);
	assert_int_equal(c.slot, b.slot);
	assert_int_equal(c.in.capture, NETNS_NFT);
	assert_string_equal(c.spec.backend, "other");
	assert_string_equal(c.in.id, b.spec.id);
	assert_true(fcntl(c.in.pidfd, F_GETFD) & FD_CLOEXEC);
	struct pollfd p = { c.in.pidfd, POLLIN, 0 };
	assert_int_equal(poll(&p, 1, 0), 0); /* it lives */
	end(pid);
	assert_int_equal(poll(&p, 1, 10000), 1); /* and is that process */
	close(c.in.pidfd);
	c.in.pidfd = -7;
	assert_int_equal(load(&c), -ESRCH);
	assert_int_equal(c.in.pidfd, -7);
}

/* The pid is another process's by now: it is not adopted, and so not killed. */
static void test_reused_pid(void **state)
{
	pid_t pid = start();
	struct keeper_box b = sample(pid), c = { .in = { .pidfd = -7 } };
	b.started--;
	assert_int_equal(box_table_save(&b, dir), 0);
	assert_int_equal(load(&c), -ESRCH);
	assert_int_equal(c.in.pidfd, -7);
	end(pid);
}

/* Written by a daemon that knew one way, or one that knew more: the way of old. */
static void test_other_capture(void **state)
{
	pid_t pid = start();
	for (int i = 0; i < 2; i++) {
		struct keeper_box b = sample(pid), c = { .in = { .pidfd = -7 } };
		b.in.capture = i ? (enum netns_capture)NETNS_CAPTURES : NETNS_UNKNOWN;
		assert_int_equal(box_table_save(&b, dir), 0);
		assert_int_equal(load(&c), 0);
		assert_int_equal(c.in.capture, NETNS_SK_LOOKUP);
		close(c.in.pidfd);
		assert_int_equal(clean(NULL), 0);
	}
	end(pid);
}

/* Written before there was a choice; or with a name that nobody has. */
static void test_backends(void **state)
{
	static const struct {
		const char *written, *read;
	} names[] = { { "", "native" }, { "native", "native" }, { "walls-of-later", "walls-of-later" } };
	pid_t pid = start();
	for (size_t i = 0; i < ELEMS(names); i++) {
		struct keeper_box b = sample(pid), c = { 0 };
		snprintf(b.spec.backend, sizeof(b.spec.backend), "%s", names[i].written);
		assert_int_equal(box_table_save(&b, dir), 0);
		assert_int_equal(load(&c), 0);
		assert_string_equal(c.spec.backend, names[i].read);
		close(c.in.pidfd);
		assert_int_equal(clean(NULL), 0);
	}
	end(pid);
}

static void test_bad_state(void **state)
{
	pid_t pid = start();
	struct keeper_box b = sample(pid), c = { .in = { .pidfd = -7 } };
	b.in.capture = NETNS_UNKNOWN; /* it is not in every state: one without it is good */
	assert_int_equal(box_table_save(&b, dir), 0);
	struct buf text = BUF_INIT(4096);
	assert_int_equal(fd_slurp(dir, "state", &text), 0);
	/* Cut anywhere: an error, or (at a field's end) another process; never this one. */
	for (size_t n = 0; n < text.n; n++) {
		assert_int_equal(fd_replace(dir, "state", text.p, n, 0600, false), 0);
		int r = load(&c);
		if (r >= 0)
			fail_msg("a state of %zu of %zu bytes was believed", n, text.n);
		assert_true(r == -EBADMSG || r == -ESRCH);
	}
	/* Any byte wrong: no crash, and what is opened is closed. */
	for (size_t i = 0; i < text.n; i++) {
		text.p[i] ^= 0x55;
		assert_int_equal(fd_replace(dir, "state", text.p, text.n, 0600, false), 0);
		if (load(&c) == 0)
			close(c.in.pidfd);
		text.p[i] ^= 0x55;
	}
	/* PID 1 and 0 are never a box's. */
	for (pid_t bad = 0; bad < 2; bad++) {
		b.in.pid = bad;
		unlinkat(dir, "pid", 0);
		assert_int_equal(box_table_save(&b, dir), 0);
		assert_int_equal(load(&c), -EBADMSG);
	}
	buf_done(&text);
	end(pid);
}

static void test_get(void **state)
{
	struct box_table t;
	struct keeper_box b = { .spec = { .id = "0123456789abcdefghij" } };
	map_init(&t.by_id);
	assert_null(box_table_get(&t, VIEW("0123456789abcdefghij")));
	assert_int_equal(map_put(&t.by_id, &b.node, view_of(b.spec.id)), 0);
	assert_ptr_equal(box_table_get(&t, VIEW("0123456789abcdefghij")), &b);
	assert_null(box_table_get(&t, VIEW("0123456789abcdefghi")));
	map_done(&t.by_id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_round, clean),
		cmocka_unit_test_teardown(test_reused_pid, clean),
		cmocka_unit_test_teardown(test_other_capture, clean),
		cmocka_unit_test_teardown(test_backends, clean),
		cmocka_unit_test_teardown(test_bad_state, clean),
		cmocka_unit_test(test_get),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
