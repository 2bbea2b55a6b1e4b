/*
 * What an image from elsewhere says about how it is run: its user, directory and variables are the defaults
 * of its boxes; its entry point is shown. Ours, as JSON, made from theirs when it is imported.
 */
#pragma once

#include "image.h"
#include "spec.h"

/* From the configuration of an OCI image (docker's is the same) to ours; what makes no sense is left out. */
int image_config_take(struct view theirs, struct buf *ret) _must_check_;
/* Reads ours; views live in the arena. What cannot be read is as good as none. */
void image_config_read(struct arena *a, struct view ours, struct image *ret);
/* Into the spec of a box that has not asked for something else. */
int image_config_apply(struct core *c, struct arena *a, struct box_spec *s, struct err *e) _must_check_;
