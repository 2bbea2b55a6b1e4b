/*
 * An operation that the core finishes even if the caller no longer waits for it (a row that is being
 * written, a box that is being made). The core owns it. `done` is called once, later, never from
 * within the call that began it. A caller that goes away abandons the job instead.
 */
#pragma once

#include "err.h"

/* result: what the operation says it is, gone when this returns; NULL with an error. */
typedef void job_done(void *arg, const void *result, const struct err *e);

struct job {
	job_done *done;
	void *arg;
};

static inline void job_abandon(struct job *j)
{
	if (j)
		j->done = NULL;
}

static inline bool job_abandoned(const struct job *j)
{
	return j->done == NULL;
}

static inline void job_finish(struct job *j, const void *result, const struct err *e)
{
	if (j->done)
		TAKE_PTR(j->done)(j->arg, e ? NULL : result, e);
}
