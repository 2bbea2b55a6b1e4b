/*
 * A URL parser for one purpose. Whatever does not name a host and a port of an
 * http or https server (a path, a query, a user) is refused instead of ignored.
 */
#include <stdio.h>

#include "num.h"
#include "url.h"

#include "poison.h"

static bool is_host_char(char c, bool in_brackets)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
		return true;
	return in_brackets ? c == ':' || c == '.' : c == '.' || c == '-' || c == '_';
}

static int bad(struct err *e, struct view text, const char *why)
{
	return err_set(e, ERR_INVALID, "bad address \"%.*s\": %s", (int)MIN(text.n, 80u), text.p, why);
}

static int split_scheme(struct view text, struct view *ret_rest, bool *ret_tls, struct err *e)
{
	*ret_tls = view_starts(text, "https://");
	if (*ret_tls) {
		*ret_rest = view_skip(text, strlen("https://"));
		return 0;
	}
	if (view_starts(text, "http://")) {
		*ret_rest = view_skip(text, strlen("http://"));
		return 0;
	}
	if (text.n >= 3 && memmem(text.p, text.n, "://", 3))
		return bad(e, text, "the scheme must be http or https");
	*ret_rest = text;
	return 0;
}

/* Takes the host from the front; what is left is "" or ":PORT". */
static int split_host(struct view rest, struct view *ret_host, struct view *ret_port, bool *ret_brackets)
{
	bool brackets = rest.n && rest.p[0] == '[';
	size_t n = brackets;

	while (n < rest.n && is_host_char(rest.p[n], brackets))
		n++;
	*ret_host = (struct view){ rest.p + brackets, n - brackets };
	if (brackets) {
		if (n == rest.n || rest.p[n] != ']')
			return -1;
		n++;
	}
	*ret_port = view_skip(rest, n);
	*ret_brackets = brackets;
	return ret_host->n ? 0 : -1;
}

static bool is_loopback(const char *host)
{
	return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0;
}

int url_parse(struct view text, struct url *ret, struct err *e)
{
	struct view rest = VIEW_NONE, host, port;
	uint32_t number;
	bool brackets;

	if (split_scheme(text, &rest, &ret->tls, e) < 0)
		return -1;
	number = ret->tls ? 443 : 80;
	if (rest.n && rest.p[rest.n - 1] == '/')
		rest.n--;
	if (split_host(rest, &host, &port, &brackets) < 0)
		return bad(e, text, "expected http://HOST:PORT");
	if (port.n && port.p[0] != ':')
		return bad(e, text, "expected nothing after http://HOST:PORT");
	if (port.n && (num_u32(view_skip(port, 1), &number) < 0 || number == 0 || number > 65535))
		return bad(e, text, "the port must be 1 to 65535");
	if (view_to_str(host, ret->host, sizeof(ret->host)) < 0)
		return bad(e, text, "the host is too long");
	snprintf(ret->port, sizeof(ret->port), "%u", number);
	snprintf(ret->authority, sizeof(ret->authority), brackets ? "[%s]:%s" : "%s:%s", ret->host,
		 ret->port);
	/* Digits and dots alone are an address; "127.evil.example" is a name. */
	ret->loopback = is_loopback(ret->host) && (brackets || strcmp(ret->host, "localhost") == 0 ||
						   strspn(ret->host, "0123456789.") == strlen(ret->host));
	return 0;
}
