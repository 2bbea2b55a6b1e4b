/*
 * Finding the daemon and calling it.
 *
 * The address is looked for in the order flag, context that was named, variable,
 * context in use, daemon of this machine; the key likewise. A context's key goes to
 * that context's address only, and the key of the daemon of this machine to this
 * machine only: no key is sent to whoever a URL names.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

#include "fd.h"
#include "contexts.h"
#include "local.h"
#include "ref.h"
#include "rnd.h"
#include "session.h"
#include "text.h"
#include "websocket.h"

#include "poison.h"

#define ANSWER_MAX (512u << 20) /* two outputs of an exec, escaped, fit */
#define ERROR_MAX  (64u << 10)
#define UPGRADE_MS 30000

static const char *const DEFAULT_KEYS[] = { "/var/lib/paddock/admin.key", "./var/lib/admin.key" };
static const char SEARCHED[] = "`paddock login`, PADDOCK_API_KEY and --key-file give one";

const struct opt session_opts[SESSION_OPTS] = {
	{ "url", 0, OPT_TEXT, offsetof(struct session_flags, url), "URL",
	  "the daemon's address (default: PADDOCK_URL, the context in use, then this machine's daemon)" },
	{ "key-file", 0, OPT_TEXT, offsetof(struct session_flags, key_file), "FILE",
	  "a file with the API key (default: PADDOCK_API_KEY, PADDOCK_KEY_FILE, the context's, then the "
	  "daemon's admin.key)" },
	{ "ca", 0, OPT_TEXT, offsetof(struct session_flags, ca), "FILE",
	  "trust the certificates of these authorities with https:// (default: PADDOCK_CA, then the "
	  "system's)" },
	{ "context", 0, OPT_TEXT, offsetof(struct session_flags, context), "NAME",
	  "the context to use (default: PADDOCK_CONTEXT, then the one chosen by `context use`)" },
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

/* Where the daemon is, and what was found beside its address. */
struct place {
	const char *url, *ca;
	bool named;                    /* by somebody, and not found */
	struct contexts_entry context; /* .name NULL: not of a context */
	struct local_daemon local;     /* .url "": not of this machine's daemon */
};

static int find_key(struct session *s, const struct session_flags *f, const struct place *p, struct err *e)
{
	const char *key = getenv("PADDOCK_API_KEY"), *file = getenv("PADDOCK_KEY_FILE");

	if (f->key_file)
		return read_key(s, f->key_file, e);
	if (p->context.name && f->context)
		return take_key(s, view_of(p->context.key), "the context", e);
	if (key && *key)
		return take_key(s, view_of(key), "PADDOCK_API_KEY", e);
	if (file && *file)
		return read_key(s, file, e);
	if (p->context.name)
		return take_key(s, view_of(p->context.key), "the context", e);
	if (!s->client.url.loopback)
		return err_set(e, ERR_UNAUTHORIZED, "no API key for %s: %s", s->client.url.authority,
			       SEARCHED);
	if (p->local.url[0] && access(p->local.key_file, R_OK) == 0)
		return read_key(s, arena_str(s->arena, view_of(p->local.key_file)), e);
	for (size_t i = 0; i < ELEMS(DEFAULT_KEYS); i++)
		if (access(DEFAULT_KEYS[i], R_OK) == 0)
			return read_key(s, DEFAULT_KEYS[i], e);
	return err_set(e, ERR_UNAUTHORIZED, "no API key: %s (%s cannot be read)", SEARCHED,
		       p->local.url[0] ? p->local.key_file : DEFAULT_KEYS[0]);
}

/* ---- opening ---- */

static const char *variable(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

static int find_place(const struct session_flags *f, struct arena *a, struct place *p, struct err *e)
{
	const char *named = f->context ? f->context : variable("PADDOCK_CONTEXT");
	const char *url = f->url ? f->url : f->context ? NULL : variable("PADDOCK_URL");

	*p = (struct place){ .ca = f->ca ? f->ca : variable("PADDOCK_CA") };
	if (!url && contexts_find(a, named, &p->context, e) < 0)
		return -1;
	if (!url && p->context.name) {
		url = p->context.url;
		if (!p->ca)
			p->ca = p->context.ca;
	}
	p->named = url != NULL;
	local_find(&p->local);
	if (!url && p->local.url[0])
		url = p->local.url;
	else if (url && p->local.url[0] && strcmp(url, p->local.url) != 0)
		p->local.url[0] = '\0';
	p->url = arena_str(a, view_of(url ? url : SESSION_URL));
	return p->url ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
}

static int open_at(struct session *s, const struct place *p, struct arena *a, struct err *e)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct url url;

	if (url_parse(view_of(p->url), &url, e) < 0)
		return -1;
	/* A reader of our output that goes away is an error to handle, not a death: there may be a box to
	 * remove. */
	(void)sigaction(SIGPIPE, &ignore, NULL);
	*s = (struct session){ .arena = a };
	client_init(&s->client, &url, NULL);
	s->client.ca = p->ca;
	return 0;
}

int session_named(const struct session_flags *f, struct arena *a, const char **ret, struct err *e)
{
	struct place p;

	if (find_place(f, a, &p, e) < 0)
		return -1;
	*ret = p.named ? p.url : NULL;
	return 0;
}

int session_find(struct session *s, const struct session_flags *f, struct arena *a, struct err *e)
{
	struct place p;

	return find_place(f, a, &p, e) < 0 ? -1 : open_at(s, &p, a, e);
}

int session_open(struct session *s, const struct session_flags *f, struct arena *a, struct err *e)
{
	struct place p;

	if (find_place(f, a, &p, e) < 0 || open_at(s, &p, a, e) < 0)
		return -1;
	return find_key(s, f, &p, e);
}

int session_open_with(struct session *s, const struct session_flags *f, struct arena *a, struct view key,
		      struct err *e)
{
	return session_find(s, f, a, e) < 0 ? -1 : take_key(s, key, "the key", e);
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
	const struct json *reasons = json_get(doc, "reasons"); /* of /readyz */
	if (reasons && reasons->type == JSON_ARRAY && reasons->n && reasons->items[0].type == JSON_STRING)
		return err_set(e, ERR_UNAVAILABLE, "%s is not ready: %.*s", s->client.url.authority,
			       VIEW_ARG(reasons->items[0].text));
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

static int send_once(struct session *s, const struct client_request *rq, struct response *ret, struct err *e)
{
	if (client_send(&s->client, rq, ret, e) < 0)
		return -1;
	if ((ret->status < 200 || ret->status > 299) && ret->status != 101)
		return daemon_error(s, ret, e);
	return 0;
}

int session_send(struct session *s, const struct client_request *rq, struct response *ret, struct err *e)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(128u << 10);
	struct client_request again = *rq;
	int r;

	/* The user may have given the beginning of an id, which the daemon does not know. */
	again.path = ref_known(s, rq->path, &path);
	r = send_once(s, &again, ret, e);
	if (r >= 0 || !ref_is_unknown(rq->path, e))
		return r;
	if (rq->streamed || ref_resolve(s, rq->path, e) < 0) /* a streamed body is gone by now */
		return ref_explain(rq->path, e);
	again.path = ref_known(s, rq->path, &path);
	return send_once(s, &again, ret, e);
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
