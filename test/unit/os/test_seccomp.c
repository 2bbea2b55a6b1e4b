/*
 * The compiler of filters: a small interpreter of classic BPF runs what was
 * compiled over every call number and compares it with the rules. The rules
 * themselves are held against lists of what must never and what must always be
 * possible.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "seccomp.h"
#include "poison.h"

#ifdef __x86_64__
#define ARCH    AUDIT_ARCH_X86_64
#define FOREIGN AUDIT_ARCH_I386
#else
#define ARCH    AUDIT_ARCH_AARCH64
#define FOREIGN AUDIT_ARCH_ARM
#endif

#define DENY(e) (SECCOMP_RET_ERRNO | (e))
#define ALLOW   SECCOMP_RET_ALLOW

/* Fails the test for whatever the kernel would refuse to load. */
static uint32_t interpret(const struct seccomp_filter *f, const struct seccomp_data *d)
{
	uint32_t a = 0;
	assert_in_range(f->n, 1, BPF_MAXINSNS);
	for (unsigned pc = 0;; pc++) {
		assert_true(pc < f->n);
		const struct sock_filter *i = &f->code[pc];
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(i->k % 4 == 0 && i->k < sizeof(*d));
			memcpy(&a, (const char *)d + i->k, 4);
			break;
		case BPF_JMP | BPF_JA:
			assert_true(i->k < f->n);
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += a & i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			fail_msg("an instruction that no filter of ours has: %x", i->code);
		}
	}
}

static uint32_t call6(const struct seccomp_filter *f, long nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	const struct seccomp_data d = { .nr = (int)nr, .arch = ARCH, .args = { a0, a1, a2 } };
	return interpret(f, &d);
}

typedef void rules_fn(uint8_t rules[SECCOMP_CALLS]);

static void compile(rules_fn *fn, uint8_t rules[SECCOMP_CALLS], struct seccomp_filter *f)
{
	fn(rules);
	assert_int_equal(seccomp_compile(rules, f), 0);
}

/* What the rules say of a call whose arguments are all zero. */
static uint32_t with_zeros(uint8_t rule)
{
	switch ((enum seccomp_rule)rule) {
	case SECCOMP_ALLOW:
	case SECCOMP_CHECK_CLONE:
	case SECCOMP_CHECK_UNSHARE:
	case SECCOMP_CHECK_PERSONALITY:
	case SECCOMP_CHECK_SETSOCKOPT:
	case SECCOMP_CHECK_MMAP:
	case SECCOMP_CHECK_SHMGET:
	case SECCOMP_CHECK_MEMFD:
		return ALLOW;
	case SECCOMP_CHECK_SOCKET:
	case SECCOMP_CHECK_SOCKETPAIR:
	case SECCOMP_CHECK_INTERNET:
		return DENY(EAFNOSUPPORT);
	case SECCOMP_REFUSE:
	case SECCOMP_CHECK_THREAD:
		return DENY(EPERM);
	case SECCOMP_NOTTY:
	case SECCOMP_CHECK_IOCTL:
	case SECCOMP_ASK_IOCTL:
		return DENY(ENOTTY);
	case SECCOMP_ASK:
		return SECCOMP_RET_USER_NOTIF;
	case SECCOMP_NO_OP:
		return DENY(EOPNOTSUPP);
	case SECCOMP_UNKNOWN:
	case SECCOMP_RULES:
		break;
	}
	return DENY(ENOSYS);
}

static void check_all_numbers(const struct seccomp_filter *f, const uint8_t rules[SECCOMP_CALLS])
{
	const uint64_t x32 = 0x40000000;
	for (long nr = 0; nr <= 600; nr++) {
		uint32_t want = nr < SECCOMP_CALLS ? with_zeros(rules[nr]) : DENY(ENOSYS);
		uint32_t is = call6(f, nr, 0, 0, 0);
		if (is != want)
			fail_msg("call %ld: %x, not %x", nr, is, want);
		/* The other ABI of the same machine has the same numbers with a bit set. */
		assert_int_equal(call6(f, (long)(nr | x32), 0, 0, 0), DENY(ENOSYS));
		const struct seccomp_data foreign = { .nr = (int)nr, .arch = FOREIGN };
		assert_int_equal(interpret(f, &foreign), SECCOMP_RET_KILL_PROCESS);
	}
	assert_int_equal(call6(f, -1, 0, 0, 0), DENY(ENOSYS));
	assert_int_equal(call6(f, INT32_MIN, 0, 0, 0), DENY(ENOSYS));
	const struct seccomp_data no_arch = { .nr = __NR_read };
	assert_int_equal(interpret(f, &no_arch), SECCOMP_RET_KILL_PROCESS);
}

