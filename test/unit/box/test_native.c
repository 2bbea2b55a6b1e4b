/*
 * A native box from end to end, with the real PID 1: what the kernel says of the
 * process that was started, and that a start which fails at any step leaves
 * nothing behind. Each test runs in a child with mounts of its own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cmocka.h>

#include "child.h"
#include "fd.h"
#include "native.h"
#include "rnd.h"
#include "poison.h"

#define UIDS 2400000000u

static char top[] = "/tmp/paddock-test-native-XXXXXX";

struct rig {
	struct native native;
	struct plan_image image;
	struct plan plan;
	struct spec spec;
	int storage, listener, workspaces[SPEC_WORKSPACES];
	struct spec_workspaces named;
};

static int setup(void **state)
{
	/* What a failed check leaves running becomes ours, to be ended in the teardown. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -1;
	return geteuid() == 0 && (!mkdtemp(top) || chmod(top, 0755) < 0) ? -1 : 0;
}

static int teardown(void **state)
{
	char cmd[80];
	FILE *f = fopen("/proc/thread-self/children", "re");
	for (int pid; f && fscanf(f, "%d", &pid) == 1;)
		(void)kill(pid, SIGKILL);
	if (f)
		fclose(f);
	while (waitpid(-1, NULL, 0) > 0)
		;
	snprintf(cmd, sizeof(cmd), "rm -r %s", top);
	return geteuid() == 0 ? system(cmd) : 0;
}

static void make_tree(void)
{
	static const char *const dirs[] = {
		"scratch",  "storage",  "root",     "root/dev",       "root/proc",
		"root/sys", "root/tmp", "root/run", "root/workspace", "root/etc"
	};
	for (size_t i = 0; i < ELEMS(dirs); i++)
		CHECK(mkdir(dirs[i], 0755) == 0);
	CHECK(fd_replace(AT_FDCWD, "root/etc/passwd", "root:x:0:0::/:/bin/sh\n", 22, 0644, false) == 0);
}

/* In a directory of its own, like a keeper: own mounts, secure bits, own groups. */
static void rig_open(struct rig *g, const char *name)
{
	struct err e = { 0 };
	char instance[48];
	*g = (struct rig){
		.spec = { .hostname = "tester",
			  .limits = { .cpu_milli = 500, .memory_mb = 64, .pids = 32, .nofile = 64 } },
		.image = { .n = 1 }
	};
	umask(022);
	CHECK(chdir(top) == 0 && mkdir(name, 0755) == 0 && chdir(name) == 0);
	make_tree();
	CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) == 0);
	snprintf(instance, sizeof(instance), "%s-%d", name, getpid());
	CHECK(cgroup_open(&g->native.cgroups, "paddock-test", instance, &e) == 0);
	char scratch[128];
	snprintf(scratch, sizeof(scratch), "%s/%s/scratch", top, name);
	if (native_open(&g->native, scratch, PADDOCK_INIT, &e) < 0)
		dprintf(2, "# %s\n", e.msg);
	CHECK(e.code == ERR_OK);
	rnd_name(g->spec.id, SPEC_ID);
	snprintf(g->image.layers[0].at, sizeof(g->image.layers[0].at), "/");
	g->image.layers[0].dir = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	g->storage = open("storage", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	g->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = "sock" };
	CHECK(bind(g->listener, (struct sockaddr *)&sun, sizeof(sun)) == 0 && listen(g->listener, 4) == 0);
	CHECK(plan_make(&g->spec, &g->image, 3, UIDS, &g->plan, &e) == 0);
	CHECK(walls_storage(&g->plan, g->storage, &e) == 0);
}

