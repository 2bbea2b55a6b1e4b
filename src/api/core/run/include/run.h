/*
 * Commands in a box, and processes that are kept.
 */
#pragma once

#include "json.h"
#include "mux.h"

struct actor;
struct box;
struct core;
struct outputs_row;
struct proc_info;
struct exec_way;
struct shell_command;
struct tenant;

/*
 * ---- exec.c ----
 * Running things in a box: a command whose whole output is collected, or a
 * process whose output is passed on as it comes; attaching to one that was kept;
 * a command in a shell (shells.h). The caller embeds a struct exec (zeroed, with its
 * callbacks) and keeps it until `done` or exec_cancel.
 */

#define EXEC_CHANNELS 2 /* stdout is 1, stderr 2; a terminal has only the first */

struct exec_wish {
	struct json_strlist argv; /* exactly one of argv and command */
	struct view command;      /* for bash -c; p == NULL: absent */
	struct json_strmap env;   /* over the box's */
	struct view cwd, user;    /* empty: the box's */
	struct view input;        /* of its stdin, borrowed until `done`; p == NULL: /dev/null */
	bool streams;             /* stdin comes by exec_send and exec_end instead */
	uint64_t timeout_ms;      /* 0: the configured maximum; for a kept process none */
	struct view shell;        /* its name; p == NULL: a process of its own */
	struct json_strmap
		secrets; /* variables over env that hold secrets: what they pass through is wiped */
	bool kill;       /* cancelling ends what goes on without us otherwise: kept or in a shell */
	bool merged;     /* of a shell: stderr is collected with stdout, in the order in which they come */
	bool home;       /* cwd is relative to the user's home, and empty is that: not the box's */

	bool ready; /* a kept bash -l -c may come from a shell that was made ahead */

	/* A process that outlives its caller. pty of a shell: the command that makes it gives it a terminal,
	 * on which its commands read and write (procs_input with the tag "shell:NAME"). */
	bool keep, open_stdin, pty;
	struct view tag;
	uint64_t cols, rows;
	uint32_t ring_bytes; /* of output that is kept; 0: 1 MiB */
};

/*
 * ---- outputs.c ----
 * What a command has written, as far as it is collected. It counts against its tenant until outputs_done: a
 * tenant whose answers are not read keeps so many bytes; what comes then is cut off, and further commands are
 * refused.
 */
struct output {
	struct core *core;
	const struct tenant *tenant;
	struct outputs_row *row;
	struct buf bytes[EXEC_CHANNELS];
	size_t beside; /* bytes that are elsewhere: outputs_count */
};
/* Requests and answers hold memory, too, and all of it is one budget: what they hold, of a tenant and of all,
 * is told by `beside`, and what commands do by outputs_held. NULL: nothing else. */
struct outputs_held {
	size_t tenant, all;
};
typedef struct outputs_held (*outputs_beside_fn)(void *arg, const struct tenant *t);
void outputs_beside(struct core *c, outputs_beside_fn beside, void *arg);
struct outputs_held outputs_held(const struct core *c, const struct tenant *t);
/* An empty one; nothing counts yet. */
void outputs_start(struct output *o, struct core *c, const struct tenant *t);
/* False: not all of it was kept. */
bool outputs_add(struct output *o, unsigned channel, struct view data);
/* So many bytes that somebody else has count with it, instead of those of the last time. False: they would be
 * too many, and nothing has changed. */
bool outputs_count(struct output *o, size_t bytes) _must_check_;
void outputs_done(struct output *o); /* accepts a zeroed one */

struct exec_result {
	uint32_t exit_code;
	const char *signal;   /* "SIGKILL", or NULL */
	struct view out, err; /* what was collected */
	struct output *kept;  /* the same; may be taken: moved away, and zeroed here */
	bool truncated, timed_out, oom_killed;
	uint64_t memory_mb; /* the limit, where oom_killed */
	uint64_t duration_us;
	/* in a shell */
	struct view shell, cwd; /* shell.p == NULL: in none */
	bool restarted;
};

/* The process runs, or we are attached to it. */
struct exec_begun {
	uint32_t pid;
	uint64_t offsets[EXEC_CHANNELS]; /* of the output that follows */
	const struct proc_info *info;    /* attached only; gone when the callback returns */
};

