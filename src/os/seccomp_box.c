/*
 * The filter of a box: an allow list. What a program in a container legitimately
 * uses is allowed; what would reach kernel code that a box has no business with
 * is refused (EPERM); what is unknown does not exist (ENOSYS). clone3 is among
 * the unknown on purpose: its flags lie in memory, where a filter cannot look,
 * and every libc falls back to clone. So is io_setup: all boxes would share
 * fs.aio-max-nr, and what uses it (databases) goes on without. Nor are there huge pages of the
 * machine's pool, which no limit counts; transparent ones are the box's own memory.
 */
#include "seccomp.h"

#include <string.h>
#include <sys/syscall.h>

#include "poison.h"

#define C(name) __NR_##name,

/* clang-format off */
static const uint16_t allowed[] = {
	C(read) C(write) C(close) C(fstat) C(lseek) C(mmap) C(mprotect) C(munmap) C(brk)
	C(rt_sigaction) C(rt_sigprocmask) C(rt_sigreturn) C(pread64) C(pwrite64) C(readv) C(writev)
	C(sched_yield) C(mremap) C(msync) C(mincore) C(madvise) C(shmget) C(shmat) C(shmctl) C(dup)
	C(nanosleep) C(getitimer) C(setitimer) C(getpid) C(sendfile) C(connect) C(accept) C(sendto)
	C(recvfrom) C(sendmsg) C(recvmsg) C(shutdown) C(bind) C(listen) C(getsockname) C(getpeername)
	C(getsockopt) C(execve) C(exit) C(wait4) C(kill) C(uname) C(semget) C(semop) C(semctl) C(shmdt)
	C(msgget) C(msgsnd) C(msgrcv) C(msgctl) C(fcntl) C(flock) C(fsync) C(fdatasync) C(truncate)
	C(ftruncate) C(getcwd) C(chdir) C(fchdir) C(fchmod) C(fchown) C(umask) C(gettimeofday) C(getrlimit)
	C(getrusage) C(sysinfo) C(times) C(ptrace) C(getuid) C(getgid) C(setuid) C(setgid) C(geteuid)
	C(getegid) C(setpgid) C(getppid) C(setsid) C(setreuid) C(setregid) C(getgroups) C(setgroups)
	C(setresuid) C(getresuid) C(setresgid) C(getresgid) C(getpgid) C(setfsuid) C(setfsgid) C(getsid)
	C(capget) C(capset) C(rt_sigpending) C(rt_sigtimedwait) C(rt_sigqueueinfo) C(rt_sigsuspend)
	C(sigaltstack) C(statfs) C(fstatfs) C(getpriority) C(setpriority) C(sched_setparam)
	C(sched_getparam) C(sched_setscheduler) C(sched_getscheduler) C(sched_get_priority_max)
	C(sched_get_priority_min) C(sched_rr_get_interval) C(mlock) C(munlock) C(mlockall) C(munlockall)
	C(prctl) C(setrlimit) C(sync) C(gettid) C(readahead) C(setxattr) C(lsetxattr) C(fsetxattr)
	C(getxattr) C(lgetxattr) C(fgetxattr) C(listxattr) C(llistxattr) C(flistxattr) C(removexattr)
	C(lremovexattr) C(fremovexattr) C(tkill) C(futex) C(sched_setaffinity) C(sched_getaffinity)
	C(remap_file_pages)
	C(getdents64) C(set_tid_address) C(restart_syscall) C(semtimedop) C(fadvise64) C(timer_create)
	C(timer_settime) C(timer_gettime) C(timer_getoverrun) C(timer_delete) C(clock_gettime)
	C(clock_getres) C(clock_nanosleep) C(exit_group) C(epoll_ctl) C(tgkill) C(mq_open) C(mq_unlink)
	C(mq_timedsend) C(mq_timedreceive) C(mq_notify) C(mq_getsetattr) C(waitid) C(ioprio_set)
	C(ioprio_get) C(inotify_add_watch) C(inotify_rm_watch) C(openat) C(mkdirat) C(mknodat) C(fchownat)
	C(newfstatat) C(unlinkat) C(renameat) C(linkat) C(symlinkat) C(readlinkat) C(fchmodat) C(faccessat)
	C(pselect6) C(ppoll) C(set_robust_list) C(get_robust_list) C(splice) C(tee) C(sync_file_range)
	C(vmsplice) C(utimensat) C(epoll_pwait) C(timerfd_create) C(fallocate) C(timerfd_settime)
	C(timerfd_gettime) C(accept4) C(signalfd4) C(eventfd2) C(epoll_create1) C(dup3) C(pipe2)
	C(inotify_init1) C(preadv) C(pwritev) C(rt_tgsigqueueinfo) C(recvmmsg) C(prlimit64)
	C(name_to_handle_at) C(syncfs) C(sendmmsg) C(getcpu) C(process_vm_readv) C(process_vm_writev)
	C(sched_setattr) C(sched_getattr) C(renameat2) C(seccomp) C(getrandom) C(memfd_create) C(execveat)
	C(membarrier) C(mlock2) C(copy_file_range) C(preadv2) C(pwritev2) C(pkey_mprotect) C(pkey_alloc)
	C(pkey_free) C(statx) C(rseq) C(pidfd_send_signal) C(pidfd_open) C(close_range) C(openat2)
	C(pidfd_getfd) C(faccessat2) C(epoll_pwait2) C(landlock_create_ruleset) C(landlock_add_rule)
	C(landlock_restrict_self) C(futex_waitv)
#ifdef __x86_64__
	C(stat) C(lstat)
	C(open) C(poll) C(access) C(pipe) C(select) C(dup2) C(pause) C(alarm) C(fork) C(vfork) C(getdents)
	C(rename) C(mkdir) C(rmdir) C(creat) C(link) C(unlink) C(symlink) C(readlink) C(chmod) C(chown)
	C(lchown) C(getpgrp) C(utime) C(mknod) C(arch_prctl) C(time) C(epoll_create) C(epoll_wait) C(utimes)
	C(inotify_init) C(futimesat) C(signalfd) C(eventfd)
#endif
	/* newer than the headers; the same number on every architecture */
	451 /* cachestat */, 452 /* fchmodat2 */, 453 /* map_shadow_stack */, 454 /* futex_wake */, 455
	/* futex_wait */, 456 /* futex_requeue */, 462 /* mseal */, 463 /* setxattrat */, 464 /*
	getxattrat */, 465 /* listxattrat */, 466 /* removexattrat */,
};