static void test_numbers(void **state)
{
	rules_fn *const all[] = { seccomp_box, seccomp_box_asking, seccomp_api };
	for (size_t i = 0; i < ELEMS(all); i++) {
		uint8_t rules[SECCOMP_CALLS];
		struct seccomp_filter f;
		compile(all[i], rules, &f);
		check_all_numbers(&f, rules);
	}
}

/* Any table, not only ours: runs of random rules and lengths. */
static void test_random_tables(void **state)
{
	uint32_t seed = 3;
	for (int round = 0; round < 200; round++) {
		uint8_t rules[SECCOMP_CALLS];
		for (size_t at = 0; at < SECCOMP_CALLS;) {
			seed = seed * 1103515245u + 12345u;
			size_t run = 1 + (seed >> 16 & 31);
			seed = seed * 1103515245u + 12345u;
			uint8_t rule = (uint8_t)((seed >> 16) % SECCOMP_RULES);
			for (; run && at < SECCOMP_CALLS; run--)
				rules[at++] = rule;
		}
		struct seccomp_filter f;
		if (seccomp_compile(rules, &f) == 0)
			check_all_numbers(&f, rules);
		else
			assert_true(f.n > ELEMS(f.code));
	}
	uint8_t one[SECCOMP_CALLS];
	struct seccomp_filter f;
	memset(one, SECCOMP_ALLOW, sizeof(one));
	assert_int_equal(seccomp_compile(one, &f), 0);
	check_all_numbers(&f, one);
	memset(one, SECCOMP_UNKNOWN, sizeof(one));
	assert_int_equal(seccomp_compile(one, &f), 0);
	check_all_numbers(&f, one);
	/* More than there is room for is an error, never half a filter. */
	for (size_t i = 0; i < SECCOMP_CALLS; i++)
		one[i] = i % 2 ? SECCOMP_ALLOW : SECCOMP_CHECK_SOCKET;
	assert_int_equal(seccomp_compile(one, &f), -E2BIG);
}

static struct seccomp_filter box;

static int compile_box(void **state)
{
	uint8_t rules[SECCOMP_CALLS];
	compile(seccomp_box, rules, &box);
	return 0;
}

/* Bits above an int are not the kernel's to see, nor the filter's. */
#define HIGH (0xdeadbeefull << 32)

static void test_socket(void **state)
{
	for (uint64_t family = 0; family < 64; family++)
		for (uint64_t protocol = 0; protocol < 300; protocol++) {
			uint32_t want = DENY(EAFNOSUPPORT);
			if (family == AF_UNIX)
				want = ALLOW;
			else if (family == AF_NETLINK)
				want = protocol == 0 ? ALLOW : DENY(EPROTONOSUPPORT);
			else if (family == AF_INET || family == AF_INET6)
				want = protocol == 0 || protocol == 1 || protocol == 6 || protocol == 17 ||
						       protocol == 58
					       ? ALLOW
					       : DENY(EPROTONOSUPPORT);
			assert_int_equal(call6(&box, __NR_socket, family, SOCK_STREAM, protocol), want);
			assert_int_equal(call6(&box, __NR_socket, HIGH | family, SOCK_RAW, HIGH | protocol),
					 want);
		}
	assert_int_equal(call6(&box, __NR_socketpair, AF_UNIX, 0, 0), ALLOW);
	assert_int_equal(call6(&box, __NR_socketpair, AF_INET, 0, 0), DENY(EAFNOSUPPORT));
	assert_int_equal(call6(&box, __NR_socketpair, AF_TIPC, 0, 0), DENY(EAFNOSUPPORT));
}

