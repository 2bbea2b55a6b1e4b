/*
 * What is put into a box before anybody uses it: the secrets that its spec names, read
 * from the vault and handed to its PID 1. Done again at every start: they are in the
 * box's memory alone.
 */
#pragma once

#include "err.h"

struct box;

/* `done` is called once, perhaps before this returns; not after mounts_stop. */
void mounts_apply(struct box *b, void (*done)(struct box *b, const struct err *e));
void mounts_stop(struct box *b);
