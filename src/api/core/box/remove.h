/*
 * The end of boxes, for the core itself: see box.h.
 */
#pragma once

#include "box.h"
#include "boxes.h"

/* retire.c */
struct retire {
	unsigned waits;
	void (*done)(void *arg);
	void *arg;
};

/* Nobody wants it any more: tries until it works. */
void remove_unwanted(struct box *b);
/* The same, and says when the first try is over. NULL: nobody will be told. */
struct job *remove_unwanted_then(struct box *b, job_done *done, void *arg) _must_check_;
/* After a start: those whose removal was under way. */
void remove_resume(struct core *c);
/* The keeper has ended it in its own way (ImageCommit). */
void remove_gone(struct box *b);
/* What life.c was about is over. */
void remove_go_on(struct box *b);

/* tied.c. After a start: removes those whose connection was broken by it. */
void tied_sweep(struct core *c);
/* retire.c. One of the pool that was being made when retire_boxes was called; NULL: it could not be made. */
void retire_made(struct core *c, struct box *b);
