/*
 * The life of a box in the keeper: start, end, adoption after our own restart.
 */
#pragma once

#include "keeper.h"

/* Starts a box; *ret_link is a connected stream to its PID 1. On failure nothing is left. When that is
 * answered, the caller gives b->gate to gate_box. */
int boxes_start(struct keeper *k, const struct spec *s, struct view digest, struct keeper_box **ret,
		int *ret_link, struct err *e) _must_check_;
int boxes_connect(struct keeper *k, const struct keeper_box *b, struct err *e) _must_check_; /* the fd */
/* Kills; on_end runs when all of it is gone. */
void boxes_end(struct keeper *k, struct keeper_box *b, box_ended *on_end);
/* Moves a box's files to the trash; fine when there are none. */
int boxes_discard(struct keeper *k, const char *id) _must_check_;
/* The api that asked is gone: nobody waits for the ends that are under way. */
void boxes_forget_calls(struct keeper *k);
/* At our start: takes over what lives, clears away what does not. */
void boxes_adopt(struct keeper *k);
/* Ends and discards all boxes and files that are not in the list; returns how many. */
unsigned boxes_keep_only(struct keeper *k, const struct view *ids, size_t n);
/* Control groups that could not be removed at once, soon. */
void boxes_tidy_later(struct keeper *k);
/* Parts are made ahead when nothing has been started for a while. */
void boxes_refill_later(struct keeper *k);
