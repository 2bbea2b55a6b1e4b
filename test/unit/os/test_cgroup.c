/*
 * Control groups on the machine that there is: v1, v2 or both, in a subtree of
 * our own that is gone afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cmocka.h>

#include "cgroup.h"
#include "child.h"
#include "fd.h"
#include "num.h"
#include "spawn.h"
#include "poison.h"

static struct cgroup_host h;
static const struct cgroup_limits limits = { .memory_bytes = 32u << 20, .cpu_milli = 250, .pids = 7 };

static void need_groups(void)
{
	NEED_ROOT();
	for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++)
		if (h.why[c][0]) {
			print_message("# skipped: controller %u: %s\n", c, h.why[c]);
			skip();
		}
}

static struct buf v2_before = { .max = 4096 };
static void own_v2_group(struct buf *out);

static int setup(void **state)
{
	struct err e = { 0 };
	char instance[32];
	own_v2_group(&v2_before);
	snprintf(instance, sizeof(instance), "unit-%d", getpid());
	return geteuid() == 0 ? cgroup_open(&h, "paddock-test", instance, &e) : 0;
}

static int teardown(void **state)
{
	struct cgroup_host copy = h;
	buf_done(&v2_before);
	if (geteuid() != 0)
		return 0;
	cgroup_close(&h);
	for (unsigned i = 0; i < copy.n; i++)
		if (access(copy.trees[i].path, F_OK) == 0) {
			fprintf(stderr, "# left behind: %s\n", copy.trees[i].path);
			return -1;
		}
	return 0;
}

static const struct cgroup_tree *tree_of(enum cgroup_controller c)
{
	for (unsigned i = 0; i < h.n; i++)
		if (h.trees[i].controllers & 1u << c)
			return &h.trees[i];
	fail_msg("no tree for controller %u", c);
	return NULL;
}

static unsigned exists_in(const char *name)
{
	unsigned n = 0;
	for (unsigned i = 0; i < h.n; i++)
		n += faccessat(h.trees[i].dir, name, F_OK, 0) == 0;
	return n;
}

static void assert_file(enum cgroup_controller c, const char *v1, const char *v2, const char *name,
			const char *want)
{
	const struct cgroup_tree *t = tree_of(c);
	char path[128];
	struct buf b = BUF_INIT(4096);
	snprintf(path, sizeof(path), "%s/%s", name, t->v2 ? v2 : v1);
	assert_int_equal(fd_slurp(t->dir, path, &b), 0);
	assert_int_equal(buf_putc(&b, 0), 0);
	b.p[strcspn(b.p, "\n")] = 0;
	assert_string_equal(b.p, want);
	buf_done(&b);
}

/* Which v2 group we are in. */
static void own_v2_group(struct buf *out)
{
	struct buf b = BUF_INIT(65536);
	assert_int_equal(fd_slurp(AT_FDCWD, "/proc/self/cgroup", &b), 0);
	struct view rest = buf_view(&b);
	while (rest.n) {
		struct view line = view_split(rest, '\n', &rest);
		if (view_starts(line, "0::"))
			assert_int_equal(buf_add(out, line), 0);
	}
	buf_done(&b);
}

/* We move to a leaf only where that gives us controllers: never on a hybrid machine. */
static void test_stays(void **state)
{
	need_groups();
	if (h.unified >= 0 && h.trees[h.unified].controllers)
		skip();
	struct buf now = BUF_INIT(4096);
	own_v2_group(&now);
	assert_true(view_eq(buf_view(&now), buf_view(&v2_before)));
	buf_done(&now);
}

