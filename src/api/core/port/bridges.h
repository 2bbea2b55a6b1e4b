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
void bridges_forget(struct box *b);   /* it is being freed */
