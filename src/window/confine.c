/*
 * See confine.h. What is not known is refused.
 */
#include "confine.h"

#include <stdio.h>

#include "num.h"
#include "poison.h"

#define URI_MAX 4096

/* Nothing that a shell script between us and the browser could take for something else. */
static bool is_plain(struct view uri)
{
	if (uri.n > URI_MAX)
		return false;
	for (size_t i = 0; i < uri.n; i++)
		if (uri.p[i] <= 0x20 || uri.p[i] >= 0x7f || strchr("\"'`\\<>", uri.p[i]))
			return false;
	return true;
}

/* Up to the first of these characters. */
static struct view until(struct view v, const char *ends)
{
	for (size_t i = 0; i < v.n; i++)
		if (strchr(ends, v.p[i]))
			return view_head(v, i);
	return v;
}

/* A browser can be shown a web page; a name and a password in front of the host are there to mislead. */
static bool is_web(struct view uri)
{
	bool tls = view_starts(uri, "https://");
	struct view authority;

	if (!tls && !view_starts(uri, "http://"))
		return false;
	authority = until(view_skip(uri, tls ? 8 : 7), "/?#");
	return authority.n && !memchr(authority.p, '@', authority.n) && is_plain(uri);
}

/* "/v1/sandboxes/ID/files/…": what the dashboard lets people save. */
static bool is_file(struct view path)
{
	struct view id, rest;

	if (!view_starts(path, "/v1/sandboxes/"))
		return false;
	id = view_split(view_skip(path, strlen("/v1/sandboxes/")), '/', &rest);
	return id.n && view_starts(rest, "files/");
}

static enum confine decide_own(struct view rest)
{
	struct view path = until(rest, "?#");

	if (path.n && (path.p[0] != '/' || memmem(path.p, path.n, "/..", 3)))
		return CONFINE_REFUSE;
	if (path.n <= 1 || view_within(path, VIEW("/docs")))
		return CONFINE_SHOW;
	if (view_starts(path, "/v1/previews/"))
		return CONFINE_FRAME;
	if (view_is(path, "/openapi.json"))
		return CONFINE_BROWSER;
	return is_file(path) ? CONFINE_DOWNLOAD : CONFINE_REFUSE;
}

/* What follows the origin, or p == NULL: of another one. */
static struct view behind(struct view origin, struct view uri)
{
	struct view rest;

	if (!origin.n || uri.n < origin.n || memcmp(uri.p, origin.p, origin.n) != 0)
		return VIEW_NONE;
	rest = view_skip(uri, origin.n);
	return rest.n == 0 || strchr("/?#", rest.p[0]) ? rest : VIEW_NONE;
}

enum confine confine_decide(struct view origin, struct view uri)
{
	struct view rest;

	if (view_is(uri, "about:blank") || view_is(uri, "about:srcdoc"))
		return CONFINE_FRAME;
	/* What the page made itself: an export. */
	if (view_starts(uri, "blob:") && behind(origin, view_skip(uri, 5)).n)
		return CONFINE_DOWNLOAD;
	rest = behind(origin, uri);
	if (rest.p)
		return decide_own(rest);
	return is_web(uri) ? CONFINE_BROWSER : CONFINE_REFUSE;
}

/* ---- the origin ---- */

static bool is_host(struct view host)
{
	bool brackets = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';

	for (size_t i = 0; i < host.n; i++) {
		char c = host.p[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
		    c == '-' || c == '_')
			continue;
		if (!brackets || !strchr("[:]", c))
			return false;
	}
	return host.n > 0;
}

int confine_origin(struct view url, char ret[CONFINE_ORIGIN_MAX], struct err *e)
{
	bool tls = view_starts(url, "https://");
	struct view authority, host;
	uint32_t port = tls ? 443 : 80;
	size_t n = 0;

	if (!tls && !view_starts(url, "http://"))
		return err_set(e, ERR_INVALID, "the address must begin with http:// or https://");
	authority = view_skip(url, tls ? 8 : 7);
	if (authority.n && authority.p[authority.n - 1] == '/')
		authority.n--;
	host = authority;
	while (host.n && host.p[host.n - 1] >= '0' && host.p[host.n - 1] <= '9')
		host.n--;
	if (host.n && host.n < authority.n && host.p[host.n - 1] == ':') {
		if (num_u32(view_skip(authority, host.n), &port) < 0 || port == 0 || port > 65535)
			return err_set(e, ERR_INVALID, "the port must be 1 to 65535");
		host.n--;
	} else {
		host = authority;
	}
	if (!is_host(host) || host.n > 256)
		return err_set(e, ERR_INVALID, "the address must be http://HOST:PORT");
	n = (size_t)snprintf(ret, CONFINE_ORIGIN_MAX, "http%s://%.*s", tls ? "s" : "", VIEW_ARG(host));
	for (size_t i = 0; i < n; i++)
		if (ret[i] >= 'A' && ret[i] <= 'Z')
			ret[i] = (char)(ret[i] - 'A' + 'a');
	if (port != (tls ? 443u : 80u))
		snprintf(ret + n, CONFINE_ORIGIN_MAX - n, ":%u", port);
	return 0;
}