static void test_namespaces(void **state)
{
	static const uint64_t bad[] = { CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
					CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET };
	for (size_t i = 0; i < ELEMS(bad); i++) {
		assert_int_equal(call6(&box, __NR_clone, bad[i] | 17, 0, 0), DENY(EPERM));
		assert_int_equal(call6(&box, __NR_clone, HIGH | bad[i] | CLONE_VM | CLONE_VFORK, 0, 0),
				 DENY(EPERM));
		assert_int_equal(call6(&box, __NR_unshare, bad[i] | CLONE_FS, 0, 0), DENY(EPERM));
	}
	assert_int_equal(call6(&box, __NR_unshare, 0x80 /* CLONE_NEWTIME */, 0, 0), DENY(EPERM));
	assert_int_equal(call6(&box, __NR_unshare, CLONE_FS | CLONE_FILES | CLONE_SYSVSEM, 0, 0), ALLOW);
	/* fork, vfork and pthread_create of every libc */
	assert_int_equal(call6(&box, __NR_clone, 0x01200011, 0, 0), ALLOW);
	assert_int_equal(call6(&box, __NR_clone, CLONE_VM | CLONE_VFORK | 17, 0, 0), ALLOW);
	assert_int_equal(call6(&box, __NR_clone, 0x003d0f00, 0, 0), ALLOW);
	/* Flags in memory cannot be looked at: it does not exist, libc falls back. */
	assert_int_equal(call6(&box, 435 /* clone3 */, 0, 0, 0), DENY(ENOSYS));
}

static void test_ioctl(void **state)
{
	static const uint64_t bad[] = { 0x5412 /* TIOCSTI */, 0x541c /* TIOCLINUX */, 0x5423 /* TIOCSETD */ };
	for (size_t i = 0; i < ELEMS(bad); i++) {
		assert_int_equal(call6(&box, __NR_ioctl, 0, bad[i], 0), DENY(EPERM));
		assert_int_equal(call6(&box, __NR_ioctl, 0, HIGH | bad[i], 0), DENY(EPERM));
		assert_int_equal(call6(&box, __NR_ioctl, bad[i], 0x5401 /* TCGETS */, bad[i]), ALLOW);
	}
	/* By number, not by the headers' names: these are the ABI. */
	static const uint32_t good[] = {
		0x5401 /* TCGETS */,
		0x5402 /* TCSETS */,
		0x540e /* TIOCSCTTY */,
		0x5410 /* TIOCSPGRP */,
		0x5411 /* TIOCOUTQ */,
		0x5413 /* TIOCGWINSZ */,
		0x5414 /* TIOCSWINSZ */,
		0x541b /* FIONREAD */,
		0x5421 /* FIONBIO */,
		0x5422 /* TIOCNOTTY */,
		0x5429 /* TIOCGSID */,
		0x5441 /* TIOCGPTPEER */,
		0x5450 /* FIONCLEX */,
		0x5451 /* FIOCLEX */,
		0x5452 /* FIOASYNC */,
		0x80045430 /* TIOCGPTN */,
		0x40045431 /* TIOCSPTLCK */,
		0x802c542a /* TCGETS2 */,
		0x402c542b /* TCSETS2 */,
		0x402c542d /* TCSETSF2 */,
		0x40049409 /* FICLONE */,
		0x4020940d /* FICLONERANGE */,
		0x80086601 /* FS_IOC_GETFLAGS */,
		0x8912 /* SIOCGIFCONF */,
		0x8927 /* SIOCGIFHWADDR */,
		0x8933 /* SIOCGIFINDEX */,
		0x8905 /* SIOCATMARK */,
	};
	for (size_t i = 0; i < ELEMS(good); i++)
		if (call6(&box, __NR_ioctl, 0, good[i], 0) != ALLOW)
			fail_msg("ioctl %x must be possible in a box", good[i]);
	static const uint32_t no[] = {
		0,
		1 /* FIBMAP */,
		0x5000940e /* BTRFS_IOC_SUBVOL_CREATE */,
		0x50009418 /* BTRFS_IOC_SUBVOL_CREATE_V2 */,
		0x50009417 /* BTRFS_IOC_SNAP_CREATE_V2 */,
		0x50009401 /* BTRFS_IOC_SNAP_CREATE */,
		0x5000940f /* BTRFS_IOC_SNAP_DESTROY */,
		0x4008941a /* BTRFS_IOC_SUBVOL_SETFLAGS */,
		0xd0009412 /* BTRFS_IOC_INO_LOOKUP */,
		0x50009402 /* BTRFS_IOC_DEFRAG */,
		0x40086602 /* FS_IOC_SETFLAGS */,
		0x401c5820 /* FS_IOC_FSSETXATTR */,
		0xc020660b /* FS_IOC_FIEMAP */,
		0xc0189436 /* FIDEDUPERANGE */,
		0xc0045877 /* FIFREEZE */,
		0xc0185879 /* FITRIM */,
		0x541d /* TIOCCONS */,
		0x5437 /* TIOCVHANGUP */,
		0xb701 /* NS_GET_USERNS */,
		0xff01 /* PIDFD_GET_CGROUP_NAMESPACE */,
		0x8914 /* SIOCSIFFLAGS */,
		0x894c /* SIOCGSKNS */,
		0x89e0 /* SIOCUNIXFILE */,
		0x4c00 /* LOOP_SET_FD */,
		0x400454ca /* TUNSETIFF */,
		0xffffffff,
	};
	for (size_t i = 0; i < ELEMS(no); i++) {
		assert_int_equal(call6(&box, __NR_ioctl, 0, no[i], 0), DENY(ENOTTY));
		assert_int_equal(call6(&box, __NR_ioctl, 0, HIGH | no[i], 0), DENY(ENOTTY));
	}
	assert_int_equal(call6(&box, __NR_ioctl, 0, 0x8946 /* SIOCETHTOOL */, 0), DENY(EOPNOTSUPP));
	/* And nothing besides: of the first 64 Ki as many as the list has, no more. */
	unsigned n = 0;
	for (uint32_t request = 0; request < 65536; request++)
		n += call6(&box, __NR_ioctl, 0, request, 0) == ALLOW;
	assert_int_equal(n, 1 + 17 + 2 + 1 + 3 + 2 + 3 + 1 + 3 + 1 + 7 + 1 + 2 + 10);
}

