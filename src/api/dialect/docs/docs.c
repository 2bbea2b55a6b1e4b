/*
 * Pages for people who may not have a key: nothing in them is about this installation. They share an origin
 * with the dashboard, so they are as closed as it is, and closed to frames.
 */
#include "docs.h"

#include "answer.h"
#include "docs_files.h"
#include "poison.h"

#define POLICY                                                                                               \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "                    \
	"connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

static const struct http_header safety[] = { PAGES_SAFETY(POLICY) };

static bool claims(const struct http_exchange *x, void *state)
{
	return view_is(x->path, "/docs") || view_starts(x->path, "/docs/");
}

static void page(struct request *r)
{
	struct view path = r->x->path;
	struct err e = { 0 };

	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	const struct pages_file *f = pages_find(docs_files, path);
	if (f && !view_is(path, "/docs/404")) {
		pages_send(r, 200, f);
		return;
	}
	f = pages_find(docs_files, VIEW("/docs/404"));
	if (f && pages_is_browser(r->x)) {
		pages_send(r, 404, f);
		return;
	}
	err_set(&e, ERR_NOT_FOUND, "the documentation has no such page");
	answer_fail(r, &e);
}

static const struct route routes[] = {
	{ "GET", "/docs", page, .auth = ROUTE_OPEN, .query = ROUTE_ANY_QUERY },
	{ "GET", "/docs/{path}", page, .auth = ROUTE_OPEN, .query = ROUTE_ANY_QUERY },
	{ 0 },
};

static const struct route *const tables[] = { routes, NULL };

static const struct surface surface = {
	.heading = "docs",
	.routes = tables,
	.fail = answer_error,
	.headers = safety,
	.n_headers = ELEMS(safety),
};

const struct dialect docs_dialect = { .name = "docs", .claims = claims, .surface = &surface };
