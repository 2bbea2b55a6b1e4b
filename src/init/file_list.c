/*
 * Listing a directory, a batch of entries in each round of the loop. Each entry
 * is encoded as a FileEntries of its own: put one after another they are one
 * FileEntries with all of them, as protobuf merges repeated fields.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "dents.h"
#include "fd.h"
#include "stream.h"
#include "wire_gen.h"
#include "poison.h"

#define BATCH_ENTRIES 200

struct lister {
	struct stream stream;
	struct user user;
	int fd;
	bool eof;
	uint64_t sent;
	bool detail;
	size_t entry; /* the most that one takes */
	struct buf batch;
	struct dents dents;
};

static struct lister *lister_of(struct stream *s)
{
	return CONTAINER(s, struct lister, stream);
}

/* As much as fits into `room` bytes. */
static int fill(struct lister *ls, size_t room)
{
	_cleanup_(user_names_done) struct user_names names = { 0 };
	int r = user_enter(&ls->user);
	if (r < 0)
		return r;
	if (ls->detail)
		user_names_load(&names);
	for (int i = 0; r == 0 && i < BATCH_ENTRIES && buf_len(&ls->batch) + ls->entry <= room; i++) {
		struct dents_entry d;
		r = dents_next(&ls->dents, ls->fd, &d);
		ls->eof = r == 0;
		if (r <= 0)
			break;
		r = file_put_entry(&ls->batch, ls->fd, d.name, d.type, view_of(d.name),
				   ls->detail ? &names : NULL);
		r = r < 0 ? r : 0; /* gone meanwhile */
	}
	user_leave();
	return r;
}

static void on_step(struct stream *s)
{
	struct lister *ls = lister_of(s);
	size_t room = stream_room(s);
	if (room < ls->entry)
		return; /* on_ready comes back */
	int r = fill(ls, room);
	if (r < 0) {
		file_fail(s, r, "the directory cannot be read to its end");
		return;
	}
	ls->sent += buf_len(&ls->batch);
	if (buf_len(&ls->batch))
		stream_data(s, 0, buf_view(&ls->batch));
	buf_clear(&ls->batch);
	if (ls->eof)
		stream_finish(s, &wire_file_done_msg, &(struct wire_file_done){ .bytes = ls->sent });
	else
		stream_again(s);
}

static void lister_free(struct stream *s)
{
	struct lister *ls = lister_of(s);
	fd_close(ls->fd);
	buf_done(&ls->batch);
	free(ls);
}

static const struct stream_ops lister_ops = {
	.on_step = on_step,
	.on_ready = stream_again,
	.on_cancel = file_on_cancel,
	.free = lister_free,
};

int file_list(const struct conn_call *call, struct err *e)
{
	const struct wire_file_list *msg = call->msg;
	struct file_target t;
	if (file_enter(&t, call, msg->path, msg->user, msg->as_root, e) < 0)
		return -1;
	_cleanup_(closep) int fd = open(t.path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;
	user_leave();
	if (r < 0)
		return file_error(e, r, t.path);
	if (msg->limit)
		return file_page(call, &t.user, TAKE_FD(fd), e);
	if (msg->depth > 1)
		return file_find_in(call, &t.user, TAKE_FD(fd), VIEW(""), WIRE_FILE_TYPE_NONE, msg->depth, 0,
				    msg->detail, e);
	struct lister *ls = calloc(1, sizeof(*ls));
	if (!ls)
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	ls->fd = TAKE_FD(fd);
	ls->user = t.user;
	ls->detail = msg->detail;
	ls->entry = FILE_ENTRY_MAX + (msg->detail ? FILE_DETAIL_MAX : 0);
	buf_init(&ls->batch, FRAME_DATA_MAX);
	stream_open(&ls->stream, call, &lister_ops);
	on_step(&ls->stream);
	return 0;
}
