/*
 * What the files of shells share. Nobody else includes this.
 */
#pragma once

#include "boxes.h"
#include "late.h"
#include "shells.h"

#define SHELL_ID        16             /* characters of a command's id */
#define SHELL_PATH      48             /* of its input's file */
#define SHELL_FIELD_MAX (1024u * 1024) /* of a record: cwd, or all exported variables */

/* What bash executes; reports and takes commands on the control channel. */
extern const char shells_loop[];

enum shell_phase {
	SHELL_NONE,     /* no stream: the next command starts it, or finds it running */
	SHELL_STARTING, /* Start, or Attach, is with PID 1 */
	SHELL_READY,
};

struct shell_command {
	struct list link; /* of shell->queue */
	struct shell *shell;
	struct exec *x; /* NULL: nobody waits; also for our own */
	bool own;       /* a probe, or the restoring of state */
	bool kill, merged, timed_out, truncated;
	bool broken; /* somebody else wrote to the shell's control channel meanwhile */
	bool secret; /* its text holds secrets */
	char id[SHELL_ID + 1];
	struct buf text;  /* header and command; what is left to be sent */
	struct buf input; /* of its stdin */
	bool has_file;    /* in the box, with the input */
	struct call file; /* that writes it */
	uint64_t timeout_ms, started_ns;
	int64_t started_ms; /* wall clock, for PID 1 */
	size_t held;        /* bytes of output that x has not given back */
	size_t gift;        /* and those that were nobody's to give back: late output */
};

struct shell {
	struct list link; /* of box->shells */
	struct box *box;
	char name[SPEC_NAME_MAX + 1];
	char tag[SPEC_NAME_MAX + 8];
	struct arena arena; /* of what it was made with */
	struct exec_wish made;

	enum shell_phase phase;
	struct call stream;
	uint32_t pid;
	bool made_new;     /* by shells_create: one that is there already is a conflict */
	unsigned attempts; /* starts since the last record */
	int64_t started_ms;
	bool lost;        /* it ended without a command to tell; the next one tells */
	bool cwd_gone;    /* the last known cwd cannot be entered */
	struct buf cwd;   /* last reported, or empty */
	struct buf state; /* `declare -px`, last reported */

	struct list queue;
	unsigned n_queue;
	struct shell_command *current;

	/* The record that is being read. */
	struct buf field;
	bool field_cut;   /* too long to be kept */
	bool skips_state; /* the next field belongs to a header that is of no interest */
	bool joined;      /* to one that was running; no record has begun yet */
	bool wants_state; /* the next field belongs to the header before it */
	char kind;        /* of that header */
	uint32_t code;
	bool oom; /* that header says so */

	struct late late; /* what came while no command ran */

	struct loop_timer timer; /* the command's time limit, then between strikes */
	unsigned strikes;
	struct call poke, reap; /* signals under way */
};

/* How a command ended. */
struct shell_ending {
	uint32_t code, signal;
	bool restarted, oom_killed;
};

/* Takes the command; it is run in its turn. */
void shells_run(struct shell *s, struct shell_command *m);
/* secrets: variables of this command alone. */
struct shell_command *shells_command_new(struct shell *s, struct view text, struct view input,
					 const struct json_strmap *secrets);
/* The shell at once: what it says cannot be believed any more. */
void shells_break(struct shell *s);
/* The running command, whose input is there. */
void shells_send(struct shell *s, struct shell_command *m);
/* The running command was never sent. */
void shells_lose(struct shell *s, struct shell_command *m, const struct err *e);

void shells_run_next(struct shell *s);                                      /* where it can run one */
int shells_run_own(struct shell *s, struct view text) _must_check_;         /* before those that wait */
int shells_run_output(struct shell *s, unsigned channel, struct view data); /* what the process wrote */
void shells_run_push(struct shell *s);
void shells_run_consumed(struct exec *x, size_t n);
void shells_run_abandon(struct exec *x);
/* nobody waits for this command any more */ /* what is left of the running command's text */
void shells_run_finish(struct shell *s, const struct shell_ending *how); /* the running command */
void shells_run_fail_all(struct shell *s, const struct err *e);

/* ---- shells_stream.c ---- */

void shells_stream_begin(struct shell *s);  /* starts a process, or finds the one that runs */
void shells_stream_forget(struct shell *s); /* there is none any more */
/* Fails all commands and forgets the shell; its process is somebody else's business. */
void shells_drop(struct shell *s, const struct err *why);

/* ---- shells_input.c ---- */

const char *shells_input_path(const struct shell_command *m, char path[SHELL_PATH]);
/* Writes it, then shells_send; or shells_lose. */
void shells_input_write(struct shell *s, struct shell_command *m);
/* Nobody waits for it: a file that stays is the box's own litter. */
void shells_input_remove(struct shell *s, const struct shell_command *m);
