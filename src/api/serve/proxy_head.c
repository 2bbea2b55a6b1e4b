/*
 * Heads on their way through the proxy: see proxy_head.h.
 */
#include "proxy_head.h"

#include "http1.h"
#include "proxy_secrets.h"
#include "poison.h"

static bool is_one_of(struct view name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (view_is(name, list[i]))
			return true;
	return false;
}
#define ONE_OF(name, list) is_one_of(name, list, ELEMS(list))

/* Of one connection only. */
static const char *const hop[] = { "connection",
				   "keep-alive",
				   "proxy-connection",
				   "proxy-authorization",
				   "proxy-authenticate",
				   "te",
				   "trailer",
				   "transfer-encoding",
				   "upgrade",
				   "content-length" };

/* Named by Connection: as if it were in the list above. */
static bool is_named(struct view name, const struct http_header *headers, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct view list = headers[i].value;
		if (!view_is(headers[i].name, "connection"))
			continue;
		while (list.p)
			if (view_eq_nocase(view_trim(view_split(list, ',', &list)), name))
				return true;
	}
	return false;
}

static struct view get(const struct http_header *headers, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (view_is(headers[i].name, name))
			return headers[i].value;
	return VIEW_NONE;
}

bool proxy_head_is_websocket(const struct http_header *headers, size_t n)
{
	return view_eq_nocase(get(headers, n, "upgrade"), VIEW("websocket")) &&
	       is_named(VIEW("upgrade"), headers, n);
}

/* ---- requests ---- */

bool proxy_head_is_key(struct view v)
{
	if (v.n > 7 && view_eq_nocase(view_head(v, 7), VIEW("bearer ")))
		v = view_trim(view_skip(v, 7));
	return view_starts(v, "pdk_") || view_starts(v, "e2b_");
}

struct view proxy_head_cookie(struct view *rest, const char *name)
{
	while (rest->p) {
		struct view value, one = view_trim(view_split(*rest, ';', rest));
		if (view_is(view_split(one, '=', &value), name) && value.p)
			return value;
	}
	return VIEW_NONE;
}

static void add(struct buf *out, struct view name, struct view value)
{
	buf_add(out, name);
	buf_puts(out, ": ");
	buf_add(out, value);
	buf_puts(out, "\r\n");
}

static void add_spelled(struct buf *out, struct http_header h)
{
	http1_add_name(out, h);
	buf_puts(out, ": ");
	buf_add(out, h.value);
	buf_puts(out, "\r\n");
}

/* With TLS browsers are told to keep a cookie for this host alone by the beginning of its name. */
static bool is_our_cookie(struct view name)
{
	if (view_starts(name, "__Host-"))
		name = view_skip(name, strlen("__Host-"));
	return view_starts(name, PROXY_HEAD_OURS);
}

/* All cookies but ours and those that hold a key. */
static void add_cookies(struct buf *out, struct http_header h)
{
	bool begun = false;

	while (h.value.p) {
		struct view value, one = view_trim(view_split(h.value, ';', &h.value));
		if (one.n == 0 || is_our_cookie(view_trim(view_split(one, '=', &value))) ||
		    proxy_secrets_in(one))
			continue;
		if (!begun)
			http1_add_name(out, h);
		buf_puts(out, begun ? "; " : ": ");
		buf_add(out, one);
		begun = true;
	}
	if (begun)
		buf_puts(out, "\r\n");
}

/* What is said anew, or to us alone. */
static bool is_ours(struct http_header h)
{
	static const char *const ours[] = { "host",
					    "expect",
					    "e2b-sandbox-id",
					    "e2b-sandbox-port",
					    "e2b-traffic-access-token",
					    "x-paddock-traffic-token",
					    "forwarded",
					    "x-forwarded-host",
					    "x-forwarded-proto",
					    "x-forwarded-prefix",
					    "x-forwarded-for",
					    "http2-settings" };
	if (view_is(h.name, "authorization") || view_is(h.name, "x-api-key") ||
	    view_is(h.name, "x-aio-api-key"))
		return proxy_head_is_key(h.value);
	return ONE_OF(h.name, ours);
}

static void add_header(struct buf *out, const struct proxy_head *p, struct http_header h)
{
	if (ONE_OF(h.name, hop) || is_ours(h) || !http1_is_header(h) ||
	    is_named(h.name, p->headers, p->n_headers))
		return;
	if (p->prefix.n && (view_is(h.name, "cookie") || view_is(h.name, "referer")))
		return;
	if (view_is(h.name, "cookie"))
		add_cookies(out, h);
	else if (!proxy_secrets_in(h.value))
		add_spelled(out, h);
}

/* Whoever stood before us, then whom we saw ourselves: the last one is true. */
static void add_forwarded_for(struct buf *out, const struct proxy_head *p)
{
	struct view before = get(p->headers, p->n_headers, "x-forwarded-for");

	if (!p->peer.n)
		return;
	buf_puts(out, "x-forwarded-for: ");
	buf_add(out, before);
	buf_puts(out, before.n ? ", " : "");
	buf_add(out, p->peer);
	buf_puts(out, "\r\n");
}

