/*
 * The owner's socket: see owner.h.
 *
 * Should: pass on connections of processes whose user is root on the host (in the keeper's user namespace).
 * Mustn't: pass on any other, whatever the mode of the socket has become, or read what a peer sends. A
 * sandbox's root is another user of the host, and sandboxes do not see RUN.
 */
#include "owner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fd.h"
#include "log.h"
#include "signer.h"
#include "signer_gen.h"
#include "wire_gen.h"
#include "poison.h"

#define NAME    "owner.sock"
#define BACKLOG 16

/* Answers the first call, which has not been read, by a FAIL; its stream is 1. */
static void refuse(int fd, const struct err *e)
{
	struct buf out = BUF_INIT(1024);
	const struct wire_fail m = { .code = view_of(err_name(e->code)), .message = view_of(e->msg) };

	if (frame_put_msg(&out, SGN_SIGNER_TYPE_STATUS, FRAME_FAIL, 0, 1, 0, &wire_fail_msg, &m) == 0)
		(void)!send(fd, buf_view(&out).p, buf_view(&out).n, MSG_DONTWAIT | MSG_NOSIGNAL);
	buf_done(&out);
}

static int check_peer(int fd, struct err *e)
{
	struct ucred who;
	socklen_t n = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || n != sizeof(who))
		return err_sys(e, ERR_INTERNAL, errno, "cannot tell who connects");
	if (who.uid == 0)
		return 0;
	log_warn("user %u was refused at " NAME, (unsigned)who.uid);
	return err_set(e, ERR_FORBIDDEN, "only root may manage wallets: run this as root (you are user %u)",
		       (unsigned)who.uid);
}

static void on_connection(struct loop_io *io, uint32_t events)
{
	struct keeper *k = CONTAINER(io, struct keeper, owner);
	struct err e = { 0 };

	(void)events;
	_cleanup_(closep) int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	if (check_peer(fd, &e) < 0 || signer_ready(k, SGN_SIGNER_ROLE_OWNER, &e) < 0)
		refuse(fd, &e);
	else if (signer_pass(k, SGN_SIGNER_ROLE_OWNER, TAKE_FD(fd), &e) < 0)
		log_warn("the owner: %s", e.msg);
}

int owner_listen(struct keeper *k, struct err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys(e, ERR_INTERNAL, errno, "socket");
	/* Through the directory's descriptor: a path may be longer than an address. */
	snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/" NAME, k->run);
	if (unlinkat(k->run, NAME, 0) < 0 && errno != ENOENT)
		return err_sys(e, ERR_INTERNAL, errno, "cannot remove %s/" NAME, k->run_path);
	mode_t old = umask(0177); /* it is never wider, not even for a moment */
	int r = bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ? -errno : 0;
	umask(old);
	if (r == 0 && listen(fd, BACKLOG) < 0)
		r = -errno;
	if (r == 0)
		r = loop_io_start(k->loop, &k->owner, fd, EPOLLIN, on_connection);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot listen on %s/" NAME, k->run_path);
	TAKE_FD(fd);
	return 0;
}
