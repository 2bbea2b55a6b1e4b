/*
 * Children that share our memory, user namespaces, and start times.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "child.h"
#include "caps.h"
#include "fd.h"
#include "spawn.h"
#include "poison.h"

#define BASE 2300000000u

static unsigned open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int answer(void *arg)
{
	*(volatile int *)arg = 42;
	return 7;
}

static void test_result(void **state)
{
	volatile int shared = 0;
	pid_t pid = 0;
	int pidfd = -1, status;
	const struct spawn s = { .cgroup = -1, .fn = answer, .arg = (void *)&shared };
	assert_int_equal(spawn_vfork(&s, &pid, &pidfd), 0);
	assert_int_equal(shared, 42); /* the memory is ours, and it has ended before we went on */
	struct pollfd p = { pidfd, POLLIN, 0 };
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_true(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	close(pidfd);
}

struct program {
	char *const *argv;
	int error;
};

static int exec_it(void *arg)
{
	struct program *p = arg;
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	char *const envp[] = { NULL };
	execve(p->argv[0], p->argv, envp);
	p->error = errno;
	return 127;
}

static void test_exec(void **state)
{
	char *const ok[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, (char[]){ "exit 3" }, NULL };
	char *const missing[] = { (char[]){ "/nonexistent" }, NULL };
	sigset_t before, after, usr1;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	sigprocmask(SIG_SETMASK, NULL, &before);
	for (int i = 0; i < 50; i++) { /* the stack is the same each time */
		struct program p = { i % 2 ? missing : ok, 0 };
		pid_t pid;
		int pidfd, status;
		assert_int_equal(
			spawn_vfork(&(struct spawn){ .cgroup = -1, .fn = exec_it, .arg = &p }, &pid, &pidfd),
			0);
		assert_int_equal(p.error, i % 2 ? ENOENT : 0); /* known when the call returns */
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(WEXITSTATUS(status), i % 2 ? 127 : 3);
		close(pidfd);
	}
	sigprocmask(SIG_SETMASK, NULL, &after);
	assert_memory_equal(&before, &after, 8); /* the kernel's set is shorter than libc's */
}

/* Frames of different shapes, left by exec and by returning: a sanitizer must not take what one left for the
 * bounds of the next one's variables. */
static int exec_from_below(void *arg)
{
	volatile char many[8][24], more[1000];
	for (unsigned i = 0; i < sizeof(many); i++)
		((volatile char *)many)[i] = 1;
	more[999] = many[7][23];
	return more[999] == 1 ? exec_it(arg) : 1;
}

static int fill(void *arg)
{
	char one[4096];
	memset(one, *(volatile int *)arg, sizeof(one));
	return ((volatile char *)one)[100];
}

static void test_frames_of_the_one_before(void **state)
{
	char *const argv[] = { (char[]){ "/bin/true" }, NULL };
	struct program p = { argv, 0 };
	int seven = 7;
	const struct spawn spawns[] = { { .cgroup = -1, .fn = exec_from_below, .arg = &p },
					{ .cgroup = -1, .fn = fill, .arg = &seven } };
	for (int i = 0; i < 4; i++) {
		pid_t pid;
		int pidfd, status;
		assert_int_equal(spawn_vfork(&spawns[i % 2], &pid, &pidfd), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, i % 2 ? 7 << 8 : 0);
		close(pidfd);
	}
}

/* The stack's end is the child's: it does not go on in our memory. */
struct depth {
	volatile bool without_end;
	volatile uintptr_t top, reached;
};

static int deeper(void *arg)
{
	struct depth *d = arg;
	volatile char here[1024];
	here[0] = here[1023] = 1;
	d->reached = (uintptr_t)here;
	d->top = MAX(d->top, d->reached);
	return d->without_end ? deeper(arg) + here[0] : 0;
}

