/*
 * The steps of a box, and its deadlines, for the core itself: see box.h.
 */
#pragma once

#include "box.h"
#include "boxes.h"

/* How far the store's knowledge of the last use may be behind. */
#define LIFE_USED_LAG_MS 1000

/* Somebody is about to use it: ERR_STATE where it is paused, unless that is what resumes it.
 * What is sent to a box that is being resumed waits in its link. */
int life_use(struct box *b, struct err *e) _must_check_;
/* Nobody waits for it. */
void life_begin(struct box *b, enum life_step step);
/* Whether a step is under way. Then its removal waits: remove_go_on is called. */
bool life_defers_removal(struct box *b);
/* The box is going to be freed. */
void life_end(struct box *b, const struct err *e);

/* What of a patch needs nobody else; the caller stores it. */
int lifetime_check_fields(const struct lifetime_patch *p, struct err *e) _must_check_;
int lifetime_apply(struct box *b, const struct lifetime_patch *p, struct err *e) _must_check_;
/* Looks at the deadlines anew. */
void lifetime_watch(struct box *b);
/* What should have happened at its end did not: again in a while. */
void lifetime_retry(struct box *b);
void lifetime_touch(struct box *b);
/* It runs again: its last use is now, and a time that was over begins again. */
void lifetime_renew(struct box *b);
