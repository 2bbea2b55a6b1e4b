/*
 * See bridge.h. Whoever writes to the output holds a lock of a file that has no name, so that lines of two
 * processes never mix.
 */
#include "bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "cmd.h"
#include "fd.h"
#include "text.h"

#include "poison.h"

#define LINE_MAX_BYTES (64u << 20)
#define ANSWER_MAX     (256u << 20)
#define PIECE          (64u << 10)
#define CARRIERS       128
#define META           "io.modelcontextprotocol/protocolVersion"

/* A request under way. */
struct carrier {
	pid_t pid; /* 0: none */
	struct buf id;
};

struct bridge {
	struct session *s;
	struct view path;
	int out, lock;
	char session[129]; /* "": the client has not begun one */
	struct carrier carriers[CARRIERS];
};

/* A line of the client's. */
struct message {
	struct arena arena;
	struct view text;
	const struct json *id, *params;
	struct view method;  /* p == NULL: an answer */
	struct view version; /* that its _meta has: it stands for itself */
};

/* ---- output ---- */

static int put_line(const struct bridge *b, struct view line)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int r = 0;

	while (fcntl(b->lock, F_SETLKW, &whole) < 0)
		if (errno != EINTR)
			return -errno;
	if (fd_write_all(b->out, line.p, line.n) < 0 || fd_write_all(b->out, "\n", 1) < 0)
		r = -EPIPE;
	whole.l_type = F_UNLCK;
	(void)fcntl(b->lock, F_SETLK, &whole);
	return r;
}

/* What went wrong on the way, as an answer to the request. */
static void put_error(const struct bridge *b, const struct message *m, const char *text)
{
	_cleanup_(buf_done) struct buf line = BUF_INIT(PIECE);
	struct json_out o;

	if (!m->id || !m->method.p)
		return;
	json_out_init(&o, &line);
	json_out_object(&o);
	json_out_kz(&o, "jsonrpc", "2.0");
	json_out_key(&o, "id");
	json_out_value(&o, m->id);
	json_out_key(&o, "error");
	json_out_object(&o);
	json_out_ki64(&o, "code", -32000);
	json_out_kz(&o, "message", text);
	json_out_end(&o, '}');
	json_out_end(&o, '}');
	(void)put_line(b, buf_view(&line));
}

/* ---- one exchange ---- */

static void put_header(struct buf *h, const char *name, struct view value)
{
	_cleanup_(buf_done) struct buf coded = BUF_INIT(2 * value.n + 16);
	bool plain = value.n > 0;

	for (size_t i = 0; i < value.n; i++)
		plain &= value.p[i] > 0x20 && value.p[i] < 0x7f;
	if (plain) {
		buf_printf(h, "%s: %.*s\r\n", name, VIEW_ARG(value));
	} else if (text_base64(&coded, value) >= 0) {
		struct view v = buf_view(&coded);
		buf_printf(h, "%s: =?base64?%.*s?=\r\n", name, VIEW_ARG(v));
	}
}

/* The newer era repeats in headers what the message says. */
static void put_headers(const struct bridge *b, const struct message *m, struct buf *h)
{
	if (m->version.p) {
		struct view name = session_text(m->params, "name"), uri = session_text(m->params, "uri");
		bool named = view_is(m->method, "tools/call") || view_is(m->method, "prompts/get");
		put_header(h, "MCP-Protocol-Version", m->version);
		put_header(h, "Mcp-Method", m->method);
		if (named || view_is(m->method, "resources/read"))
			put_header(h, "Mcp-Name", named ? name : uri);
	} else if (b->session[0]) {
		buf_printf(h, "Mcp-Session-Id: %s\r\n", b->session);
	}
}

/* The data of each event is a message. Returns -1 where nobody reads the output any more. */
static int pass_events(struct bridge *b, struct err *e)
{
	_cleanup_(buf_done) struct buf in = BUF_INIT(ANSWER_MAX);
	struct view piece;
	int r;

	while ((r = client_read(&b->s->client, &piece, e)) > 0) {
		if (buf_add(&in, piece) < 0)
			return err_set(e, ERR_TOO_LARGE, "a message is larger than %u bytes", ANSWER_MAX);
		for (;;) {
			struct view all = buf_view(&in);
			const char *end = all.n ? memchr(all.p, '\n', all.n) : NULL;
			if (!end)
				break;
			struct view line = view_head(all, (size_t)(end - all.p));
			if (view_starts(line, "data: {") && put_line(b, view_skip(line, 6)) < 0)
				return err_set(e, ERR_CANCELLED, "the output is closed");
			buf_consume(&in, (size_t)(end - all.p) + 1);
		}
	}
	return r;
}

