/*
 * Requests that browsers send for pages: see origin.h.
 */
#include "origin.h"

#include "host_match.h"
#include "poison.h"

/* Without the port: behind the last colon, but not within an IPv6 address. */
static struct view host_name(struct view v)
{
	const char *colon = v.n ? memrchr(v.p, ':', v.n) : NULL;

	if (colon && !memchr(colon, ']', v.n - (size_t)(colon - v.p)))
		v.n = (size_t)(colon - v.p);
	return v;
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
	       view_is(name, "[::1]") || host_match(VIEW("*.localhost"), name);
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

int origin_check(const struct http_exchange *x, struct view listen, struct err *e)
{
	struct view origin = http_get_header(x, "origin");

	if (is_loopback(listen) && !x->tls && !is_local(x->host))
		return err_set(e, ERR_FORBIDDEN, "the host must be localhost, 127.0.0.1 or [::1]");
	return origin.p ? check_origin(x, origin, e) : 0;
}
