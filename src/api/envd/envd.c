/*
 * From a request for port 49983 to its handler, and who may ask: see envd.h.
 *
 * Whoever has the box's token may do everything in it; /files takes a signature
 * made from the token instead. What is for the orchestrator of the original
 * (/init and the like) is nobody's business here.
 */
#include "envd.h"

#include <errno.h>
#include <stdlib.h>

#include "envd_impl.h"
#include "template.h"
#include "text.h"
#include "who.h"
#include "poison.h"

const struct http_header envd_cors[1] = { { VIEW("access-control-allow-origin"), VIEW("*") } };

/* ---- life ---- */

struct envd *envd_new(struct core *c, struct err *e)
{
	struct envd *v = calloc(1, sizeof(*v));
	if (!v) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "envd");
		return NULL;
	}
	v->core = c;
	list_init(&v->calls);
	return v;
}

void envd_free(struct envd *v)
{
	free(v);
}

void envd_when_idle(struct envd *v, void (*on_idle)(void *arg), void *arg)
{
	LIST_EACH (it, &v->calls)
		rpc_drain(CONTAINER(it, struct envd_call, link));
	v->on_idle = on_idle;
	v->idle_arg = arg;
	if (list_empty(&v->calls))
		on_idle(arg);
}

void envd_done(struct envd_call *c)
{
	struct envd *v = c->envd;

	if (c->release)
		c->release(c);
	rpc_release(c);
	list_del(&c->link);
	buf_done(&c->body);
	arena_done(&c->arena);
	free(c->own);
	free(c);
	if (v->on_idle && list_empty(&v->calls))
		v->on_idle(v->idle_arg);
}

void *envd_own(struct envd_call *c, size_t size, void (*release)(struct envd_call *c))
{
	struct err e = { 0 };

	c->own = calloc(1, size);
	if (c->own) {
		c->release = release;
		return c->own;
	}
	err_sys(&e, ERR_INTERNAL, ENOMEM, "request");
	if (c->method)
		rpc_fail(c, &e);
	else
		envd_fail(c, &e);
	return NULL;
}

const struct box *envd_box(const struct envd_call *c)
{
	return boxes_by_id(c->core, view_of(c->box));
}

struct file_place envd_place(const struct envd_call *c, struct view path)
{
	return (struct file_place){ .box = view_of(c->box), .path = path, .user = c->user };
}

size_t envd_vars(const struct envd_call *c, const struct box *b, struct view names[ENVD_VARS],
		 struct view values[ENVD_VARS])
{
	bool base = view_eq(b->spec.image, core_config(c->core)->defaults.image);
	const struct template_build *build = templates_of_box(c->core, b);
	struct view template = build                ? view_of(build->of->id)
			       : b->spec.snapshot.n ? b->spec.snapshot
			       : base               ? VIEW("base")
						    : b->spec.image;
	const struct view pairs[ENVD_VARS][2] = { { VIEW("E2B_SANDBOX"), VIEW("true") },
						  { VIEW("E2B_SANDBOX_ID"), view_of(b->id) },
						  { VIEW("E2B_TEMPLATE_ID"), template } };
	for (size_t i = 0; i < ENVD_VARS; i++) {
		names[i] = pairs[i][0];
		values[i] = pairs[i][1];
	}
	return ENVD_VARS;
}

/* ---- answers ---- */

void envd_reply_json(struct envd_call *c, int status, struct buf *json)
{
	http_reply(c->x, json->bad ? 500 : status, "application/json", buf_view(json), envd_cors,
		   ELEMS(envd_cors));
	buf_done(json);
	envd_done(c);
}

static void put_error(struct buf *b, int status, const char *message)
{
	struct json_out o;

	json_out_init(&o, b);
	json_out_object(&o);
	json_out_ku64(&o, "code", (uint64_t)status);
	json_out_kz(&o, "message", message);
	json_out_end(&o, '}');
}

void envd_fail_status(struct envd_call *c, int status, const char *message)
{
	struct buf b = BUF_INIT(4096);

	put_error(&b, status, message);
	envd_reply_json(c, status, &b);
}

void envd_translate(const struct err *said, struct err *ret)
{
	struct err copy = *said;

	/* A user that is not there could not show that it is: the original says so. */
	if (copy.code == ERR_INVALID && copy.sys == ERR_SYS_NO_USER)
		copy.code = ERR_UNAUTHORIZED;
	if (copy.code == ERR_INVALID && copy.sys == ELOOP)
		copy.code = ERR_STATE;
	*ret = copy;
}

void envd_fail(struct envd_call *c, const struct err *said)
{
	struct err e;
	int status;

	envd_translate(said, &e);
	status = err_http(e.code);
	if (e.code == ERR_FORBIDDEN) /* of the file system, to which its clients know no better answer */
		status = 403;
	envd_fail_status(c, status, e.msg);
}

/* ---- who asks ---- */

/* "Basic base64(user:)": a name, the password means nothing. */
static int read_user(struct envd_call *c, struct err *e)
{
	struct view v = http_get_header(c->x, "authorization"), rest;
	struct buf plain = BUF_INIT(1024);

	if (!v.p || v.n < 6 || !view_eq_nocase(view_head(v, 6), VIEW("basic ")))
		return 0;
	int r = text_unbase64(&plain, view_trim(view_skip(v, 6)));
	if (r >= 0)
		c->user = arena_view(c->x->arena, view_split(buf_view(&plain), ':', &rest));
	buf_done(&plain);
	return r < 0 || (c->user.n && spec_check_user(c->user, "user", e) < 0)
		       ? err_set(e, ERR_UNAUTHORIZED, "there is no such user")
		       : 0;
}