static int pass_whole(struct bridge *b, const struct message *m, const struct response *rs, struct err *e)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT(ANSWER_MAX);
	struct json *doc = NULL;
	struct arena a = ARENA_INIT(ANSWER_MAX);
	struct err ignored = { 0 };
	int r = client_read_all(&b->s->client, &body, e);

	if (r < 0)
		return -1;
	struct view text = view_trim(buf_view(&body));
	while (text.n && text.p[text.n - 1] == '\n')
		text.n--;
	if (rs->status < 400) {
		r = text.n ? put_line(b, text) : 0;
	} else if (m->id && m->method.p) { /* it may have been refused before anybody read its id */
		bool known = rs->json && json_parse(&a, text, &doc, &ignored) >= 0 && json_get(doc, "id") &&
			     json_get(doc, "id")->type != JSON_NULL;
		const struct json *error = json_get(doc, "error");
		char message[256];
		snprintf(message, sizeof(message), "%.*s", VIEW_ARG(session_text(error, "message")));
		if (known)
			r = put_line(b, text);
		else
			put_error(b, m, message[0] ? message : "the daemon has refused the request");
	}
	arena_done(&a);
	return r < 0 ? err_set(e, ERR_CANCELLED, "the output is closed") : 0;
}

static int carry(struct bridge *b, const struct message *m, struct response *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf headers = BUF_INIT(PIECE);

	put_headers(b, m, &headers);
	struct client_request rq = { .method = "POST",
				     .path = b->path,
				     .content_type = "application/json",
				     .accept = "application/json, text/event-stream",
				     .headers = buf_view(&headers),
				     .body = m->text };
	if (headers.bad)
		return err_set(e, ERR_INVALID, "the message's name is too long");
	if (client_send(&b->s->client, &rq, ret, e) < 0)
		return -1;
	return ret->events ? pass_events(b, e) : pass_whole(b, m, ret, e);
}

/* ---- requests, each in a process ---- */

static void reap(struct bridge *b, bool wait_for_all)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, wait_for_all ? 0 : WNOHANG)) > 0 || (pid < 0 && errno == EINTR))
		for (size_t i = 0; pid > 0 && i < CARRIERS; i++)
			if (b->carriers[i].pid == pid) {
				b->carriers[i].pid = 0;
				buf_done(&b->carriers[i].id);
			}
}

static void put_id(struct buf *out, const struct json *id)
{
	struct json_out o;

	buf_clear(out);
	json_out_init(&o, out);
	if (id)
		json_out_value(&o, id);
}

static struct carrier *free_carrier(struct bridge *b)
{
	for (;;) {
		reap(b, false);
		for (size_t i = 0; i < CARRIERS; i++)
			if (!b->carriers[i].pid)
				return &b->carriers[i];
		(void)waitid(P_ALL, 0, &(siginfo_t){ 0 }, WEXITED | WNOWAIT); /* until there is room */
	}
}

static void carry_apart(struct bridge *b, const struct message *m)
{
	struct carrier *c = free_carrier(b);
	struct response rs;
	struct err e = { 0 };
	pid_t me = getpid();

	c->id = BUF_INIT(1024);
	put_id(&c->id, m->id);
	c->pid = fork();
	if (c->pid > 0)
		return;
	if (c->pid < 0) {
		c->pid = 0;
		put_error(b, m, "there is no process for this request");
		return;
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != me)
		_exit(CMD_FAILED);
	b->s->client.fd = -1; /* the parent's, whatever it is */
	buf_clear(&b->s->client.in);
	if (carry(b, m, &rs, &e) < 0 && e.code != ERR_CANCELLED)
		put_error(b, m, e.msg);
	_exit(0);
}

