/*
 * Shells and code contexts, which keep their state between two commands.
 */
#pragma once

#include "run.h"

struct actor;
struct box;
struct context_cell;
struct context_op;
struct context_run;
struct contexts;
struct core;

/*
 * ---- shells.c ----
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
/* The directory that the shell's last command left it in; p == NULL: it has run none that is remembered. To
 * ask is no use of the box. */
struct view shells_cwd(const struct box *b, struct view name);

/*
 * ---- contexts.c ----
 * Code contexts: interpreters in a box (contexts_language.c lists them) that run one
 * piece of code after the other in one namespace, and say what came of it.
 *
 * A context is a kept process with the tag "context:ID:LANGUAGE" and a control
 * channel. It executes a driver (src/api/context) that is sent to it first; then
 * come requests, "ID BYTES ENV_BYTES\n", variables (in the form that suits the
 * language) and the code, and back come events, a JSON object on each line. The drivers of some languages say
 * first whether the image has what they need. The code's own output is the
 * process's stdout and stderr. When the process ends, the next code starts another. After a restart of the
 * api contexts are found by their tags.
 *
 *   contexts.c           what can be asked for
 *   contexts_language.c  the interpreters
 *   contexts_run.c       the process: starting, code, events, time limits, the end
 *
 * `done` of an operation may come before the call that began it returns.
 */

#define CONTEXTS_MAX   32 /* of one box */
#define CONTEXTS_QUEUE 64 /* pieces of code that may wait in one of them */
#define CONTEXTS_SPARE 4  /* idle ones that nobody named */
#define CONTEXT_ID     20
#define CONTEXT_NAME   40 /* of an id that the caller chose */

struct context_info {
	struct view id, language, user, cwd;
	int64_t created_ms, used_ms;
	uint32_t pid; /* 0: it does not run; the next code starts it */
	bool busy;
	unsigned queued;
};

/* Waits for the box's contexts to be known. */
struct context_wait {
	struct list link;
	struct contexts *set; /* NULL while it does not wait */
	void (*go)(struct context_wait *w, struct box *b);
	void (*fail)(struct context_wait *w, const struct err *e);
};

struct context_wish {
	struct view language;
	struct view id;        /* of a context that contexts_create makes; empty: a new one */
	struct view user, cwd; /* empty: the box's */
	struct json_strmap env;
};

/* Embedded by the caller, zeroed, with `done`; views are borrowed until then. */
struct context_op {
	struct context_wait wait;
	struct list link; /* of those that wait for the context */
	int kind;
	struct context_wish wish;
	struct view id;
	struct call call;
	struct box *box;
	/* list: all of them; otherwise the one, or for remove none. Gone when this returns. */
	void (*done)(struct context_op *op, const struct context_info *list, size_t n, const struct err *e);
};

int contexts_create(struct core *c, const struct actor *a, struct view box, const struct context_wish *w,
		    struct context_op *op, struct err *e) _must_check_;
/* id.p == NULL: all */
int contexts_list(struct core *c, const struct actor *a, struct view box, struct view id,
		  struct context_op *op, struct err *e) _must_check_;
/* Ends it with all that it has started. */
int contexts_remove(struct core *c, const struct actor *a, struct view box, struct view id,
		    struct context_op *op, struct err *e) _must_check_;
/* The same, and starts it anew. The code that runs is over; what waits goes on. */
int contexts_restart(struct core *c, const struct actor *a, struct view box, struct view id,
		     struct context_op *op, struct err *e) _must_check_;
/* SIGINT for the code that runs; nothing when none does. */
int contexts_interrupt(struct core *c, const struct actor *a, struct view box, struct view id,
		       struct context_op *op, struct err *e) _must_check_;
void contexts_cancel(struct context_op *op); /* nobody waits; what was begun goes on */

struct context_code {
	struct view code;
	struct json_strmap env;     /* for this code alone */
	struct json_strmap secrets; /* likewise, over env; what they pass through is wiped */
	struct view context;        /* its id; empty: the one of the language */
	struct view language;       /* empty: the context's, or python */
	struct context_wish made;   /* how the language's own is made, where this is its first code */
	bool make;                  /* likewise the one of `context`, where there is none */
	bool spare;                 /* and nobody knows its name: some are kept, the rest makes room */
	uint64_t timeout_ms;        /* 0: the configured maximum */
	bool kill;                  /* interrupt it when nobody waits any more */
};

struct context_end {
	uint64_t count; /* executions of this interpreter; 0: it did not say */
	bool timed_out;
	uint64_t oom_mb; /* the memory limit, when something was killed for it; else 0 */
	bool truncated;  /* output that came between two executions was too much to be kept */
	bool state_lost; /* the interpreter is gone; the next code begins with nothing */
	uint64_t duration_us;
};

/* One execution. Embedded, zeroed, with the callbacks. */
struct context_run {
	struct context_wait wait;
	struct context_code wish; /* borrowed until on_begun */
	struct core *core;
	struct context_cell *cell;

	void (*on_queued)(
		struct context_run *x); /* there is the context, and other code runs in it; may be NULL */
	void (*on_begun)(struct context_run *x, const struct context_info *c);
	void (*on_output)(struct context_run *x, unsigned channel, struct view data); /* 1 or 2 */
	/* "result" with its formats, or "error" with name, value and traceback; gone when this returns. */
	void (*on_event)(struct context_run *x, const char *type, const struct json *event);
	void (*done)(struct context_run *x, const struct context_end *end, const struct err *e);
};

int contexts_execute(struct core *c, const struct actor *a, struct view box, const struct context_code *w,
		     struct context_run *x, struct err *e) _must_check_;
/* Stops what comes out of the box until contexts_resume: a window more may come. */
void contexts_pause(struct context_run *x);
void contexts_resume(struct context_run *x);
/* Nobody waits: code that runs goes on (unless wished otherwise), code that waits is dropped. */
void contexts_abandon(struct context_run *x);
