/*
 * Images for the core itself: see image.h.
 */
#pragma once

#include "config_sets.h"
#include "image.h"
#include "job.h"

struct box;
struct core;

struct images {
	struct config_sets standard; /* of the configuration: what this machine says */
	/* An image is about to be removed, and what was kept of it, too. */
	void (*on_gone)(struct core *c, struct view digest);
	struct arena arena;
	struct arena said; /* by images, about sets: what finds no room there costs no image its place */
	struct image *items;
	size_t n;
};
/* What a snapshot over an image says about where packages come from: done gets a const struct view *, a
 * record of config_sets.h. */
struct job *images_survey(struct core *c, struct view digest, struct view snapshot, job_done *done, void *arg,
			  struct err *e) _must_check_;
void images_done(struct core *c);
