/*
 * One connection over a link: two streams of two boxes, joined.
 */
#pragma once

#include "list.h"
#include "ports.h"

struct bridges_pair {
	struct list node;
	struct port_stream near, far; /* of the box that connected, of the one that serves */
	struct buf to_near, to_far;   /* what the other has sent and this one has not taken */
	bool near_done, far_done;
	void (*on_open)(struct bridges_pair *p);
	void (*on_end)(struct bridges_pair *p); /* closed: the owner frees it */
	void *arg;
};

/* Waits for a connection to the box's listener. */
int bridges_pair_accept(struct bridges_pair *p, struct box *from, uint16_t listen,
			struct err *e) _must_check_;
/* From on_open: to the other box. */
int bridges_pair_connect(struct bridges_pair *p, struct core *c, const struct actor *a, struct view to,
			 uint16_t port, struct err *e) _must_check_;
/* Closes both ends and gives back what it holds. on_end is not called. */
void bridges_pair_close(struct bridges_pair *p);
