/*
 * Finding by name: the tree is walked in steps, what fits the pattern goes out as
 * FileEntries under its path. Directories that cannot be read are passed over, as
 * is what vanishes meanwhile.
 */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "clock.h"
#include "fd.h"
#include "glob.h"
#include "stream.h"
#include "walk.h"
#include "wire_gen.h"
#include "poison.h"

struct finder {
	struct stream stream;
	struct user user;
	struct walk walk;
	char pattern[GLOB_MAX + 1];
	uint8_t type;   /* DT_*, DT_UNKNOWN: any */
	size_t depth;   /* of the walk; 0: any */
	uint64_t limit; /* 0: all */
	uint64_t n, sent;
	bool truncated, detail;
	size_t entry;            /* the most that one takes */
	struct user_names names; /* with detail, of this round */
	struct buf batch;
};

static struct finder *finder_of(struct stream *s)
{
	return CONTAINER(s, struct finder, stream);
}

static bool fits(const struct finder *f, const struct walk_entry *en)
{
	if (f->type != DT_UNKNOWN && en->type != f->type && !(f->type == DT_CHR && en->type == DT_BLK))
		return false;
	return !f->pattern[0] ||
	       glob_match(view_of(f->pattern), (struct view){ f->walk.path, f->walk.path_n });
}

/* 0: done, 1: there is more. */
static int advance(struct finder *f)
{
	struct walk_entry en;
	int r = walk_next(&f->walk, &en);
	if (r <= 0 || r == WALK_LEAVE)
		return r < 0 ? r : r == WALK_LEAVE;
	if (fits(f, &en)) {
		if (f->limit && f->n == f->limit) {
			f->truncated = true;
			return 0;
		}
		r = file_put_entry(&f->batch, en.dir, en.name, en.type,
				   (struct view){ f->walk.path, f->walk.path_n },
				   f->detail ? &f->names : NULL);
		if (r < 0)
			return r;
		f->n += r == 0;
	}
	if (en.type == DT_DIR && (!f->depth || walk_depth(&f->walk) < f->depth)) {
		r = walk_enter(&f->walk);
		if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
			return r;
	}
	return 1;
}

static int fill(struct finder *f, size_t room)
{
	uint64_t until = clock_mono_ns() + FILE_STEP_NS;
	int r = user_enter(&f->user);
	if (r < 0)
		return r;
	if (f->detail)
		user_names_load(&f->names);
	do {
		r = 1;
		for (int i = 0; r > 0 && i < 16 && buf_len(&f->batch) + f->entry <= room; i++)
			r = advance(f);
	} while (r > 0 && buf_len(&f->batch) + f->entry <= room && clock_mono_ns() < until);
	user_leave();
	user_names_done(&f->names);
	return r;
}

static void on_step(struct stream *s)
{
	struct finder *f = finder_of(s);
	size_t room = stream_room(s);
	if (room < f->entry)
		return; /* on_ready comes back */
	int r = fill(f, room);
	if (r < 0) {
		file_fail(s, r, f->walk.path);
		return;
	}
	f->sent += buf_len(&f->batch);
	if (buf_len(&f->batch))
		stream_data(s, 0, buf_view(&f->batch));
	buf_clear(&f->batch);
	struct wire_file_done done = { .bytes = f->sent, .truncated = f->truncated || f->walk.cut };
	if (r == 0)
		stream_finish(s, &wire_file_done_msg, &done);
	else
		stream_again(s);
}

static void finder_free(struct stream *s)
{
	struct finder *f = finder_of(s);
	walk_done(&f->walk);
	buf_done(&f->batch);
	free(f);
}

static const struct stream_ops finder_ops = {
	.on_step = on_step,
	.on_ready = stream_again,
	.on_cancel = file_on_cancel,
	.free = finder_free,
};

int file_find_in(const struct conn_call *call, const struct user *u, int dir, struct view pattern,
		 int32_t type, size_t depth, uint64_t limit, bool detail, struct err *e)
{
	static const uint8_t types[] = {
		[WIRE_FILE_TYPE_NONE] = DT_UNKNOWN,  [WIRE_FILE_TYPE_FILE] = DT_REG,
		[WIRE_FILE_TYPE_DIRECTORY] = DT_DIR, [WIRE_FILE_TYPE_SYMLINK] = DT_LNK,
		[WIRE_FILE_TYPE_FIFO] = DT_FIFO,     [WIRE_FILE_TYPE_SOCKET] = DT_SOCK,
		[WIRE_FILE_TYPE_DEVICE] = DT_CHR,
	};
	_cleanup_(closep) int fd = dir;
	struct finder *f = calloc(1, sizeof(*f));
	if (!f)
		return err_set(e, ERR_UNAVAILABLE, "PID 1 is out of memory");
	f->user = *u;
	f->type = type > 0 && (size_t)type < ELEMS(types) ? types[type] : DT_UNKNOWN;
	f->depth = depth;
	f->limit = limit;
	f->detail = detail;
	f->entry = FILE_ENTRY_MAX + (detail ? FILE_DETAIL_MAX : 0);
	buf_init(&f->batch, FRAME_DATA_MAX);
	int r = view_to_str(pattern, f->pattern, sizeof(f->pattern));
	if (r == 0)
		r = walk_start(&f->walk, TAKE_FD(fd));
	if (r < 0) {
		finder_free(&f->stream);
		return file_error(e, r, "pattern");
	}
	stream_open(&f->stream, call, &finder_ops);
	on_step(&f->stream);
	return 0;
}

int file_find(const struct conn_call *call, struct err *e)
{
	const struct wire_file_find *msg = call->msg;
	struct file_target t;
	if (msg->pattern.n == 0)
		return err_set(e, ERR_INVALID, "pattern is empty");
	if (file_enter(&t, call, msg->path, msg->user, false, e) < 0)
		return -1;
	int fd = open(t.path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;
	user_leave();
	if (r < 0)
		return file_error(e, r, t.path);
	return file_find_in(call, &t.user, fd, msg->pattern, msg->type, 0, msg->limit, false, e);
}
