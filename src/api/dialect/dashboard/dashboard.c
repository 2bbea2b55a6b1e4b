/*
 * The dashboard's files. Their names say what is in them, but for the page itself, so browsers keep them and
 * ask for the page alone.
 *
 * Nothing of another origin and nothing inline is allowed in the pages: a text of a sandbox that becomes
 * part of one by mistake does nothing.
 */
#include "dashboard.h"

#include "dashboard_files.h"
#include "dashboard_impl.h"
#include "login.h"
#include "poison.h"

#define POLICY                                                                                               \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "              \
	"font-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; "       \
	"frame-ancestors 'none'"

static const struct http_header safety[] = { PAGES_SAFETY(POLICY) };

/* Who is not a browser gets at / what was always there. */
static bool claims(const struct http_exchange *x, void *state)
{
	if (view_is(x->path, "/"))
		return (view_is(x->method, "GET") || view_is(x->method, "HEAD")) && pages_is_browser(x);
	return view_starts(x->path, "/dashboard/");
}

/* ---- files ---- */

static void file(struct request *r)
{
	const struct pages_file *f = pages_find(dashboard_files, r->x->path);
	struct err e = { 0 };

	if (f) {
		pages_send(r, 200, f);
		return;
	}
	err_set(&e, ERR_NOT_FOUND, "there is nothing at this path");
	answer_fail(r, &e);
}

static const struct route file_routes[] = {
	{ "GET", "/", file, .auth = ROUTE_OPEN, .query = ROUTE_ANY_QUERY },
	{ "GET", "/dashboard/assets/{name}", file, .auth = ROUTE_OPEN },
	{ 0 },
};

/* ---- the rest ---- */

static const struct route *const tables[] = { file_routes, dashboard_session_routes, dashboard_state_routes,
					      dashboard_template_routes, NULL };

static int authenticate(struct request *r, struct err *e)
{
	return r->route ? login_actor(r, e) : 0;
}

static const struct surface surface = {
	.heading = "dashboard",
	.routes = tables,
	.authenticate = authenticate,
	.fail = answer_error,
	.headers = safety,
	.n_headers = ELEMS(safety),
};

const struct dialect dashboard_dialect = { .name = "dashboard", .claims = claims, .surface = &surface };
