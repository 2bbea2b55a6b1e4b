/*
 * E2B: routes that are not supported. They answer 501; clients would take a 404 for an object that
 * does not exist.
 */
#include "e2b_impl.h"
#include "poison.h"

static void absent(struct request *r)
{
	struct err e = { 0 };
	err_set(&e, ERR_UNSUPPORTED, "%s %s of E2B's API is not supported", r->route->method,
		r->route->pattern);
	answer_fail(r, &e);
}

const struct route e2b_absent_routes[] = {
	{ "GET", "/teams", absent },
	{ 0 },
};
