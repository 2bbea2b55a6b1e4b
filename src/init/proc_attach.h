/*
 * Streams that carry the output of a process: see proc_attach.c.
 */
#pragma once

#include "proc.h"
#include "stream.h"

struct attachment {
	struct stream stream;
	struct list node; /* of proc->attachments */
	struct proc *proc;
	uint64_t at[PROC_CHANNELS]; /* next byte to be sent */
	bool kill;                  /* takes the process along */
	bool starter;               /* its END closes stdin */
	bool turn;                  /* stderr's */
};

/* NULL: no memory, or too many. Not yet open, so that nothing needs to be undone. */
struct attachment *proc_attach_new(struct proc *p, struct err *e);
void proc_attach_open(struct attachment *a, const struct conn_call *call); /* the first reply comes next */
void proc_attach_pump(struct proc *p); /* sends what can be sent, to all */
/* From here on the bytes are needed: not sent, or perhaps not consumed. */
uint64_t proc_attach_floor(const struct attachment *a, unsigned channel);