/* Storage is for one start: a volatile overlay does not take its upper layer twice. */
static void fresh_storage(struct rig *g)
{
	struct err e = { 0 };
	close(g->storage);
	CHECK(system("rm -r storage") == 0 && mkdir("storage", 0755) == 0);
	g->storage = open("storage", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(walls_storage(&g->plan, g->storage, &e) == 0);
}

static int start(struct rig *g, struct native_box *b, struct err *e)
{
	const struct native_files files = { .storage = g->storage,
					    .workspaces = g->workspaces,
					    .listener = g->listener };
	return native_start(&g->native, &g->plan, &g->image, &files, b, e);
}

static unsigned groups_left(const struct rig *g)
{
	unsigned n = 0;
	for (unsigned i = 0; i < g->native.cgroups.n; i++)
		n += faccessat(g->native.cgroups.trees[i].dir, g->spec.id, F_OK, 0) == 0;
	return n;
}

static void rig_close(struct rig *g)
{
	native_close(&g->native);
	cgroup_close(&g->native.cgroups);
	for (unsigned i = 0; i < g->native.cgroups.n; i++)
		CHECK(access(g->native.cgroups.trees[i].path, F_OK) < 0);
}

static unsigned open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* A line of /proc/PID/status. */
static void status_line(pid_t pid, const char *key, char *dst, size_t size)
{
	char path[32];
	struct buf b = BUF_INIT(16384);
	struct view value;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	CHECK(fd_slurp(AT_FDCWD, path, &b) == 0);
	struct view rest = buf_view(&b);
	dst[0] = 0;
	while (rest.n) {
		struct view line = view_split(rest, '\n', &rest);
		if (view_is(view_split(line, ':', &value), key))
			CHECK(view_to_str(view_trim(value), dst, size) == 0);
	}
	buf_done(&b);
}

static void check_line(pid_t pid, const char *key, const char *want)
{
	char is[128];
	status_line(pid, key, is, sizeof(is));
	if (strcmp(is, want) != 0)
		dprintf(2, "# %s: \"%s\", not \"%s\"\n", key, is, want);
	CHECK(strcmp(is, want) == 0);
}

static bool slurp_has(const char *path, const char *text)
{
	struct buf b = BUF_INIT(65536);
	CHECK(fd_slurp(AT_FDCWD, path, &b) == 0);
	bool has = memmem(b.p, b.n, text, strlen(text)) != NULL;
	buf_done(&b);
	return has;
}

static void check_namespaces(pid_t pid)
{
	static const char *const kinds[] = { "user", "pid", "mnt", "net", "ipc", "uts", "cgroup" };
	for (size_t i = 0; i < ELEMS(kinds); i++) {
		char path[64], ours[64] = "", its[64] = "";
		snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
		CHECK(readlink(path, ours, sizeof(ours) - 1) > 0);
		snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kinds[i]);
		CHECK(readlink(path, its, sizeof(its) - 1) > 0);
		CHECK(strcmp(ours, its) != 0);
	}
}

static void check_mounts(pid_t pid)
{
	static const char *const points[] = { " /proc ",      " /dev ro",      " /dev/pts ",
					      " /dev/shm ",   " /run ",        " /tmp ",
					      " /workspace ", " /proc/sys ro", " /proc/cmdline ro" };
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	for (size_t i = 0; i < ELEMS(points); i++) {
		if (!slurp_has(path, points[i]))
			dprintf(2, "# no mount%s\n", points[i]);
		CHECK(slurp_has(path, points[i]));
	}
	/* Its own groups, to be read; whatever of the version: nothing of the machine's above them. */
	CHECK(slurp_has(path, " /sys ro,") && !slurp_has(path, " /sys/fs/cgroup rw") &&
	      !slurp_has(path, " /sys/fs/cgroup/memory rw"));
	CHECK(!slurp_has(path, " /etc")); /* nothing of ours */
}

static void check_process(const struct rig *g, pid_t pid)
{
	char ids[64], path[64], target[64] = "";
	snprintf(ids, sizeof(ids), "%u\t%u\t%u\t%u", g->plan.uid_base, g->plan.uid_base, g->plan.uid_base,
		 g->plan.uid_base);
	check_line(pid, "Uid", ids);
	check_line(pid, "Gid", ids);
	check_line(pid, "Groups", "");
	check_line(pid, "CapBnd", "0000000000000000");
	check_line(pid, "CapAmb", "0000000000000000");
	check_line(pid, "CapEff", "00000000000004fb"); /* the plan's */
	check_line(pid, "CapPrm", "00000000000004fb");
	check_line(pid, "NoNewPrivs", "1");
	check_line(pid, "Seccomp", "2");
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	CHECK(readlink(path, target, sizeof(target) - 1) > 0 && strstr(target, "memfd:paddock-init"));
	snprintf(path, sizeof(path), "/proc/%d/limits", pid);
	CHECK(slurp_has(path, "Max open files            64                   64 "));
	CHECK(slurp_has(path, "Max core file size        0                    0 "));
	check_namespaces(pid);
	check_mounts(pid);
	struct cgroup_usage u;
	CHECK(cgroup_usage(&g->native.cgroups, g->spec.id, &u) == 0 && u.pids == 1);
}

