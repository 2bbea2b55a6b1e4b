/*
 * The standard input of a shell's command. It is a file in the box, because a command may read as much
 * or as little of it as it likes, in any way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core_base.h"
#include "shells_impl.h"
#include "wire_gen.h"
#include "poison.h"

#define FILE_MS 60000

const char *shells_input_path(const struct shell_command *m, char path[SHELL_PATH])
{
	snprintf(path, SHELL_PATH, "/tmp/.paddock-%s", m->id);
	return path;
}

static struct view user_of(const struct shell *s)
{
	return s->made.user.n ? s->made.user : s->box->spec.user;
}

struct removal {
	struct call call;
	struct loop_task freeing;
	struct loop *loop;
};

static void run_free_removal(struct loop_task *t)
{
	free(CONTAINER(t, struct removal, freeing));
}

static int on_removed(struct call *c, const struct frame *f, int fd)
{
	struct removal *r = CONTAINER(c, struct removal, call);
	if (f->flags & FRAME_LAST)
		loop_defer(r->loop, &r->freeing, run_free_removal);
	return f->flags & FRAME_LAST ? 0 : -EBADMSG;
}

static void on_remove_fail(struct call *c, const struct err *e)
{
	struct removal *r = CONTAINER(c, struct removal, call);
	loop_defer(r->loop, &r->freeing, run_free_removal);
}

static const struct call_ops removal_ops = { .on_reply = on_removed, .on_fail = on_remove_fail };

/* Nobody waits for it: a file that stays is the box's own litter. */
void shells_input_remove(struct shell *s, const struct shell_command *m)
{
	char path[SHELL_PATH];
	struct wire_file_remove msg = { .path = view_of(shells_input_path(m, path)), .user = user_of(s) };
	struct removal *r = calloc(1, sizeof(*r));
	struct err e = { 0 };

	if (!r)
		return;
	r->call.ops = &removal_ops;
	r->loop = s->box->in->core->loop;
	if (guest_call(s->box->in->guest, &r->call, WIRE_TYPE_FILE_REMOVE, 0, FILE_MS, &wire_file_remove_msg,
		       &msg, &e) < 0)
		free(r);
}

static int on_file_written(struct call *c, const struct frame *f, int fd)
{
	struct shell_command *m = CONTAINER(c, struct shell_command, file);

	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	buf_done(&m->input);
	shells_send(m->shell, m);
	return 0;
}

static void on_file_room(struct call *c)
{
	struct shell_command *m = CONTAINER(c, struct shell_command, file);
	struct view rest = buf_view(&m->input);

	buf_consume(&m->input, mux_send(c, rest));
	if (buf_len(&m->input) == 0)
		mux_end(c);
}

static void on_file_fail(struct call *c, const struct err *said)
{
	struct shell_command *m = CONTAINER(c, struct shell_command, file);
	struct err e;

	guest_read_fail(said, &e);
	err_wrap(&e, "stdin");
	shells_lose(m->shell, m, &e);
}

static const struct call_ops file_ops = { .on_reply = on_file_written,
					  .on_room = on_file_room,
					  .on_fail = on_file_fail };

void shells_input_write(struct shell *s, struct shell_command *m)
{
	char path[SHELL_PATH];
	struct wire_file_write msg = { .path = view_of(shells_input_path(m, path)),
				       .user = user_of(s),
				       .mode = 0600 };
	struct err e = { 0 };

	m->file.ops = &file_ops;
	m->file.sends = true;
	if (guest_call(s->box->in->guest, &m->file, WIRE_TYPE_FILE_WRITE, 0, FILE_MS, &wire_file_write_msg,
		       &msg, &e) < 0)
		on_file_fail(&m->file, &e);
	else if (mux_is_open(&m->file))
		on_file_room(&m->file);
}
