/*
 * Running one command in a box and passing its output and exit code on: the
 * half that `run` and `exec` share.
 */
#pragma once

#include "interrupt.h"
#include "opts.h"
#include "session.h"

#define EXEC_TIMED_OUT 124 /* as timeout(1) */

struct exec_spec {
	const char *box;
	char *const *argv; /* ends with NULL */
	const char *user, *workdir;
	const struct opt_list *env, *secret_env; /* may be NULL */
	uint64_t timeout_ms;                     /* 0: the daemon's */
	const char *shell;                       /* argv[0] is a command for it; NULL: a process of its own */
	bool input;                              /* pass standard input on */
	bool tty;                                /* give it a terminal */
	bool detach;                             /* print its pid instead of following it; it goes on */
	const char *tag;                         /* a name for it, NULL: none */
	struct interrupt
		*interrupt; /* signals to us that the command gets, unless it has a terminal; may be NULL */
};

/* Whether there is a standard input to pass on: not when that is a terminal, or closed. */
bool exec_has_input(void);
/* The same, also when it is a terminal: somebody asked for it. */
bool exec_can_read(void);
/* {"data", "encoding"} of an answer, to a file of ours; NULL is nothing. */
int exec_put_output(const struct json *output, int fd, struct err *e) _must_check_;
/* What a process that is kept has written and writes, until it ends: its exit code, or -1. `input`: standard
 * input goes to it. It goes on when we end. */
int exec_follow(struct session *s, const char *box, const char *process, bool input,
		struct err *e) _must_check_;
/* The request must be checked before there is a box to throw away. */
int exec_check(const struct exec_spec *x, struct err *e) _must_check_;
/* Passes the command's output on as it comes, and our signals to it. Whoever ends us ends the command. The
 * exit code, or -1. */
int exec_run(struct session *s, const struct exec_spec *x, struct err *e) _must_check_;
