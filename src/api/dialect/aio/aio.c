/*
 * The AIO dialect: which sandbox a request is for, who asks, and how an answer is wrapped.
 */
#include "aio_dialect.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "aio_bash.h"
#include "aio_impl.h"
#include "aio_shell.h"
#include "serve.h"
#include "poison.h"

/* clang-format off */
const struct route *const aio_tables[] = {
	aio_context_routes, aio_ticket_routes,
	aio_file_routes, aio_find_routes, aio_grep_routes, aio_transfer_routes, aio_editor_routes, aio_watch_routes,
	aio_shell_routes, aio_shell_list_routes, aio_terminal_routes, aio_bash_routes, aio_bash_list_routes,
	aio_code_routes, aio_jupyter_routes, aio_nodejs_routes,
	aio_mcp_routes, aio_skills_routes, aio_observe_routes, aio_hooks_routes, aio_proxy_routes,
	aio_ports_routes, aio_browser_routes, aio_openapi_routes,
	NULL,
};
/* clang-format on */

/* ---- what it keeps ---- */

static void *state_new(struct core *c, struct err *e)
{
	struct aio_state *s = calloc(1, sizeof(*s));

	if (!s) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "AIO");
		return NULL;
	}
	s->core = c;
	list_init(&s->edits);
	list_init(&s->watches);
	list_init(&s->shells);
	list_init(&s->known);
	list_init(&s->bashes);
	return s;
}

static void state_free(void *state)
{
	struct aio_state *s = state;

	if (!s)
		return;
	aio_undo_done(s);
	aio_watch_done(s);
	loop_timer_stop(&s->prune);
	while (!list_empty(&s->shells))
		aio_shell_free(CONTAINER(s->shells.next, struct aio_shell, link));
	aio_shell_forget(s, true);
	while (!list_empty(&s->bashes))
		aio_bash_free(CONTAINER(s->bashes.next, struct aio_bash, link));
	free(s);
}

/* ---- which sandbox ---- */

/* What of /sandbox/NAME/… is AIO's own; the rest leads to a server in the sandbox. */
static bool is_own(struct view rest)
{
	static const char *const starts[] = { "/v1/", "/proxy/", "/absproxy/" };
	static const char *const whole[] = { "/tickets", "/auth", "/terminal" };

	if (view_is(rest, "/v1/mcp")) /* the MCP dialect's */
		return false;
	for (size_t i = 0; i < ELEMS(starts); i++)
		if (view_starts(rest, starts[i]))
			return true;
	for (size_t i = 0; i < ELEMS(whole); i++)
		if (view_is(rest, whole[i]))
			return true;
	return false;
}

static bool claims(const struct http_exchange *x, void *state)
{
	struct view rest;

	return boxes_path(x->path, &rest).p && is_own(rest);
}

/* From here on the path is as AIO has it. */
static void enter(struct http_exchange *x)
{
	struct view rest, name = boxes_path(x->path, &rest);

	if (!name.p)
		return;
	x->prefix = view_head(x->path, x->path.n - rest.n);
	x->path = rest;
}

/* ---- who asks ---- */

static struct view token_of(const struct http_exchange *x)
{
	struct view token = http_get_header(x, "x-aio-api-key");

	if (!token.p)
		token = request_token(x);
	return token.p ? token : http_get_query(x, "api_key");
}

/* The name in the path, or of the listener. */
struct view aio_name(const struct request *r)
{
	struct view rest, name;

	if (!r->x->prefix.n)
		return serve_listener_box(r->serve, r->x);
	name = boxes_path(r->x->prefix, &rest);
	return arena_view(r->x->arena, name);
}

static int by_ticket(struct request *r, struct view name, struct err *e)
{
	struct view ticket = http_get_query(r->x, "ticket");
	const struct box *b = ticket.p ? boxes_by_id(r->core, aio_ticket_box(ticket)) : NULL;

	if (!b || !aio_ticket_fits(r->core, b, ticket) ||
	    (!view_is(name, b->id) && !view_eq(name, b->spec.name)))
		return err_set(e, ERR_UNAUTHORIZED,
			       "a valid key is needed (X-AIO-API-Key, Authorization or api_key)");
	r->actor = (struct actor){ .tenant = b->tenant, .role = STORE_ROLE_USER };
	memcpy(r->box, b->id, sizeof(r->box));
	return 0;
}

