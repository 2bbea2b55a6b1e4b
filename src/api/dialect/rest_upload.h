/*
 * A request's body into a file of a box, as fast as the box takes it; and
 * PUT /v1/sandboxes/{id}/files/{path}.
 */
#pragma once

#include "file.h"
#include "http.h"

struct req;

struct rest_upload {
	struct file_op *op;
	struct http_exchange *x;
	struct buf pieces; /* that wait for room */
	bool last;
};

/* No body is taken before this. */
void rest_upload_init(struct rest_upload *u, struct http_exchange *x, struct file_op *op);
void rest_upload_done(struct rest_upload *u);
/* Of on_body; -1: it is cancelled. */
int rest_upload_piece(struct rest_upload *u, struct view data, bool last, struct err *e) _must_check_;
/* Of on_room. */
void rest_upload_push(struct rest_upload *u);

void rest_upload(struct req *r);
