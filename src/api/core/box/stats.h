/*
 * What the keeper measures, for the core itself: see box.h.
 */
#pragma once

#include "box.h"
#include "job.h"
#include "view.h"

struct box;
struct core;

/* The same for the core itself. */
struct job *stats_posture_unchecked(struct core *c, job_done *done, void *arg, struct err *e) _must_check_;
