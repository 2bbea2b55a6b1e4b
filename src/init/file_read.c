/*
 * Reading a file: its FileInfo, then its bytes as DATA, one chunk in each round
 * of the loop. The end is where read says so, not where stat did: files shrink,
 * and those in /proc have no size.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "fd.h"
#include "scratch.h"
#include "stream.h"
#include "wire_gen.h"
#include "poison.h"

struct reader {
	struct stream stream;
	int fd;
	uint64_t at, left, sent;
};

static struct reader *reader_of(struct stream *s)
{
	return CONTAINER(s, struct reader, stream);
}

static void on_step(struct stream *s)
{
	struct reader *rd = reader_of(s);
	size_t want = stream_room(s);
	if (want == 0)
		return; /* on_ready comes back */
	if (want > rd->left)
		want = (size_t)rd->left;
	ssize_t n = want ? pread(rd->fd, scratch, want, (off_t)rd->at) : 0;
	if (n < 0 && errno != EAGAIN) {
		struct err e;
		err_sys(&e, file_code(errno), errno, "the file cannot be read to its end");
		stream_fail(s, &e);
	} else if (n <= 0) {
		stream_finish(s, &wire_file_done_msg, &(struct wire_file_done){ .bytes = rd->sent });
	} else {
		stream_data(s, 0, (struct view){ scratch, (size_t)n });
		rd->at += (uint64_t)n;
		rd->left -= (uint64_t)n;
		rd->sent += (uint64_t)n;
		stream_again(s);
	}
}

static void on_cancel(struct stream *s, bool lost)
{
	struct err e;
	err_set(&e, ERR_CANCELLED, "cancelled");
	if (!lost)
		stream_fail(s, &e);
}

static void reader_free(struct stream *s)
{
	struct reader *rd = reader_of(s);
	fd_close(rd->fd);
	free(rd);
}

static const struct stream_ops reader_ops = {
	.on_step = on_step,
	.on_ready = stream_again,
	.on_cancel = on_cancel,
	.free = reader_free,
};

/* Looks before it opens: opening a device can have effects, a FIFO could wait. */
static int open_file(const char *path, struct stat *st, struct err *e)
{
	if (stat(path, st) < 0)
		return file_error(e, errno, path);
	int fd = -1;
	if (S_ISREG(st->st_mode)) {
		fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, st) < 0) {
			file_error(e, errno, path);
			fd_close(fd);
			return -1;
		}
	}
	if (S_ISREG(st->st_mode))
		return fd;
	fd_close(fd);
	return err_set(e, ERR_INVALID, "'%.120s' is %s", path,
		       S_ISDIR(st->st_mode) ? "a directory" : "not a regular file");
}

int file_read(const struct conn_call *call, struct err *e)
{
	const struct wire_file_read *msg = call->msg;
	struct file_target t;
	struct stat st;
	if (msg->offset > INT64_MAX || msg->length > INT64_MAX)
		return err_set(e, ERR_INVALID, "offset or length is too large");
	if (file_enter(&t, call, msg->path, msg->user, msg->as_root, e) < 0)
		return -1;
	bool here = file_within(t.path, msg->within.items, msg->within.n, e) == 0;
	_cleanup_(closep) int fd = here ? open_file(t.path, &st, e) : -1;
	user_leave();
	if (fd < 0)
		return -1;
	struct reader *rd = calloc(1, sizeof(*rd));
	if (!rd)
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	rd->fd = TAKE_FD(fd);
	rd->at = msg->offset;
	rd->left = msg->length ? msg->length : INT64_MAX - msg->offset;
	stream_open(&rd->stream, call, &reader_ops);
	struct wire_file_info info;
	file_info(&st, file_name(t.path), &info);
	stream_reply(&rd->stream, &wire_file_info_msg, &info);
	on_step(&rd->stream);
	return 0;
}