/* Where PID 1 answers for the kernel, three calls and the requests of its listener are all that differs. */
static void test_asking(void **state)
{
	static const uint32_t listener[] = { 0xc0502100 /* RECV */, 0xc0182101 /* SEND */,
					     0x40082102 /* ID_VALID */, 0x40082104 /* SET_FLAGS */ };
	uint8_t rules[SECCOMP_CALLS], plain[SECCOMP_CALLS];
	static struct seccomp_filter asking;
	seccomp_box(plain);
	compile(seccomp_box_asking, rules, &asking);
	for (unsigned i = 0; i < SECCOMP_CALLS; i++)
		if (i != __NR_statfs && i != __NR_fstatfs && i != __NR_sysinfo && i != __NR_ioctl)
			assert_int_equal(rules[i], plain[i]);
	static const long asked[] = { __NR_statfs, __NR_fstatfs, __NR_sysinfo };
	for (size_t i = 0; i < ELEMS(asked); i++) {
		assert_int_equal(call6(&asking, asked[i], 1, 2, 0), SECCOMP_RET_USER_NOTIF);
		assert_int_equal(call6(&asking, asked[i], SECCOMP_UNASKED, SECCOMP_UNASKED, 1),
				 SECCOMP_RET_USER_NOTIF);
		assert_int_equal(call6(&asking, asked[i], 1, 2, SECCOMP_UNASKED), ALLOW);
		assert_int_equal(call6(&box, asked[i], 1, 2, 0), ALLOW);
	}
	for (size_t i = 0; i < ELEMS(listener); i++) {
		assert_int_equal(call6(&asking, __NR_ioctl, 0, listener[i], 0), ALLOW);
		assert_int_equal(call6(&box, __NR_ioctl, 0, listener[i], 0), DENY(ENOTTY));
	}
	/* ADDFD would put descriptors into others: nobody needs it. */
	assert_int_equal(call6(&asking, __NR_ioctl, 0, 0x40182103 /* ADDFD */, 0), DENY(ENOTTY));
	for (uint32_t request = 0; request < 65536; request++)
		assert_int_equal(call6(&asking, __NR_ioctl, 0, request, 0),
				 call6(&box, __NR_ioctl, 0, request, 0));
}