static int read_username(struct envd_call *c, struct err *e)
{
	struct view v = http_get_query(c->x, "username");

	if (!v.n)
		return 0;
	if (spec_check_user(v, "username", e) < 0)
		return err_set(e, ERR_UNAUTHORIZED, "there is no such user");
	c->user = v;
	return 0;
}

static int check_token(const struct envd_call *c, const struct box *b, struct err *e)
{
	struct view token = http_get_header(c->x, "x-access-token");

	if (token.p && tokens_fit(c->core, b, TOKEN_ENVD, token))
		return 0;
	return err_set(e, ERR_UNAUTHORIZED, "unauthorized: no or wrong access token");
}

static bool is_files(const struct http_exchange *x)
{
	return view_is(x->path, "/files") && (view_is(x->method, "GET") || view_is(x->method, "POST"));
}

static int admit(const struct envd_call *c, const struct box *b, struct err *e)
{
	struct err why = { 0 };

	if (!is_files(c->x) || !http_get_query(c->x, "signature").p)
		return check_token(c, b, e);
	if (check_token(c, b, &why) >= 0)
		return 0;
	return envd_signed(c->x, c->core, b, view_is(c->x->method, "GET") ? "read" : "write", e);
}

/* ---- routing ---- */

static void drop_body(struct http_exchange *x, struct view data, bool last)
{
}

static void on_abort(struct http_exchange *x)
{
	envd_done(x->ctx);
}

static const struct http_ops plain_ops = { .on_body = drop_body, .on_abort = on_abort };

static const struct {
	const char *method, *path;
	void (*handle)(struct envd_call *c);
} routes[] = {
	{ "GET", "/metrics", envd_metrics },        { "GET", "/envs", envd_envs },
	{ "GET", "/files", envd_download },         { "POST", "/files", envd_upload },
	{ "POST", "/files/compose", envd_compose },
};

static void dispatch(struct envd_call *c)
{
	bool known = false;

	if (rpc_take(c))
		return;
	for (size_t i = 0; i < ELEMS(routes); i++) {
		if (!view_is(c->x->path, routes[i].path))
			continue;
		known = true;
		if (!view_is(c->x->method, routes[i].method))
			continue;
		c->x->ctx = c;
		c->x->ops = &plain_ops;
		routes[i].handle(c);
		return;
	}
	envd_fail_status(c, known ? 405 : 404,
			 known ? "method not allowed" : "there is nothing at this path");
}

static void preflight(struct http_exchange *x)
{
	static const struct http_header allow[] = {
		{ VIEW("access-control-allow-origin"), VIEW("*") },
		{ VIEW("access-control-allow-methods"), VIEW("GET, POST, OPTIONS") },
		{ VIEW("access-control-allow-headers"),
		  VIEW("*, authorization, content-type, x-access-token, connect-protocol-version, "
		       "connect-timeout-ms, keepalive-ping-interval, e2b-sandbox-id, e2b-sandbox-port") },
		{ VIEW("access-control-max-age"), VIEW("7200") },
	};
	http_reply(x, 204, NULL, VIEW_NONE, allow, ELEMS(allow));
}

static void refuse(struct http_exchange *x, const struct err *e)
{
	struct buf b = BUF_INIT(4096);

	/* A call's client knows the code by its name. */
	if (connect_type(http_get_header(x, "content-type")).codec != CONNECT_NONE)
		connect_put_error(&b, e);
	else
		put_error(&b, err_http(e->code), e->msg);
	http_reply(x, err_http(e->code), "application/json", buf_view(&b), envd_cors, ELEMS(envd_cors));
	buf_done(&b);
}

/* Whether it can be asked: one that is paused answers only where asking resumes it. */
static bool is_there(const struct box *b, bool asks)
{
	return b->state.status == BOX_RUNNING ||
	       (asks && b->state.status == BOX_PAUSED && b->spec.auto_resume);
}

void envd_serve(struct http_exchange *x, const struct plane_target *t, void *arg)
{
	struct envd *v = arg;
	struct err e = { 0 };
	bool health =
		view_is(x->path, "/health") && (view_is(x->method, "GET") || view_is(x->method, "HEAD"));

	if (view_is(x->method, "OPTIONS")) {
		preflight(x);
		return;
	}
	if (!is_there(t->box, !health)) {
		plane_unknown_box(x, view_of(t->box->id));
		return;
	}
	if (health) {
		http_reply(x, 204, NULL, VIEW_NONE, envd_cors, ELEMS(envd_cors));
		return;
	}
	struct envd_call *c = calloc(1, sizeof(*c));
	if (!c) {
		err_sys(&e, ERR_INTERNAL, ENOMEM, "request");
		refuse(x, &e);
		return;
	}
	c->envd = v;
	c->core = t->core;
	c->x = x;
	c->actor = t->actor;
	c->timeout_ms = 0;
	memcpy(c->box, t->box->id, sizeof(c->box));
	list_append(&v->calls, &c->link);
	if (admit(c, t->box, &e) < 0 || read_user(c, &e) < 0 || (is_files(x) && read_username(c, &e) < 0)) {
		refuse(x, &e);
		envd_done(c);
		return;
	}
	dispatch(c);
}
