/*
 * File work: see files.h.
 */
#include "files.h"

#include <errno.h>
#include <limits.h>

#include "auth.h"
#include "boxes.h"
#include "core_state.h"
#include "wire_gen.h"
#include "poison.h"

#define PATIENCE_MS    60000
#define NAME_BYTES_MAX 4096

const char *files_type_name(int32_t type)
{
	static const char *const names[] = {
		[WIRE_FILE_TYPE_NONE] = "unknown",        [WIRE_FILE_TYPE_FILE] = "file",
		[WIRE_FILE_TYPE_DIRECTORY] = "directory", [WIRE_FILE_TYPE_SYMLINK] = "symlink",
		[WIRE_FILE_TYPE_FIFO] = "fifo",           [WIRE_FILE_TYPE_SOCKET] = "socket",
		[WIRE_FILE_TYPE_DEVICE] = "device",
	};
	return type > 0 && (size_t)type < ELEMS(names) ? names[type] : names[0];
}

/* What a box says about a file is shown and computed with: nothing out of range gets further than here. */
static int check_info(struct wire_file_info *info)
{
	if (info->size > INT64_MAX || info->name.n > NAME_BYTES_MAX || info->target.n > NAME_BYTES_MAX)
		return -EBADMSG;
	info->mode &= 07777;
	return 0;
}

/* ---- answers ---- */

static void fail(struct call *c, const struct err *said)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	struct err e;
	guest_read_fail(said, &e);
	op->ops->done(op, NULL, false, &e);
}

static int on_plain_reply(struct call *c, const struct frame *f, int fd)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	op->ops->done(op, NULL, false, NULL);
	return 0;
}

static int on_read_reply(struct call *c, const struct frame *f, int fd)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	struct arena a = ARENA_INIT(16 * 1024);
	struct wire_file_info info;

	if (f->flags & FRAME_LAST) {
		if (!op->got_info)
			return -EBADMSG; /* no info came before */
		op->ops->done(op, NULL, false, NULL);
		return 0;
	}
	int r = op->got_info ? -EBADMSG : mux_decode(c, f->body, &wire_file_info_msg, &a, &info);
	if (r >= 0)
		r = check_info(&info);
	if (r >= 0) {
		op->got_info = true;
		op->ops->on_info(op, &info);
	}
	arena_done(&a);
	return r;
}

static int on_read_data(struct call *c, unsigned channel, struct view data)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	if (!op->got_info)
		return -EBADMSG;
	op->ops->on_data(op, data);
	return 0;
}

static int on_write_reply(struct call *c, const struct frame *f, int fd)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	struct arena a = ARENA_INIT(16 * 1024);
	struct wire_file_written written;
	int r = f->flags & FRAME_LAST ? mux_decode(c, f->body, &wire_file_written_msg, &a, &written)
				      : -EBADMSG;

	if (r >= 0)
		r = written.info && op->want_end ? check_info(written.info) : -EBADMSG;
	if (r >= 0)
		op->ops->done(op, written.info, written.created, NULL);
	arena_done(&a);
	return r;
}

static int on_stat_reply(struct call *c, const struct frame *f, int fd)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	struct arena a = ARENA_INIT(16 * 1024);
	struct wire_file_stat_reply reply;
	int r = f->flags & FRAME_LAST ? mux_decode(c, f->body, &wire_file_stat_reply_msg, &a, &reply)
				      : -EBADMSG;

	if (r >= 0)
		r = reply.info ? check_info(reply.info) : -EBADMSG;
	if (r >= 0)
		op->ops->done(op, reply.info, false, NULL);
	arena_done(&a);
	return r;
}

static int on_list_data(struct call *c, unsigned channel, struct view data)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	struct arena a = ARENA_INIT(FRAME_DATA_MAX * 64);
	struct wire_file_entries entries;
	int r = mux_decode(c, data, &wire_file_entries_msg, &a, &entries);

	for (size_t i = 0; r >= 0 && i < entries.entries.n; i++)
		r = check_info(&entries.entries.items[i]);
	if (r >= 0) /* the consumer gives the bytes back in its own time */
		op->ops->on_entries(op, entries.entries.items, entries.entries.n, data.n);
	arena_done(&a);
	return r;
}

static void on_room(struct call *c)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	if (op->want_end)
		mux_end(c);
	else
		op->ops->on_room(op);
}

static const struct call_ops read_ops = { .on_reply = on_read_reply,
					  .on_data = on_read_data,
					  .on_fail = fail };