/* The sandbox that is meant, for r->actor. */
static int find_box(struct request *r, struct err *e)
{
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, aio_name(r), e);

	if (!b)
		return -1;
	memcpy(r->box, b->id, sizeof(r->box));
	return 0;
}

static int authenticate(struct request *r, struct err *e)
{
	struct view token = token_of(r->x);

	if (!token.p)
		return by_ticket(r, aio_name(r), e);
	return auth_actor(r->core, token, &r->actor, e) < 0 ? -1 : find_box(r, e);
}

int aio_authenticate(struct request *r, struct err *e)
{
	if (!request_is_anonymous(r) || token_of(r->x).p)
		return authenticate(r, e);
	return auth_anonymous(r->core, &r->actor, e) < 0 ? -1 : find_box(r, e);
}

/* ---- answers ---- */

void *aio_own(struct request *r, size_t size, void (*release)(struct request *r))
{
	void *own = request_own(r, size);

	if (own)
		r->release = release;
	return own;
}

const struct box *aio_box(struct request *r)
{
	const struct box *b = boxes_by_id(r->core, view_of(r->box));
	struct err e = { 0 };

	if (b)
		return b;
	boxes_unknown(&e);
	answer_fail(r, &e);
	return NULL;
}

struct view aio_variable(const struct box *b, const char *name)
{
	for (size_t i = 0; i < b->spec.env.n; i++)
		if (view_is(b->spec.env.keys[i], name))
			return b->spec.env.values[i];
	return VIEW_NONE;
}

struct view aio_workspace(const struct box *b)
{
	struct view given = aio_variable(b, "WORKSPACE");

	return given.n && given.p[0] == '/' ? given : b->spec.workdir;
}

bool aio_may_exec(struct request *r)
{
	struct err e = { 0 };

	if (boxes_find(r->core, &r->actor, ACT_BOX_EXEC, view_of(r->box), &e))
		return true;
	answer_fail(r, &e);
	return false;
}

static void put_detail(struct buf *b, const char *field, const char *message)
{
	struct json_out o;

	json_out_init(&o, b);
	json_out_object(&o);
	json_out_key(&o, "detail");
	json_out_array(&o);
	json_out_object(&o);
	json_out_key(&o, "loc");
	json_out_array(&o);
	json_out_str(&o, VIEW("body"));
	if (*field)
		json_out_str(&o, view_of(field));
	json_out_end(&o, ']');
	json_out_kz(&o, "msg", message);
	json_out_kz(&o, "type", "value_error");
	json_out_end(&o, '}');
	json_out_end(&o, ']');
	json_out_end(&o, '}');
}

void aio_unprocessable(struct request *r, const char *field, const char *message)
{
	struct buf b = BUF_INIT(4096);

	put_detail(&b, field, message);
	answer_reply(r, 422, &b);
}

static bool needs_any(const struct json_schema *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->fields[i].required)
			return true;
	return false;
}

/* "file: must be …" is about the field before the colon. */
int aio_read(struct request *r, const struct json_schema *s, void *out)
{
	struct err e = { 0 };
	struct json *doc;
	char field[64] = "";

	if (!buf_len(&r->body) && !needs_any(s)) /* the published client sends nothing then */
		return 0;
	if (request_read_doc(r, &doc, &e) >= 0 && json_read(&r->arena, doc, s, out, false, &e) >= 0)
		return 0;
	struct view rest, name = view_split(view_of(e.msg), ':', &rest);
	if (rest.p && !memchr(name.p, ' ', name.n))
		(void)!view_to_str(name, field, sizeof(field));
	aio_unprocessable(r, field, e.msg);
	return -1;
}

struct json_out *aio_data_hint(struct request *r, const char *message, const char *hint)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kbool(o, "success", true);
	json_out_kz(o, "message", message ? message : "Operation successful");
	json_out_kz(o, "hint", hint);
	json_out_key(o, "data");
	return o;
}

struct json_out *aio_data(struct request *r, const char *message)
{
	return aio_data_hint(r, message, NULL);
}