static void end_box(struct rig *g, struct native_box *b)
{
	CHECK(syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0) == 0);
	int status;
	CHECK(waitpid(b->pid, &status, 0) == b->pid && WIFSIGNALED(status));
	close(b->pidfd);
	CHECK(cgroup_remove(&g->native.cgroups, g->spec.id) == 0);
	native_tidy(&g->native, 0);
}

/* Without the views of control groups, which are made once, when a box first wants them. */
static unsigned fds_without_views(const struct rig *g)
{
	unsigned n = open_fds();
	for (size_t i = 0; i < ELEMS(g->native.group_views); i++)
		n -= g->native.group_views[i] >= 0;
	return n;
}

static void good(void *arg)
{
	struct rig g;
	rig_open(&g, "good");
	struct native_box b = { 0 };
	struct err e = { 0 };
	unsigned fds = fds_without_views(&g);
	if (start(&g, &b, &e) < 0)
		dprintf(2, "# %s\n", e.msg);
	CHECK(e.code == ERR_OK && b.pid > 1);
	check_process(&g, b.pid);
	/* PID 1 is at the socket: it takes a connection. */
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = "sock" };
	CHECK(connect(s, (struct sockaddr *)&sun, sizeof(sun)) == 0);
	close(s);
	end_box(&g, &b);
	CHECK(fds_without_views(&g) <= fds); /* (less, where a pool gave something) */
	/* On disk its files have the ids that it saw. */
	struct stat st;
	CHECK(stat("storage/workspace", &st) == 0 && st.st_uid == 1000 && (st.st_mode & 07777) == 0755);
	CHECK(stat("storage/tmp", &st) == 0 && st.st_uid == 0 && (st.st_mode & 07777) == 01777);
	CHECK(stat("storage/work0", &st) == 0 && st.st_uid == 0);
	rig_close(&g);
}

static void readonly(void *arg)
{
	struct rig g;
	struct err e = { 0 };
	struct native_box b;
	char path[64];
	rig_open(&g, "readonly");
	g.spec.readonly_root = true;
	CHECK(plan_make(&g.spec, &g.image, 4, UIDS, &g.plan, &e) == 0);
	CHECK(start(&g, &b, &e) == 0);
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", b.pid);
	CHECK(slurp_has(path, " / ro,nosuid,nodev"));
	check_process(&g, b.pid);
	end_box(&g, &b);
	rig_close(&g);
}

