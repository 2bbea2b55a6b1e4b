/*
 * Processes that were started for a caller. A plain one belongs to the stream
 * of its Start: it dies with it and leaves nothing. A kept one (Start.keep) stays
 * in the table, also for a while after its end, and streams come and go.
 *
 *   proc.c         the table, the end, the time limit
 *   proc_start.c   Start
 *   proc_out.c     pipes and terminals into rings, the order of control bytes
 *   proc_in.c      Input, and DATA of streams, into stdin, terminal, control
 *   proc_attach.c  streams that read the rings: the one of Start, and Attach
 *   proc_calls.c   Signal, Resize, Processes
 */
#pragma once

#include <sys/types.h>

#include "conn.h"
#include "proc_in.h"
#include "proc_out.h"
#include "wire_gen.h"

#define PROC_LIVING      256             /* kept ones at once */
#define PROC_ENDED       64              /* that are remembered */
#define PROC_RETAIN_MS   (5 * 60 * 1000) /* their output */
#define PROC_HOLD_MS     (30 * 1000)     /* Start.wait_reader */
#define PROC_TAG         128
#define PROC_RING        (1024u * 1024)
#define PROC_RING_MIN    (64u * 1024)
#define PROC_RING_MAX    (16u * 1024 * 1024)
#define PROC_RING_PLAIN  (128u * 1024)
#define PROC_ATTACHMENTS 32 /* of one process at once */

struct proc {
	struct init *init;
	struct list node; /* of init->procs until it is reaped, then of init->ended */
	pid_t pid;
	bool keep, pty, wait_reader;
	bool guarded;                   /* its control bytes count only from the process itself: proc_out.c */
	struct wire_process_info about; /* what does not change */
	struct arena memory;            /* of the above */

	struct channel channels[PROC_CHANNELS];
	struct proc_order *order; /* with a control channel only */
	struct feed feeds[PROC_FEEDS];

	struct list attachments;
	unsigned n_attachments;
	bool held; /* nobody is attached, but what was not consumed waits for somebody */
	uint64_t hold_at[PROC_CHANNELS];
	struct loop_timer hold;

	struct loop_timer limit; /* the deadline; after the end, how long output is kept */
	uint64_t started_ns, ended_ns;
	bool exited;   /* the main process was reaped */
	bool settled;  /* and all of its output is in the rings */
	bool unlisted; /* in no table: goes with its last attachment */
	bool timed_out, oom_killed;
	uint64_t oom_before; /* kills before it was started */
	int status;
	struct loop_task freeing;
};

/* In use by conn.c: each is one request. */
int proc_start(const struct conn_call *call, struct err *e) _must_check_;
int proc_attach(const struct conn_call *call, struct err *e) _must_check_;
int proc_input(const struct conn_call *call, struct err *e) _must_check_;
int proc_resize(const struct conn_call *call, struct err *e) _must_check_;
int proc_signal(const struct conn_call *call, struct err *e) _must_check_;
int proc_list(const struct conn_call *call, struct err *e) _must_check_;

struct proc *proc_new(struct init *in); /* in no table yet */
/* Runs the program of a process that is in no table yet; memory of the message is the arena's. */
int proc_launch(struct proc *p, const struct wire_start *msg, struct arena *a, struct err *e) _must_check_;
void proc_free(struct proc *p);                      /* at once: for one that never ran */
void proc_add(struct proc *p, uint32_t deadline_ms); /* now it runs */
/* Whether another one may be kept under this tag. */
int proc_admit(struct init *in, struct view tag, struct err *e) _must_check_;
/* The kept process that is meant; by tag, a living one before those that have ended. */
struct proc *proc_find(struct init *in, const struct wire_process_selector *who, struct err *e);
void proc_describe(const struct proc *p, struct wire_process_info *ret, struct wire_exited *ret_exited);
void proc_exited(const struct proc *p, struct wire_exited *ret);
void proc_settle(struct proc *p); /* by proc_out: the last of its output is there */
void proc_detach(struct proc *p); /* by proc_attach: one is gone */
/* Collects every child that has exited, our own and those that were left to PID 1. */
void proc_reap(struct init *in);
void proc_stop(struct init *in); /* part of init_stop */
