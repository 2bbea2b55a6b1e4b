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
#include "text.h"
#include "url.h"
#include "wire_gen.h"

#include "poison.h"

#define NAME       "owner.sock"
#define PATIENCE_S 60 /* a password that is slow to check takes seconds */

const struct opt owner_opts[OWNER_OPTS] = {
	{ "run-dir", 0, OPT_TEXT, offsetof(struct owner_flags, run_dir), "DIR",
	  "of the daemon whose wallets these are (default: the one that runs on this machine)" },
};

/* ---- the channel ---- */

static bool is_same(const char *a, const char *b)
{
	struct url x, y;
	struct err e = { 0 };

	return url_parse(view_of(a), &x, &e) == 0 && url_parse(view_of(b), &y, &e) == 0 &&
	       strcmp(x.port, y.port) == 0 && ((x.loopback && y.loopback) || strcmp(x.host, y.host) == 0);
}

/* Whoever names a daemon by its address means that one, and not the one that this machine has a note of. */
static int check_note(const struct owner_flags *f, const struct local_daemon *local, struct arena *a,
		      struct err *e)
{
	const char *url;

	if (session_named(f->session ? f->session : &(struct session_flags){ 0 }, a, &url, e) < 0)
		return -1;
	if (!url) {
		if (local->run_dir[0] && local_has_others())
			fprintf(stderr,
				"paddock: several daemons run on this machine; this is about the one at %s "
				"(%s)\n",
				local->url, local->run_dir);
		return 0;
	}
	if (local->run_dir[0] && is_same(url, local->url))
		return 0;
	return err_set(e, ERR_INVALID,
		       "%.100s is named, and wallets are reached through the run directory of a daemon. The "
		       "one that is "
		       "known is of %.100s: say with --run-dir which is meant",
		       url, local->run_dir[0] ? local->url : "none");
}

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
	if (check_note(f, &local, a, e) < 0)
		return -1;
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

/* The entry of the audit log that the api of another signer does not have: its hash covers all before it. */
static int has_entry(struct owner *o, uint64_t seq, struct view hash, bool *ret, struct err *e)
{
	struct sgn_audit_reply log;
	char text[2 + 2 * 32 + 1] = "0x";

	if (owner_call(o, SGN_SIGNER_TYPE_AUDIT, &sgn_audit_msg,
		       &(struct sgn_audit){ .after = seq - 1, .max = 1 }, &sgn_audit_reply_msg, &log, e) < 0)
		return -1;
	*ret = log.entries.n == 1 && log.entries.items[0].hash.n == 32;
	if (*ret) {
		text_hex(log.entries.items[0].hash.p, 32, text + 2);
		*ret = view_eq(hash, view_of(text));
	}
	return 0;
}

int owner_same(struct owner *o, struct session *s, struct err *e)
{
	const struct session_call call = { .method = "GET", .path = VIEW("/v1/signer") };
	struct json *status;
	uint64_t seq = 0;
	bool same = false;

	if (session_call(s, &call, &status, e) < 0)
		return -1;
	const struct json *available = json_get(status, "available"), *j = json_get(status, "audit_seq");
	if (available && available->type == JSON_BOOL && available->boolean &&
	    (!j || json_to_u64(j, &seq) < 0))
		return 0; /* of a tenant's key, which is not told */
	if (seq && has_entry(o, seq, session_text(status, "audit_hash"), &same, e) < 0)
		return -1;
	return same ? 0
		    : err_set(e, ERR_INVALID,
			      "the daemon at %s is not the one whose wallets these are: name both with --url "
			      "and "
			      "--run-dir",
			      s->client.url.authority);
}

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
