/*
 * Tokens of the proxy port, as agentbox has them: Basic credentials whose password is a
 * JWT (HS256) with the hosts that its bearer may reach. They only ever take away: who has
 * none is judged by the policy alone, and who has a bad one is refused.
 */
#include "token.h"

#include <string.h>

#include "host_match.h"
#include "json.h"
#include "sha256.h"
#include "text.h"
#include "poison.h"

#define TOKEN_MOST 8192

/* base64url without padding. */
static int unbase64url(struct view in, struct buf *out)
{
	struct buf plain = BUF_INIT(TOKEN_MOST * 2);

	for (size_t i = 0; i < in.n; i++)
		buf_putc(&plain, in.p[i] == '-'                     ? '+'
				 : in.p[i] == '_'                   ? '/'
				 : in.p[i] == '+' || in.p[i] == '/' ? '!'
								    : in.p[i]);
	while (buf_len(&plain) % 4)
		buf_putc(&plain, '=');
	int r = plain.bad ? plain.bad : text_unbase64(out, buf_view(&plain));
	buf_done(&plain);
	return r;
}

static bool is_text(const struct json *j, const char *text)
{
	return j && j->type == JSON_STRING && view_is(j->text, text);
}

/* As agentbox has it: "*.suffix" is the suffix itself, too. "*" is no host: tokens restrict. */
static bool host_in(struct view pattern, struct view host)
{
	pattern = view_trim(pattern);
	if (view_is(pattern, "*"))
		return false;
	return host_match(pattern, host) ||
	       (view_starts(pattern, "*.") && host_match(view_skip(pattern, 2), host));
}

static bool names_host(const struct json *hosts, struct view host)
{
	if (!hosts)
		return false;
	if (hosts->type == JSON_STRING)
		for (struct view rest = hosts->text; rest.p;)
			if (host_in(view_split(rest, ',', &rest), host))
				return true;
	for (size_t i = 0; hosts->type == JSON_ARRAY && i < hosts->n; i++)
		if (hosts->items[i].type == JSON_STRING && host_in(hosts->items[i].text, host))
			return true;
	return false;
}

static bool claims_hold(struct view text, struct view host, int64_t now_s)
{
	struct arena a = ARENA_INIT(256u * 1024);
	struct err e = { 0 };
	struct json *doc;
	double exp;
	bool ok = json_parse(&a, text, &doc, &e) >= 0 &&
		  is_text(json_get(doc, "iss"), "sandbox-egress-control");
	const struct json *until = ok ? json_get(doc, "exp") : NULL;

	ok = until && until->type == JSON_NUMBER && json_to_double(until, &exp) == 0 && exp > (double)now_s &&
	     names_host(json_get(doc, "allowed_hosts"), host);
	arena_done(&a);
	return ok;
}

static bool header_holds(struct view text)
{
	struct arena a = ARENA_INIT(65536);
	struct err e = { 0 };
	struct json *doc;
	bool ok = json_parse(&a, text, &doc, &e) >= 0 && is_text(json_get(doc, "alg"), "HS256");

	arena_done(&a);
	return ok;
}

static bool jwt_allows(struct view key, struct view jwt, struct view host, int64_t now_s)
{
	struct view rest, more, head = view_split(jwt, '.', &rest), claims = view_split(rest, '.', &more),
				signature = more;
	struct buf sig = BUF_INIT(256), json = BUF_INIT(TOKEN_MOST);
	uint8_t want[SHA256_SIZE];
	bool ok = rest.p && more.p && !memchr(signature.p, '.', signature.n);

	if (ok) {
		sha256_hmac(key, view_head(jwt, head.n + 1 + claims.n), want);
		ok = unbase64url(signature, &sig) == 0 &&
		     view_eq_secret(buf_view(&sig), (struct view){ (char *)want, sizeof(want) });
	}
	ok = ok && unbase64url(head, &json) == 0 && header_holds(buf_view(&json));
	buf_clear(&json);
	ok = ok && unbase64url(claims, &json) == 0 && claims_hold(buf_view(&json), host, now_s);
	buf_done(&sig);
	buf_done(&json);
	return ok;
}

bool token_allows(struct view key, struct view header, struct view host, int64_t now_s)
{
	struct buf plain = BUF_INIT(TOKEN_MOST);
	struct view rest, scheme = view_split(header, ' ', &rest);
	bool ok = key.n && view_eq_nocase(scheme, VIEW("basic")) && rest.p && rest.n < TOKEN_MOST &&
		  text_unbase64(&plain, view_trim(rest)) == 0;
	struct view v = buf_view(&plain);

	ok = ok && view_starts(v, "sandbox:jwt_") && jwt_allows(key, view_skip(v, 12), host, now_s);
	buf_done(&plain);
	return ok;
}
