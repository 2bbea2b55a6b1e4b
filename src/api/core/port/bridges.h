/*
 * Links between boxes, for the core itself: see port.h.
 */
#pragma once

#include "job.h"
#include "port.h"
#include "spec.h"

struct box;
struct core;

void bridges_start(struct core *c);   /* everything is loaded and adopted */
void bridges_box_runs(struct box *b); /* listens again */
/* What leads to it leads nowhere: of the other boxes, also in the store. */
void bridges_unlink(struct box *b);
void bridges_forget(struct box *b); /* it is being freed */
