/*
 * See owner.h. The keeper passes a connection of root on to the signer, and refuses another by a failure of
 * its first call, which may arrive before we have sent that.
 */
#include "owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "fd.h"
#include "frame.h"
#include "local.h"
#include "settings.h"
#include "show.h"
#include "wire_gen.h"

#include "poison.h"

#define NAME       "owner.sock"
#define PATIENCE_S 60 /* a password that is slow to check takes seconds */

const struct opt owner_opts[OWNER_OPTS] = {
	{ "run-dir", 0, OPT_TEXT, offsetof(struct owner_flags, run_dir), "DIR",
	  "of the daemon whose wallets these are (default: the one that runs on this machine)" },
};

/* ---- the channel ---- */

static int find_run_dir(const struct owner_flags *f, struct arena *a, const char **ret, struct err *e)
{
	const char *env = getenv("PADDOCK_RUN_DIR");
	struct local_daemon local;
	struct config config;

	*ret = f->run_dir;
	if (*ret || (env && *env)) {
		*ret = *ret ? *ret : env;
		return 0;
	}
	local_find(&local);
	if (local.run_dir[0]) {
		*ret = arena_str(a, view_of(local.run_dir));
	} else {
		if (settings_load(a, &(struct settings_flags){ 0 }, &config, NULL, e) < 0)
			return -1;
		*ret = arena_str(a, config.run_dir);
	}
	return *ret ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
}

int owner_open(struct owner *o, const struct owner_flags *f, struct arena *a, struct err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	const char *run;

	if (find_run_dir(f, a, &run, e) < 0)
		return -1;
	_cleanup_(closep) int dir = open(run, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (dir < 0)
		return err_sys(e, ERR_UNAVAILABLE, errno, "no daemon runs with %.100s", run);
	/* Through the descriptor: a path may be longer than an address. */
	snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/" NAME, dir);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "socket");
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		if (errno == EACCES || errno == EPERM)
			return err_set(e, ERR_FORBIDDEN, "wallets belong to root of this machine: use sudo");
		return err_sys(e, ERR_UNAVAILABLE, errno, "no daemon listens on %.100s/" NAME, run);
	}
	*o = (struct owner){ .fd = TAKE_FD(fd), .arena = a };
	return 0;
}

void owner_done(struct owner *o)
{
	closep(&o->fd);
}

/* ---- calls ---- */

static int send_all(int fd, struct view v)
{
	while (v.n) {
		ssize_t n = send(fd, v.p, v.n, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		v = view_skip(v, (size_t)n);
	}
	return 0;
}

/* 1: a frame is in `in`. */
static int receive(int fd, struct buf *in, struct frame *ret)
{
	for (;;) {
		size_t size;
		int r = frame_parse(buf_view(in), ret, &size);
		if (r != 0)
			return r;
		char *room = buf_reserve(in, MAX(size - buf_len(in), (size_t)1));
		if (!room)
			return in->bad;
		ssize_t n = recv(fd, room, MAX(size - buf_len(in), (size_t)1), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ECONNRESET;
		buf_commit(in, (size_t)n);
	}
}

/* Its text is the signer's or the keeper's; what it quotes may be anybody's. */
static int read_fail(struct arena *a, const struct frame *f, struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(1024);
	struct wire_fail m;
	char code[64];

	if (pb_decode(&wire_fail_msg, f->body, PB_SKIP_UNKNOWN, a, &m) < 0 ||
	    view_to_str(m.code, code, sizeof(code)) < 0)
		return err_set(e, ERR_INTERNAL, "the signer's answer cannot be read");
	(void)!show_clean(&text, view_head(m.message, 512));
	return err_set(e, err_from_name(code), "%.*s", VIEW_ARG(buf_view(&text)));
}

int owner_call(struct owner *o, uint16_t type, const struct pb_msg *request_msg, const void *msg,
	       const struct pb_msg *reply_msg, void *reply, struct err *e)
{
	_cleanup_(buf_done) struct buf out = { .max = FRAME_BODY_MAX + FRAME_HEADER, .secret = true };
	_cleanup_(buf_done) struct buf in = { .max = FRAME_BODY_MAX + FRAME_HEADER, .secret = true };
	struct frame f;

	if (frame_put_msg(&out, type, FRAME_CALL, 0, ++o->stream, 0, request_msg, msg) < 0)
		return err_set(e, ERR_TOO_LARGE, "the request is too large");
	int sent = send_all(o->fd, buf_view(&out)); /* one that was refused before has its answer */
	int r = receive(o->fd, &in, &f);
	if (r < 0)
		return err_sys(e, ERR_UNAVAILABLE, sent < 0 ? sent : r, "the signer does not answer");
	if (f.stream != o->stream)
		return err_set(e, ERR_INTERNAL, "the signer answers something else");
	if (f.kind == FRAME_FAIL)
		return read_fail(o->arena, &f, e);
	struct view body = arena_view(o->arena, f.body);
	void *to = reply ? reply : arena_alloc(o->arena, reply_msg->size);
	if (f.kind != FRAME_REPLY || !body.p || !to || pb_decode(reply_msg, body, 0, o->arena, to) < 0)
		return err_set(e, ERR_INTERNAL, "the signer's answer cannot be read");
	return 0;
}

/* ---- what most commands begin with ---- */

int owner_wallet(struct owner *o, const char *name, struct sgn_wallet *ret, struct err *e)
{
	struct sgn_wallet_list_reply list;
	const struct sgn_wallet *found = NULL;

	if (owner_call(o, SGN_SIGNER_TYPE_WALLET_LIST, &sgn_wallet_list_msg, &(struct sgn_wallet_list){ 0 },
		       &sgn_wallet_list_reply_msg, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.wallets.n; i++) {
		const struct sgn_wallet *w = &list.wallets.items[i];
		if (view_is(w->id, name)) {
			*ret = *w;
			return 0;
		}
		if (!view_is(w->label, name))
			continue;
		if (found)
			return err_set(e, ERR_INVALID, "several wallets are called %.64s: use an id", name);
		found = w;
	}
	if (!found)
		return err_set(e, ERR_NOT_FOUND, "there is no wallet %.64s: see `paddock wallet ls`", name);
	*ret = *found;
	return 0;
}

int owner_rules(struct owner *o, const char *scope, struct sgn_rules *ret, struct err *e)
{
	struct sgn_rules_reply reply;

	if (owner_call(o, SGN_SIGNER_TYPE_RULES_GET, &sgn_rules_get_msg,
		       &(struct sgn_rules_get){ .scope = view_of(scope) }, &sgn_rules_reply_msg, &reply,
		       e) < 0)
		return -1;
	*ret = reply.rules ? *reply.rules : (struct sgn_rules){ .scope = view_of(scope) };
	return 0;
}

int owner_put_rules(struct owner *o, struct sgn_rules *r, struct err *e)
{
	return owner_call(o, SGN_SIGNER_TYPE_RULES_PUT, &sgn_rules_put_msg,
			  &(struct sgn_rules_put){ .rules = r }, &sgn_rules_reply_msg, NULL, e);
}
