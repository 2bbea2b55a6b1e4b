/*
 * Uploads: see upload.h.
 */
#include "upload.h"

#include "poison.h"

#define PIECES_MAX (4u * 1024 * 1024) /* that wait for room; a piece of the body at most */

void upload_init(struct upload *u, struct http_exchange *x, struct file_op *op)
{
	*u = (struct upload){ .op = op, .x = x, .pieces = BUF_INIT(PIECES_MAX) };
}

void upload_done(struct upload *u)
{
	buf_done(&u->pieces);
}

void upload_push(struct upload *u)
{
	buf_consume(&u->pieces, files_send(u->op, buf_view(&u->pieces)));
	if (buf_len(&u->pieces))
		return;
	if (u->last)
		files_end(u->op);
	else
		http_body_resume(u->x);
}

int upload_piece(struct upload *u, struct view data, bool last, struct err *e)
{
	u->last = last;
	if (buf_len(&u->pieces) == 0) /* the usual case: no copy */
		data = view_skip(data, files_send(u->op, data));
	if (buf_add(&u->pieces, data) < 0) {
		files_cancel(u->op);
		return err_set(e, ERR_INTERNAL, "the body comes in pieces that are too large");
	}
	if (buf_len(&u->pieces))
		http_body_pause(u->x);
	else if (last)
		files_end(u->op);
	return 0;
}
