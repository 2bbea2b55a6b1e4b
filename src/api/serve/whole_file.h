/*
 * A file of a box as a whole: read into memory, up to a size, or written from it. For dialects whose calls
 * have a file's content in a message.
 */
#pragma once

#include "file.h"
#include "request.h"

/* Embedded, zeroed; `done` is the caller's. */
struct whole_file {
	struct file_op op;
	struct request *r;
	struct buf bytes; /* that were read */
	size_t most;
	bool too_large;   /* the file has more than `most`: `done` gets ERR_TOO_LARGE */
	struct view left; /* still to be written */
	void (*done)(struct whole_file *f, const struct file_info *info, const struct err *e);
};

/* May be called again when it is done. What was read counts with the request (http_hold). */
int whole_file_read(struct whole_file *f, struct request *r, const struct file_place *p, size_t most,
		    struct err *e) _must_check_;
/* The bytes live until `done`. */
int whole_file_write(struct whole_file *f, struct request *r, const struct file_place *p, struct view bytes,
		     bool append, struct err *e) _must_check_;
void whole_file_release(struct whole_file *f); /* accepts a zeroed one */
