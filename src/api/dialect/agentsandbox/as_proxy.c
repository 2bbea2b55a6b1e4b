/*
 * Ways to servers in sandboxes: /sandbox/{name}/… to port 8080, /sandboxes/router/{id}/{port}/… to any, and
 * the page at /sandbox/{name} that shows what there is. Agent-Sandbox leaves these open; here they ask for a
 * key, unless the sandbox's ports are public.
 */
#include <stdio.h>

#include "as_impl.h"
#include "num.h"
#include "proxy.h"
#include "text.h"
#include "poison.h"

static void words(struct json_out *o, const struct proxy_refusal *why)
{
	char code[8];

	snprintf(code, sizeof(code), "%d", why->status);
	json_out_object(o);
	json_out_kz(o, "code", code);
	json_out_kz(o, "error", why->message);
	json_out_end(o, '}');
}

/* Somebody who may use the box's ports; NULL: the answer is sent, the same for a box that is not there. */
static const struct box *find(struct request *r, struct actor *ret)
{
	struct err e = { 0 };
	const struct box *b = boxes_by_id(r->core, r->params[0]);
	bool known = auth_actor(r->core, as_token(r->x), &r->actor, &e) >= 0;

	if (known && (b = boxes_find(r->core, &r->actor, ACT_BOX_PORTS, r->params[0], &e))) {
		*ret = r->actor;
		return b;
	}
	if (!known && b && b->spec.ports_public) {
		*ret = (struct actor){ .tenant = b->tenant, .role = STORE_ROLE_USER };
		return b;
	}
	answer_fail(r, &e);
	return NULL;
}

static void proxy(struct request *r, uint16_t port, struct view path, struct view prefix)
{
	struct actor actor;
	const struct box *b = find(r, &actor);
	char host[32];

	if (!b)
		return;
	snprintf(host, sizeof(host), "localhost:%u", port);
	proxy_take(r, &(struct proxy_wish){ .serve = r->serve,
					    .actor = actor,
					    .box = arena_view(r->x->arena, view_of(b->id)),
					    .path = path,
					    .prefix = prefix,
					    .host = arena_view(r->x->arena, view_of(host)),
					    .port = port,
					    .credentials = "api_key",
					    .words = words });
}

/* What stands behind the n-th slash of the path, with it, and what before. */
static struct view split_path(struct view path, unsigned n, struct view *ret_prefix)
{
	for (size_t i = 0; i < path.n; i++)
		if (path.p[i] == '/' && n-- == 0) {
			*ret_prefix = view_head(path, i);
			return view_skip(path, i);
		}
	*ret_prefix = path;
	return VIEW("");
}

static void to_server(struct request *r)
{
	struct view prefix, path = split_path(r->x->path, 3 - 1, &prefix);

	proxy(r, AS_PORT, path, prefix);
}

static void to_port(struct request *r)
{
	struct view prefix, path = split_path(r->x->path, 5 - 1, &prefix);
	struct err e = { 0 };
	uint32_t port;

	if (num_u32(r->params[1], &port) < 0 || !port || port > UINT16_MAX) {
		err_set(&e, ERR_INVALID, "the port must be between 1 and 65535");
		answer_fail(r, &e);
		return;
	}
	proxy(r, (uint16_t)port, path.n ? path : VIEW("/"), prefix);
}

/* ---- the page ---- */

static void put_html(struct buf *b, struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
			buf_printf(b, "&#%d;", c);
		else
			buf_putc(b, c);
	}
}

static void put_link(struct buf *b, const char *base, struct view name, const char *rest, const char *label)
{
	buf_printf(b, "<li><a href=\"%s", base);
	put_html(b, name);
	buf_printf(b, "%s\">%s</a></li>\n", rest, label);
}

static void page(struct request *r)
{
	static const struct http_header headers[] = {
		{ VIEW("content-security-policy"),
		  VIEW("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'") },
		{ VIEW("cache-control"), VIEW("no-store") },
		{ VIEW("referrer-policy"), VIEW("no-referrer") },
	};
	struct actor actor;
	const struct box *b = find(r, &actor);
	struct buf html = BUF_INIT(16 * 1024);

	if (!b)
		return;
	struct view name = as_name(b);
	buf_puts(&html, "<!doctype html>\n<meta charset=\"utf-8\"><meta name=\"viewport\" "
			"content=\"width=device-width\">\n<title>");
	put_html(&html, name);
	buf_puts(&html, "</title>\n<style>body{font:16px/1.5 system-ui;margin:3rem "
			"auto;max-width:40rem;padding:0 1rem}"
			"dt{float:left;width:8rem;color:#666}dd{margin-left:8rem}</style>\n<h1>");
	put_html(&html, name);
	buf_puts(&html, "</h1>\n<dl><dt>Status</dt><dd>");
	buf_puts(&html, boxes_status_name(b->state.status));
	buf_puts(&html, "</dd><dt>Image</dt><dd>");
	put_html(&html, b->spec.image);
	buf_printf(&html, "</dd><dt>Id</dt><dd>%s</dd></dl>\n<ul>\n", b->id);
	put_link(&html, "/sandbox/", name, "/terminal", "Terminal");
	put_link(&html, "/api/v1/sandbox/files/", name, "?path=/workspace", "Files");
	put_link(&html, "/v1/sandboxes/", name, "/ports", "Ports");
	put_link(&html, "/sandbox/", name, "/", "Server on port 8080");
	put_link(&html, "/sandbox/", name, "/v1/docs", "API");
	buf_puts(&html, "</ul>\n");
	http_reply(r->x, 200, "text/html; charset=utf-8", buf_view(&html), headers, ELEMS(headers));
	buf_done(&html);
	request_done(r);
}

const struct route as_proxy_routes[] = {
	{ "GET", "/sandbox/{name}", page, .auth = ROUTE_OPEN, .query = "api_key" },
	{ ROUTE_ANY_METHOD, "/sandbox/{name}/{path}", to_server, .auth = ROUTE_OPEN, .body = ROUTE_STREAM,
	  .query = ROUTE_ANY_QUERY },
	{ ROUTE_ANY_METHOD, "/sandboxes/router/{id}/{port}/{path}", to_port, .auth = ROUTE_OPEN,
	  .body = ROUTE_STREAM, .query = ROUTE_ANY_QUERY },
	{ 0 },
};
