/*
 * The filter of a box, really loaded: the kernel answers as the table says.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "child.h"
#include "seccomp.h"
#include "poison.h"

static void load(void)
{
	uint8_t rules[SECCOMP_CALLS];
	static struct seccomp_filter f;
	seccomp_box(rules);
	CHECK(seccomp_compile(rules, &f) == 0);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(seccomp_load(&f) == 0);
}

static void refused(void *arg)
{
	load();
	CHECK_FAILS(syscall(SYS_mount, "none", "/nonexistent", "tmpfs", 0, NULL), EPERM);
	CHECK_FAILS(syscall(SYS_bpf, 0, NULL, 0), EPERM);
	CHECK_FAILS(syscall(SYS_keyctl, 0, 0, 0), EPERM);
	CHECK_FAILS(syscall(SYS_io_uring_setup, 1, NULL), EPERM);
	CHECK_FAILS(syscall(SYS_unshare, CLONE_NEWUSER), EPERM);
	CHECK_FAILS(syscall(SYS_unshare, 0x80), EPERM);
	CHECK_FAILS(syscall(SYS_clone, CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0), EPERM);
	CHECK_FAILS(syscall(SYS_personality, 0x0400000), EPERM);
	CHECK_FAILS(syscall(435 /* clone3 */, NULL, 0), ENOSYS);
	CHECK_FAILS(syscall(511, 0), ENOSYS);
	CHECK_FAILS(syscall(600, 0), ENOSYS);
	CHECK_FAILS(socket(AF_PACKET, SOCK_RAW, 0), EAFNOSUPPORT);
	CHECK_FAILS(socket(AF_VSOCK, SOCK_STREAM, 0), EAFNOSUPPORT);
	CHECK_FAILS(socket(AF_ALG, SOCK_SEQPACKET, 0), EAFNOSUPPORT);
	CHECK_FAILS(socket(AF_INET, SOCK_STREAM, 132 /* SCTP */), EPROTONOSUPPORT);
	CHECK_FAILS(socket(AF_NETLINK, SOCK_RAW, 12 /* netfilter */), EPROTONOSUPPORT);
	CHECK_FAILS(syscall(SYS_ioctl, 0, 0x5412 /* TIOCSTI */, "x"), EPERM);
	CHECK_FAILS(syscall(SYS_ioctl, 0, 1ull << 32 | 0x5412, "x"), EPERM);
	CHECK_FAILS(syscall(SYS_ioctl, -1, 0x5000940e /* BTRFS_IOC_SUBVOL_CREATE */, NULL), ENOTTY);
#ifdef __x86_64__
	CHECK_FAILS(syscall(0x40000000 | SYS_getpid), ENOSYS); /* x32 */
#endif
}

static void possible(void *arg)
{
	load();
	CHECK(syscall(SYS_getpid) > 0);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0);
	CHECK(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0) >= 0);
	CHECK_FAILS(syscall(SYS_ioctl, fd, 0x5401 /* TCGETS */, NULL), ENOTTY); /* the kernel's own answer */
	int pending = -1;
	CHECK(syscall(SYS_ioctl, fd, 0x541b /* FIONREAD */, &pending) == 0 || errno == EINVAL);
	CHECK_FAILS(open("/nonexistent/x", O_RDONLY), ENOENT);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	/* Once loaded it stays. */
	CHECK(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER);
}

static void without_no_new_privs(void *arg)
{
	uint8_t rules[SECCOMP_CALLS];
	static struct seccomp_filter f;
	seccomp_box(rules);
	CHECK(seccomp_compile(rules, &f) == 0);
	if (geteuid() == 0)
		CHECK(setresuid(65534, 65534, 65534) == 0);
	CHECK(seccomp_load(&f) == -EACCES);
	f.n = 0;
	CHECK(seccomp_load(&f) == -EINVAL);
}

#ifdef __x86_64__
static void foreign(void *arg)
{
	load();
	long r;
	__asm__ volatile("int $0x80" : "=a"(r) : "0"(20L /* getpid of i386 */) : "memory");
	(void)r;
}
#endif

static void test_refused(void **state)
{
	in_child(refused, NULL);
}

static void test_possible(void **state)
{
	in_child(possible, NULL);
}

static void test_needs_no_new_privs(void **state)
{
	in_child(without_no_new_privs, NULL);
}

static void test_foreign_calls_kill(void **state)
{
#ifdef __x86_64__
	int status = child_status(foreign, NULL);
	assert_true(WIFSIGNALED(status));
	/* SIGSEGV where the kernel has no 32-bit calls at all */
	assert_true(WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV);
#else
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_possible),
		cmocka_unit_test(test_needs_no_new_privs),
		cmocka_unit_test(test_foreign_calls_kill),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