/* In the newer era a request is cancelled by its connection's end. */
static void cancel(struct bridge *b, const struct message *m)
{
	_cleanup_(buf_done) struct buf id = BUF_INIT(1024);

	put_id(&id, json_get(m->params, "requestId"));
	for (size_t i = 0; i < CARRIERS && buf_len(&id); i++)
		if (b->carriers[i].pid && view_eq(buf_view(&b->carriers[i].id), buf_view(&id)))
			kill(b->carriers[i].pid, SIGTERM);
}

/* ---- lines ---- */

static int take(struct bridge *b, struct view line, struct err *e)
{
	struct message m = { .arena = ARENA_INIT(4 * LINE_MAX_BYTES), .text = line };
	struct response rs = { 0 };
	struct json *doc;
	int r = 0;

	if (json_parse(&m.arena, line, &doc, e) < 0) {
		(void)put_line(b,
			       VIEW("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":"
				    "\"this line is not JSON\"}}"));
		arena_done(&m.arena);
		return 0;
	}
	m.id = json_get(doc, "id");
	m.params = json_get(doc, "params");
	const struct json *method = json_get(doc, "method"),
			  *version = json_get(json_get(m.params, "_meta"), META);
	m.method = method && method->type == JSON_STRING ? method->text : VIEW_NONE;
	m.version = version && version->type == JSON_STRING ? version->text : VIEW_NONE;
	if (m.id && m.method.p && !view_is(m.method, "initialize")) {
		carry_apart(b, &m);
	} else { /* in order: what follows may need it */
		if (view_is(m.method, "notifications/cancelled") && !b->session[0])
			cancel(b, &m);
		r = carry(b, &m, &rs, e);
		if (r >= 0 && rs.session[0])
			memcpy(b->session, rs.session, sizeof(b->session));
		if (r < 0 && e->code != ERR_CANCELLED) {
			put_error(b, &m, e->msg);
			client_close(&b->s->client);
			r = 0;
		}
	}
	arena_done(&m.arena);
	return r;
}

static int take_lines(struct bridge *b, struct buf *in, struct err *e)
{
	for (;;) {
		struct view all = buf_view(in);
		const char *end = all.n ? memchr(all.p, '\n', all.n) : NULL;
		if (!end)
			return 0;
		struct view line = view_trim(view_head(all, (size_t)(end - all.p)));
		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		if (line.n && take(b, line, e) < 0)
			return -1;
		buf_consume(in, (size_t)(end - all.p) + 1);
	}
}

static int read_lines(struct bridge *b, int fd, struct err *e)
{
	_cleanup_(buf_done) struct buf in = BUF_INIT(LINE_MAX_BYTES);

	for (;;) {
		char *p = buf_reserve(&in, PIECE);
		if (!p)
			return err_set(e, ERR_TOO_LARGE, "a line is longer than %u bytes", LINE_MAX_BYTES);
		ssize_t n = read(fd, p, PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, ERR_INTERNAL, errno, "cannot read the input");
		if (n == 0)
			return 0;
		buf_commit(&in, (size_t)n);
		if (take_lines(b, &in, e) < 0)
			return e->code == ERR_CANCELLED ? 0 : -1;
	}
}

static void end_session(struct bridge *b)
{
	_cleanup_(buf_done) struct buf headers = BUF_INIT(1024);
	_cleanup_(buf_done) struct buf rest = BUF_INIT(PIECE);
	struct response rs;
	struct err e = { 0 };

	if (!b->session[0])
		return;
	buf_printf(&headers, "Mcp-Session-Id: %s\r\n", b->session);
	struct client_request rq = {
		.method = "DELETE", .path = b->path, .headers = buf_view(&headers), .timeout_ms = 5000
	};
	if (client_send(&b->s->client, &rq, &rs, &e) >= 0)
		(void)!client_read_all(&b->s->client, &rest, &e);
}

int bridge_run(struct session *s, struct view path, int in, int out, struct err *e)
{
	_cleanup_(closep) int lock = memfd_create("paddock-mcp", MFD_CLOEXEC);
	struct bridge b = { .s = s, .path = path, .out = out, .lock = lock };

	if (lock < 0)
		return err_sys(e, ERR_INTERNAL, errno, "memfd");
	int r = read_lines(&b, in, e);
	reap(&b, true); /* answers to what was asked still come */
	end_session(&b);
	return r;
}