static void test_personality(void **state)
{
	static const uint64_t good[] = { 0, 8, 0x20000, 0x20008, 0x40000, 0xffffffff };
	static const uint64_t bad[] = { 1,
					0x0400000 /* READ_IMPLIES_EXEC */,
					0x0100000 /* MMAP_PAGE_ZERO */,
					0x0800000,
					0x40000 | 0x0400000,
					0x80000,
					6 };
	for (size_t i = 0; i < ELEMS(good); i++)
		assert_int_equal(call6(&box, __NR_personality, good[i], 0, 0), ALLOW);
	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_int_equal(call6(&box, __NR_personality, bad[i], 0, 0), DENY(EPERM));
}

static void test_setsockopt(void **state)
{
	assert_int_equal(call6(&box, __NR_setsockopt, 0, 6 /* SOL_TCP */, 31 /* TCP_ULP */), DENY(EPERM));
	assert_int_equal(call6(&box, __NR_setsockopt, 0, HIGH | 6, HIGH | 31), DENY(EPERM));
	assert_int_equal(call6(&box, __NR_setsockopt, 0, 6, 1 /* TCP_NODELAY */), ALLOW);
	static const uint64_t bpf[] = { 26, 50, 51, 52 };
	for (size_t i = 0; i < ELEMS(bpf); i++) {
		assert_int_equal(call6(&box, __NR_setsockopt, 0, SOL_SOCKET, bpf[i]), DENY(EPERM));
		assert_int_equal(call6(&box, __NR_setsockopt, 0, 0 /* IP */, bpf[i]), ALLOW);
	}
	assert_int_equal(call6(&box, __NR_setsockopt, 0, SOL_SOCKET, SO_REUSEADDR), ALLOW);
	assert_int_equal(call6(&box, __NR_setsockopt, 0, SOL_SOCKET, SO_SNDBUF), ALLOW);
	assert_int_equal(call6(&box, __NR_setsockopt, 0, SOL_SOCKET, SO_RCVBUF), DENY(0));
	assert_int_equal(call6(&box, __NR_setsockopt, 0, 0 /* IP */, SO_RCVBUF), ALLOW);
	assert_int_equal(call6(&box, __NR_setsockopt, 0, SOL_SOCKET, 31), ALLOW);
}

/* Independently of the tables' text: doors that stay shut. */
static const long never_in_box[] = {
	__NR_mount,
	__NR_umount2,
	__NR_pivot_root,
	__NR_chroot,
	__NR_setns,
	__NR_open_tree,
	__NR_move_mount,
	__NR_fsopen,
	__NR_fsconfig,
	__NR_fsmount,
	__NR_fspick,
	__NR_mount_setattr,
	__NR_bpf,
	__NR_perf_event_open,
	__NR_userfaultfd,
	__NR_io_uring_setup,
	__NR_io_uring_enter,
	__NR_io_uring_register,
	__NR_keyctl,
	__NR_add_key,
	__NR_request_key,
	__NR_kexec_load,
	__NR_kexec_file_load,
	__NR_init_module,
	__NR_finit_module,
	__NR_delete_module,
	__NR_reboot,
	__NR_swapon,
	__NR_swapoff,
	__NR_acct,
	__NR_quotactl,
	__NR_quotactl_fd,
	__NR_sethostname,
	__NR_setdomainname,
	__NR_settimeofday,
	__NR_clock_settime,
	__NR_clock_adjtime,
	__NR_adjtimex,
	__NR_syslog,
	__NR_vhangup,
	__NR_open_by_handle_at,
	__NR_fanotify_init,
	__NR_fanotify_mark,
	__NR_move_pages,
	__NR_migrate_pages,
	__NR_kcmp,
	__NR_process_madvise,
	__NR_io_setup,
	435 /* clone3 */,
	457 /* statmount */,
	458 /* listmount */,
	467 /* open_tree_attr */,
#ifdef __x86_64__
	__NR_iopl,
	__NR_ioperm,
	__NR_modify_ldt,
	__NR_uselib,
	__NR_ustat,
	__NR_sysfs,
	__NR__sysctl,
	__NR_create_module,
	__NR_get_kernel_syms,
	__NR_query_module,
	__NR_vserver,
#endif
};

