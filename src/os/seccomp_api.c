/*
 * The filter of paddock-api after it has dropped its privileges: it reads and
 * writes fds that it was given, keeps a database in one directory and starts one
 * thread. It makes no sockets (the keeper hands them down), executes nothing,
 * changes no identity. What is not listed is refused, so that a libc update that
 * uses something else shows as an error in the log, not as a dead daemon.
 */
#include "seccomp.h"

#include <string.h>
#include <sys/syscall.h>

#include "poison.h"

#define C(name) __NR_##name,

/* clang-format off */
static const uint16_t allowed[] = {
	C(read) C(write) C(readv) C(writev) C(recvfrom) C(sendto) C(recvmsg) C(sendmsg) C(accept4) C(close)
	C(epoll_pwait) C(epoll_ctl) C(epoll_create1) C(eventfd2) C(openat) C(fstat) C(newfstatat)
	C(statx) C(lseek) C(pread64) C(pwrite64) C(fsync) C(fdatasync) C(ftruncate) C(fcntl)
	C(unlinkat) C(mmap) C(munmap) C(mprotect) C(mremap) C(brk) C(madvise) C(futex) C(set_robust_list)
	C(rseq) C(rt_sigprocmask) C(rt_sigaction) C(rt_sigreturn) C(sigaltstack) C(exit) C(exit_group)
	C(getrandom) C(clock_gettime) C(clock_nanosleep) C(nanosleep) C(gettimeofday) C(getpid) C(gettid)
	C(getppid) C(getuid) C(geteuid) C(getgid) C(getegid) C(setsockopt) C(getsockopt) C(getsockname)
	C(getpeername) C(shutdown) C(sysinfo) C(uname) C(fallocate) C(getcwd) C(faccessat) C(faccessat2)
	C(sched_yield) C(sched_getaffinity) C(tgkill) C(getrusage) C(fchmod) C(flock) C(ppoll)
	C(restart_syscall) C(membarrier) C(signalfd4) C(getrlimit) C(prlimit64) C(renameat)
	C(sched_getparam) C(sched_getscheduler)
#ifdef __x86_64__
	C(stat) C(lstat)
	C(epoll_wait) C(open) C(unlink) C(time) C(access) C(readlink) C(poll) C(rename)
#else
	C(readlinkat)
#endif
};
/* clang-format on */

void seccomp_api(uint8_t rules[SECCOMP_CALLS])
{
	memset(rules, SECCOMP_REFUSE, SECCOMP_CALLS);
	for (size_t i = 0; i < ELEMS(allowed); i++)
		rules[allowed[i]] = SECCOMP_ALLOW;
	rules[__NR_clone] = SECCOMP_CHECK_THREAD;
	rules[435] = SECCOMP_UNKNOWN; /* clone3: libc falls back to clone */
}
