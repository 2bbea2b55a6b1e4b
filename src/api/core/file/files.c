/*
 * File work: see file.h.
 */
#include "file.h"

#include <errno.h>
#include <limits.h>

#include "boxes.h"
#include "core_base.h"
#include "files_info.h"
#include "guest.h"
#include "spec_make.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define PATIENCE_MS 60000
#define LONG_MS     600000 /* for work on trees, which says nothing until it is done */
#define FOR_EVER    0
#define INFO_BYTES  (24u * 1024)

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
	struct arena a = ARENA_INIT(INFO_BYTES);
	struct wire_file_info said;
	struct file_info info;

	if (f->flags & FRAME_LAST) {
		if (!op->got_info)
			return -EBADMSG; /* no info came before */
		op->ops->done(op, NULL, false, NULL);
		return 0;
	}
	int r = op->got_info ? -EBADMSG : mux_decode(c, f->body, &wire_file_info_msg, &a, &said);
	if (r >= 0)
		r = files_info_take(&a, &said, &info);
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
	struct arena a = ARENA_INIT(INFO_BYTES);
	struct wire_file_written written;
	struct file_info info;
	int r = mux_reply(c, f, &wire_file_written_msg, &a, &written);

	if (r >= 0)
		r = written.info && op->want_end ? files_info_take(&a, written.info, &info) : -EBADMSG;
	if (r >= 0)
		op->ops->done(op, &info, written.created, NULL);
	arena_done(&a);
	return r;
}

static int on_stat_reply(struct call *c, const struct frame *f, int fd)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	struct arena a = ARENA_INIT(INFO_BYTES);
	struct wire_file_stat_reply reply;
	struct file_info info;
	int r = mux_reply(c, f, &wire_file_stat_reply_msg, &a, &reply);

	if (r >= 0)
		r = reply.info ? files_info_take(&a, reply.info, &info) : -EBADMSG;
	if (r >= 0)
		op->ops->done(op, &info, false, NULL);
	arena_done(&a);
	return r;
}

static int on_list_data(struct call *c, unsigned channel, struct view data)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	struct arena a = ARENA_INIT(FRAME_DATA_MAX * 64);
	struct wire_file_entries said;
	struct file_info *entries;
	int r = mux_decode(c, data, &wire_file_entries_msg, &a, &said);

	if (r >= 0)
		r = files_info_entries(&a, &said, &entries);
	if (r >= 0) /* the consumer gives the bytes back in its own time */
		op->ops->on_entries(op, entries, said.entries.n, data.n);
	arena_done(&a);
	return r;
}

static int on_list_reply(struct call *c, const struct frame *f, int fd)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	struct arena a = ARENA_INIT(4096);
	struct wire_file_done done;
	int r = mux_reply(c, f, &wire_file_done_msg, &a, &done);

	arena_done(&a);
	if (r < 0)
		return r;
	op->sum = (struct file_sum){ .truncated = done.truncated };
	op->ops->done(op, NULL, false, NULL);
	return 0;
}

static int on_grep_data(struct call *c, unsigned channel, struct view data)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	struct arena a = ARENA_INIT(FRAME_DATA_MAX * 64);
	struct wire_grep_matches said;
	struct file_match *found;
	int r = mux_decode(c, data, &wire_grep_matches_msg, &a, &said);

	if (r >= 0)
		r = files_info_matches(&a, &said, &found);
	if (r >= 0)
		op->ops->on_matches(op, found, said.matches.n, data.n);
	arena_done(&a);
	return r;
}

static int on_grep_reply(struct call *c, const struct frame *f, int fd)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	struct arena a = ARENA_INIT(4096);
	struct wire_file_grep_done done;
	int r = mux_reply(c, f, &wire_file_grep_done_msg, &a, &done);

	arena_done(&a);
	if (r < 0)
		return r;
	op->sum = (struct file_sum){ .files = done.files,
				     .skipped = done.skipped,
				     .truncated = done.truncated };
	op->ops->done(op, NULL, false, NULL);
	return 0;
}

static int on_watch_data(struct call *c, unsigned channel, struct view data)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	struct arena a = ARENA_INIT(FRAME_DATA_MAX * 64);
	struct wire_file_events said;
	struct file_event *found;
	int r = mux_decode(c, data, &wire_file_events_msg, &a, &said);

	if (r >= 0)
		r = files_info_events(&a, &said, &found);
	if (r >= 0 && op->ops->on_events)
		op->ops->on_events(op, found, said.events.n, data.n);
	else if (r >= 0)
		op->ops->on_data(op, data);
	arena_done(&a);
	return r;
}

