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
#include "proxy.h"
#include "template.h"
#include "text.h"
#include "who.h"
#include "poison.h"

const struct http_header envd_cors[1] = { { VIEW("access-control-allow-origin"), VIEW("*") } };

/* ---- what the handlers share ---- */

void *envd_own(struct request *c, size_t size, void (*release)(struct request *c))
{
	void *own = request_own(c, size);

	if (own)
		c->release = release;
	return own;
}

const struct box *envd_box(const struct request *c)
{
	return boxes_by_id(c->core, view_of(c->box));
}

struct file_place envd_place(const struct request *c, struct view path)
{
	return (struct file_place){ .box = view_of(c->box), .path = path, .user = c->user, .as_root = true };
}

size_t envd_vars(struct core *core, const struct box *b, struct view names[ENVD_VARS],
		 struct view values[ENVD_VARS])
{
	bool base = view_eq(b->spec.image, core_config(core)->defaults.image);
	const struct template_build *build = templates_of_box(core, b);
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

/* ---- errors ---- */

static void put_error(struct buf *b, int status, const char *message)
{
	struct json_out o;

	json_out_init(&o, b);
	json_out_object(&o);
	json_out_ku64(&o, "code", (uint64_t)status);
	json_out_kz(&o, "message", message);
	json_out_end(&o, '}');
}

void envd_fail_status(struct request *c, int status, const char *message)
{
	struct buf b = BUF_INIT(4096);

	put_error(&b, status, message);
	answer_reply(c, status, &b);
}

static void translate(struct err *e)
{
	/* A user that is not there could not show that it is: the original says so. */
	if (e->code == ERR_INVALID && e->sys == ERR_SYS_NO_USER)
		e->code = ERR_UNAUTHORIZED;
	if (e->code == ERR_INVALID && e->sys == ELOOP)
		e->code = ERR_STATE;
}

static void fail(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	struct http_header headers[4] = { envd_cors[0] };
	struct buf b = BUF_INIT(4096);
	int status = err_http(e->code);

	/* A call's client knows the code by its name, also of a call that is none. */
	if (!r->admitted && rpc_fail_head(r, e))
		return;
	assert(n_extra < ELEMS(headers));
	for (size_t i = 0; i < n_extra; i++)
		headers[1 + i] = extra[i];
	if (e->code == ERR_FORBIDDEN) /* of the file system, to which its clients know no better answer */
		status = 403;
	put_error(&b, status, e->msg);
	http_reply(r->x, status, "application/json", buf_view(&b), headers, 1 + n_extra);
	buf_done(&b);
}

/* ---- who asks ---- */

/* "Basic base64(user:)": a name, the password means nothing. */
static int read_user(struct request *c, struct err *e)
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

static int read_username(struct request *c, struct err *e)
{
	struct view v = http_get_query(c->x, "username");

	if (!v.n)
		return 0;
	if (spec_check_user(v, "username", e) < 0)
		return err_set(e, ERR_UNAUTHORIZED, "there is no such user");
	c->user = v;
	return 0;
}

static bool has_token(const struct http_exchange *x, const struct core *c, const struct box *b)
{
	struct view token = http_get_header(x, "x-access-token");

	return token.p && tokens_fit(c, b, TOKEN_ENVD, token);
}

static bool is_files(const struct http_exchange *x)
{
	return view_is(x->path, "/files") && (view_is(x->method, "GET") || view_is(x->method, "POST"));
}

static const char *op_of(const struct http_exchange *x)
{
	return view_is(x->method, "GET") ? "read" : "write";
}

/* The plane has looked at tokens; and a signature that has ended was one. */
bool envd_proves(const struct http_exchange *x, const struct core *c, const struct box *b)
{
	return is_files(x) && envd_signature_fits(x, c, b, op_of(x));
}

static int admit(const struct request *c, struct err *e)
{
	const struct box *b = envd_box(c);

	if (has_token(c->x, c->core, b))
		return 0;
	if (!is_files(c->x) || !http_get_query(c->x, "signature").p)
		return err_set(e, ERR_UNAUTHORIZED, "unauthorized: no or wrong access token");
	return envd_signed(c->x, c->core, b, op_of(c->x), e);
}

static int authenticate(struct request *c, struct err *e)
{
	if (admit(c, e) < 0 || read_user(c, e) < 0)
		return -1;
	return is_files(c->x) ? read_username(c, e) : 0;
}

/* ---- routing ---- */

static const struct route routes[] = {
	{ "GET", "/metrics", envd_metrics, .query = ROUTE_ANY_QUERY },
	{ "GET", "/envs", envd_envs, .query = ROUTE_ANY_QUERY },
	{ "GET", "/files", envd_download, .query = ROUTE_ANY_QUERY },
	{ "POST", "/files", envd_upload, .body = ROUTE_STREAM, .query = ROUTE_ANY_QUERY },
	{ "POST", "/files/compose", envd_compose, .body = ROUTE_WHOLE, .body_max = ENVD_COMPOSE_MAX,
	  .query = ROUTE_ANY_QUERY },
	{ 0 },
};

/* Browsers ask before they show a token. */
bool envd_preflight(struct http_exchange *x)
{
	static const struct http_header allow[] = {
		{ VIEW("access-control-allow-origin"), VIEW("*") },
		{ VIEW("access-control-allow-methods"), VIEW("GET, POST, OPTIONS") },
		{ VIEW("access-control-allow-headers"),
		  VIEW("*, authorization, content-type, x-access-token, connect-protocol-version, "
		       "connect-timeout-ms, keepalive-ping-interval, e2b-sandbox-id, e2b-sandbox-port") },
		{ VIEW("access-control-max-age"), VIEW("7200") },
	};
	if (!view_is(x->method, "OPTIONS"))
		return false;
	http_reply(x, 204, NULL, VIEW_NONE, allow, ELEMS(allow));
	return true;
}

/* Whether it can be asked: one that is paused answers only where asking resumes it. */
static bool is_there(const struct box *b, bool asks)
{
	return b->state.status == BOX_RUNNING ||
	       (asks && b->state.status == BOX_PAUSED && b->spec.auto_resume);
}

static bool quick(struct http_exchange *x, const struct box *b)
{
	bool health =
		view_is(x->path, "/health") && (view_is(x->method, "GET") || view_is(x->method, "HEAD"));

	if (!is_there(b, !health))
		proxy_unknown_box(x, view_of(b->id));
	else if (health)
		http_reply(x, 204, NULL, VIEW_NONE, envd_cors, ELEMS(envd_cors));
	else
		return false;
	return true;
}

/* The box has ended meanwhile. Where the original runs, nobody is left to say so: the connection drops, and
 * clients ask /health what became of the box. What has not begun gets the answer that the next request
 * would get. */
static bool lost(struct request *r, const struct err *e)
{
	const struct box *b = envd_box(r);
	bool begun = r->fail && rpc_of(r)->begun;

	if (e->code != ERR_STATE || !r->admitted || (!begun && b && is_there(b, true)))
		return false;
	if (begun)
		http_break(r->x);
	else
		proxy_unknown_box(r->x, view_of(r->box));
	request_done(r);
	return true;
}

static const struct route *const tables[] = { routes, NULL };
static const struct rpc_method *const methods[] = { envd_process_methods, envd_fs_methods, NULL };

const struct surface envd_surface = {
	.routes = tables,
	.methods = methods,
	.quick = quick,
	.authenticate = authenticate,
	.fail = fail,
	.translate = translate,
	.lost = lost,
	.headers = envd_cors,
	.n_headers = ELEMS(envd_cors),
	.no_method = "method not allowed",
	.exact = true,
};
