/*
 * See terminal.h. One poll waits for the connection, the keyboard and signals
 * (SIGWINCH for the size; SIGTERM and SIGHUP end the process in the box, too). A
 * connection that is lost is made anew for a while, from the byte where it broke off.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "show.h"
#include "terminal.h"
#include "text.h"
#include "websocket.h"

#include "poison.h"

#define MESSAGE_MAX (16u << 20)
#define TEXT_MAX    65536u
#define RESUME_MS   20000
#define RETRY_MS    500

struct terminal {
	struct session *s;
	const struct terminal_wish *w;
	struct websocket ws;
	struct buf text, frame;
	int signals;
	uint64_t process, offset; /* 0: not known yet; the next byte */
	int code;                 /* -1: not yet */
	int ended_by;             /* a signal, or 0 */
	bool closed;              /* the server said good-bye */
};

int terminal_check(struct err *e)
{
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		return 0;
	return err_set(e, ERR_INVALID, "standard input and output must be a terminal");
}

static void our_size(unsigned *ret_cols, unsigned *ret_rows)
{
	struct winsize size = { 0 };

	*ret_cols = 80;
	*ret_rows = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
		*ret_cols = MIN(size.ws_col, 10000);
		*ret_rows = MIN(size.ws_row, 10000);
	}
}

void terminal_put_size(struct json_out *o, const char *key)
{
	unsigned cols, rows;

	our_size(&cols, &rows);
	json_out_key(o, key);
	json_out_object(o);
	json_out_ku64(o, "cols", cols);
	json_out_ku64(o, "rows", rows);
	json_out_end(o, '}');
}

/* ---- the connection ---- */

/* What is no plain word is left to the box. */
static void put_variable(struct buf *path, const char *name, const char *value)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@";
	size_t n = value ? strlen(value) : 0;
	if (n && n <= 64 && strspn(value, plain) == n)
		buf_printf(path, "&%s=%s", name, value);
}

static int put_path(struct terminal *t, struct buf *path, struct err *e)
{
	unsigned cols, rows;

	our_size(&cols, &rows);
	buf_puts(path, "/v1/sandboxes/");
	if (session_segment(path, t->w->box, e) < 0)
		return -1;
	buf_printf(path, "/terminal?cols=%u&rows=%u", cols, rows);
	put_variable(path, "term", getenv("TERM"));
	put_variable(path, "lang", getenv("LANG"));
	if (t->w->kill)
		buf_puts(path, "&kill_on_disconnect=1");
	if (t->process) {
		buf_printf(path, "&process=%" PRIu64 "&offset=%" PRIu64, t->process, t->offset);
	} else {
		if (t->w->user) {
			buf_puts(path, "&user=");
			text_percent(path, view_of(t->w->user));
		}
		if (t->w->workdir) {
			buf_puts(path, "&cwd=");
			text_percent(path, view_of(t->w->workdir));
		}
	}
	return path->bad ? err_set(e, ERR_INVALID, "the names are too long") : 0;
}

static int open_socket(struct terminal *t, struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(16384);

	if (put_path(t, &path, e) < 0 || session_upgrade(t->s, buf_view(&path), e) < 0)
		return -1;
	websocket_init(&t->ws, WEBSOCKET_CLIENT, MESSAGE_MAX);
	buf_clear(&t->text);
	return 0;
}

static int push(struct terminal *t, enum websocket_op op, struct view data, struct err *e)
{
	buf_clear(&t->frame);
	if (websocket_put(&t->frame, WEBSOCKET_CLIENT, op, data) < 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	return client_push(&t->s->client, buf_view(&t->frame), e);
}

static int send_size(struct terminal *t, struct err *e)
{
	unsigned cols, rows;
	char text[96];

	our_size(&cols, &rows);
	snprintf(text, sizeof(text), "{\"type\":\"resize\",\"cols\":%u,\"rows\":%u}", cols, rows);
	return push(t, WEBSOCKET_TEXT, view_of(text), e);
}

/* ---- what comes ---- */

static bool number(const struct json *j, const char *key, uint64_t *ret)
{
	const struct json *v = json_get(j, key);

	return v && json_to_u64(v, ret) == 0;
}

static int on_text(struct terminal *t, struct err *e)
{
	struct arena a = ARENA_INIT(1u << 20);
	struct json *doc;
	uint64_t n;
	int r = json_parse(&a, buf_view(&t->text), &doc, e);
	struct view type = r < 0 ? VIEW("") : session_text(doc, "type");

	buf_clear(&t->text);
	if (view_is(type, "attached")) {
		if (!number(doc, "pid", &t->process) || !number(doc, "offset", &t->offset))
			r = err_set(e, ERR_INTERNAL, "the daemon did not say what runs");
	} else if (view_is(type, "exit")) {
		t->code = number(doc, "exit_code", &n) ? (int)(n & 0xff) : 1;
	} else if (view_is(type, "error")) {
		struct view m = session_text(doc, "message");
		r = err_set(e, ERR_STATE, "%.*s", (int)MIN(m.n, 180u), m.p);
	}
	arena_done(&a);
	return r;
}

static int on_piece(struct terminal *t, const struct websocket_piece *p, struct err *e)
{
	switch (p->kind) {
	case WEBSOCKET_BINARY:
		t->offset += p->data.n;
		return show_bytes(STDOUT_FILENO, p->data, e);
	case WEBSOCKET_TEXT:
		if (buf_add(&t->text, p->data) < 0)
			return err_set(e, ERR_INTERNAL, "the daemon sent too much");
		return p->last ? on_text(t, e) : 0;
	case WEBSOCKET_PING:
		return push(t, WEBSOCKET_PONG, p->data, e);
	case WEBSOCKET_CLOSE:
		t->closed = true;
		if (t->code < 0)
			return err_set(e, ERR_STATE, "the daemon closed the terminal (%u)%s%.*s", p->code,
				       p->data.n ? ": " : "", VIEW_ARG(p->data));
		break;
	case WEBSOCKET_PONG:
	case WEBSOCKET_MORE:
		break;
	}
	return 0;
}

static int take_pieces(struct terminal *t, struct err *e)
{
	struct buf *in = &t->s->client.in;
	struct view all = buf_view(in);
	struct websocket_piece p;
	int r;

	while ((r = websocket_next(&t->ws, &all, &p)) > 0)
		if (on_piece(t, &p, e) < 0)
			return -1;
	buf_clear(in);
	return r < 0 ? err_set(e, ERR_INTERNAL, "the daemon's answer is no WebSocket: %s", t->ws.why) : 0;
}

/* -EPIPE with e set: the connection is lost. -1: everything else that is wrong. */
static int on_readable(struct terminal *t, struct err *e)
{
	int r = client_pull(&t->s->client, e);

	if (r == 0)
		err_set(e, ERR_UNAVAILABLE, "the connection is lost");
	return r <= 0 ? -EPIPE : take_pieces(t, e);
}

/* ---- what goes ---- */

static int on_key(struct terminal *t, struct err *e)
{
	char keys[4096];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0) { /* our terminal is gone */
		t->ended_by = SIGHUP;
		return 0;
	}
	return push(t, WEBSOCKET_BINARY, (struct view){ keys, (size_t)n }, e) < 0 ? -EPIPE : 0;
}

