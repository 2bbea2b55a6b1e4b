/*
 * Who may send requests from within a browser, and what a client without a key is told (RFC 9728).
 *
 * A page of another site can make a browser send requests to this machine, and by DNS rebinding even read the
 * answers. It cannot choose the headers Host and Origin.
 */
#include "mcp_impl.h"
#include "poison.h"

#define WELL_KNOWN "/.well-known/oauth-protected-resource"

/* Without the port: behind the last colon, but not within an IPv6 address. */
static struct view host_name(struct view v)
{
	const char *colon = v.n ? memrchr(v.p, ':', v.n) : NULL;

	if (colon && !memchr(colon, ']', v.n - (size_t)(colon - v.p)))
		v.n = (size_t)(colon - v.p);
	return v;
}

static bool ends(struct view v, const char *tail)
{
	size_t n = strlen(tail);
	return v.n > n && view_eq_nocase(view_skip(v, v.n - n), view_of(tail));
}

/* "127.evil.example" is not. */
static bool is_loopback_number(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] != '.' && (v.p[i] < '0' || v.p[i] > '9'))
			return false;
	return view_starts(v, "127.");
}

/* Browsers resolve names below localhost themselves. */
static bool is_local(struct view host)
{
	struct view name = host_name(host);

	return view_eq_nocase(name, VIEW("localhost")) || is_loopback_number(name) ||
	       view_is(name, "[::1]") || ends(name, ".localhost");
}

static bool is_loopback(struct view listen)
{
	return view_starts(listen, "127.") || view_starts(listen, "[::1]:");
}

static int check_origin(const struct http_exchange *x, struct view origin, struct err *e)
{
	struct view host = VIEW_NONE;

	if (view_starts(origin, "http://"))
		host = view_skip(origin, 7);
	else if (view_starts(origin, "https://"))
		host = view_skip(origin, 8);
	if (host.p && (view_eq_nocase(host, x->host) || (is_local(host) && is_local(x->host))))
		return 0;
	return err_set(e, ERR_FORBIDDEN, "requests from pages of this origin are not allowed");
}

int mcp_access_check(const struct http_exchange *x, struct view listen, struct err *e)
{
	struct view origin = http_get_header(x, "origin");

	if (is_loopback(listen) && !x->tls && !is_local(x->host))
		return err_set(e, ERR_FORBIDDEN, "the host must be localhost, 127.0.0.1 or [::1]");
	return origin.p ? check_origin(x, origin, e) : 0;
}

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