struct exec {
	struct call call;
	struct core *core;
	const struct exec_way *way;    /* by a process of its own, or by a shell */
	struct shell_command *command; /* while it is in a shell */
	char box[24];                  /* its id */
	struct output kept;
	struct view input; /* what is left of it */
	bool streams, want_end, keep, truncated;
	struct loop_timer guard;

	/* The caller's; all but `done` may be NULL. With on_output nothing is collected and there is
	 * no limit; every byte must be given back by exec_consumed. */
	void (*on_begun)(struct exec *x, const struct exec_begun *b);
	void (*on_output)(struct exec *x, unsigned channel, struct view data);
	void (*on_room)(struct exec *x);
	void (*on_kept)(struct exec *x); /* more was collected: `kept` has it, until `done` */
	void (*done)(struct exec *x, const struct exec_result *r, const struct err *e);
};

/* `done` comes later, unless this fails. */
int exec_start(struct core *c, const struct actor *a, struct view id_or_name, const struct exec_wish *w,
	       struct exec *x, struct err *e) _must_check_;

/* A login shell that waits in the box, for so long, for the next bash -l -c that is wished like this (but for
 * the command). Nothing fails: without it that one starts its own. */
void exec_ahead(struct core *c, const struct box *b, const struct exec_wish *w, uint32_t seconds);

/* The output of a kept process from these offsets on, and its end. */
struct exec_place {
	struct view process; /* pid or tag */
	uint64_t offsets[EXEC_CHANNELS];
	bool from_end, kill;
};
int exec_attach(struct core *c, const struct actor *a, struct view id_or_name, const struct exec_place *p,
		struct exec *x, struct err *e) _must_check_;

void exec_consumed(struct exec *x, size_t n);
/* How much was taken; on_room follows when that was not all. */
size_t exec_send(struct exec *x, struct view data);
void exec_end(struct exec *x);
/* Nobody waits any more. Ends a plain command; a kept one and one in a shell go on unless they were
 * wished otherwise. Accepts one that is over or was never started. */
void exec_cancel(struct exec *x);

/* "SIGTERM" for 15, NULL for 0; and back: a name with or without SIG, or a number; 0 for what is none. */
const char *exec_signal_name(uint32_t signo);
uint32_t exec_signal(struct view name);

/*
 * ---- procs.c ----
 * Kept processes of a box: who they are, input, signals, size of the terminal.
 * They are PID 1's; nothing about them is remembered here, so they are the same
 * after a restart of the api. Starting and attaching are exec.c's.
 */

struct proc_exit {
	uint32_t exit_code, signal;
	bool timed_out, oom_killed, stdout_truncated, stderr_truncated;
	uint64_t memory_limit; /* bytes, with oom_killed */
	uint64_t duration_us;
};

/* What is said of it is the box's word. */
struct proc_info {
	uint32_t pid;
	struct view tag, cwd, user;
	struct json_strlist argv;
	bool pty, running;
	int64_t started_ms;
	bool has_exit;
	struct proc_exit exit;
	uint64_t stdout_end, stderr_end; /* offsets */
};

/* One request about processes; embedded, zeroed, with its callback. */
struct proc_op {
	struct call call;
	struct view process; /* what procs_get looks for; borrowed until `done` */
	/* The processes that were asked for (list, get), gone when this returns. */
	void (*done)(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e);
};

int procs_list(struct core *c, const struct actor *a, struct view box, struct proc_op *op,
	       struct err *e) _must_check_;
/* Exactly one, or ERR_NOT_FOUND. `process` is a pid or a tag. */
int procs_get(struct core *c, const struct actor *a, struct view box, struct view process, struct proc_op *op,
	      struct err *e) _must_check_;
/* Done when the process has taken it: at most PROCS_INPUT_MAX bytes at once. */
#define PROCS_INPUT_MAX (64u * 1024)
int procs_input(struct core *c, const struct actor *a, struct view box, struct view process, struct view data,
		bool close, struct proc_op *op, struct err *e) _must_check_;
/* To the process group, or with `tree` to everything that it has started. */
int procs_signal(struct core *c, const struct actor *a, struct view box, struct view process, uint32_t signo,
		 bool tree, struct proc_op *op, struct err *e) _must_check_;
int procs_resize(struct core *c, const struct actor *a, struct view box, struct view process, uint64_t cols,
		 uint64_t rows, struct proc_op *op, struct err *e) _must_check_;
void procs_cancel(struct proc_op *op);