static void test_find(void **state)
{
	need_groups();
	unsigned seen = 0;
	for (unsigned i = 0; i < h.n; i++) {
		const struct cgroup_tree *t = &h.trees[i];
		struct stat by_fd, by_path;
		assert_int_equal(fstat(t->dir, &by_fd), 0);
		assert_int_equal(stat(t->path, &by_path), 0);
		assert_true(by_fd.st_dev == by_path.st_dev && by_fd.st_ino == by_path.st_ino);
		assert_non_null(strstr(t->path, "/paddock-test/unit-"));
		assert_int_equal(seen & t->controllers, 0); /* each lives in one place */
		seen |= t->controllers;
		assert_int_equal(t->v2, h.unified == (int)i);
	}
	assert_int_equal(seen, (1u << CGROUP_CONTROLLERS) - 1);
}

static void test_limits(void **state)
{
	need_groups();
	struct err e = { 0 };
	assert_int_equal(cgroup_make(&h, "limits", &limits, &e), 0);
	assert_int_equal(exists_in("limits"), h.n);
	assert_file(CGROUP_MEMORY, "memory.limit_in_bytes", "memory.max", "limits", "33554432");
	if (h.socket_limit && !tree_of(CGROUP_MEMORY)->v2)
		assert_file(CGROUP_MEMORY, "memory.kmem.tcp.limit_in_bytes", "", "limits", "8388608");
	assert_file(CGROUP_PIDS, "pids.max", "pids.max", "limits", "7");
	if (tree_of(CGROUP_CPU)->v2) {
		assert_file(CGROUP_CPU, "", "cpu.max", "limits", "25000 100000");
	} else {
		assert_file(CGROUP_CPU, "cpu.cfs_period_us", "", "limits", "100000");
		assert_file(CGROUP_CPU, "cpu.cfs_quota_us", "", "limits", "25000");
	}
	struct cgroup_usage u;
	assert_int_equal(cgroup_usage(&h, "limits", &u), 0);
	assert_int_equal(u.pids, 0);
	assert_int_equal(u.oom_kills, 0);
	/* The name is taken: an error that leaves the group that is there alone. */
	assert_int_equal(cgroup_remove(&h, "limits"), 0);
	assert_int_equal(cgroup_remove(&h, "limits"), 0);
	assert_int_equal(exists_in("limits"), 0);
	assert_true(cgroup_usage(&h, "limits", &u) < 0);
}

struct job {
	int tasks[CGROUP_TREES];
	unsigned n;
	char *const *argv;
	int error;
};

static int join_and_exec(void *arg)
{
	struct job *j = arg;
	sigset_t none;
	sigemptyset(&none);
	for (unsigned i = 0; i < j->n; i++)
		if (write(j->tasks[i], "0", 1) != 1)
			goto fail;
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv(j->argv[0], j->argv);
fail:
	j->error = errno;
	return 127;
}

/* A process in the group, in every hierarchy. */
static pid_t start_in(const char *name, char *const *argv)
{
	struct job j = { .argv = argv };
	struct err e = { 0 };
	pid_t pid;
	int pidfd, v2;
	assert_int_equal(cgroup_task_fds(&h, name, j.tasks, &j.n, &e), 0);
	assert_int_equal(cgroup_unified_fd(&h, name, &v2, &e), 0);
	assert_int_equal(j.n + (v2 >= 0), h.n);
	assert_int_equal(
		spawn_vfork(&(struct spawn){ .cgroup = v2, .fn = join_and_exec, .arg = &j }, &pid, &pidfd),
		0);
	assert_int_equal(j.error, 0);
	for (unsigned i = 0; i < j.n; i++)
		close(j.tasks[i]);
	fd_close(v2);
	close(pidfd);
	return pid;
}

static bool listed(const struct cgroup_tree *t, const char *name, pid_t pid)
{
	char path[128];
	struct buf b = BUF_INIT(65536);
	bool found = false;
	snprintf(path, sizeof(path), "%s/cgroup.procs", name);
	assert_int_equal(fd_slurp(t->dir, path, &b), 0);
	struct view rest = buf_view(&b);
	while (rest.n) {
		uint32_t n;
		struct view line = view_split(rest, '\n', &rest);
		found = found || (num_u32(line, &n) == 0 && (pid_t)n == pid);
	}
	buf_done(&b);
	return found;
}

