/*
 * Listing a directory, a batch of entries in each round of the loop. Each entry
 * is encoded as a FileEntries of its own: put one after another they are one
 * FileEntries with all of them, as protobuf merges repeated fields.
 */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "dents.h"
#include "fd.h"
#include "stream.h"
#include "wire_gen.h"
#include "poison.h"

#define BATCH_ENTRIES 200
#define ENTRY_MAX     (NAME_MAX + PATH_MAX + 128) /* encoded */

struct lister {
	struct stream stream;
	struct user user;
	int fd;
	bool eof;
	uint64_t sent;
	struct buf batch;
	struct dents dents;
};

static struct lister *lister_of(struct stream *s)
{
	return CONTAINER(s, struct lister, stream);
}

static int add_entry(struct lister *ls, const struct dents_entry *d)
{
	struct stat st;
	char target[PATH_MAX];
	ssize_t n = 0;
	if (fstatat(ls->fd, d->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT)
			return 0; /* gone meanwhile */
		/* A directory that may be read but not searched: the names are all there is. */
		st = (struct stat){ .st_mode = DTTOIF(d->type) };
	} else if (S_ISLNK(st.st_mode)) {
		n = readlinkat(ls->fd, d->name, target, sizeof(target));
	}
	struct wire_file_info info;
	file_info(&st, view_of(d->name), &info);
	info.target = (struct view){ target, n > 0 ? (size_t)n : 0 };
	struct wire_file_entries one = { .entries = { .items = &info, .n = 1 } };
	return pb_encode(&wire_file_entries_msg, &one, &ls->batch);
}

/* As much as fits into `room` bytes. */
static int fill(struct lister *ls, size_t room)
{
	int r = user_enter(&ls->user);
	if (r < 0)
		return r;
	for (int i = 0; r == 0 && i < BATCH_ENTRIES && buf_len(&ls->batch) + ENTRY_MAX <= room; i++) {
		struct dents_entry d;
		r = dents_next(&ls->dents, ls->fd, &d);
		ls->eof = r == 0;
		if (r <= 0)
			break;
		r = add_entry(ls, &d);
	}
	user_leave();
	return r;
}

static void on_step(struct stream *s)
{
	struct lister *ls = lister_of(s);
	size_t room = stream_room(s);
	if (room < ENTRY_MAX)
		return; /* on_ready comes back */
	int r = fill(ls, room);
	if (r < 0) {
		struct err e;
		err_sys(&e, file_code(r), r, "the directory cannot be read to its end");
		stream_fail(s, &e);
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

static void on_cancel(struct stream *s, bool lost)
{
	struct err e;
	err_set(&e, ERR_CANCELLED, "cancelled");
	if (!lost)
		stream_fail(s, &e);
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
	.on_cancel = on_cancel,
	.free = lister_free,
};

int file_list(const struct call *call, struct err *e)
{
	const struct wire_file_list *msg = call->msg;
	struct file_target t;
	if (file_enter(&t, msg->path, msg->user, e) < 0)
		return -1;
	_cleanup_(closep) int fd = open(t.path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;
	user_leave();
	if (r < 0)
		return file_error(e, r, t.path);
	struct lister *ls = calloc(1, sizeof(*ls));
	if (!ls)
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	ls->fd = TAKE_FD(fd);
	ls->user = t.user;
	buf_init(&ls->batch, FRAME_DATA_MAX);
	stream_open(&ls->stream, call, &lister_ops);
	on_step(&ls->stream);
	return 0;
}
