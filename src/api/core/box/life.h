/*
 * The steps of a box, and its deadlines, for the core itself: see box.h.
 */
#pragma once

#include "box.h"
#include "boxes.h"
#include "mux.h"

/* What is under way of a box: a step (life.c), the watch of its time (lifetime.c), its removal (remove.c). */
struct life {
	struct box *box;
	struct call call;
	struct list waiters;          /* jobs */
	struct life_storing *storing; /* the last step, until the store has it */
	bool resume_after;            /* somebody wants to use it that is being paused */
	bool remove_after;            /* its removal waits for the end of this */
	struct err failed;            /* of a start that is being undone */
	struct loop_timer expiry;     /* its end; then the retries of its removal */
	struct call destroy;          /* remove.c from here on */
	struct list removers;         /* jobs */
	bool unwanted;                /* removal is retried until it works */
};
extern const struct box_part life_part;

/* Nobody waits for it. */
void life_begin(struct box *b, enum life_step step);
/* Whether a step is under way. Then its removal waits: remove_go_on is called. */
bool life_defers_removal(struct box *b);
/* Its PID 1 has ended. */
void life_exited(struct core *c, struct view id, unsigned signo, bool oom);
/* Ends every link. */
void life_stop_all(struct core *c);

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
