/*
 * The Sandkasten dialect: its tables, who asks, and how an error reads.
 */
#include "sandkasten.h"

#include <errno.h>

#include "event.h"
#include "sk_impl.h"
#include "poison.h"

static bool has_segment(struct view path, unsigned at, const char *name)
{
	struct view one = VIEW_NONE;

	for (unsigned i = 0; i <= at; i++) {
		if (!path.p)
			return false;
		one = view_split(path, '/', &path);
	}
	return view_is(one, name);
}

/* By a listener of its own everything is; on the common one Paddock's own routes come first. */
static bool claims(const struct http_exchange *x, void *state)
{
	if (!has_segment(x->path, 1, "v1"))
		return false;
	return has_segment(x->path, 2, "sessions") ||
	       (has_segment(x->path, 2, "workspaces") && has_segment(x->path, 4, "fs"));
}

static int authenticate(struct request *r, struct err *e)
{
	return auth_actor(r->core, request_token(r->x), &r->actor, e);
}

/* ---- errors ---- */

static void put(struct request *r, int status, const char *code, const char *message,
		const struct http_header *extra, size_t n_extra)
{
	struct buf b = BUF_INIT(4096);
	struct json_out o;

	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kz(&o, "error_code", code);
	json_out_kz(&o, "message", message);
	json_out_end(&o, '}');
	buf_putc(&b, '\n');
	http_reply(r->x, status, "application/json", buf_view(&b), extra, n_extra);
	buf_done(&b);
}

void sk_refuse(struct request *r, int status, const char *code, const char *message)
{
	put(r, status, code, message, NULL, 0);
	request_done(r);
}

static const char *code_of(const struct request *r, const struct err *e)
{
	bool session = r->route && view_starts(view_of(r->route->pattern), "/v1/sessions/");

	if (e->code == ERR_UNAUTHORIZED)
		return "UNAUTHORIZED";
	if (e->code == ERR_TIMEOUT)
		return "COMMAND_TIMEOUT";
	/* A path or a file that is not there is the request's fault. */
	if (e->code == ERR_NOT_FOUND && r->route && e->sys != ENOENT)
		return session ? "SESSION_NOT_FOUND" : "WORKSPACE_NOT_FOUND";
	return err_http(e->code) >= 500 ? "INTERNAL_ERROR" : "INVALID_REQUEST";
}

/* A link that leads out is told as a path that does. */
static void translate(struct err *e)
{
	if (e->code == ERR_FORBIDDEN && e->sys == EXDEV)
		err_set(e, ERR_INVALID, "path must lie in " SK_ROOT);
}

static void fail(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	static const struct http_header bearer = { VIEW("www-authenticate"), VIEW("Bearer") };
	const char *code = code_of(r, e);

	if (view_is(view_of(code), "SESSION_NOT_FOUND") &&
	    lifetime_is_over(r->core, &r->actor, r->params[0])) {
		put(r, 410, "SESSION_EXPIRED", "the session has expired", extra, n_extra);
		return;
	}
	if (e->code == ERR_UNAUTHORIZED) {
		extra = &bearer;
		n_extra = 1;
	}
	put(r, err_http(e->code), code, e->msg, extra, n_extra);
}

void sk_ok(struct request *r)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kbool(o, "ok", true);
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* ---- the rest ---- */

static void healthz(struct request *r)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kz(o, "status", "ok");
	json_out_end(o, '}');
	answer_send(r, 200);
}

static const struct route own_routes[] = {
	{ "GET", "/healthz", healthz, .auth = ROUTE_OPEN },
	{ 0 },
};

static const struct route *const tables[] = {
	sk_sessions_routes, sk_exec_routes, sk_files_routes, sk_upload_routes, sk_workspaces_routes,
	own_routes,         NULL,
};

static const struct surface surface = { .heading = "sandkasten",
					.routes = tables,
					.authenticate = authenticate,
					.fail = fail,
					.translate = translate };

static void off(const struct core *c, void (*say)(void *arg, const char *what, const char *why), void *arg)
{
	if (!core_config(c)->sandkasten.workspaces)
		say(arg, "workspace_id", "sandkasten.workspaces is false");
}

const struct dialect sandkasten_dialect = {
	.name = "sandkasten", .version = "v1", .off = off, .claims = claims, .surface = &surface
};
