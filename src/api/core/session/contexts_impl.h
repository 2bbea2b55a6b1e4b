/*
 * What the files of contexts share. Nobody else includes this.
 */
#pragma once

#include "boxes.h"
#include "contexts.h"
#include "exec.h"
#include "late.h"
#include "procs.h"

#define CONTEXT_STRIKES  2 /* interrupts that code gets before its interpreter is killed */
#define CONTEXT_HEAD_MAX 96

struct context_language {
	const char *name;
	const char *argv[5]; /* reads the driver's length and text from descriptor 250, and runs it */
	const char *driver;
	const size_t *driver_size;
	void (*put_env)(struct buf *b, const struct context_code *w); /* as the driver takes it */
	const char *needs;                                            /* what has to be installed for it */
	bool insist;                                                  /* an interrupt may be lost on it */
	bool greets;   /* says first whether it can work: {id: 0, type: "ready" or "unsupported", value} */
	bool by_stdin; /* the driver comes that way instead, alone */
};
const struct context_language *contexts_language(struct view name);

/* The contexts of a box. */
struct contexts {
	struct box *box;
	struct list list;
	unsigned n;
	bool known; /* the list is complete */
	struct list waiting;
	struct proc_op load;
};

enum context_op_kind { CONTEXT_CREATE = 1, CONTEXT_LIST, CONTEXT_REMOVE, CONTEXT_RESTART, CONTEXT_INTERRUPT };

enum context_phase {
	CONTEXT_OFF,       /* no stream */
	CONTEXT_ATTACHING, /* Attach is with PID 1 */
	CONTEXT_STARTING,  /* Start is with PID 1 */
	CONTEXT_GREETING,  /* it runs, and has not said yet that it can work */
	CONTEXT_UP,
};

/* A piece of code, in the queue or running. */
struct context_cell {
	struct list link;
	struct context *context;
	struct context_run *run; /* NULL: nobody waits */
	uint64_t id;
	struct buf text; /* the request */
	uint64_t timeout_ms, started_ns;
	bool kill, timed_out, truncated, paused;
	uint64_t oom_mb;
	bool begun;     /* SIGINT meets the code, not the driver */
	bool interrupt; /* it was interrupted, or is to be as soon as it has begun */
	unsigned interrupts;
};

struct context {
	struct list link; /* of contexts->list */
	struct box *box;
	char id[CONTEXT_NAME + 1];
	char tag[64];
	const struct context_language *language;
	struct arena arena; /* of what it was made with */
	struct exec_wish made;
	int64_t created_ms, used_ms;
	bool spare; /* it may make room for another */

	enum context_phase phase;
	bool ran;     /* at least once */
	bool maybe;   /* while OFF: its process may be there */
	bool restart; /* the process that is there has to go */
	bool remove;  /* and the context with it */
	struct call stream;
	uint32_t pid;
	struct buf out;  /* to be sent */
	struct buf line; /* the event that is being read */
	bool line_cut;
	char refusal[192]; /* why the interpreter cannot work, as it said itself */
	size_t owed;       /* bytes that were taken and not given back, while the reader is slow */

	struct list queue;
	unsigned n_queue;
	struct context_cell *current;
	struct list ops;  /* wait for it to run, or to be gone */
	struct late late; /* what came while no code ran */

	struct loop_timer timer; /* the code's time limit, then between strikes */
	struct loop_timer again; /* the next interrupt, where one may be lost */
	unsigned strikes;
	struct call poke; /* a signal under way */
};

void contexts_describe(const struct context *c, struct context_info *ret);
/* It runs: tells those that wait for that. */
void contexts_tell(struct context *c);
/* Does what is to be done next: start, end, run. May free the context. */
void contexts_advance(struct context *c);
struct context_cell *contexts_cell_new(struct context *c, const struct context_code *w);
void contexts_cell_free(struct context_cell *m);
/* The code that runs was sent an interrupt: where that may be lost, more follow until it has ended. */
void contexts_insist(struct context *c);
/* Begins to end the code that runs. */
void contexts_strike(struct context *c);
/* Fails everything and forgets it; its process is somebody else's business. */
void contexts_drop(struct context *c, const struct err *why);

/* ---- contexts_run.c ---- */

void contexts_run_next(struct context *c);                     /* where there is something to execute */
void contexts_run_push(struct context *c);                     /* what is left to be sent */
void contexts_run_events(struct context *c, struct view data); /* what came on the control channel */
/* Takes the code that runs away from the context; the rest is with contexts_run_deliver. */
struct context_cell *contexts_run_take(struct context *c);
/* The last of an execution. The context is not looked at: it may be gone. */
void contexts_run_deliver(struct context_cell *m, uint64_t count, bool state_lost);
/* An error that the interpreter cannot tell itself. */
void contexts_run_put_error(struct context_cell *m, const char *name, const char *value);
/* All executions and operations of a context fail; it is not looked at once the first has been told. */
void contexts_run_fail_all(struct context *c, const struct err *e);

/* ---- contexts_stream.c ---- */

/* Nothing can be done for those who wait. A context that never ran never was. */
void contexts_stream_give_up(struct context *c, const struct err *why);
/* What it says before the first code. */
void contexts_stream_greeting(struct context *c, const struct json *event);
