/*
 * The program that runs before a box is stopped or removed, for the core itself: see box.h.
 */
#pragma once

#include "boxes.h"

/* Whether it was begun: then `then` is called later, unless farewell_cancel comes first. `is` is what the box
 * was before the step. */
bool farewell_begin(struct box *b, enum box_status is, void (*then)(struct box *b));
void farewell_cancel(struct box *b);
