/*
 * From a description to a running program. Everything that needs memory is
 * prepared before the clone: the child shares it and only makes system calls.
 */
#pragma once

#include <sys/types.h>

#include "arena.h"
#include "user.h"

#define LAUNCH_CONTROL_IN  250
#define LAUNCH_CONTROL_OUT 251
#define LAUNCH_FREE        252

struct launch {
	char **argv, **envp;
	const char *cwd;
	const int *cwd_fd; /* instead of cwd: a directory that somebody has open already; NULL: none */
	bool cwd_optional; /* a home that is not there: "/" will do */
	const struct user *user;
	int fds[3];     /* the program's 0, 1, 2; -1: as ours */
	int control[2]; /* its LAUNCH_CONTROL_IN and _OUT; both at or above LAUNCH_FREE, or -1 for none */
	bool terminal;  /* fd 0 becomes its controlling terminal */
	/* From launch_prepare. */
	char **paths;   /* where the program may be, in order */
	char **sh_argv; /* for a script without "#!" */
};

struct wire_start;
/* Fills argv, envp, cwd and paths; memory is the arena's. */
int launch_prepare(struct launch *s, const struct wire_start *msg, struct arena *a,
		   struct err *e) _must_check_;
/* Returns when the program runs, or could not be started; or soon, where the box holds it up before that.
 * What then goes wrong is said on its standard error, and it exits with 127. */
int launch_run(struct launch *s, pid_t *ret_pid, struct err *e) _must_check_;