static const long always_in_box[] = {
	__NR_read,
	__NR_write,
	__NR_openat,
	__NR_close,
	__NR_execve,
	__NR_exit_group,
	__NR_mmap,
	__NR_futex,
	__NR_wait4,
	__NR_pipe2,
	__NR_dup3,
	__NR_getdents64,
	__NR_newfstatat,
	__NR_statx,
	__NR_rt_sigaction,
	__NR_epoll_pwait,
	__NR_connect,
	__NR_bind,
	__NR_sendmsg,
	__NR_recvmsg,
	__NR_chdir,
	__NR_fchownat,
	__NR_setresuid,
	__NR_setgroups,
	__NR_prlimit64,
	__NR_rseq,
	__NR_getrandom,
	__NR_memfd_create,
	__NR_close_range,
	__NR_openat2,
	__NR_copy_file_range,
	__NR_inotify_init1,
	__NR_flock,
	__NR_ptrace,
	__NR_clock_gettime,
	__NR_timerfd_create,
	__NR_signalfd4,
	__NR_renameat2,
	__NR_set_robust_list,
};

static void test_box_lists(void **state)
{
	for (size_t i = 0; i < ELEMS(never_in_box); i++) {
		uint32_t r = call6(&box, never_in_box[i], 0, 0, 0);
		if (r != DENY(EPERM) && r != DENY(ENOSYS))
			fail_msg("call %ld must not be possible in a box: %x", never_in_box[i], r);
	}
	for (size_t i = 0; i < ELEMS(always_in_box); i++)
		if (call6(&box, always_in_box[i], 0, 0, 0) != ALLOW)
			fail_msg("call %ld must be possible in a box", always_in_box[i]);
}

static void test_api_lists(void **state)
{
	static const long never[] = {
		__NR_execve,
		__NR_execveat,
		__NR_socket,
		__NR_socketpair,
		__NR_connect,
		__NR_bind,
		__NR_listen,
		__NR_ptrace,
		__NR_process_vm_readv,
		__NR_process_vm_writev,
		__NR_kill,
		__NR_pidfd_open,
		__NR_pidfd_getfd,
		__NR_pidfd_send_signal,
		__NR_setuid,
		__NR_setresuid,
		__NR_setresgid,
		__NR_setgroups,
		__NR_capset,
		__NR_mount,
		__NR_umount2,
		__NR_setns,
		__NR_unshare,
		__NR_chroot,
		__NR_bpf,
		__NR_io_uring_setup,
		__NR_prctl,
		__NR_ioctl,
		__NR_linkat,
		__NR_symlinkat,
		__NR_mknodat,
		__NR_personality,
		__NR_seccomp,
		__NR_memfd_create,
		__NR_open_by_handle_at,
		__NR_fchown,
#ifdef __x86_64__
		__NR_fork,
		__NR_vfork,
		__NR_symlink,
		__NR_link,
		__NR_chmod,
		__NR_chown,
		__NR_mknod,
#endif
	};
	static const long always[] = { __NR_read,      __NR_write,       __NR_recvmsg, __NR_sendmsg,
				       __NR_accept4,   __NR_epoll_pwait, __NR_openat,  __NR_fsync,
				       __NR_fcntl,     __NR_futex,       __NR_mmap,    __NR_munmap,
				       __NR_getrandom, __NR_exit_group };
	uint8_t rules[SECCOMP_CALLS];
	struct seccomp_filter f;
	compile(seccomp_api, rules, &f);
	for (size_t i = 0; i < ELEMS(never); i++)
		if (call6(&f, never[i], 0, 0, 0) != DENY(EPERM))
			fail_msg("call %ld must not be possible for the api", never[i]);
	for (size_t i = 0; i < ELEMS(always); i++)
		assert_int_equal(call6(&f, always[i], 0, 0, 0), ALLOW);
	assert_int_equal(call6(&f, __NR_clone, 0x003d0f00, 0, 0), ALLOW);       /* a thread */
	assert_int_equal(call6(&f, __NR_clone, 0x01200011, 0, 0), DENY(EPERM)); /* fork */
	assert_int_equal(call6(&f, 435, 0, 0, 0), DENY(ENOSYS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),    cmocka_unit_test(test_random_tables),
		cmocka_unit_test(test_socket),     cmocka_unit_test(test_namespaces),
		cmocka_unit_test(test_ioctl),      cmocka_unit_test(test_personality),
		cmocka_unit_test(test_setsockopt), cmocka_unit_test(test_box_lists),
		cmocka_unit_test(test_api_lists),  cmocka_unit_test(test_asking),
	};
	return cmocka_run_group_tests(tests, compile_box, NULL);
}
