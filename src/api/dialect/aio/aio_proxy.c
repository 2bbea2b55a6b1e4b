/*
 * /v1/proxy: in AIO's image a proxy stands between the browser and the network, and these routes steer it.
 * Here the gate takes all connections of a sandbox, by its egress policy, and no image has a browser: there
 * is nothing to map or to exclude, so what would change that is refused, and nobody is told that it was done.
 */
#include "aio_inside.h"
#include "poison.h"

struct proxy_body {
	bool unused; /* a schema puts nothing at offset 0 */
	struct view source, target, pattern, server, command;
};

#define AT(f) .offset = offsetof(struct proxy_body, f)
static const struct json_field mapping_fields[] = {
	{ "source", JSON_F_STRING, AT(source), .min = 1, .max = 2048, .required = true },
	{ "target", JSON_F_STRING, AT(target), .min = 1, .max = 2048, .required = true },
};
static const struct json_field exclude_fields[] = {
	{ "pattern", JSON_F_STRING, AT(pattern), .min = 1, .max = 2048, .required = true },
};
static const struct json_field upstream_fields[] = {
	{ "server", JSON_F_STRING, AT(server), .min = 1, .max = 2048, .required = true },
	{ "auth_cmd", JSON_F_STRING, AT(command), .max = 4096, .nullable = true },
};
#undef AT
static const struct json_schema mapping_schema = { mapping_fields, ELEMS(mapping_fields), .open = true };
static const struct json_schema exclude_schema = { exclude_fields, ELEMS(exclude_fields), .open = true };
static const struct json_schema upstream_schema = { upstream_fields, ELEMS(upstream_fields), .open = true };

static void none(struct request *r)
{
	struct json_out *o = aio_data(r, NULL);

	json_out_array(o);
	json_out_end(o, ']');
	aio_send(r);
}

static void no_upstream(struct request *r)
{
	json_out_null(aio_data(r, NULL));
	aio_send(r);
}

/* A change, whose body must be right all the same. */
static void refuse(struct request *r)
{
	struct proxy_body b = { 0 };

	if (r->route->schema && aio_read(r, r->route->schema, &b) < 0)
		return;
	aio_refuse(r, "this image has no browser, whose connections this would steer; the sandbox's egress "
		      "policy decides about all of its connections");
}

static void absent(struct request *r)
{
	struct proxy_body b = { 0 };

	if (r->route->schema && aio_read(r, r->route->schema, &b) < 0)
		return;
	aio_refuse(r, "there is no such entry");
}

/* The gate is there for as long as the sandbox is; the programs of AIO's image are not. */
static void health(struct request *r)
{
	struct json_out *o = aio_data(r, NULL);

	json_out_object(o);
	json_out_kbool(o, "healthy", true);
	json_out_kbool(o, "gost_alive", false);
	json_out_kbool(o, "nginx_alive", false);
	json_out_kbool(o, "config_consistent", true);
	json_out_key(o, "inconsistencies");
	json_out_array(o);
	json_out_end(o, ']');
	json_out_end(o, '}');
	aio_send(r);
}

static void diagnose(struct request *r)
{
	struct view url = request_query(r, "url");

	if (!url.n || memchr(url.p, 0, url.n))
		aio_unprocessable(r, "url", "url is needed");
	else
		aio_inside_run(r, AIO_SCRIPT_PROXY, &url, 1);
}

#define JSON(s) .body = ROUTE_JSON, .schema = &s, .query = AIO_QUERY
const struct route aio_proxy_routes[] = {
	{ "GET", "/v1/proxy/mappings", none, .query = AIO_QUERY },
	{ "POST", "/v1/proxy/mappings", refuse, JSON(mapping_schema) },
	{ "DELETE", "/v1/proxy/mappings/{path}", absent, .query = AIO_QUERY },
	{ "GET", "/v1/proxy/excludes", none, .query = AIO_QUERY },
	{ "POST", "/v1/proxy/excludes", refuse, JSON(exclude_schema) },
	{ "DELETE", "/v1/proxy/excludes", absent, JSON(exclude_schema) },
	{ "GET", "/v1/proxy/upstream", no_upstream, .query = AIO_QUERY },
	{ "PUT", "/v1/proxy/upstream", refuse, JSON(upstream_schema) },
	{ "DELETE", "/v1/proxy/upstream", absent, .query = AIO_QUERY },
	{ "GET", "/v1/proxy/diagnose", diagnose, .query = AIO_QUERY " url" },
	{ "GET", "/v1/proxy/health", health, .query = AIO_QUERY },
	{ 0 },
};