static void kill_once(void)
{
	char *const sleep[] = { (char[]){ "/bin/sleep" }, (char[]){ "1000" }, NULL };
	struct err e = { 0 };
	assert_int_equal(cgroup_make(&h, "victim", &limits, &e), 0);
	pid_t a = start_in("victim", sleep), b = start_in("victim", sleep);
	for (unsigned i = 0; i < h.n; i++) {
		assert_true(listed(&h.trees[i], "victim", a));
		assert_true(listed(&h.trees[i], "victim", b));
	}
	struct cgroup_usage u;
	assert_int_equal(cgroup_usage(&h, "victim", &u), 0);
	assert_int_equal(u.pids, 2);
	assert_true(u.memory_bytes > 0);
	assert_int_equal(cgroup_remove(&h, "victim"), -EBUSY);
	assert_int_equal(exists_in("victim"), h.n); /* not even half */
	assert_int_equal(cgroup_kill(&h, "victim"), 0);
	int status;
	assert_int_equal(waitpid(a, &status, 0), a);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(waitpid(b, &status, 0), b);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(cgroup_kill(&h, "victim"), 0); /* of nobody */
	assert_int_equal(cgroup_remove(&h, "victim"), 0);
	assert_int_equal(cgroup_kill(&h, "victim"), 0); /* of a group that is gone */
}

static void test_kill(void **state)
{
	need_groups();
	kill_once();
}

/* Where there is no v2 tree the processes are killed one by one. */
static void test_kill_listed(void **state)
{
	need_groups();
	int unified = h.unified;
	h.unified = -1;
	kill_once();
	h.unified = unified;
}

static void test_memory_limit_bites(void **state)
{
	need_groups();
	char *const hog[] = { (char[]){ "/usr/bin/tail" }, (char[]){ "/dev/zero" }, NULL };
	struct err e = { 0 };
	assert_int_equal(cgroup_make(&h, "hog", &limits, &e), 0);
	pid_t pid = start_in("hog", hog);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	struct cgroup_usage u;
	assert_int_equal(cgroup_usage(&h, "hog", &u), 0);
	assert_int_equal(u.oom_kills, 1);
	assert_int_equal(u.pids, 0);
	assert_true(u.cpu_usec > 0);
	assert_in_range(u.cpu_usec, 1, 20u * 1000 * 1000);
	assert_int_equal(cgroup_remove(&h, "hog"), 0);
}

static void count_name(void *arg, const char *name)
{
	*(unsigned *)arg += strcmp(name, "counted") == 0;
}

static void test_each(void **state)
{
	need_groups();
	struct err e = { 0 };
	unsigned n = 0;
	assert_int_equal(cgroup_make(&h, "counted", &limits, &e), 0);
	cgroup_each(&h, count_name, &n);
	assert_int_equal(n, h.n);
	/* One that is left over in one hierarchy only is found as well. */
	assert_int_equal(unlinkat(h.trees[0].dir, "counted", AT_REMOVEDIR), 0);
	n = 0;
	cgroup_each(&h, count_name, &n);
	assert_int_equal(n, h.n - 1);
	assert_int_equal(cgroup_remove(&h, "counted"), 0);
	n = 0;
	cgroup_each(&h, count_name, &n);
	assert_int_equal(n, 0);
}

