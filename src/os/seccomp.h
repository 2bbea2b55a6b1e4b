/*
 * System call filters. A filter is described by data (seccomp_*.c: which calls
 * are allowed, which are refused, which are looked at more closely), compiled
 * once into a binary search over ranges of call numbers, and loaded as often as
 * needed. Loading is async-signal-safe.
 */
#pragma once

#include <linux/filter.h>

#include "defs.h"

#define SECCOMP_CALLS 512 /* numbers at and above it are unknown: ENOSYS */

/* What happens to a call. Anything above SECCOMP_CHECKS is a closer look. */
enum seccomp_rule {
	SECCOMP_UNKNOWN = 0, /* ENOSYS */
	SECCOMP_ALLOW,
	SECCOMP_REFUSE, /* EPERM */
	SECCOMP_NOTTY,  /* ENOTTY: this file has no such ioctl */
	SECCOMP_NO_OP,  /* EOPNOTSUPP: this device has no such ioctl */
	SECCOMP_CHECKS,
	SECCOMP_CHECK_CLONE = SECCOMP_CHECKS, /* no new namespaces */
	SECCOMP_CHECK_THREAD,                 /* clone for threads only */
	SECCOMP_CHECK_UNSHARE,
	SECCOMP_CHECK_SOCKET,
	SECCOMP_CHECK_SOCKETPAIR,
	SECCOMP_CHECK_IOCTL, /* by request: seccomp_ioctl.c */
	SECCOMP_CHECK_PERSONALITY,
	SECCOMP_CHECK_SETSOCKOPT,
	SECCOMP_CHECK_INTERNET, /* INET and INET6 alone, TCP and UDP */
	SECCOMP_CHECK_MMAP,     /* no huge pages of the machine's pool; so the two below */
	SECCOMP_CHECK_SHMGET,
	SECCOMP_CHECK_MEMFD,
	SECCOMP_ASK,       /* whoever listens answers, unless the third argument is SECCOMP_UNASKED */
	SECCOMP_ASK_IOCTL, /* SECCOMP_CHECK_IOCTL and the listener's own requests */
	SECCOMP_RULES
};

/* By this third argument, which statfs, fstatfs and sysinfo do not have, the listener itself asks the kernel.
 * It is no secret: a program that uses it gets the kernel's own answer. */
#define SECCOMP_UNASKED 0x70616464u
/* A program whose question has been taken cannot be frozen until it is answered. After this signal the
 * listener takes none for a while: those who ask meanwhile can be. */
#define SECCOMP_REST_SIGNAL SIGUSR1
#define SECCOMP_REST_MS     100

struct seccomp_filter {
	struct sock_filter code[1024];
	unsigned short n;
};

/* The filters that there are. */
void seccomp_box(uint8_t rules[SECCOMP_CALLS]); /* everything in a box, PID 1 too */
/* The same, and PID 1 answers statfs, fstatfs and sysinfo: src/init/space.h. */
void seccomp_box_asking(uint8_t rules[SECCOMP_CALLS]);
void seccomp_api(uint8_t rules[SECCOMP_CALLS]);    /* paddock-api */
void seccomp_hook(uint8_t rules[SECCOMP_CALLS]);   /* paddock-hook */
void seccomp_ai(uint8_t rules[SECCOMP_CALLS]);     /* paddock-ai */
void seccomp_gate(uint8_t rules[SECCOMP_CALLS]);   /* paddock-gate */
void seccomp_gauge(uint8_t rules[SECCOMP_CALLS]);  /* paddock-gauge */
void seccomp_vault(uint8_t rules[SECCOMP_CALLS]);  /* paddock-vault */
void seccomp_signer(uint8_t rules[SECCOMP_CALLS]); /* paddock-signer */

/* A search over numbers: `rule` holds from `first` to the next entry's. */
struct seccomp_range {
	uint32_t first;
	uint8_t rule;
};
#define SECCOMP_IOCTLS 160
/* Which ioctl requests programs in boxes may make, and PID 1 where it `listens`. Returns the number of
 * ranges, sorted. */
size_t seccomp_ioctl(struct seccomp_range ret[SECCOMP_IOCTLS], bool listens);

int seccomp_compile(const uint8_t rules[SECCOMP_CALLS], struct seccomp_filter *ret) _must_check_; /* -E2BIG */
/* Needs no_new_privs. */
int seccomp_load(const struct seccomp_filter *f) _must_check_;
/* The same; returns the descriptor by which SECCOMP_ASK is answered. */
int seccomp_load_asking(const struct seccomp_filter *f) _must_check_;
/* Whether this kernel lets nothing but a deadly signal come between a question and its answer (5.19): the
 * answer is written into the caller's memory. */
bool seccomp_can_ask(void);
