/*
 * Kept processes, for the core itself: see run.h.
 */
#pragma once

#include "guest.h"
#include "run.h"

struct box;
struct core;
struct wire_process_info;
struct wire_process_selector;
struct pb_msg;
struct wire_signal;

/* The running box in which the actor may run things. */
struct box *procs_box(struct core *c, const struct actor *a, struct view id_or_name,
		      struct err *e) _must_check_;
/* A request with an empty answer. */
int procs_call(struct box *b, struct proc_op *op, uint16_t type, const struct pb_msg *pm, const void *msg,
	       struct err *e) _must_check_;
/* A signal whose outcome nobody waits for; `c` is not under way. */
void procs_tell(struct box *b, struct call *c, const struct wire_signal *msg, uint32_t timeout_ms);
/* PID 1's words as ours, with views into them. */
void procs_take(const struct wire_process_info *w, struct proc_info *ret);
/* All digits are a pid, everything else is a tag. */
int procs_select(struct view process, struct wire_process_selector *ret, struct err *e) _must_check_;
