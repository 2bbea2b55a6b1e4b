/*
 * What files held before edits, so that they can be undone: at most so many edits of a file and so many bytes
 * of a sandbox and of all. The oldest makes place.
 */
#pragma once

#include "aio_impl.h"

#define AIO_UNDO_OF_FILE 10
#define AIO_UNDO_BYTES   (4u * 1024 * 1024) /* of a sandbox, and so of one edit */

struct aio_undo {
	struct list link;
	char box[BOX_ID + 1];
	bool existed; /* else the edit created the file */
	struct view path, content;
	char text[]; /* of both */
};

/* False: it is too large, or there is no memory. What was kept of the file is dropped then, since undoing
 * it would skip this edit. */
bool aio_undo_keep(struct aio_state *s, const char *box, struct view path, bool existed, struct view content);
/* The last edit of the file; NULL: none. */
struct aio_undo *aio_undo_last(struct aio_state *s, const char *box, struct view path);
void aio_undo_free(struct aio_state *s, struct aio_undo *u);
