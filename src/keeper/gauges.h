/*
 * paddock-gauge (src/gauge): starts it, and again when it dies; and the table that tells it
 * which box has which range of uids.
 */
#pragma once

#include "keeper.h"

/* Makes the table, before boxes are adopted or started. */
int gauges_open(struct keeper *k, struct err *e) _must_check_;
void gauges_start(struct keeper *k);
/* `started` in clock ticks since boot; 0: now. */
void gauges_box(struct keeper *k, const struct keeper_box *b, uint64_t started);
void gauges_box_gone(struct keeper *k, const struct keeper_box *b);