static void lend(struct rig *g, unsigned i, const char *path, bool readonly)
{
	g->workspaces[i] = open("named", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rnd_name(g->named.items[i].id, SPEC_ID);
	snprintf(g->named.items[i].path, sizeof(g->named.items[i].path), "%s", path);
	g->named.items[i].readonly = readonly;
	g->named.n = i + 1;
	g->spec.workspaces = &g->named;
}

/* Somebody's named workspace, lent without the right to write. */
static void lent_workspace(void *arg)
{
	struct rig g;
	struct err e = { 0 };
	struct native_box b;
	char path[64];
	struct stat st;
	rig_open(&g, "lent");
	CHECK(mkdir("named", 0755) == 0);
	lend(&g, 0, "/workspace", true);
	lend(&g, 1, "/etc/a/b", false);
	CHECK(plan_make(&g.spec, &g.image, 6, UIDS, &g.plan, &e) == 0);
	if (start(&g, &b, &e) < 0)
		dprintf(2, "# %s\n", e.msg);
	CHECK(e.code == ERR_OK);
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", b.pid);
	CHECK(slurp_has(path, "/lent/named /workspace ro,") && slurp_has(path, "/lent/named /etc/a/b rw,"));
	/* What was missing of the way belongs to the owner of what was there. */
	CHECK(stat("storage/upper0/etc/a/b", &st) == 0 && st.st_uid == 0 && (st.st_mode & 07777) == 0755);
	end_box(&g, &b);
	close(g.workspaces[0]); /* a plan that wants one and gets none */
	fresh_storage(&g);
	CHECK(start(&g, &b, &e) == -1 && groups_left(&g) == 0);
	rig_close(&g);
}

/* The box's own files cannot lead a mount elsewhere, whatever they are. */
static void led_astray(void *arg)
{
	static const struct {
		const char *link, *to, *path, *why;
	} cases[] = {
		{ "root/etc/l", "/tmp", "/etc/l", "link" },
		{ "root/etc/l", "/", "/etc/l/x/y", "link" },
		{ "root/etc/l", "..", "/etc/l/x", "link" },
		{ "root/etc/l", "/proc/self/root", "/etc/l/x", "link" },
		{ "root/etc/l", "nowhere", "/etc/l/x", "link" },
		{ "root/etc/l", NULL, "/etc/l/x", "no directory" },
		{ "root/etc/l", NULL, "/etc/l", "no directory" },
	};
	struct rig g;
	struct err e = { 0 };
	struct native_box b;
	struct stat st;
	rig_open(&g, "astray");
	CHECK(mkdir("named", 0755) == 0);
	for (size_t i = 0; i < ELEMS(cases); i++) {
		if (cases[i].to)
			CHECK(symlink(cases[i].to, cases[i].link) == 0);
		else
			CHECK(fd_replace(AT_FDCWD, cases[i].link, "", 0, 0644, false) == 0);
		lend(&g, 0, cases[i].path, false);
		CHECK(plan_make(&g.spec, &g.image, 6, UIDS, &g.plan, &e) == 0);
		CHECK(start(&g, &b, &e) == -1 && e.code == ERR_INVALID && groups_left(&g) == 0);
		if (!strstr(e.msg, cases[i].why))
			dprintf(2, "# %s\n", e.msg);
		CHECK(strstr(e.msg, cases[i].why) && strstr(e.msg, cases[i].path));
		CHECK(lstat("storage/upper0/x", &st) < 0 && lstat("storage/tmp/x", &st) < 0);
		CHECK(unlink(cases[i].link) == 0);
		close(g.workspaces[0]);
		e = (struct err){ 0 };
		fresh_storage(&g);
	}
	rig_close(&g);
}

/* A keeper with many boxes has more fds open than a box may have. */
static void few_files(void *arg)
{
	struct rig g;
	struct err e = { 0 };
	struct native_box b;
	rig_open(&g, "few");
	for (int i = 0; i < 200; i++)
		CHECK(fcntl(g.listener, F_DUPFD_CLOEXEC, 0) >= 0);
	g.spec.limits.nofile = 64;
	CHECK(plan_make(&g.spec, &g.image, 5, UIDS, &g.plan, &e) == 0);
	if (start(&g, &b, &e) < 0)
		dprintf(2, "# %s\n", e.msg);
	CHECK(e.code == ERR_OK);
	check_process(&g, b.pid);
	end_box(&g, &b);
	rig_close(&g);
}

/* The start fails, names the step, and leaves neither a group nor a process nor an fd. */
static void must_fail(struct rig *g, const char *step)
{
	struct native_box b = { .pid = -7 };
	struct err e = { 0 };
	native_tidy(&g->native, 0);
	unsigned fds = fds_without_views(g);
	CHECK(start(g, &b, &e) == -1);
	if (!strstr(e.msg, step))
		dprintf(2, "# \"%s\", not about \"%s\"\n", e.msg, step);
	CHECK(strstr(e.msg, step) != NULL);
	CHECK(e.code == ERR_WALLS);
	CHECK(b.pid == -7);
	CHECK(groups_left(g) == 0);
	CHECK_FAILS(waitpid(-1, NULL, WNOHANG), ECHILD);
	native_tidy(&g->native, 0);
	CHECK(fds_without_views(g) <= fds);
	fresh_storage(g);
}

static void failures(void *arg)
{
	struct rig g;
	struct err e = { 0 };
	struct native_box b;
	rig_open(&g, "bad");
	/* Hostile images: a mount point that leads elsewhere, or is none. */
	static const char *const points[] = { "root/dev", "root/proc", "root/tmp", "root/workspace",
					      "root/run" };
	for (size_t i = 0; i < ELEMS(points); i++) {
		CHECK(rmdir(points[i]) == 0 && symlink("/etc", points[i]) == 0);
		must_fail(&g, "mount points");
		CHECK(unlink(points[i]) == 0);
		must_fail(&g, "mount points");
		CHECK(fd_replace(AT_FDCWD, points[i], "", 0, 0644, false) == 0);
		must_fail(&g, "mount points");
		CHECK(unlink(points[i]) == 0 && mkdir(points[i], 0755) == 0);
	}
	/* Storage that lacks something, or whose place was taken by a link. */
	CHECK(rename("storage/work0", "storage/x") == 0);
	must_fail(&g, "mount of /");
	CHECK(rename("storage/workspace", "storage/x") == 0 && symlink("/", "storage/workspace") == 0);
	must_fail(&g, "");
	/* A listener that is none. */
	int listener = g.listener;
	g.listener = 9999;
	must_fail(&g, "file descriptors");
	g.listener = listener;
	/* No PID 1. */
	int init = g.native.init;
	g.native.init = g.storage;
	must_fail(&g, "execution of PID 1");
	g.native.init = init;
	/* A filter that the kernel refuses is no filter: nothing runs. */
	unsigned short n = g.native.filter.n, asking = g.native.filter_asking.n;
	g.native.filter.n = g.native.filter_asking.n = 1;
	must_fail(&g, "seccomp");
	g.native.filter.n = n;
	g.native.filter_asking.n = asking;
	/* A limit that cannot be set. */
	g.plan.spec.limits.pids = UINT32_MAX;
	must_fail(&g, "pids");
	g.plan.spec.limits.pids = 32;
	/* After all that it still works. */
	if (start(&g, &b, &e) < 0)
		dprintf(2, "# %s\n", e.msg);
	CHECK(e.code == ERR_OK);
	end_box(&g, &b);
	rig_close(&g);
}

static void bad_open(void *arg)
{
	struct native n = { 0 };
	struct err e = { 0 };
	CHECK(chdir(top) == 0 && mkdir("open", 0755) == 0);
	CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	char path[128];
	snprintf(path, sizeof(path), "%s/open", top);
	unsigned fds = open_fds();
	CHECK(native_open(&n, path, "/nonexistent/paddock-init", &e) == -1);
	CHECK(e.sys == ENOENT && strstr(e.msg, "/nonexistent/paddock-init"));
	native_close(&n);
	CHECK(native_open(&n, "/nonexistent", PADDOCK_INIT, &e) == -1);
	native_close(&n); /* half-built */
	CHECK(open_fds() <= fds);
	/* Without room for the next descriptor, whichever it is: nothing stays open. */
	struct rlimit all, few;
	CHECK(getrlimit(RLIMIT_NOFILE, &all) == 0);
	int next = dup(0);
	close(next);
	for (unsigned room = 0; room < 6; room++) {
		few = (struct rlimit){ (rlim_t)next + room, all.rlim_max };
		CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
		CHECK(native_open(&n, path, PADDOCK_INIT, &e) == -1 && e.sys == EMFILE);
		native_close(&n);
		CHECK(setrlimit(RLIMIT_NOFILE, &all) == 0);
		CHECK(open_fds() <= fds);
	}
}

static void sealed(void *arg)
{
	struct native n = { 0 };
	struct err e = { 0 };
	CHECK(chdir(top) == 0 && mkdir("sealed", 0755) == 0);
	CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	char path[128];
	snprintf(path, sizeof(path), "%s/sealed", top);
	CHECK(native_open(&n, path, PADDOCK_INIT, &e) == 0);
	/* Nobody writes PID 1's program, even by opening the descriptor again. */
	CHECK_FAILS(write(n.init, "x", 1), EBADF);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", n.init);
	int again = open(path, O_RDWR | O_CLOEXEC);
	CHECK(again < 0 || write(again, "x", 1) < 0);
	CHECK(again < 0 || ftruncate(again, 0) < 0);
	native_close(&n);
}

#define NATIVE_TEST(name)                                                                                    \
	static void test_##name(void **state)                                                                \
	{                                                                                                    \
		NEED_ROOT();                                                                                 \
		in_child(name, NULL);                                                                        \
	}
NATIVE_TEST(good)
NATIVE_TEST(readonly)
NATIVE_TEST(lent_workspace)
NATIVE_TEST(led_astray)
NATIVE_TEST(few_files)
NATIVE_TEST(failures)
NATIVE_TEST(bad_open)
NATIVE_TEST(sealed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),           cmocka_unit_test(test_readonly),
		cmocka_unit_test(test_lent_workspace), cmocka_unit_test(test_led_astray),
		cmocka_unit_test(test_few_files),      cmocka_unit_test(test_failures),
		cmocka_unit_test(test_bad_open),       cmocka_unit_test(test_sealed),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