/* Every step that fails leaves nothing and says what it was. */
static void test_failures(void **state)
{
	need_groups();
	struct err e = { 0 };
	struct cgroup_limits bad = limits;
	bad.pids = UINT32_MAX; /* more than the kernel has */
	assert_int_equal(cgroup_make(&h, "failed", &bad, &e), -1);
	assert_int_equal(e.code, ERR_WALLS);
	assert_non_null(strstr(e.msg, "pids"));
	assert_int_equal(exists_in("failed"), 0);

	bad = limits;
	bad.cpu_milli = 0;
	assert_int_equal(cgroup_make(&h, "failed", &bad, &e), -1);
	assert_non_null(strstr(e.msg, "cpu"));
	assert_int_equal(exists_in("failed"), 0);

	struct cgroup_host without = h;
	snprintf(without.why[CGROUP_PIDS], sizeof(without.why[0]), "not here");
	assert_int_equal(cgroup_make(&without, "failed", &limits, &e), -1);
	assert_non_null(strstr(e.msg, "pids limit cannot be set: not here"));
	without = h;
	without.swap_limit = false;
	assert_int_equal(cgroup_make(&without, "failed", &limits, &e), -1);
	assert_non_null(strstr(e.msg, "swap"));
	assert_int_equal(exists_in("failed"), 0);

	int tasks[CGROUP_TREES], v2;
	unsigned n;
	const int first = cgroup_task_fds(&h, "failed", tasks, &n, &e);
	assert_true(first < 0 || cgroup_unified_fd(&h, "failed", &v2, &e) < 0);
}

