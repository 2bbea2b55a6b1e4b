/*
 * See create_user.h. A stat of "/" as that user needs no permissions, only that the user exists.
 */
#include "create_user.h"

#include <errno.h>

#include "fd.h"
#include "wire_gen.h"
#include "poison.h"

#define PATIENCE_MS 5000

static int on_stat(struct call *c, const struct frame *f, int fd)
{
	struct create_user *u = CONTAINER(c, struct create_user, call);

	fd_close(fd);
	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	u->done(u, NULL);
	return 0;
}

static void on_fail(struct call *c, const struct err *said)
{
	struct create_user *u = CONTAINER(c, struct create_user, call);
	struct err e;

	guest_read_fail(said, &e);
	err_wrap(&e, "user");
	u->done(u, &e);
}

static const struct call_ops ops = { .on_reply = on_stat, .on_fail = on_fail };

void create_user(struct create_user *u, struct view name)
{
	struct wire_file_stat msg = { .path = VIEW("/"), .user = name };
	struct err e = { 0 };

	u->call = (struct call){ .ops = &ops };
	if (guest_call(u->guest, &u->call, WIRE_TYPE_FILE_STAT, PATIENCE_MS, PATIENCE_MS, &wire_file_stat_msg,
		       &msg, &e) < 0)
		u->done(u, &e);
}
