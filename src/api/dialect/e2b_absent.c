/*
 * E2B: the routes that are not here. They say so, instead of a 404 that a client
 * would take for a thing that does not exist.
 */
#include "e2b_impl.h"
#include "poison.h"

static void absent(struct req *r)
{
	struct err e = { 0 };
	err_set(&e, ERR_UNSUPPORTED, "%s %s of E2B's API is not supported", r->route->method,
		r->route->pattern);
	rest_fail(r, &e);
}

const struct route e2b_absent_routes[] = {
	{ "GET", "/templates", absent, .query = "teamID" },
	{ "POST", "/v3/templates", absent },
	{ "GET", "/templates/{id}", absent, .query = "limit nextToken" },
	{ "PATCH", "/v2/templates/{id}", absent },
	{ "GET", "/templates/{id}/files/{hash}", absent },
	{ "POST", "/v2/templates/{id}/builds/{build}", absent },
	{ "GET", "/templates/{id}/builds/{build}/status", absent, .query = "logsOffset limit level" },
	{ "GET", "/templates/{id}/builds/{build}/logs", absent,
	  .query = "cursor limit direction level source" },
	{ "GET", "/templates/{id}/tags", absent },
	{ "POST", "/templates/tags", absent },
	{ "DELETE", "/templates/tags", absent },
	{ "GET", "/teams", absent },
	{ 0 },
};