/* A group of that name with somebody in it is not ours to take or to remove. */
static void test_taken_name(void **state)
{
	need_groups();
	char *const sleep[] = { (char[]){ "/bin/sleep" }, (char[]){ "1000" }, NULL };
	struct err e = { 0 };
	assert_int_equal(cgroup_make(&h, "taken", &limits, &e), 0);
	pid_t pid = start_in("taken", sleep);
	assert_int_equal(cgroup_make(&h, "taken", &limits, &e), -1);
	assert_int_equal(exists_in("taken"), h.n);
	assert_true(listed(&h.trees[0], "taken", pid));
	assert_int_equal(cgroup_kill(&h, "taken"), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(cgroup_remove(&h, "taken"), 0);
}

/* In the leaf of a group that may bear systemd's mark. */
static void in_leaf(void *arg)
{
	const bool *marked = arg;
	const struct cgroup_tree *t = &h.trees[h.unified];
	struct cgroup_host mine;
	struct err e = { 0 };
	char path[300];
	snprintf(path, sizeof(path), "%s/service", t->path);
	CHECK(!*marked || setxattr(path, "trusted.delegate", "1", 1, 0) == 0);
	CHECK(fd_put(t->dir, "service/daemon/cgroup.procs", "0") == 0);
	CHECK(cgroup_open(&mine, "boxes", "unit", &e) == 0);
	CHECK(mine.unified >= 0);
	snprintf(path, sizeof(path), "%s/service/boxes/unit", t->path);
	CHECK((strcmp(mine.trees[mine.unified].path, path) == 0) == *marked);
	struct buf b = { .max = 16 };
	if (*marked && fd_slurp(t->dir, "service/daemon/cpu.weight", &b) == 0)
		CHECK(view_is(view_head(buf_view(&b), 4), "1000"));
	buf_done(&b);
	cgroup_close(&mine);
}

static void test_leaf_of_a_service(void **state)
{
	need_groups();
	if (h.unified < 0)
		skip();
	int dir = h.trees[h.unified].dir;
	for (int marked = 0; marked < 2; marked++) {
		assert_int_equal(mkdirat(dir, "service", 0755), 0);
		assert_int_equal(mkdirat(dir, "service/daemon", 0755), 0);
		in_child(in_leaf, &(bool){ marked });
		assert_int_equal(unlinkat(dir, "service/daemon", AT_REMOVEDIR), 0);
		assert_int_equal(unlinkat(dir, "service", AT_REMOVEDIR), 0);
	}
}

static void test_save_restore(void **state)
{
	need_groups();
	struct buf text = BUF_INIT(4096);
	struct cgroup_host again;
	struct err e = { 0 };
	assert_int_equal(cgroup_save(&h, &text), 0);
	assert_int_equal(cgroup_restore(&again, buf_view(&text)), 0);
	assert_int_equal(again.n, h.n);
	assert_int_equal(again.unified, h.unified);
	assert_int_equal(again.swap_limit, h.swap_limit);
	for (unsigned i = 0; i < h.n; i++) {
		assert_int_equal(again.trees[i].v2, h.trees[i].v2);
		assert_int_equal(again.trees[i].controllers, h.trees[i].controllers);
		assert_string_equal(again.trees[i].path, h.trees[i].path);
	}
	/* What one makes the other finds. */
	assert_int_equal(cgroup_make(&again, "shared", &limits, &e), 0);
	assert_int_equal(exists_in("shared"), h.n);
	assert_int_equal(cgroup_remove(&h, "shared"), 0);
	for (unsigned i = 0; i < again.n; i++)
		close(again.trees[i].dir);

	/* Text that is not ours, and trees that are gone: an error, and no fd left open. */
	int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(next);
	char line[1024];
	static const char *const bad[] = { "", "\n", "1\n", "0 x /sys\n", "0 1\n" };
	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_true(cgroup_restore(&again, view_of(bad[i])) < 0);
	snprintf(line, sizeof(line), "0 1 %s\n0 2 %s/nonexistent\n", h.trees[0].path, h.trees[0].path);
	assert_int_equal(cgroup_restore(&again, view_of(line)), -ENOENT);
	snprintf(line, sizeof(line), "0 1 %s\n0 x %s\n", h.trees[0].path, h.trees[0].path);
	assert_int_equal(cgroup_restore(&again, view_of(line)), -EINVAL);
	assert_int_equal(again.n, 0);
	int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(after, next);
	close(after);
	buf_done(&text);
}

/* Where groups can be renamed: the limits go with them. Where not, cgroup_take makes all. */
static void test_ahead(void **state)
{
	need_groups();
	struct err e = { 0 };
	assert_int_equal(cgroup_make_ahead(&h, "next", &limits, &e), 0);
	unsigned n = 0;
	for (unsigned i = 0; i < h.n; i++) {
		bool there = faccessat(h.trees[i].dir, "next", F_OK, 0) == 0;
		assert_int_equal(there, !h.trees[i].v2);
		n += there;
	}
	assert_int_equal(n > 0, cgroup_renames(&h));
	assert_int_equal(cgroup_take(&h, "next", "taken", &limits, &e), 0);
	for (unsigned i = 0; i < h.n; i++) {
		assert_true(faccessat(h.trees[i].dir, "next", F_OK, 0) < 0);
		assert_int_equal(faccessat(h.trees[i].dir, "taken", F_OK, 0), 0);
		if (h.trees[i].controllers & 1u << CGROUP_PIDS) {
			struct buf b = BUF_INIT(64);
			char want[24];
			snprintf(want, sizeof(want), "%u\n", limits.pids);
			assert_int_equal(fd_slurp(h.trees[i].dir, "taken/pids.max", &b), 0);
			assert_true(view_is(buf_view(&b), want));
			buf_done(&b);
		}
	}
	/* A name that is taken: nothing is left of the other. */
	if (cgroup_renames(&h)) {
		assert_int_equal(cgroup_make_ahead(&h, "next", &limits, &e), 0);
		assert_int_equal(cgroup_take(&h, "next", "taken", &limits, &e), -1);
		for (unsigned i = 0; i < h.n; i++)
			assert_true(faccessat(h.trees[i].dir, "next", F_OK, 0) < 0);
	}
	(void)!cgroup_remove(&h, "taken");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stays),        cmocka_unit_test(test_find),
		cmocka_unit_test(test_limits),       cmocka_unit_test(test_kill),
		cmocka_unit_test(test_kill_listed),  cmocka_unit_test(test_memory_limit_bites),
		cmocka_unit_test(test_each),         cmocka_unit_test(test_failures),
		cmocka_unit_test(test_taken_name),   cmocka_unit_test(test_leaf_of_a_service),
		cmocka_unit_test(test_save_restore), cmocka_unit_test(test_ahead),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