static void test_stack_has_an_end(void **state)
{
	struct depth d = { .without_end = false };
	const struct spawn s = { .cgroup = -1, .fn = deeper, .arg = &d };
	const size_t size = 1u << 20;
	pid_t pid;
	int pidfd, status;
	assert_int_equal(spawn_vfork(&s, &pid, &pidfd), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(pidfd);
	/* Right below the 128 KiB and the page that nobody may write, there is something of ours. */
	uintptr_t below = (d.top & ~(uintptr_t)4095) - (128u * 1024);
	char *ours = mmap((void *)(below - size), size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	d.without_end = true;
	assert_int_equal(spawn_vfork(&s, &pid, &pidfd), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	close(pidfd);
	assert_in_range(d.top - d.reached, 64u * 1024, 128u * 1024);
	if (ours != MAP_FAILED)
		munmap(ours, size);
}

static int first_in_namespace(void *arg)
{
	*(volatile long *)arg = syscall(SYS_getpid);
	return 0;
}

static void test_namespaces(void **state)
{
	NEED_ROOT();
	volatile long pid_inside = 0;
	pid_t pid;
	int pidfd;
	const struct spawn s = { .flags = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS,
				 .cgroup = -1,
				 .fn = first_in_namespace,
				 .arg = (void *)&pid_inside };
	assert_int_equal(spawn_vfork(&s, &pid, &pidfd), 0);
	assert_int_equal(pid_inside, 1);
	assert_true(pid > 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(pidfd);
	/* What the kernel refuses is an error, not a child. */
	assert_int_equal(spawn_vfork(&(struct spawn){ .flags = CLONE_THREAD, .cgroup = -1, .fn = answer },
				     &pid, &pidfd),
			 -EINVAL);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(spawn_vfork(&(struct spawn){ .cgroup = null, .fn = answer }, &pid, &pidfd) < 0);
	close(null);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void check_inside(int ns)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(setns(ns, CLONE_NEWUSER) == 0);
		CHECK(setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0);
		struct buf b = BUF_INIT(256);
		unsigned inside, outside, size;
		CHECK(fd_slurp(AT_FDCWD, "/proc/self/uid_map", &b) == 0);
		FILE *f = fmemopen(b.p, b.n, "r");
		CHECK(fscanf(f, "%u %u %u", &inside, &outside, &size) == 3);
		CHECK(inside == 0 && outside == BASE && size == 65536);
		fclose(f);
		buf_clear(&b);
		CHECK(fd_slurp(AT_FDCWD, "/proc/self/gid_map", &b) == 0);
		CHECK(memmem(b.p, b.n, "2300000000", 10) != NULL);
		CHECK(setresuid(65535, 65535, 65535) == 0);
		CHECK_FAILS(setresuid(0, 0, 0), EPERM);
		_exit(0);
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void userns(void *arg)
{
	struct caps before, after;
	CHECK(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) == 0);
	CHECK(caps_get(&before) == 0);
	unsigned fds = open_fds();
	int ns = -1;
	CHECK(spawn_userns(BASE, 65536, &ns) == 0);
	CHECK(fcntl(ns, F_GETFD) & FD_CLOEXEC);
	CHECK(open_fds() == fds + 1);
	/* We are as before. */
	uid_t r, e, s;
	CHECK(getresuid(&r, &e, &s) == 0 && r == 0 && e == 0 && s == 0);
	CHECK(getresgid(&r, &e, &s) == 0 && r == 0 && e == 0 && s == 0);
	CHECK(caps_get(&after) == 0 && memcmp(&before, &after, sizeof(before)) == 0);
	spawn_collect();
	CHECK_FAILS(waitpid(-1, NULL, WNOHANG), ECHILD); /* its holder is gone */
	/* Per-user limits of the kernel count for the owner: it must be the box's own. */
	uid_t owner = 0;
	CHECK(ioctl(ns, NS_GET_OWNER_UID, &owner) == 0 && owner == BASE);
	check_inside(ns);
	/* Each is another one. */
	int other = -1;
	CHECK(spawn_userns(BASE + 65664, 65536, &other) == 0);
	CHECK(ioctl(other, NS_GET_OWNER_UID, &owner) == 0 && owner == BASE + 65664);
	close(other);
	/* A map that does not exist: an error and nothing left. */
	other = -7;
	CHECK(spawn_userns(BASE, 0, &other) < 0);
	CHECK(other == -7);
	CHECK(open_fds() == fds + 1);
	spawn_collect();
	CHECK_FAILS(waitpid(-1, NULL, WNOHANG), ECHILD);
	CHECK(geteuid() == 0 && getegid() == 0);
	/* An id that is none: not even for a moment are we somebody else afterwards. */
	CHECK(spawn_userns(UINT32_MAX, 65536, &other) < 0);
	CHECK(getresuid(&r, &e, &s) == 0 && r == 0 && e == 0 && s == 0);
	CHECK(getresgid(&r, &e, &s) == 0 && r == 0 && e == 0 && s == 0);
}

/* Where the identity cannot be changed we stay who we were, in uid and gid. */
static void userns_without_setuid(void *arg)
{
	CHECK(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) == 0);
	struct caps c;
	CHECK(caps_get(&c) == 0);
	c.effective &= ~CAPS(7 /* CAP_SETUID */);
	c.permitted &= ~CAPS(7);
	CHECK(caps_set(&c) == 0);
	int ns = -1;
	CHECK(spawn_userns(BASE, 65536, &ns) == -EPERM);
	CHECK(geteuid() == 0);
	CHECK(getegid() == 0);
}

static void test_userns(void **state)
{
	NEED_ROOT();
	in_child(userns, NULL);
	in_child(userns_without_setuid, NULL);
}

/* Field 22 of /proc/PID/stat, by other means. */
static unsigned long long stat_field(pid_t pid)
{
	char cmd[128];
	unsigned long long n = 0;
	snprintf(cmd, sizeof(cmd), "sed 's/.*) //' /proc/%d/stat | cut -d' ' -f20", pid);
	FILE *f = popen(cmd, "re");
	assert_int_equal(fscanf(f, "%llu", &n), 1);
	pclose(f);
	return n;
}

static void test_start_time(void **state)
{
	uint64_t t = 0, again = 0;
	assert_int_equal(spawn_start_time(getpid(), &t), 0);
	assert_int_equal(t, stat_field(getpid()));
	assert_true(t > 0);
	/* A name that looks like fields, with the parentheses that end it. */
	char old[16];
	assert_int_equal(prctl(PR_GET_NAME, old), 0);
	assert_int_equal(prctl(PR_SET_NAME, ") R 1 (2) 3 4 5"), 0);
	assert_int_equal(spawn_start_time(getpid(), &again), 0);
	assert_int_equal(again, t);
	assert_int_equal(prctl(PR_SET_NAME, "a\nb) "), 0);
	assert_int_equal(spawn_start_time(getpid(), &again), 0);
	assert_int_equal(again, t);
	prctl(PR_SET_NAME, old);
	pid_t gone = fork();
	if (gone == 0)
		_exit(0);
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	assert_int_equal(spawn_start_time(gone, &again), -ENOENT);
	assert_int_equal(again, t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_result),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_frames_of_the_one_before),
		cmocka_unit_test(test_stack_has_an_end),
		cmocka_unit_test(test_namespaces),
		cmocka_unit_test(test_userns),
		cmocka_unit_test(test_start_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
