/*
 * Gives a box with the files of another its own identity: its own PID 1 writes a new machine id before
 * anybody is told of the box. An image without a machine id stays without one; where it cannot be
 * written (a read-only root), the old one stays.
 */
#include "create_identity.h"

#include <errno.h>
#include <stdlib.h>

#include "log.h"
#include "rnd.h"
#include "text.h"
#include "wire_gen.h"
#include "poison.h"

#define PATIENCE_MS 5000

static const struct view path = VIEW("/etc/machine-id");

static void finish(struct create_identity *id, const struct err *e)
{
	if (e && e->code != ERR_NOT_FOUND)
		log_warn("box %s: its machine id stays that of the original: %s", id->guest->box, e->msg);
	id->done(id);
}

static void on_fail(struct call *c, const struct err *e)
{
	finish(CONTAINER(c, struct create_identity, call), e);
}

static int on_written(struct call *c, const struct frame *f, int fd)
{
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	finish(CONTAINER(c, struct create_identity, call), NULL);
	return 0;
}

static void on_room(struct call *c)
{
}

static const struct call_ops write_ops = { .on_reply = on_written, .on_fail = on_fail, .on_room = on_room };

static void write_new(struct create_identity *id)
{
	struct wire_file_write msg = { .path = path, .user = VIEW("root") };
	uint8_t random[16];
	char text[sizeof(random) * 2 + 1];
	struct err e = { 0 };

	rnd_bytes(random, sizeof(random));
	text_hex(random, sizeof(random), text);
	text[sizeof(text) - 1] = '\n';
	id->call = (struct call){ .ops = &write_ops, .sends = true };
	if (guest_call(id->guest, &id->call, WIRE_TYPE_FILE_WRITE, PATIENCE_MS, PATIENCE_MS,
		       &wire_file_write_msg, &msg, &e) < 0) {
		finish(id, &e);
		return;
	}
	/* The link has just been greeted and a window is far larger than this. */
	mux_send(&id->call, (struct view){ text, sizeof(text) });
	mux_end(&id->call);
}

static int on_stat(struct call *c, const struct frame *f, int fd)
{
	struct create_identity *id = CONTAINER(c, struct create_identity, call);
	struct arena a = ARENA_INIT(16 * 1024);
	struct wire_file_stat_reply reply;
	int r = mux_reply(c, f, &wire_file_stat_reply_msg, &a, &reply);
	bool is_file = r >= 0 && reply.info && reply.info->type == WIRE_FILE_TYPE_FILE;

	arena_done(&a);
	if (r < 0)
		return r;
	if (is_file)
		write_new(id);
	else
		finish(id, NULL);
	return 0;
}

static const struct call_ops stat_ops = { .on_reply = on_stat, .on_fail = on_fail };

void create_identity(struct create_identity *id)
{
	struct wire_file_stat msg = { .path = path, .user = VIEW("root") };
	struct err e = { 0 };

	id->call = (struct call){ .ops = &stat_ops };
	if (guest_call(id->guest, &id->call, WIRE_TYPE_FILE_STAT, PATIENCE_MS, PATIENCE_MS,
		       &wire_file_stat_msg, &msg, &e) < 0)
		finish(id, &e);
}
