/*
 * The filter of paddock-gate: it accepts what comes on the sockets it was handed, makes
 * internet sockets, connects, moves bytes and waits. No files, no listening of its own,
 * no programs, no identities, no threads.
 */
#include "seccomp.h"

#include <string.h>
#include <sys/syscall.h>

#include "poison.h"

#define C(name) __NR_##name,

/* clang-format off */
static const uint16_t allowed[] = {
	C(read) C(write) C(readv) C(writev) C(recvfrom) C(sendto) C(recvmsg) C(sendmsg) C(connect) C(accept4) C(close)
	C(shutdown) C(getsockopt) C(getsockname) C(getpeername) C(fcntl) C(epoll_pwait) C(epoll_ctl) C(splice) C(pipe2)
	C(epoll_create1) C(eventfd2) C(mmap) C(munmap) C(mremap) C(mprotect) C(brk) C(madvise) C(futex)
	C(rt_sigprocmask) C(rt_sigaction) C(rt_sigreturn) C(exit) C(exit_group) C(getrandom) C(clock_gettime)
	C(gettimeofday) C(getpid) C(gettid) C(tgkill) C(restart_syscall)
#ifdef __x86_64__
	C(epoll_wait)
#endif
};
/* clang-format on */

void seccomp_gate(uint8_t rules[SECCOMP_CALLS])
{
	memset(rules, SECCOMP_REFUSE, SECCOMP_CALLS);
	for (size_t i = 0; i < ELEMS(allowed); i++)
		rules[allowed[i]] = SECCOMP_ALLOW;
	rules[__NR_socket] = SECCOMP_CHECK_INTERNET;
	rules[__NR_setsockopt] = SECCOMP_CHECK_SETSOCKOPT;
}
