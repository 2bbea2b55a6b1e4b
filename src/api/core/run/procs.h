/*
 * Kept processes of a box: who they are, input, signals, size of the terminal.
 * They are PID 1's; nothing about them is remembered here, so they are the same
 * after a restart of the api. Starting and attaching are in exec.h.
 */
#pragma once

#include "guest.h"

struct actor;
struct box;
struct core;
struct wire_process_info;
struct wire_process_selector;

/* One request about processes; embedded, zeroed, with its callback. */
struct proc_op {
	struct call call;
	struct view process; /* what procs_get looks for; borrowed until `done` */
	/* The processes that were asked for (list, get), gone when this returns. */
	void (*done)(struct proc_op *op, const struct wire_process_info *list, size_t n, const struct err *e);
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

/* ---- for the core itself ---- */

/* The running box in which the actor may run things. */
struct box *procs_box(struct core *c, const struct actor *a, struct view id_or_name,
		      struct err *e) _must_check_;
struct pb_msg;
/* A request with an empty answer. */
int procs_call(struct box *b, struct proc_op *op, uint16_t type, const struct pb_msg *pm, const void *msg,
	       struct err *e) _must_check_;
struct wire_signal;
/* A signal whose outcome nobody waits for; `c` is not under way. */
void procs_tell(struct box *b, struct call *c, const struct wire_signal *msg, uint32_t timeout_ms);
/* All digits are a pid, everything else is a tag. */
int procs_select(struct view process, struct wire_process_selector *ret, struct err *e) _must_check_;
