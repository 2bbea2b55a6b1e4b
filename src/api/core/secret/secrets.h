/*
 * Secrets for the core itself: see secret.h.
 */
#pragma once

#include "job.h"
#include "secret.h"
#include "spec_secrets.h"
#include "who.h"

struct core;

/* The same for the core itself. */
struct job *secrets_read_for(struct box *b, const struct spec_secrets *list, job_done *done, void *arg,
			     struct err *e) _must_check_;