int proxy_head_request(struct buf *out, const struct proxy_head *p)
{
	bool bodyless = view_is(p->method, "GET") || view_is(p->method, "HEAD") ||
			view_is(p->method, "OPTIONS") || view_is(p->method, "DELETE");

	buf_add(out, p->method);
	buf_putc(out, ' ');
	buf_add(out, p->path.n ? p->path : VIEW("/"));
	proxy_secrets_query(out, p->query, p->credentials);
	buf_puts(out, " HTTP/1.1\r\n");
	add(out, VIEW("host"), p->host);
	for (size_t i = 0; i < p->n_headers; i++)
		add_header(out, p, p->headers[i]);
	add_forwarded_for(out, p);
	add(out, VIEW("x-forwarded-host"), p->client_host);
	add(out, VIEW("x-forwarded-proto"), p->tls ? VIEW("https") : VIEW("http"));
	/* That of a signed link holds its ticket. */
	if (view_starts(p->prefix, "/v1/sandboxes/"))
		add(out, VIEW("x-forwarded-prefix"), p->prefix);
	if (p->content_length < 0)
		buf_puts(out, "transfer-encoding: chunked\r\n");
	else if (p->content_length > 0 || !bodyless)
		buf_printf(out, "content-length: %lld\r\n", (long long)p->content_length);
	buf_puts(out,
		 p->websocket ? "connection: upgrade\r\nupgrade: websocket\r\n" : "connection: close\r\n");
	return buf_puts(out, "\r\n");
}

void proxy_head_mask(struct buf *out, struct view mask, unsigned port)
{
	while (mask.n) {
		if (view_starts(mask, "${PORT}")) {
			buf_printf(out, "%u", port);
			mask = view_skip(mask, 7);
		} else {
			buf_putc(out, mask.p[0]);
			mask = view_skip(mask, 1);
		}
	}
}

/* ---- answers ---- */

/* A cookie for more than this host would be seen by other boxes and by us; one of our name would be
 * taken for ours. */
static bool is_cookie_of_its_own(struct view value)
{
	struct view rest, named, first = view_trim(view_split(value, ';', &rest));

	/* Without a name: browsers send its value alone, which may look like a cookie with one. */
	while (view_starts(first, "="))
		first = view_trim(view_skip(first, 1));
	if (is_our_cookie(view_trim(view_split(first, '=', &named))))
		return false;
	while (rest.p) {
		struct view attribute = view_trim(view_split(view_split(rest, ';', &rest), '=', &named));
		if (view_eq_nocase(attribute, VIEW("domain")))
			return false;
	}
	return true;
}

static bool passes(struct http_header h, struct view prefix)
{
	/* They concern the whole site, or where it is found. */
	static const char *const beyond[] = { "clear-site-data", "alt-svc", "strict-transport-security",
					      "public-key-pins" };
	/* A web server before us would do what they say: send a file, or fetch what the box names. */
	static const char *const orders[] = { "x-accel-redirect", "x-sendfile", "x-lighttpd-send-file",
					      "x-reproxy-url", "x-reproxy-file" };
	/* On our own origin also these. */
	static const char *const ours[] = {
		"set-cookie", "service-worker-allowed", "referrer-policy", "www-authenticate", "nel",
		"report-to",  "reporting-endpoints",    "accept-ch",       "critical-ch",      "origin-trial",
		"set-login"
	};

	if (ONE_OF(h.name, hop) || ONE_OF(h.name, beyond) || ONE_OF(h.name, orders) ||
	    http1_write_is_framing(h.name))
		return false;
	if (prefix.n)
		return !ONE_OF(h.name, ours);
	return !view_is(h.name, "set-cookie") || is_cookie_of_its_own(h.value);
}

/* A redirect to "/x" stays below the path that stands for "/". */
static struct view moved(struct view location, struct view prefix, struct buf *room)
{
	size_t from = buf_len(room);

	if (!prefix.n || !view_starts(location, "/") || view_starts(location, "//"))
		return location;
	/* The room is as large as all values together: the bytes do not move. */
	buf_add(room, prefix);
	buf_add(room, location);
	return room->bad ? location : view_skip(buf_view(room), from);
}

size_t proxy_head_response(const struct http1_response *r, struct view prefix, struct buf *room,
			   struct http_header *out)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_headers; i++) {
		struct http_header h = r->headers[i];
		if (!passes(h, prefix) || is_named(h.name, r->headers, r->n_headers))
			continue;
		if (view_is(h.name, "location") && buf_len(room) == 0)
			h.value = moved(h.value, prefix, room);
		out[n++] = h;
	}
	if (!prefix.n)
		return n;
	/* On our origin the page is nobody: no storage, no cookies, no requests in our name. */
	out[n++] = (struct http_header){ VIEW("content-security-policy"),
					 VIEW("sandbox allow-scripts allow-forms allow-popups allow-modals "
					      "allow-downloads") };
	out[n++] = (struct http_header){ VIEW("referrer-policy"), VIEW("no-referrer") };
	return n;
}
