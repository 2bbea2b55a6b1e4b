/*
 * /v1/browser and /v1/display: what a sandbox without a browser and a screen says to all of it.
 *
 * Where AIO answers with an image or a file instead of an envelope, the refusal is a status of its own: a
 * client would keep an envelope as the image.
 */
#include "aio_impl.h"
#include "poison.h"

static void refuse(struct request *r)
{
	aio_refuse(r, "this image has no browser");
}

static void refuse_display(struct request *r)
{
	aio_refuse(r, "this image has no display");
}

static void refuse_bytes(struct request *r)
{
	struct err e = { 0 };

	err_set(&e, ERR_UNSUPPORTED, "this image has no browser");
	answer_fail(r, &e);
}

const struct route aio_browser_routes[] = {
	{ "GET", "/v1/browser/{path}", refuse, .query = ROUTE_ANY_QUERY },
	{ "POST", "/v1/browser/{path}", refuse, .body = ROUTE_WHOLE, .query = ROUTE_ANY_QUERY },
	{ "PUT", "/v1/browser/{path}", refuse, .body = ROUTE_WHOLE, .query = ROUTE_ANY_QUERY },
	{ "DELETE", "/v1/browser/{path}", refuse, .body = ROUTE_WHOLE, .query = ROUTE_ANY_QUERY },
	/* The last route that fits is taken. */
	{ "GET", "/v1/browser/screenshot", refuse_bytes, .query = ROUTE_ANY_QUERY },
	{ "GET", "/v1/browser/page/screenshot", refuse_bytes, .query = ROUTE_ANY_QUERY },
	{ "GET", "/v1/browser/proxy.pac", refuse_bytes, .query = ROUTE_ANY_QUERY },
	{ "POST", "/v1/display/record", refuse_display, .body = ROUTE_WHOLE, .query = ROUTE_ANY_QUERY },
	{ 0 },
};
