/*
 * The next box, as far as it can be made before anybody asks for it: a uid range with its user namespace,
 * storage with its mounts, control groups. No process, and nothing that a box has touched.
 *
 * It is made like the last plain box that was started, since the next one is likely to be the same, and used
 * when it is. RUN/next holds the uid range, spare/next is the storage, `next` the name of the groups. What a
 * killed keeper left of it is cleared away at the next start.
 */
#pragma once

#include "keeper.h"

/* A box was started: the next one may be the same. */
void ahead_learn(struct keeper *k, const struct keeper_box *b, bool plain);
/* When there is time. True: it was made. */
bool ahead_make(struct keeper *k);
/* Takes it for a box, whose run directory, uid range and storage (*ret_storage) it becomes. False: there is
 * none, or it is of another kind; the box is made as ever. */
bool ahead_take(struct keeper *k, struct keeper_box *b, bool plain, int *ret_storage);
/* Gives it up, also what an earlier keeper left. */
void ahead_drop(struct keeper *k);
