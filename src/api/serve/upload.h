/*
 * Writes a request's body to a file in a box, as fast as the box takes it.
 */
#pragma once

#include "file.h"
#include "http.h"

struct upload {
	struct file_op *op;
	struct http_exchange *x;
	struct buf pieces; /* that wait for room */
	bool last;
};

/* No body is taken before this. */
void upload_init(struct upload *u, struct http_exchange *x, struct file_op *op);
void upload_done(struct upload *u);
/* Of on_body; -1: it is cancelled. */
int upload_piece(struct upload *u, struct view data, bool last, struct err *e) _must_check_;
/* Of on_room. */
void upload_push(struct upload *u);
