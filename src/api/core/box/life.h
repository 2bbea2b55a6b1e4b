/*
 * A box between its creation and its removal. life.c: running, paused, stopped, and
 * the steps between them, one at a time for each box. lifetime.c: how long that goes
 * on (time to live, idleness), and what happens at the end.
 */
#pragma once

#include "boxes.h"

/* How far the store's knowledge of the last use may be behind. */
#define LIFE_USED_LAG_MS 1000

/* The result is a const struct box *. A box that is already so is no error. */
struct job *life_change(struct core *c, const struct actor *a, struct view id_or_name, enum life_step step,
			job_done *done, void *arg, struct err *e) _must_check_;

/* ---- for the core itself ---- */

/* Somebody is about to use it: ERR_STATE where it is paused, unless that is what resumes it.
 * What is sent to a box that is being resumed waits in its link. */
int life_use(struct box *b, struct err *e) _must_check_;
/* Nobody waits for it. */
void life_begin(struct box *b, enum life_step step);
/* Whether a step is under way. Then its removal waits: remove_go_on is called. */
bool life_defers_removal(struct box *b);
/* The box is going to be freed. */
void life_end(struct box *b, const struct err *e);

/* ---- lifetime.c ---- */

/* Looks at the deadlines anew. */
void lifetime_watch(struct box *b);
/* What should have happened at its end did not: again in a while. */
void lifetime_retry(struct box *b);
void lifetime_touch(struct box *b);
/* It runs again: its last use is now, and a time that was over begins again. */
void lifetime_renew(struct box *b);

/* The box ends so many seconds from now; 0: never, where the configuration allows that. */
struct job *lifetime_extend(struct core *c, const struct actor *a, struct view id_or_name,
			    uint64_t ttl_seconds, job_done *done, void *arg, struct err *e) _must_check_;

/* What is absent stays. */
struct lifetime_patch {
	struct json_strmap metadata; /* takes the place of what was there */
	uint64_t idle_seconds;
	struct view on_end;
	bool auto_resume, ports_public;
	bool has_metadata, has_idle, has_auto_resume, has_ports_public;
};
struct job *lifetime_change(struct core *c, const struct actor *a, struct view id_or_name,
			    const struct lifetime_patch *p, job_done *done, void *arg,
			    struct err *e) _must_check_;
