/*
 * Input of a process: one queue for stdin (or the terminal) and one for the
 * control channel, filled by streams and by Input calls, in the order of their
 * arrival. Nothing is dropped: a stream gets its credit back, and a call its answer,
 * when the program's pipe has taken the bytes.
 */
#pragma once

#include "loop.h"
#include "view.h"

enum { PROC_STDIN, PROC_CONTROL_IN, PROC_FEEDS };

struct proc;
struct stream;

struct feed {
	struct proc *proc;
	struct loop_io io; /* while something waits */
	int fd;            /* -1: closed, or never there */
	struct list chunks;
	size_t waiting; /* bytes */
};

void proc_in_init(struct proc *p);
/* DATA of an attachment; credit is given as it is taken. */
void proc_in_data(struct proc *p, struct stream *from, struct view data);
void proc_in_end(struct proc *p);                         /* stdin ends after what waits */
void proc_in_forget(struct proc *p, struct stream *from); /* the stream is going; its bytes stay */
void proc_in_close(struct proc *p);                       /* all of it, now */
