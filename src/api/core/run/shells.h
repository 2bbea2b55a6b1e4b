/*
 * Stateful shells: a bash in a box that runs one command after the other, so
 * that cwd, variables, functions, aliases and background jobs persist.
 *
 * A shell is a kept process with the tag "shell:NAME" and a control channel
 * (shells_loop.c has what it runs). It is made by the first command that names
 * it. When it ends (`exit`, `exec`, `set -e`, a kill) it is started again with
 * the cwd and the exported variables it last reported, and the answer says so.
 * After a restart of the api it is found by its tag and goes on.
 *
 *   shells.c       what can be asked for
 *   shells_run.c   the process: starting, commands, records, the end
 *   shells_input.c what a command reads
 *   shells_loop.c  the bash side
 */
#pragma once

#include "exec.h"
#include "procs.h"

#define SHELLS_QUEUE 64 /* commands that may wait in one shell */
#define SHELLS_MAX   64 /* of one box */

struct shell_info {
	struct view name, user, cwd;
	uint32_t pid; /* 0: it does not run; the next command starts it */
	bool busy;
	unsigned queued;
	int64_t started_ms;
};

/* What a new shell is to be; command, input, timeout and kill do not matter. `done` comes when it is ready.
 */
int shells_create(struct core *c, const struct actor *a, struct view box, struct view name,
		  const struct exec_wish *w, struct exec *x, struct err *e) _must_check_;

struct shells_op {
	struct proc_op op;
	struct exec end; /* of the process that is removed */
	struct core *core;
	char box[24], name[64]; /* name "": all of them */
	bool ended;
	void (*done)(struct shells_op *o, const struct shell_info *list, size_t n, const struct err *e);
};
/* name.p == NULL: all; there is always a "default". */
int shells_list(struct core *c, const struct actor *a, struct view box, struct view name, struct shells_op *o,
		struct err *e) _must_check_;
/* Kills it with all that it has started. `done` with no list. */
int shells_remove(struct core *c, const struct actor *a, struct view box, struct view name,
		  struct shells_op *o, struct err *e) _must_check_;
void shells_cancel(struct shells_op *o);

/* ---- for the core itself ---- */

/* By exec_start, for a wish with a shell. */
int shells_exec(struct box *b, const struct exec_wish *w, struct exec *x, struct err *e) _must_check_;
void shells_consumed(struct exec *x, size_t n);
void shells_abandon(struct exec *x); /* nobody waits for this command any more */
/* The box is going: every command fails with `why`. */
void shells_drop_all(struct box *b, const struct err *why);
