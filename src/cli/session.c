/*
 * Finding the daemon and calling it.
 *
 * The key is looked for in the order flag, environment, then the places where
 * `paddock serve` and `make run` leave the administrator's. Those last are only
 * used for this machine: a local key is not sent to whoever a URL names.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

#include "fd.h"
#include "rnd.h"
#include "session.h"
#include "text.h"
#include "websocket.h"

#include "poison.h"

#define ANSWER_MAX (512u << 20) /* two outputs of an exec, escaped, fit */
#define ERROR_MAX  (64u << 10)
#define UPGRADE_MS 30000

static const char *const DEFAULT_KEYS[] = { "/var/lib/paddock/admin.key", "./var/lib/admin.key" };

const struct opt session_opts[SESSION_OPTS] = {
	{ "url", 0, OPT_TEXT, offsetof(struct session_flags, url), "URL",
	  "the daemon's address (default: PADDOCK_URL, then " SESSION_URL ")" },
	{ "key-file", 0, OPT_TEXT, offsetof(struct session_flags, key_file), "FILE",
	  "a file with the API key (default: PADDOCK_API_KEY, PADDOCK_KEY_FILE, then the daemon's "
	  "admin.key)" },
};

/* ---- the key ---- */

static int take_key(struct session *s, struct view text, const char *source, struct err *e)
{
	while (text.n && strchr(" \t\r\n", text.p[text.n - 1]))
		text.n--;
	if (text.n == 0)
		return err_set(e, ERR_INVALID, "%s is empty", source);
	/* It goes into a header: nothing that could end one. */
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] <= 0x20 || text.p[i] >= 0x7f)
			return err_set(e, ERR_INVALID, "%s does not hold an API key", source);
	if (view_to_str(text, s->key, sizeof(s->key)) < 0)
		return err_set(e, ERR_INVALID, "%s does not hold an API key", source);
	s->key_source = source;
	s->client.key = s->key;
	return 0;
}

static int read_key(struct session *s, const char *path, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(4096);
	int r = fd_slurp(AT_FDCWD, path, &b);

	if (r < 0)
		return err_sys(e, ERR_UNAUTHORIZED, r, "cannot read the key file %s", path);
	return take_key(s, buf_view(&b), path, e);
}

static int find_key(struct session *s, const struct session_flags *f, struct err *e)
{
	const char *key = getenv("PADDOCK_API_KEY"), *file = getenv("PADDOCK_KEY_FILE");

	if (f->key_file)
		return read_key(s, f->key_file, e);
	if (key && *key)
		return take_key(s, view_of(key), "PADDOCK_API_KEY", e);
	if (file && *file)
		return read_key(s, file, e);
	if (!s->client.url.loopback)
		return err_set(e, ERR_UNAUTHORIZED,
			       "no API key for %s: set PADDOCK_API_KEY or give --key-file",
			       s->client.url.authority);
	for (size_t i = 0; i < ELEMS(DEFAULT_KEYS); i++)
		if (access(DEFAULT_KEYS[i], R_OK) == 0)
			return read_key(s, DEFAULT_KEYS[i], e);
	return err_set(e, ERR_UNAUTHORIZED,
		       "no API key: set PADDOCK_API_KEY or give --key-file (neither %s nor %s can be read)",
		       DEFAULT_KEYS[0], DEFAULT_KEYS[1]);
}

/* ---- opening ---- */

int session_find(struct session *s, const struct session_flags *f, struct arena *a, struct err *e)
{
	const char *env = getenv("PADDOCK_URL");
	const char *text = f->url ? f->url : env && *env ? env : SESSION_URL;
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct url url;

	if (url_parse(view_of(text), &url, e) < 0)
		return -1;
	/* A reader of our output that goes away is an error to handle, not a death: there may be a box to
	 * remove. */
	(void)sigaction(SIGPIPE, &ignore, NULL);
	*s = (struct session){ .arena = a };
	client_init(&s->client, &url, NULL);
	return 0;
}

int session_open(struct session *s, const struct session_flags *f, struct arena *a, struct err *e)
{
	if (session_find(s, f, a, e) < 0)
		return -1;
	return find_key(s, f, e);
}

void session_done(struct session *s)
{
	client_done(&s->client);
	explicit_bzero(s->key, sizeof(s->key));
}

/* ---- calling ---- */

