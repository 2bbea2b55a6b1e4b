/*
 * What the files of the image store share: see images.h.
 */
#pragma once

#include "images.h"

#define IMAGES_STAGED ".new-" /* begins the names of images that are being made */

/* The digits of a digest: the name of its directory. */
static inline const char *images_hex(const char *digest)
{
	return digest + 7;
}

/* A copy of it among those that there are; NULL: no memory. */
struct image *images_insert(struct images *im, const struct image *like);
/* The subvolume in the directory of an image, where it has one. */
void images_drop_unit(struct images *im, const struct disk *d, const char *name);