void aio_send(struct request *r)
{
	json_out_end(&r->json, '}');
	answer_send(r, 200);
}

static struct json_out *begin_refusal(struct request *r, const char *message)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kbool(o, "success", false);
	json_out_kz(o, "message", message);
	json_out_key(o, "hint");
	json_out_null(o);
	json_out_key(o, "data");
	return o;
}

void aio_refuse(struct request *r, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_out_null(begin_refusal(r, text));
	aio_send(r);
}

/* The published client reads a failure's data as the operation's result: what it insists on there. */
static void put_absent(struct json_out *o, struct view operation, struct view path, const char *why)
{
	static const char *const edits[] = { "view", "create", "str_replace", "insert", "undo_edit" };

	if (view_is(operation, "read"))
		json_out_kz(o, "content", "");
	if (view_is(operation, "read") || view_is(operation, "write") || view_is(operation, "replace") ||
	    view_is(operation, "search")) {
		json_out_kstr(o, "file", path);
	} else if (view_is(operation, "glob") || view_is(operation, "grep")) {
		json_out_kz(o, "pattern", "");
	} else if (view_is(operation, "upload")) {
		json_out_kstr(o, "file_path", path);
		json_out_ku64(o, "file_size", 0);
		json_out_kbool(o, "success", false);
	}
	for (size_t i = 0; i < ELEMS(edits); i++) {
		if (!view_is(operation, edits[i]))
			continue;
		json_out_kz(o, "output", "");
		json_out_kz(o, "error", why);
		json_out_kbool(o, "prev_exist", false);
	}
}

void aio_refuse_file(struct request *r, struct view path, const char *operation, const struct err *e)
{
	struct json_out *o = begin_refusal(r, e->msg);

	json_out_object(o);
	json_out_kstr(o, "path", path);
	json_out_kz(o, "operation", operation);
	json_out_kz(o, "message", e->msg);
	json_out_kz(o, "error_type", err_name(e->code));
	json_out_kbool(o, "retryable", false);
	json_out_key(o, "errno");
	if (e->sys)
		json_out_u64(o, (uint64_t)e->sys);
	else
		json_out_null(o);
	json_out_kz(o, "errno_name", e->sys ? strerrorname_np(e->sys) : NULL);
	json_out_key(o, "exception_type");
	json_out_null(o);
	put_absent(o, view_of(operation), path, e->msg);
	json_out_end(o, '}');
	aio_send(r);
}

static void put_refusal(struct buf *b, const char *message)
{
	struct json_out o;

	json_out_init(&o, b);
	json_out_object(&o);
	json_out_kbool(&o, "success", false);
	json_out_kz(&o, "message", message);
	json_out_kz(&o, "data", NULL);
	json_out_kz(&o, "hint", NULL);
	json_out_kz(&o, "detail", message);
	json_out_end(&o, '}');
}

void aio_refuse_bytes(struct request *r, int status, const char *message)
{
	struct buf b = BUF_INIT(4096);

	put_refusal(&b, message);
	answer_reply(r, status, &b);
}

/* What is wrong before the sandbox is reached has its status; what goes wrong in it is an answer. */
static void fail(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	int status = err_http(e->code);
	bool early = !r->admitted || status == 401 || status == 403 || status == 405 || status == 413 ||
		     status == 415 || status >= 500 || (!r->route && status == 404);
	struct buf b = BUF_INIT(4096);

	put_refusal(&b, e->msg);
	http_reply(r->x, early ? status : 200, "application/json", buf_view(&b), extra, n_extra);
	buf_done(&b);
}

static const struct surface surface = { .heading = "aio",
					.routes = aio_tables,
					.authenticate = authenticate,
					.welcome = aio_authenticate,
					.fail = fail };

static void off(const struct core *c, void (*say)(void *arg, const char *what, const char *why), void *arg)
{
	say(arg, "/v1/browser, /v1/display", "this image has no browser");
}

const struct dialect aio_dialect = { .name = "aio",
				     .version = "1.9.4",
				     .under = "/sandbox/{name}",
				     .with = "mcp",
				     .off = off,
				     .claims = claims,
				     .enter = enter,
				     .surface = &surface,
				     .new = state_new,
				     .free = state_free };
