/*
 * The compiler of filters: see seccomp.h.
 *
 * The kernel runs a new filter once for every call number to find those that it
 * always allows, so a filter's load time is its length times the numbers: a
 * binary search over ranges of equal rules is several times quicker to load than
 * the linear list that libseccomp makes by default.
 */
#include "seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "poison.h"

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "no seccomp filter for this architecture"
#endif

#define RET_ERRNO(e) (SECCOMP_RET_ERRNO | (e))
#define NEW_NAMESPACES                                                                                       \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |        \
	 CLONE_NEWNET)
#define NEWTIME 0x80 /* for unshare; in clone's flags it is part of the exit signal */

#define ARG(n) (offsetof(struct seccomp_data, args) + 8 * (n)) /* the low half, little-endian */

static void put(struct seccomp_filter *f, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (f->n < ELEMS(f->code))
		f->code[f->n] = (struct sock_filter){ code, jt, jf, k };
	f->n++; /* past the end is noticed by seccomp_compile */
}

static void load(struct seccomp_filter *f, size_t offset)
{
	put(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void ret(struct seccomp_filter *f, uint32_t value)
{
	put(f, BPF_RET | BPF_K, value, 0, 0);
}

/* if (A == k) return value; */
static void ret_if(struct seccomp_filter *f, uint32_t k, uint32_t value)
{
	put(f, BPF_JMP | BPF_JEQ | BPF_K, k, 0, 1);
	ret(f, value);
}

/* if (A & mask) return value; */
static void ret_if_any(struct seccomp_filter *f, uint32_t mask, uint32_t value)
{
	put(f, BPF_JMP | BPF_JSET | BPF_K, mask, 0, 1);
	ret(f, value);
}

static void check_socket(struct seccomp_filter *f)
{
	load(f, ARG(0));
	ret_if(f, AF_UNIX, SECCOMP_RET_ALLOW);
	/* Netlink for routes only: what getifaddrs and `ip addr` ask. */
	put(f, BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 4);
	load(f, ARG(2));
	ret_if(f, 0, SECCOMP_RET_ALLOW);
	ret(f, RET_ERRNO(EPROTONOSUPPORT));
	/* INET and INET6 with plain protocols; not SCTP, DCCP, MPTCP, L2TP, UDP-Lite, raw. */
	put(f, BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0);
	put(f, BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0);
	ret(f, RET_ERRNO(EAFNOSUPPORT));
	load(f, ARG(2));
	static const uint32_t plain[] = { 0, 6, 17, 1, 58 }; /* default, TCP, UDP, ICMP, ICMPv6 */
	for (size_t i = 0; i < ELEMS(plain); i++)
		ret_if(f, plain[i], SECCOMP_RET_ALLOW);
	ret(f, RET_ERRNO(EPROTONOSUPPORT));
}

static void check_internet(struct seccomp_filter *f)
{
	load(f, ARG(0));
	put(f, BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0);
	put(f, BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0);
	ret(f, RET_ERRNO(EAFNOSUPPORT));
	load(f, ARG(2));
	static const uint32_t plain[] = { 0, 6, 17 }; /* default, TCP, UDP */
	for (size_t i = 0; i < ELEMS(plain); i++)
		ret_if(f, plain[i], SECCOMP_RET_ALLOW);
	ret(f, RET_ERRNO(EPROTONOSUPPORT));
}

static void check_setsockopt(struct seccomp_filter *f)
{
	/* BPF programs on sockets, and kernel TLS and its kin (TCP_ULP). */
	static const uint32_t bpf[] = { 26 /* SO_ATTACH_FILTER */, 50 /* SO_ATTACH_BPF */,
					51 /* SO_ATTACH_REUSEPORT_CBPF */,
					52 /* SO_ATTACH_REUSEPORT_EBPF */ };
	load(f, ARG(1));
	put(f, BPF_JMP | BPF_JEQ | BPF_K, 6 /* SOL_TCP */, 0, 4);
	load(f, ARG(2));
	ret_if(f, 31 /* TCP_ULP */, RET_ERRNO(EPERM));
	ret(f, SECCOMP_RET_ALLOW);
	put(f, BPF_JMP | BPF_JEQ | BPF_K, SOL_SOCKET, 1, 0);
	ret(f, SECCOMP_RET_ALLOW);
	load(f, ARG(2));
	for (size_t i = 0; i < ELEMS(bpf); i++)
		ret_if(f, bpf[i], RET_ERRNO(EPERM));
	/* Without effect, as it is beyond net.core.rmem_max: see bound_buffers in native_child.c. */
	ret_if(f, SO_RCVBUF, RET_ERRNO(0));
	ret(f, SECCOMP_RET_ALLOW);
}

static void emit_search(struct seccomp_filter *f, const struct seccomp_range *r, size_t n);

/* The request is an unsigned int: the kernel ignores the upper half, and so do we. */
static void check_ioctl(struct seccomp_filter *f, bool listens)
{
	struct seccomp_range r[SECCOMP_IOCTLS];
	size_t n = seccomp_ioctl(r, listens);
	load(f, ARG(1));
	emit_search(f, r, n);
}

static void check_flag(struct seccomp_filter *f, uint32_t arg, uint32_t flag)
{
	load(f, arg);
	ret_if_any(f, flag, RET_ERRNO(EPERM));
	ret(f, SECCOMP_RET_ALLOW);
}

static void check_personality(struct seccomp_filter *f)
{
	/* Asking, Linux, the 2.6 and 32-bit names, and no address randomisation (gdb). */
	static const uint32_t allowed[] = { 0xffffffff, 0, 8, 0x20000, 0x20008, 0x40000 };
	load(f, ARG(0));
	for (size_t i = 0; i < ELEMS(allowed); i++)
		ret_if(f, allowed[i], SECCOMP_RET_ALLOW);
	ret(f, RET_ERRNO(EPERM));
}

static void emit_rule(struct seccomp_filter *f, uint8_t rule)
{
	switch ((enum seccomp_rule)rule) {
	case SECCOMP_ALLOW:
		ret(f, SECCOMP_RET_ALLOW);
		return;
	case SECCOMP_REFUSE:
		ret(f, RET_ERRNO(EPERM));
		return;
	case SECCOMP_NOTTY:
		ret(f, RET_ERRNO(ENOTTY));
		return;
	case SECCOMP_NO_OP:
		ret(f, RET_ERRNO(EOPNOTSUPP));
		return;
	case SECCOMP_CHECK_CLONE:
		load(f, ARG(0));
		ret_if_any(f, NEW_NAMESPACES, RET_ERRNO(EPERM));
		ret(f, SECCOMP_RET_ALLOW);
		return;
	case SECCOMP_CHECK_THREAD:
		load(f, ARG(0));
		ret_if_any(f, CLONE_THREAD, SECCOMP_RET_ALLOW);
		ret(f, RET_ERRNO(EPERM));
		return;
	case SECCOMP_CHECK_UNSHARE:
		load(f, ARG(0));
		ret_if_any(f, NEW_NAMESPACES | NEWTIME, RET_ERRNO(EPERM));
		ret(f, SECCOMP_RET_ALLOW);
		return;
	case SECCOMP_CHECK_SOCKET:
		check_socket(f);
		return;
	case SECCOMP_CHECK_SOCKETPAIR:
		load(f, ARG(0));
		ret_if(f, AF_UNIX, SECCOMP_RET_ALLOW);
		ret(f, RET_ERRNO(EAFNOSUPPORT));
		return;
	case SECCOMP_CHECK_IOCTL:
		check_ioctl(f, false);
		return;
	case SECCOMP_CHECK_PERSONALITY:
		check_personality(f);
		return;
	case SECCOMP_CHECK_SETSOCKOPT:
		check_setsockopt(f);
		return;
	case SECCOMP_CHECK_INTERNET:
		check_internet(f);
		return;
	case SECCOMP_CHECK_MMAP:
		check_flag(f, ARG(3), MAP_HUGETLB);
		return;
	case SECCOMP_CHECK_SHMGET:
		check_flag(f, ARG(2), SHM_HUGETLB);
		return;
	case SECCOMP_CHECK_MEMFD:
		check_flag(f, ARG(1), MFD_HUGETLB);
		return;
	case SECCOMP_ASK:
		load(f, ARG(2));
		ret_if(f, SECCOMP_UNASKED, SECCOMP_RET_ALLOW);
		ret(f, SECCOMP_RET_USER_NOTIF);
		return;
	case SECCOMP_ASK_IOCTL:
		check_ioctl(f, true);
		return;
	case SECCOMP_UNKNOWN:
	case SECCOMP_RULES:
		break;
	}
	ret(f, RET_ERRNO(ENOSYS));
}

static void emit_search(struct seccomp_filter *f, const struct seccomp_range *r, size_t n)
{
	if (n == 1) {
		emit_rule(f, r->rule);
		return;
	}
	size_t half = n / 2;
	unsigned short at = f->n;
	put(f, BPF_JMP | BPF_JGE | BPF_K, r[half].first, 0, 0);
	emit_search(f, r, half);
	if (f->n - at - 1u <= UINT8_MAX) {
		if (at < ELEMS(f->code))
			f->code[at].jt = (uint8_t)(f->n - at - 1u);
	} else {
		/* A conditional jump reaches 255 instructions, an unconditional one all of them. */
		f->n = at;
		put(f, BPF_JMP | BPF_JGE | BPF_K, r[half].first, 0, 1);
		put(f, BPF_JMP | BPF_JA, 0, 0, 0);
		emit_search(f, r, half);
		if (at + 1u < ELEMS(f->code))
			f->code[at + 1].k = f->n - at - 2u;
	}
	emit_search(f, r + half, n - half);
}

int seccomp_compile(const uint8_t rules[SECCOMP_CALLS], struct seccomp_filter *f)
{
	struct seccomp_range ranges[SECCOMP_CALLS + 1];
	size_t n = 0;
	for (uint32_t i = 0; i < SECCOMP_CALLS; i++)
		if (n == 0 || ranges[n - 1].rule != rules[i])
			ranges[n++] = (struct seccomp_range){ i, rules[i] };
	if (ranges[n - 1].rule != SECCOMP_UNKNOWN)
		ranges[n++] = (struct seccomp_range){ SECCOMP_CALLS, SECCOMP_UNKNOWN };

	f->n = 0;
	load(f, offsetof(struct seccomp_data, arch));
	put(f, BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0);
	ret(f, SECCOMP_RET_KILL_PROCESS);
	load(f, offsetof(struct seccomp_data, nr)); /* x32 numbers are above all ranges: ENOSYS */
	emit_search(f, ranges, n);
	return f->n > ELEMS(f->code) ? -E2BIG : 0;
}

int seccomp_load(const struct seccomp_filter *f)
{
	struct sock_fprog prog = { f->n, (struct sock_filter *)(uintptr_t)f->code };
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
}

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1ul << 5)
#endif
#define ASKING (SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)

int seccomp_load_asking(const struct seccomp_filter *f)
{
	struct sock_fprog prog = { f->n, (struct sock_filter *)(uintptr_t)f->code };
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, ASKING, &prog);
	return fd < 0 ? -errno : (int)fd;
}

bool seccomp_can_ask(void)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, ASKING, NULL) < 0 && errno == EFAULT;
}
