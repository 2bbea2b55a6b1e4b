/*
 * Running one command in a box and passing its output and exit code on: the
 * half that `run` and `exec` share.
 */
#pragma once

#include "opts.h"
#include "session.h"

#define EXEC_TIMED_OUT 124 /* as timeout(1) */

struct exec_spec {
	const char *box;
	char *const *argv; /* ends with NULL */
	const char *user, *workdir;
	const struct opt_list *env; /* may be NULL */
	uint64_t timeout_ms;        /* 0: the daemon's */
	struct view input;          /* p == NULL: none */
};

/* All of standard input, unless that is a terminal; *ret.p stays NULL then. */
int exec_read_input(struct buf *b, struct view *ret, struct err *e) _must_check_;
/* The request must be checked before there is a box to throw away. */
int exec_check(const struct exec_spec *x, struct err *e) _must_check_;
/* Writes the command's output to ours. The exit code, or -1. */
int exec_run(struct session *s, const struct exec_spec *x, struct err *e) _must_check_;
