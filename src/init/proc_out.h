/*
 * Output of a process: what it writes goes into a ring for each channel.
 *
 * A program is read only while the ring has room. What a ring must not lose is
 * what an attached stream has not got, and, of a kept process, what it got but
 * has not yet consumed: so a caller that is cut off can go on where it was.
 */
#pragma once

#include "loop.h"
#include "ring.h"

enum { PROC_OUT, PROC_ERR, PROC_CONTROL, PROC_CHANNELS }; /* DATA channels 1, 2, 3 */

struct proc;
struct init;

struct channel {
	struct proc *proc;
	struct loop_io io; /* stopped while there is no room */
	int fd;            /* -1 after its end; a terminal's stays open */
	bool over;         /* its end was seen */
	bool grown;        /* the pipe was made larger */
	bool truncated;
	unsigned index;
	uint64_t left;  /* bytes that may still be kept (a plain Start's limit) */
	uint64_t taken; /* bytes read, kept or not */
	size_t rest;    /* after the exit: bytes to read before it is done with */
	struct ring ring;
};

/*
 * Control bytes must not overtake output that was written before them. When some
 * are seen, `need` says how much output stood in the pipes at that moment; they
 * are read when that much has been taken, and a fence remembers up to where
 * each attachment must have sent before it may send them.
 */
#define PROC_FENCES 32

struct proc_order {
	size_t quota;     /* control bytes that may be read once `need` is met; 0: nothing seen */
	uint64_t need[2]; /* of channel.taken */
	struct {
		uint64_t control;    /* for control bytes before this offset */
		uint64_t offsets[2]; /* of stdout and stderr */
	} fences[PROC_FENCES];
	unsigned n_fences;
};

void proc_out_init(struct proc *p, const uint64_t limits[2], size_t ring_size);
/* There may be room again. Whether something was read that can be passed on. */
bool proc_out_resume(struct proc *p);
void proc_out_exited(struct proc *p); /* what stands in the pipes now is the last */
/* Closes what is open; with `drain`, whatever others still write goes nowhere but kills nobody. */
void proc_out_close(struct proc *p, bool drain);
void proc_out_forget(struct proc *p); /* memory */
/* Whether these offsets allow control bytes at `control` to be sent, and up to where. */
uint64_t proc_out_control_end(const struct proc *p, const uint64_t at[PROC_CHANNELS]);
void proc_out_stop_drains(struct init *in);