static int on_watch_reply(struct call *c, const struct frame *f, int fd)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);

	if (f->flags & FRAME_LAST) {
		op->ops->done(op, NULL, false, NULL);
		return 0;
	}
	if (op->got_info)
		return -EBADMSG;
	op->got_info = true;
	op->ops->on_started(op);
	return 0;
}

/* copy, pack, unpack */
static int on_tree_reply(struct call *c, const struct frame *f, int fd)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	struct arena a = ARENA_INIT(4096);
	struct wire_tree_done done;
	int r = mux_reply(c, f, &wire_tree_done_msg, &a, &done);

	arena_done(&a);
	if (r >= 0 && c->sends && !op->want_end)
		r = -EBADMSG; /* not all of it has been given */
	if (r < 0)
		return r;
	op->sum = (struct file_sum){ .files = done.files,
				     .directories = done.directories,
				     .bytes = done.bytes,
				     .skipped = done.skipped };
	op->ops->done(op, NULL, false, NULL);
	return 0;
}

static int on_pack_data(struct call *c, unsigned channel, struct view data)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	op->ops->on_data(op, data);
	return 0;
}

static int on_chmod_reply(struct call *c, const struct frame *f, int fd)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	struct arena a = ARENA_INIT(4096);
	struct wire_file_chmod_reply reply;
	int r = mux_reply(c, f, &wire_file_chmod_reply_msg, &a, &reply);

	arena_done(&a);
	if (r < 0)
		return r;
	op->sum = (struct file_sum){ .changed = reply.changed };
	op->ops->done(op, NULL, false, NULL);
	return 0;
}

