/*
 * What a client without a key is told (RFC 9728).
 */
#include "mcp_impl.h"
#include "poison.h"

#define WELL_KNOWN "/.well-known/oauth-protected-resource"

static void put_base(const struct http_exchange *x, struct buf *out)
{
	buf_printf(out, "%s://%.*s", x->tls ? "https" : "http", VIEW_ARG(x->host));
}

void mcp_access_challenge(const struct http_exchange *x, struct buf *out)
{
	buf_puts(out, "Bearer resource_metadata=\"");
	put_base(x, out);
	buf_puts(out, WELL_KNOWN);
	buf_add(out, x->path);
	buf_puts(out, "\"");
}

static void metadata(struct request *r)
{
	struct view path = view_skip(r->x->path, strlen(WELL_KNOWN));
	struct json_out *o = answer_json(r);
	struct buf url = BUF_INIT(8192);

	put_base(r->x, &url);
	buf_add(&url, path.n ? path : VIEW("/mcp"));
	json_out_object(o);
	json_out_kstr(o, "resource", buf_view(&url));
	json_out_kz(o, "resource_name", "Paddock");
	json_out_key(o, "bearer_methods_supported");
	json_out_array(o);
	json_out_str(o, VIEW("header"));
	json_out_end(o, ']');
	json_out_end(o, '}');
	buf_done(&url);
	answer_send(r, 200);
}

const struct route mcp_access_routes[] = {
	{ "GET", WELL_KNOWN, metadata, .auth = ROUTE_OPEN },
	{ "GET", WELL_KNOWN "/mcp", metadata, .auth = ROUTE_OPEN },
	{ "GET", WELL_KNOWN "/sandbox/{name}/mcp", metadata, .auth = ROUTE_OPEN },
	{ 0 },
};
