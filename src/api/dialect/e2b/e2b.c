/*
 * E2B's three parts, and of the control plane its paths, who asks, and how an error
 * reads.
 */
#include "e2b.h"

#include "config.h"
#include "e2b_impl.h"
#include "envd.h"
#include "interpreter.h"
#include "poison.h"

#define PORT_ENVD        49983
#define PORT_INTERPRETER 49999

static const struct route *const tables[] = {
	e2b_boxes_routes,   e2b_life_routes,      e2b_observe_routes, e2b_copies_routes,
	e2b_network_routes, e2b_templates_routes, e2b_builds_routes,  e2b_volumes_routes,
	e2b_content_routes, e2b_secrets_routes,   e2b_absent_routes,  NULL,
};

/* Asked for every request that is not for a box: the first letter decides most of them. */
static bool claims(const struct http_exchange *x, void *state)
{
	static const struct view roots[] = {
		VIEW("/sandboxes"), VIEW("/v2"),      VIEW("/v3"),      VIEW("/templates"),
		VIEW("/snapshots"), VIEW("/secrets"), VIEW("/volumes"), VIEW("/volumecontent"),
		VIEW("/teams"),
	};
	struct view path = x->path;

	for (size_t i = 0; i < ELEMS(roots); i++) {
		size_t n = roots[i].n;
		if (path.n >= n && path.p[1] == roots[i].p[1] && memcmp(path.p, roots[i].p, n) == 0 &&
		    (path.n == n || path.p[n] == '/'))
			return true;
	}
	return false;
}

/* Python's clients before 2.31 connect to a sandbox with the headers of a request to it. Its envd has no such
 * paths, and is not asked with the key. */
static bool strays(const struct http_exchange *x)
{
	return http_get_header(x, "x-api-key").p &&
	       (view_starts(x->path, "/sandboxes/") || view_starts(x->path, "/v2/sandboxes/"));
}

/* Its clients send a token of another kind in Authorization, too. */
static int authenticate(struct request *r, struct err *e)
{
	struct view key = http_get_header(r->x, "x-api-key");

	if (!key.p)
		key = request_token(r->x);
	/* Who uses its clients with Agent-Sandbox writes this before every key. */
	if (view_starts(key, "e2b_pdk_"))
		key = view_skip(key, strlen("e2b_"));
	return auth_actor(r->core, key, &r->actor, e);
}

/* {"code":404,"message":"…","error_code":"not_found"} */
static void fail(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	static const struct http_header bearer = { VIEW("www-authenticate"), VIEW("Bearer") };
	struct buf b = BUF_INIT(4096);
	struct json_out o;

	json_out_init(&o, &b);
	json_out_object(&o);
	/* Clients look at this one, not at the status. */
	json_out_ku64(&o, "code", (uint64_t)err_http(e->code));
	json_out_kz(&o, "message", e->msg);
	json_out_kz(&o, "error_code", err_name(e->code));
	json_out_end(&o, '}');
	if (e->code == ERR_UNAUTHORIZED) {
		extra = &bearer;
		n_extra = 1;
	}
	http_reply(r->x, err_http(e->code), "application/json", buf_view(&b), extra, n_extra);
	buf_done(&b);
}

static const struct surface control = {
	.heading = "e2b",
	.routes = tables,
	.authenticate = authenticate,
	.fail = fail,
};

static const struct dialect_port ports[] = {
	{ .port = PORT_ENVD,
	  .usual = true,
	  .find = envd_find,
	  .strays = strays,
	  .proves = envd_proves,
	  .anyway = envd_preflight,
	  .surface = &envd_surface },
	{ .port = PORT_INTERPRETER, .guarded = true, .surface = &interpreter_surface },
	{ 0 },
};

static void off(const struct core *c, void (*say)(void *arg, const char *what, const char *why), void *arg)
{
	if (!core_config(c)->ports.domain.n)
		say(arg, "PORT-ID.DOMAIN", "ports.domain is empty");
	for (const struct route *t = e2b_absent_routes; t->method; t++)
		say(arg, t->pattern, "not supported");
}

const struct dialect e2b_dialect = { .name = "e2b",
				     .version = "envd " E2B_ENVD_VERSION,
				     .alias = "/e2b/v1",
				     .ports_here = true,
				     .off = off,
				     .claims = claims,
				     .surface = &control,
				     .ports = ports };
