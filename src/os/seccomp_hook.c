/*
 * The filter of paddock-hook: it makes internet sockets, connects, reads, writes and
 * waits. No files, no listening, no programs, no identities, no threads.
 */
#include "seccomp.h"

#include <string.h>
#include <sys/syscall.h>

#include "poison.h"

#define C(name) __NR_##name,

/* clang-format off */
static const uint16_t allowed[] = {
	C(read) C(write) C(readv) C(writev) C(recvfrom) C(sendto) C(recvmsg) C(sendmsg) C(connect) C(close)
	C(shutdown) C(getsockopt) C(getsockname) C(getpeername) C(fcntl) C(epoll_pwait) C(epoll_ctl)
	C(epoll_create1) C(eventfd2) C(mmap) C(munmap) C(mremap) C(brk) C(madvise) C(futex) C(rt_sigprocmask)
	C(rt_sigaction) C(rt_sigreturn) C(exit) C(exit_group) C(getrandom) C(clock_gettime) C(gettimeofday)
	C(getpid) C(gettid) C(tgkill) C(restart_syscall)
#ifdef __x86_64__
	C(epoll_wait)
#endif
};
/* clang-format on */

void seccomp_hook(uint8_t rules[SECCOMP_CALLS])
{
	memset(rules, SECCOMP_REFUSE, SECCOMP_CALLS);
	for (size_t i = 0; i < ELEMS(allowed); i++)
		rules[allowed[i]] = SECCOMP_ALLOW;
	rules[__NR_socket] = SECCOMP_CHECK_INTERNET;
	rules[__NR_setsockopt] = SECCOMP_CHECK_SETSOCKOPT;
}

/* paddock-ai also makes the pairs whose one end it hands to the api. */
void seccomp_ai(uint8_t rules[SECCOMP_CALLS])
{
	seccomp_hook(rules);
	rules[__NR_socketpair] = SECCOMP_ALLOW;
}