static int on_signal(struct terminal *t, struct err *e)
{
	struct signalfd_siginfo si;

	if (read(t->signals, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return 0;
	if (si.ssi_signo == SIGWINCH)
		return send_size(t, e) < 0 ? -EPIPE : 0;
	t->ended_by = (int)si.ssi_signo;
	return 0;
}

/* Until the end, or until something is wrong (as on_readable). */
static int talk(struct terminal *t, struct err *e)
{
	while (!t->closed && !t->ended_by) {
		struct pollfd fds[] = { { .fd = t->s->client.fd, .events = POLLIN },
					{ .fd = STDIN_FILENO, .events = POLLIN },
					{ .fd = t->signals, .events = POLLIN } };
		int r = 0;

		/* What came with the head of the answer is there already. */
		bool waiting = buf_len(&t->s->client.in) == 0;
		if (poll(fds, ELEMS(fds), waiting ? -1 : 0) < 0 && errno != EINTR)
			return err_sys(e, ERR_INTERNAL, errno, "poll");
		if (!waiting)
			r = take_pieces(t, e);
		if (r == 0 && fds[2].revents)
			r = on_signal(t, e);
		if (r == 0 && waiting && fds[0].revents)
			r = on_readable(t, e);
		if (r == 0 && !t->closed && fds[1].revents)
			r = on_key(t, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The daemon may be on its way back: again and again for a while. */
static int resume(struct terminal *t, struct err *e)
{
	uint64_t until = clock_mono_ms() + RESUME_MS;

	while (open_socket(t, e) < 0) {
		struct pollfd waits = { .fd = t->signals, .events = POLLIN };

		if (e->code != ERR_UNAVAILABLE || clock_mono_ms() > until)
			return -1;
		if (poll(&waits, 1, RETRY_MS) > 0 && on_signal(t, e) == 0 && t->ended_by)
			return -1;
	}
	return send_size(t, e);
}

static int converse(struct terminal *t, struct err *e)
{
	int r = open_socket(t, e);

	while (r >= 0) {
		r = talk(t, e);
		if (r != -EPIPE || t->w->kill || !t->process)
			break;
		r = resume(t, e);
	}
	return r;
}

/* Nobody will come back to it. */
static void end_process(struct terminal *t)
{
	char prefix[64 + 256];
	struct err ignored = { 0 };
	char pid[24];

	client_close(&t->s->client);
	snprintf(prefix, sizeof(prefix), "/v1/sandboxes/%.200s/processes/", t->w->box);
	snprintf(pid, sizeof(pid), "%" PRIu64, t->process);
	if (t->process)
		(void)!session_delete(t->s, prefix, pid, &ignored);
}

static int catch_signals(struct err *e)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_sys(e, ERR_INTERNAL, errno, "signalfd") : fd;
}

int terminal_run(struct session *s, const struct terminal_wish *w, struct err *e)
{
	struct terminal t = { .s = s, .w = w, .process = w->process, .code = -1 };
	_cleanup_(closep) int signals = -EBADF;
	struct termios before, raw;
	int r;

	if (terminal_check(e) < 0)
		return -1;
	signals = t.signals = catch_signals(e);
	if (signals < 0 || tcgetattr(STDIN_FILENO, &before) < 0)
		return signals < 0 ? -1 : err_sys(e, ERR_INTERNAL, errno, "the terminal");
	t.text = BUF_INIT(TEXT_MAX);
	t.frame = BUF_INIT(MESSAGE_MAX);
	raw = before;
	cfmakeraw(&raw);
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	r = converse(&t, e);
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
	if (t.ended_by)
		end_process(&t);
	client_close(&s->client);
	buf_done(&t.text);
	buf_done(&t.frame);
	if (t.ended_by)
		return 128 + t.ended_by;
	return r < 0 ? -1 : t.code;
}
