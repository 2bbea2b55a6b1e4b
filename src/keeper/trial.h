/*
 * A trial box: started, inspected from outside, frozen, killed and removed by the same code, storage
 * and image that other boxes use. The result is added to the posture, so that a machine on which boxes
 * cannot be made reports this, with the reason, before the first create.
 */
#pragma once

#include "images.h"
#include "posture.h"
#include "slots.h"
#include "storage.h"
#include "walls.h"

struct trial {
	struct walls *walls;
	struct storage *storage;
	const struct images *images;
	struct slots *slots;
	uint32_t uid_base;
	int run_boxes;        /* in which its run directory is made */
	const char *run_path; /* of run_boxes */
	uint32_t without;     /* posture.without */
	bool machine;         /* boxes have the machine's own image unless they ask for another */
};

/* Adds parts: storage, limit.disk, idmap, overlay, overlay.detached, box. */
void trial_run(const struct trial *t, struct posture *p);
