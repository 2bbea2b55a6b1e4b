/*
 * Sessions of the dashboard: see login.h.
 */
#include "login.h"

#include <stdio.h>

#include "num.h"
#include "origin.h"
#include "proxy_head.h"
#include "poison.h"

/* "__Host-": neither another host nor a page without TLS can set it. */
void login_name(const struct http_exchange *x, char ret[LOGIN_COOKIE_MAX])
{
	const char *colon = x->host.n ? memrchr(x->host.p, ':', x->host.n) : NULL;
	uint64_t port = 0;

	if (colon && num_u64(view_skip(x->host, (size_t)(colon - x->host.p) + 1), &port) < 0)
		port = 0;
	snprintf(ret, LOGIN_COOKIE_MAX, "%s" PROXY_HEAD_OURS "session_%u", x->tls ? "__Host-" : "",
		 (unsigned)(port & 0xffff));
}

struct view login_token(const struct http_exchange *x)
{
	char name[LOGIN_COOKIE_MAX];

	login_name(x, name);
	for (size_t i = 0; i < x->n_headers; i++) {
		struct view rest = x->headers[i].value, token;
		if (view_is(x->headers[i].name, "cookie") && (token = proxy_head_cookie(&rest, name)).p)
			return token;
	}
	return VIEW_NONE;
}

static bool is_safe(struct view method)
{
	return view_is(method, "GET") || view_is(method, "HEAD");
}

int login_check(const struct request *r, struct err *e)
{
	const struct http_exchange *x = r->x;
	struct view site = http_get_header(x, "sec-fetch-site");
	bool socket = proxy_head_is_websocket(x->headers, x->n_headers);

	if (origin_check(x, core_config(r->core)->listen, e) < 0)
		return -1;
	if (!request_same_origin(x) || (site.p && !view_is(site, "same-origin")))
		return err_set(e, ERR_FORBIDDEN, "a page of another origin may not use the session");
	if ((socket || !is_safe(x->method)) && !http_get_header(x, "origin").p)
		return err_set(e, ERR_FORBIDDEN, "the session needs the header Origin for this");
	if (!socket && !view_is(http_get_header(x, LOGIN_HEADER), "1"))
		return err_set(e, ERR_FORBIDDEN, "the session needs the header X-Paddock-Dashboard");
	return 0;
}

int login_actor(struct request *r, struct err *e)
{
	struct view token = login_token(r->x);

	if (!token.p || http_get_header(r->x, "authorization").p || http_get_header(r->x, "x-api-key").p)
		return auth_actor(r->core, request_token(r->x), &r->actor, e);
	if (login_check(r, e) < 0)
		return -1;
	return logins_actor(r->core, token, r->x->host, &r->actor, e);
}