static const struct call_ops write_ops = { .on_reply = on_write_reply, .on_room = on_room, .on_fail = fail };
static const struct call_ops stat_ops = { .on_reply = on_stat_reply, .on_fail = fail };
static const struct call_ops list_ops = { .on_reply = on_plain_reply,
					  .on_data = on_list_data,
					  .on_fail = fail };
static const struct call_ops remove_ops = { .on_reply = on_plain_reply, .on_fail = fail };

/* ---- operations ---- */

/* The box that the act is permitted on, and the user whose rights count. */
static struct box *begin(struct core *c, const struct actor *a, enum act act, const struct file_place *p,
			 struct view *ret_user, struct err *e)
{
	struct box *b = boxes_find(c, a, act, p->box, e);
	if (!b)
		return NULL;
	if (p->path.n == 0 || p->path.n >= SPEC_PATH_MAX || memchr(p->path.p, 0, p->path.n)) {
		err_set(e, ERR_INVALID, "the path must have 1 to %d bytes and no NUL", SPEC_PATH_MAX - 1);
		return NULL;
	}
	if (p->user.n && spec_check_user(p->user, "user", e) < 0)
		return NULL;
	if (b->state.status == BOX_STOPPED) {
		err_set(e, ERR_STATE, "the box has stopped");
		return NULL;
	}
	*ret_user = p->user.n ? p->user : b->spec.user;
	return b;
}

static int start(struct core *c, struct box *b, struct file_op *op, const struct call_ops *ops, uint16_t type,
		 const struct pb_msg *pm, const void *msg, struct err *e)
{
	c->stats.file_calls++;
	op->call.ops = ops;
	op->call.sends = ops == &write_ops;
	op->want_end = op->got_info = false;
	return guest_call(&b->guest, &op->call, type, 0, PATIENCE_MS, pm, msg, e);
}

int files_read(struct core *c, const struct actor *a, const struct file_place *p, uint64_t offset,
	       uint64_t length, struct file_op *op, struct err *e)
{
	struct wire_file_read msg = { .path = p->path, .offset = offset, .length = length };
	struct box *b = begin(c, a, ACT_FILE_READ, p, &msg.user, e);
	return b ? start(c, b, op, &read_ops, WIRE_TYPE_FILE_READ, &wire_file_read_msg, &msg, e) : -1;
}

int files_write(struct core *c, const struct actor *a, const struct file_place *p, unsigned mode,
		struct file_op *op, struct err *e)
{
	struct wire_file_write msg = { .path = p->path, .mode = mode, .parents = true };
	struct box *b = begin(c, a, ACT_FILE_WRITE, p, &msg.user, e);
	return b ? start(c, b, op, &write_ops, WIRE_TYPE_FILE_WRITE, &wire_file_write_msg, &msg, e) : -1;
}

int files_stat(struct core *c, const struct actor *a, const struct file_place *p, struct file_op *op,
	       struct err *e)
{
	struct wire_file_stat msg = { .path = p->path };
	struct box *b = begin(c, a, ACT_FILE_READ, p, &msg.user, e);
	return b ? start(c, b, op, &stat_ops, WIRE_TYPE_FILE_STAT, &wire_file_stat_msg, &msg, e) : -1;
}

int files_list(struct core *c, const struct actor *a, const struct file_place *p, struct file_op *op,
	       struct err *e)
{
	struct wire_file_list msg = { .path = p->path };
	struct box *b = begin(c, a, ACT_FILE_READ, p, &msg.user, e);
	return b ? start(c, b, op, &list_ops, WIRE_TYPE_FILE_LIST, &wire_file_list_msg, &msg, e) : -1;
}

int files_remove(struct core *c, const struct actor *a, const struct file_place *p, bool recursive,
		 struct file_op *op, struct err *e)
{
	struct wire_file_remove msg = { .path = p->path, .recursive = recursive };
	struct box *b = begin(c, a, ACT_FILE_WRITE, p, &msg.user, e);
	return b ? start(c, b, op, &remove_ops, WIRE_TYPE_FILE_REMOVE, &wire_file_remove_msg, &msg, e) : -1;
}

void files_consumed(struct file_op *op, size_t n)
{
	mux_consumed(&op->call, n);
}

size_t files_send(struct file_op *op, struct view data)
{
	return op->want_end ? 0 : mux_send(&op->call, data);
}

void files_end(struct file_op *op)
{
	op->want_end = true;
	if (mux_is_open(&op->call))
		mux_end(&op->call);
}

void files_cancel(struct file_op *op)
{
	guest_cancel(&op->call);
}
