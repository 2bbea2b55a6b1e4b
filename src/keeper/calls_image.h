/*
 * The calls of paddock-api about images. See calls.h for the others.
 */
#pragma once

#include "calls.h"

int calls_image_list(struct keeper_call *c, const void *msg, struct err *e);
int calls_image_commit(struct keeper_call *c, const void *msg, struct err *e);
int calls_image_remove(struct keeper_call *c, const void *msg, struct err *e);
/* Makes an image of the unit snapshots/ID over its base, and answers. */
struct wire_image_commit;
int calls_image_seed(struct keeper_call *c, const char *id, const struct wire_image_commit *m,
		     struct err *e) _must_check_;