static const uint16_t refused[] = {
	C(mount) C(umount2) C(pivot_root) C(chroot) C(setns) C(open_tree) C(move_mount) C(fsopen)
	C(fsconfig) C(fsmount) C(fspick) C(mount_setattr) C(bpf) C(perf_event_open) C(userfaultfd)
	C(io_uring_setup) C(io_uring_enter) C(io_uring_register) C(keyctl) C(add_key) C(request_key)
	C(kexec_load) C(kexec_file_load) C(init_module) C(finit_module) C(delete_module) C(reboot) C(swapon)
	C(swapoff) C(acct) C(quotactl) C(quotactl_fd) C(sethostname) C(setdomainname) C(settimeofday)
	C(clock_settime) C(clock_adjtime) C(adjtimex) C(syslog) C(vhangup) C(open_by_handle_at)
	C(fanotify_init) C(fanotify_mark) C(mbind) C(set_mempolicy) C(get_mempolicy) C(migrate_pages)
	C(move_pages) C(kcmp) C(process_madvise) C(process_mrelease) C(memfd_secret) C(lookup_dcookie)
	C(nfsservctl)
#ifdef __x86_64__
	C(iopl) C(ioperm) C(modify_ldt) C(uselib) C(ustat) C(sysfs)
#endif
	/* newer than the headers; the same number on every architecture */
	457 /* statmount */, 458 /* listmount */, 459 /* lsm_get_self_attr */, 460 /* lsm_set_self_attr
	*/, 461 /* lsm_list_modules */, 467 /* open_tree_attr */, 468 /* file_getattr */, 469 /*
	file_setattr */,
};
/* clang-format on */

static const struct {
	uint16_t nr;
	uint8_t rule;
} checked[] = {
	{ __NR_clone, SECCOMP_CHECK_CLONE },           { __NR_unshare, SECCOMP_CHECK_UNSHARE },
	{ __NR_socket, SECCOMP_CHECK_SOCKET },         { __NR_socketpair, SECCOMP_CHECK_SOCKETPAIR },
	{ __NR_ioctl, SECCOMP_CHECK_IOCTL },           { __NR_personality, SECCOMP_CHECK_PERSONALITY },
	{ __NR_setsockopt, SECCOMP_CHECK_SETSOCKOPT }, { __NR_mmap, SECCOMP_CHECK_MMAP },
	{ __NR_shmget, SECCOMP_CHECK_SHMGET },         { __NR_memfd_create, SECCOMP_CHECK_MEMFD },
};

void seccomp_box(uint8_t rules[SECCOMP_CALLS])
{
	memset(rules, SECCOMP_UNKNOWN, SECCOMP_CALLS);
	for (size_t i = 0; i < ELEMS(allowed); i++)
		rules[allowed[i]] = SECCOMP_ALLOW;
	for (size_t i = 0; i < ELEMS(refused); i++)
		rules[refused[i]] = SECCOMP_REFUSE;
	for (size_t i = 0; i < ELEMS(checked); i++)
		rules[checked[i].nr] = checked[i].rule;
}

void seccomp_box_asking(uint8_t rules[SECCOMP_CALLS])
{
	seccomp_box(rules);
	rules[__NR_statfs] = rules[__NR_fstatfs] = rules[__NR_sysinfo] = SECCOMP_ASK;
	rules[__NR_ioctl] = SECCOMP_ASK_IOCTL;
}