static int on_move_reply(struct call *c, const struct frame *f, int fd)
{
	struct file_op *op = CONTAINER(c, struct file_op, call);
	struct arena a = ARENA_INIT(4096);
	struct wire_file_moved reply;
	int r = mux_reply(c, f, &wire_file_moved_msg, &a, &reply);

	arena_done(&a);
	if (r < 0)
		return r;
	op->sum = (struct file_sum){ .copied = reply.copied };
	op->ops->done(op, NULL, false, NULL);
	return 0;
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
static const struct call_ops list_ops = { .on_reply = on_list_reply,
					  .on_data = on_list_data,
					  .on_fail = fail };
static const struct call_ops plain_ops = { .on_reply = on_plain_reply, .on_fail = fail };
static const struct call_ops grep_ops = { .on_reply = on_grep_reply,
					  .on_data = on_grep_data,
					  .on_fail = fail };
static const struct call_ops watch_ops = { .on_reply = on_watch_reply,
					   .on_data = on_watch_data,
					   .on_fail = fail };
static const struct call_ops copy_ops = { .on_reply = on_tree_reply, .on_fail = fail };
static const struct call_ops pack_ops = { .on_reply = on_tree_reply,
					  .on_data = on_pack_data,
					  .on_fail = fail };
static const struct call_ops unpack_ops = { .on_reply = on_tree_reply, .on_room = on_room, .on_fail = fail };
static const struct call_ops move_ops = { .on_reply = on_move_reply, .on_fail = fail };
static const struct call_ops chmod_ops = { .on_reply = on_chmod_reply, .on_fail = fail };

/* ---- operations ---- */

static int check_path(struct view path, struct err *e)
{
	if (path.n == 0 || path.n >= SPEC_PATH_MAX || memchr(path.p, 0, path.n))
		return err_set(e, ERR_INVALID, "a path must have 1 to %d bytes and no NUL",
			       SPEC_PATH_MAX - 1);
	return 0;
}

/* The box that the act is permitted on, and the user whose rights count. */
static struct box *begin(struct core *c, const struct actor *a, enum act act, const struct file_place *p,
			 struct view *ret_user, struct err *e)
{
	struct box *b = boxes_find(c, a, act, p->box, e);
	if (!b)
		return NULL;
	if (check_path(p->path, e) < 0)
		return NULL;
	if (p->user.n && spec_check_user(p->user, "user", e) < 0)
		return NULL;
	if (b->state.status == BOX_STOPPED) {
		err_set(e, ERR_STATE, "the sandbox has stopped");
		return NULL;
	}
	*ret_user = p->user.n ? p->user : b->spec.user;
	return b;
}

static int start_for(struct core *c, struct box *b, struct file_op *op, const struct call_ops *ops,
		     uint16_t type, uint32_t patience_ms, const struct pb_msg *pm, const void *msg,
		     struct err *e)
{
	c->stats.file_calls++;
	op->call.ops = ops;
	op->call.sends = ops == &write_ops || ops == &unpack_ops;
	op->want_end = op->got_info = false;
	op->sum = (struct file_sum){ 0 };
	return guest_call(b->in->guest, &op->call, type, 0, patience_ms, pm, msg, e);
}

static int start(struct core *c, struct box *b, struct file_op *op, const struct call_ops *ops, uint16_t type,
		 const struct pb_msg *pm, const void *msg, struct err *e)
{
	return start_for(c, b, op, ops, type, PATIENCE_MS, pm, msg, e);
}

int files_read(struct core *c, const struct actor *a, const struct file_place *p, uint64_t offset,
	       uint64_t length, struct file_op *op, struct err *e)
{
	struct wire_file_read msg = {
		.path = p->path,
		.as_root = p->as_root,
		.offset = offset,
		.length = length,
		.within = { (struct view *)p->within, p->n_within },
	};
	struct box *b = begin(c, a, ACT_FILE_READ, p, &msg.user, e);
	return b ? start(c, b, op, &read_ops, WIRE_TYPE_FILE_READ, &wire_file_read_msg, &msg, e) : -1;
}

int files_write(struct core *c, const struct actor *a, const struct file_place *p, unsigned mode, bool append,
		struct file_op *op, struct err *e)
{
	struct wire_file_write msg = { .path = p->path,
				       .as_root = p->as_root,
				       .mode = mode,
				       .within = { (struct view *)p->within, p->n_within },
				       .parents = true,
				       .append = append,
				       .exclusive = op->exclusive,
				       .detail = op->detail };
	struct wire_env_var vars[FILES_METADATA_MAX];
	struct box *b = begin(c, a, ACT_FILE_WRITE, p, &msg.user, e);
	if (b && op->metadata.n > FILES_METADATA_MAX)
		return err_set(e, ERR_INVALID, "more than %d pieces of metadata", FILES_METADATA_MAX);
	for (size_t i = 0; b && i < op->metadata.n; i++)
		vars[i] = (struct wire_env_var){ op->metadata.keys[i], op->metadata.values[i] };
	msg.metadata.items = vars;
	msg.metadata.n = op->metadata.n;
	return b ? start(c, b, op, &write_ops, WIRE_TYPE_FILE_WRITE, &wire_file_write_msg, &msg, e) : -1;
}

int files_stat(struct core *c, const struct actor *a, const struct file_place *p, struct file_op *op,
	       struct err *e)
{
	struct wire_file_stat msg = { .path = p->path, .as_root = p->as_root, .detail = op->detail };
	struct box *b = begin(c, a, ACT_FILE_READ, p, &msg.user, e);
	return b ? start(c, b, op, &stat_ops, WIRE_TYPE_FILE_STAT, &wire_file_stat_msg, &msg, e) : -1;
}

int files_list(struct core *c, const struct actor *a, const struct file_place *p,
	       const struct file_page *page, struct file_op *op, struct err *e)
{
	struct wire_file_list msg = { .path = p->path,
				      .as_root = p->as_root,
				      .depth = page->depth,
				      .limit = page->limit,
				      .after = page->after,
				      .detail = op->detail };
	struct box *b = begin(c, a, ACT_FILE_READ, p, &msg.user, e);
	return b ? start_for(c, b, op, &list_ops, WIRE_TYPE_FILE_LIST, LONG_MS, &wire_file_list_msg, &msg, e)
		 : -1;
}

int files_remove(struct core *c, const struct actor *a, const struct file_place *p, bool recursive,
		 struct file_op *op, struct err *e)
{
	struct wire_file_remove msg = { .path = p->path, .as_root = p->as_root, .recursive = recursive };
	struct box *b = begin(c, a, ACT_FILE_WRITE, p, &msg.user, e);
	return b ? start_for(c, b, op, &plain_ops, WIRE_TYPE_FILE_REMOVE, LONG_MS, &wire_file_remove_msg,
			     &msg, e)
		 : -1;
}

int files_mkdir(struct core *c, const struct actor *a, const struct file_place *p, unsigned mode,
		bool parents, struct file_op *op, struct err *e)
{
	struct wire_file_mkdir msg = {
		.path = p->path, .as_root = p->as_root, .mode = mode, .parents = parents
	};
	struct box *b = begin(c, a, ACT_FILE_WRITE, p, &msg.user, e);
	return b ? start(c, b, op, &plain_ops, WIRE_TYPE_FILE_MKDIR, &wire_file_mkdir_msg, &msg, e) : -1;
}

int files_move(struct core *c, const struct actor *a, const struct file_place *p, struct view to,
	       bool overwrite, struct file_op *op, struct err *e)
{
	struct wire_file_move msg = {
		.from = p->path, .as_root = p->as_root, .to = to, .overwrite = overwrite
	};
	struct box *b = begin(c, a, ACT_FILE_WRITE, p, &msg.user, e);
	if (!b || check_path(to, e) < 0)
		return -1;
	return start_for(c, b, op, &move_ops, WIRE_TYPE_FILE_MOVE, LONG_MS, &wire_file_move_msg, &msg, e);
}

int files_copy(struct core *c, const struct actor *a, const struct file_place *p, struct view to,
	       bool recursive, bool overwrite, struct file_op *op, struct err *e)
{
	struct wire_file_copy msg = {
		.from = p->path, .to = to, .recursive = recursive, .overwrite = overwrite
	};
	struct box *b = begin(c, a, ACT_FILE_WRITE, p, &msg.user, e);
	if (!b || check_path(to, e) < 0)
		return -1;
	return start_for(c, b, op, &copy_ops, WIRE_TYPE_FILE_COPY, LONG_MS, &wire_file_copy_msg, &msg, e);
}

int files_chmod(struct core *c, const struct actor *a, const struct file_place *p,
		const struct file_change *change, struct file_op *op, struct err *e)
{
	struct wire_file_chmod msg = { .path = p->path,
				       .mode = change->mode,
				       .has_mode = change->has_mode,
				       .owner = change->owner,
				       .recursive = change->recursive };
	struct box *b = begin(c, a, ACT_FILE_WRITE, p, &msg.user, e);
	return b ? start_for(c, b, op, &chmod_ops, WIRE_TYPE_FILE_CHMOD, LONG_MS, &wire_file_chmod_msg, &msg,
			     e)
		 : -1;
}

/* ---- search, watching, archives ---- */

static int read_type(struct view name, int32_t *ret, struct err *e)
{
	*ret = FILE_TYPE_NONE;
	for (enum file_type i = FILE_TYPE_FILE; name.n && i < FILE_TYPES; i++)
		if (view_is(name, files_type_name(i)))
			*ret = i;
	if (name.n && *ret == FILE_TYPE_NONE)
		return err_set(e, ERR_INVALID,
			       "type must be file, directory, symlink, fifo, socket or device");
	return 0;
}

int files_find(struct core *c, const struct actor *a, const struct file_place *p, const struct file_search *s,
	       struct file_op *op, struct err *e)
{
	struct wire_file_find msg = { .path = p->path, .pattern = s->pattern, .limit = s->limit };
	struct box *b = begin(c, a, ACT_FILE_READ, p, &msg.user, e);
	if (!b || read_type(s->type, &msg.type, e) < 0)
		return -1;
	return start_for(c, b, op, &list_ops, WIRE_TYPE_FILE_FIND, LONG_MS, &wire_file_find_msg, &msg, e);
}

int files_grep(struct core *c, const struct actor *a, const struct file_place *p, const struct file_search *s,
	       struct file_op *op, struct err *e)
{
	struct wire_file_grep msg = { .path = p->path,
				      .pattern = s->pattern,
				      .regex = s->regex,
				      .ignore_case = s->ignore_case,
				      .include = s->include,
				      .limit = s->limit };
	struct box *b = begin(c, a, ACT_FILE_READ, p, &msg.user, e);
	return b ? start_for(c, b, op, &grep_ops, WIRE_TYPE_FILE_GREP, LONG_MS, &wire_file_grep_msg, &msg, e)
		 : -1;
}

int files_watch(struct core *c, const struct actor *a, const struct file_place *p, bool recursive,
		struct file_op *op, struct err *e)
{
	struct wire_file_watch msg = { .path = p->path, .as_root = p->as_root, .recursive = recursive };
	struct box *b = begin(c, a, ACT_FILE_READ, p, &msg.user, e);
	return b ? start_for(c, b, op, &watch_ops, WIRE_TYPE_FILE_WATCH, FOR_EVER, &wire_file_watch_msg, &msg,
			     e)
		 : -1;
}

int files_pack(struct core *c, const struct actor *a, const struct file_place *p, struct file_op *op,
	       struct err *e)
{
	struct wire_tree_read msg = { .path = p->path };
	struct box *b = begin(c, a, ACT_FILE_READ, p, &msg.user, e);
	return b ? start(c, b, op, &pack_ops, WIRE_TYPE_TREE_READ, &wire_tree_read_msg, &msg, e) : -1;
}

int files_unpack(struct core *c, const struct actor *a, const struct file_place *p, struct file_op *op,
		 struct err *e)
{
	struct wire_tree_write msg = { .path = p->path };
	struct box *b = begin(c, a, ACT_FILE_WRITE, p, &msg.user, e);
	return b ? start(c, b, op, &unpack_ops, WIRE_TYPE_TREE_WRITE, &wire_tree_write_msg, &msg, e) : -1;
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