/* {"error":{"code","message","request_id"}}, or at least the status. */
static int daemon_error(struct session *s, const struct response *r, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(ERROR_MAX);
	struct json *doc = NULL;
	struct err ignored = { 0 };
	struct view message, code;
	char name[64] = "";

	if (client_read_all(&s->client, &b, &ignored) < 0)
		client_close(&s->client);
	if (r->json && json_parse(s->arena, buf_view(&b), &doc, &ignored) < 0)
		doc = NULL;
	message = session_text(json_get(doc, "error"), "message");
	code = session_text(json_get(doc, "error"), "code");
	if (message.n == 0)
		return err_set(e, ERR_INTERNAL, "%s answered with status %d", s->client.url.authority,
			       r->status);
	if (view_to_str(code, name, sizeof(name)) < 0)
		name[0] = '\0';
	err_set(e, err_from_name(name), "%.*s", (int)MIN(message.n, sizeof(e->msg)), message.p);
	if (r->status == 401 && s->key_source)
		err_set(e, ERR_UNAUTHORIZED, "%.*s (the key is from %s)", (int)MIN(message.n, 100u),
			message.p, s->key_source);
	return -1;
}

int session_send(struct session *s, const struct client_request *rq, struct response *ret, struct err *e)
{
	if (client_send(&s->client, rq, ret, e) < 0)
		return -1;
	if ((ret->status < 200 || ret->status > 299) && ret->status != 101)
		return daemon_error(s, ret, e);
	return 0;
}

int session_call(struct session *s, const struct session_call *call, struct json **ret, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(ANSWER_MAX);
	struct client_request rq = {
		.method = call->method,
		.path = call->path,
		.content_type = call->body.p ? "application/json" : NULL,
		.body = call->body,
		.timeout_ms = call->timeout_ms,
	};
	struct response r;

	if (ret)
		*ret = NULL;
	if (session_send(s, &rq, &r, e) < 0 || client_read_all(&s->client, &b, e) < 0)
		return -1;
	if (!ret || buf_len(&b) == 0)
		return 0;
	if (json_parse(s->arena, buf_view(&b), ret, e) < 0)
		return err_wrap(e, "the answer of %s", s->client.url.authority);
	return 0;
}

static int call_named(struct session *s, const char *method, const char *prefix, const char *name,
		      struct json **ret, struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(8192);
	struct session_call call = { .method = method, .timeout_ms = SESSION_CALL_MS };

	buf_puts(&path, prefix);
	if (session_segment(&path, name, e) < 0)
		return -1;
	call.path = buf_view(&path);
	return session_call(s, &call, ret, e);
}

int session_upgrade(struct session *s, struct view path, struct err *e)
{
	_cleanup_(buf_done) struct buf key = BUF_INIT(64);
	struct client_request rq = { .method = "GET", .path = path, .timeout_ms = UPGRADE_MS };
	char nonce[16], accept[WEBSOCKET_ACCEPT];
	struct response r;

	rnd_bytes(nonce, sizeof(nonce));
	text_base64(&key, (struct view){ nonce, sizeof(nonce) });
	buf_putc(&key, 0);
	rq.upgrade_key = buf_view(&key).p;
	if (key.bad || websocket_accept(view_of(rq.upgrade_key), accept) < 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	client_close(&s->client);
	if (session_send(s, &rq, &r, e) < 0)
		return -1;
	if (r.status != 101 || strcmp(r.accept, accept) != 0)
		return err_set(e, ERR_INTERNAL, "%s did not open a WebSocket", s->client.url.authority);
	return 0;
}

int session_get(struct session *s, const char *prefix, const char *name, struct json **ret, struct err *e)
{
	return call_named(s, "GET", prefix, name, ret, e);
}

int session_delete(struct session *s, const char *prefix, const char *name, struct err *e)
{
	return call_named(s, "DELETE", prefix, name, NULL, e);
}

int session_segment(struct buf *path, const char *segment, struct err *e)
{
	if (!*segment || strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0)
		return err_set(e, ERR_INVALID, "\"%s\" is not an id or a name", segment);
	for (struct view rest = view_of(segment); rest.p;) {
		struct view part = view_split(rest, '/', &rest);

		text_percent(path, part);
		if (rest.p)
			buf_puts(path, "%2F");
	}
	if (path->bad)
		return err_set(e, ERR_INVALID, "\"%.40s…\" is too long", segment);
	return 0;
}

struct view session_text(const struct json *object, const char *key)
{
	const struct json *j = object ? json_get(object, key) : NULL;

	return j && j->type == JSON_STRING ? j->text : VIEW("");
}
