/*
 * Paths in a sandbox, as `cp` needs them: what is there, and patterns.
 */
#pragma once

#include "session.h"

enum remote_type { REMOTE_NONE, REMOTE_FILE, REMOTE_DIR, REMOTE_OTHER };

struct remote_info {
	enum remote_type type;
	uint64_t size;
};

/* REMOTE_NONE for what is not there; other failures are errors. A link is what it leads to. */
int remote_stat(struct session *s, const char *box, const char *path, struct remote_info *ret,
		struct err *e) _must_check_;

bool remote_is_pattern(const char *path);
/* The paths that fit, in order; at least one, else it is an error. */
int remote_glob(struct session *s, const char *box, const char *pattern, const char ***ret, size_t *ret_n,
		struct err *e) _must_check_;
