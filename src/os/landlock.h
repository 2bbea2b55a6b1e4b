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
