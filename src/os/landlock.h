/*
 * Landlock: the calling thread (and what it starts) may reach files only below
 * the given directories. Needs no_new_privs. Async-signal-safe.
 */
#pragma once

#include "defs.h"

enum landlock_access {
	LANDLOCK_READ,
	LANDLOCK_RUN /* READ, and executing */,
	LANDLOCK_WRITE /* implies READ; no device nodes */,
	LANDLOCK_ALL
};

struct landlock_rule {
	int fd; /* a directory or file, O_PATH will do */
	enum landlock_access access;
};

/* The ABI version, or -errno where the kernel has none. */
int landlock_abi(void);
/* Also scopes abstract unix sockets and signals where the kernel can. */
int landlock_only(const struct landlock_rule *rules, size_t n) _must_check_;

/* What newer kernels add. */
enum { LANDLOCK_TRUNCATE = 1, LANDLOCK_IOCTL_DEV = 2, LANDLOCK_SCOPES = 4, LANDLOCK_PARTS = 7 };
/* Those that an ABI version has. */
unsigned landlock_parts(int abi);
/* landlock_only with at most these parts. */
int landlock_only_with(unsigned parts, const struct landlock_rule *rules, size_t n) _must_check_;
