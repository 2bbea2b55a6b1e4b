/*
 * The dashboard's files, from memory. They are compressed once, when they are built. Their names say what is
 * in them, but for the page itself, so browsers keep them and ask for the page alone.
 *
 * Nothing of another origin and nothing inline is allowed in the pages: a text of a sandbox that becomes
 * part of one by mistake does nothing.
 */
#include "dashboard.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "dashboard_files.h"
#include "dashboard_impl.h"
#include "http1_response.h"
#include "login.h"
#include "poison.h"

#define POLICY                                                                                               \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "              \
	"font-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'none'; base-uri 'none'; "       \
	"frame-ancestors 'none'"

static const struct http_header safety[] = {
	{ VIEW("content-security-policy"), VIEW(POLICY) },
	{ VIEW("x-content-type-options"), VIEW("nosniff") },
	{ VIEW("x-frame-options"), VIEW("DENY") },
	{ VIEW("referrer-policy"), VIEW("no-referrer") },
	{ VIEW("cross-origin-opener-policy"), VIEW("same-origin") },
	{ VIEW("cross-origin-resource-policy"), VIEW("same-origin") },
	{ VIEW("permissions-policy"), VIEW("camera=(), microphone=(), geolocation=(), payment=(), usb=()") },
};

/* Who is not a browser gets at / what was always there. */
static bool is_browser(const struct http_exchange *x)
{
	struct view rest = http_get_header(x, "accept");

	while (rest.p) {
		struct view weight, one = view_split(rest, ',', &rest);
		if (view_eq_nocase(view_trim(view_split(one, ';', &weight)), VIEW("text/html")))
			return true;
	}
	return false;
}

static bool claims(const struct http_exchange *x, void *state)
{
	if (view_is(x->path, "/"))
		return (view_is(x->method, "GET") || view_is(x->method, "HEAD")) && is_browser(x);
	return view_starts(x->path, "/dashboard/");
}

/* ---- files ---- */

static const struct dashboard_file *find(struct view path)
{
	for (const struct dashboard_file *f = dashboard_files; f->path; f++)
		if (view_is(path, f->path))
			return f;
	return NULL;
}

static bool takes_gzip(const struct http_exchange *x)
{
	struct view rest = http_get_header(x, "accept-encoding");

	while (rest.p) {
		struct view weight, one = view_split(rest, ',', &rest);
		if (!view_eq_nocase(view_trim(view_split(one, ';', &weight)), VIEW("gzip")))
			continue;
		weight = view_trim(weight);
		return !view_is(weight, "q=0") && !view_is(weight, "q=0.0") && !view_is(weight, "q=0.00") &&
		       !view_is(weight, "q=0.000");
	}
	return false;
}

/* For the few who do not take it compressed. NULL: no memory. */
static unsigned char *inflate_file(const struct dashboard_file *f)
{
	unsigned char *plain = malloc(f->size + 1);
	z_stream z = { .next_in = (unsigned char *)f->gzip,
		       .avail_in = (unsigned)f->gzip_size,
		       .next_out = plain,
		       .avail_out = (unsigned)f->size + 1 };

	if (!plain || inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) {
		free(plain);
		return NULL;
	}
	int r = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	if (r == Z_STREAM_END && z.total_out == f->size)
		return plain;
	free(plain);
	return NULL;
}

static size_t put_headers(struct http_header *h, const struct dashboard_file *f, bool gzip)
{
	size_t n = 0;

	for (; n < ELEMS(safety); n++)
		h[n] = safety[n];
	h[n++] = (struct http_header){ VIEW("etag"), view_of(f->etag) };
	h[n++] = (struct http_header){ VIEW("vary"), VIEW("accept, accept-encoding") };
	h[n++] = (struct http_header){ VIEW("cache-control"),
				       f->lasting ? VIEW("public, max-age=31536000, immutable")
						  : VIEW("no-cache") };
	if (gzip)
		h[n++] = (struct http_header){ VIEW("content-encoding"), VIEW("gzip") };
	return n;
}

static void file(struct request *r)
{
	const struct dashboard_file *f = find(r->x->path);
	struct http_header h[ELEMS(safety) + 4];
	bool gzip = takes_gzip(r->x);
	struct err e = { 0 };

	if (!f) {
		err_set(&e, ERR_NOT_FOUND, "there is nothing at this path");
		answer_fail(r, &e);
		return;
	}
	size_t n = put_headers(h, f, gzip);
	if (http1_response_has_option(http_get_header(r->x, "if-none-match"), f->etag)) {
		http_reply(r->x, 304, NULL, VIEW_NONE, h, n);
		request_done(r);
		return;
	}
	unsigned char *plain = gzip ? NULL : inflate_file(f);
	if (!gzip && !plain) {
		err_sys(&e, ERR_INTERNAL, ENOMEM, "a page");
		answer_fail(r, &e);
		return;
	}
	if (gzip)
		http_reply_shared(r->x, 200, f->type, (struct view){ (const char *)f->gzip, f->gzip_size }, h,
				  n);
	else
		http_reply(r->x, 200, f->type, (struct view){ (const char *)plain, f->size }, h, n);
	free(plain);
	request_done(r);
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
