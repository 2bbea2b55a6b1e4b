/*
 * Links between boxes: a port on the loopback of one box that leads to a port of
 * another of the same tenant. The first box's PID 1 listens, the api carries each
 * connection to the second's. A link is part of the first box's spec, so it comes
 * back with the box, and goes with either of the two.
 */
#pragma once

#include "job.h"
#include "spec.h"

struct actor;
struct box;
struct core;

struct bridge_wish {
	struct view from, to; /* ids or names */
	uint16_t port;        /* of `to` */
	uint16_t listen;      /* on the loopback of `from`; 0: the same */
};

/* What is; gone when the callback returns. */
struct bridge_view {
	const char *id, *from, *to;
	uint16_t port, listen;
	bool up; /* somebody listens */
};

/* The result is a const struct bridge_view *. ERR_CONFLICT: the port is taken. */
struct job *bridges_create(struct core *c, const struct actor *a, const struct bridge_wish *w, job_done *done,
			   void *arg, struct err *e) _must_check_;
/* No result. */
struct job *bridges_remove(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			   struct err *e) _must_check_;
void bridges_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct bridge_view *v),
		  void *arg);

/* ---- for the core itself ---- */

void bridges_start(struct core *c);   /* everything is loaded and adopted */
void bridges_box_runs(struct box *b); /* listens again */
void bridges_forget(struct box *b);   /* it is being freed */
