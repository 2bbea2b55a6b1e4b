/*
 * What the first bytes of a connection are: see peek.h.
 */
#include "peek.h"

#include <string.h>

#include "policy.h"
#include "tls_hello.h"
#include "poison.h"

#define METHOD_MOST 16

/* "GET ", "M-SEARCH ": a method and a space. */
static enum peek look_http(struct peek_memory *m, struct view in)
{
	size_t n = 0;

	/* Servers skip empty lines before a request. */
	while (m->empty < in.n && (in.p[m->empty] == '\r' || in.p[m->empty] == '\n'))
		m->empty++;
	in = view_skip(in, m->empty);
	if (view_starts(in, "PRI * HTTP/2"))
		return PEEK_HTTP2;
	while (n < in.n && n < METHOD_MOST && ((in.p[n] >= 'A' && in.p[n] <= 'Z') || (n && in.p[n] == '-')))
		n++;
	if (n == in.n && n < METHOD_MOST)
		return PEEK_MORE;
	if (n < 3 || n >= METHOD_MOST || in.p[n] != ' ')
		return PEEK_OTHER;
	if (n == 3 && in.n < 12 && view_starts(in, "PRI"))
		return PEEK_MORE;
	/* What comes behind the space is a target; otherwise it only looks like HTTP. */
	if (n + 1 == in.n)
		return PEEK_MORE;
	return in.p[n + 1] == '/' || in.p[n + 1] == '*' || (in.p[n + 1] | 32) == 'h' ? PEEK_HTTP : PEEK_OTHER;
}

enum peek peek_look(struct peek_memory *m, struct view in, char name[256])
{
	struct tls_hello hello;

	name[0] = 0;
	if (in.n == 0 || in.n < m->need)
		return PEEK_MORE;
	if ((uint8_t)in.p[0] != 22)
		return look_http(m, in);
	if (in.n >= 2 && in.p[1] != 3)
		return PEEK_OTHER;
	int r = tls_hello_parse(in, &hello);
	if (r == 0) {
		m->need = hello.need;
		return PEEK_MORE;
	}
	if (r < 0)
		return PEEK_BAD; /* begins as TLS: who knows what a server would make of it */
	enum peek tls = hello.ech ? PEEK_ECH : PEEK_TLS;
	if (!hello.name[0])
		return tls;
	/* An address in server_name is against the rules, and other names are not ours to guess. */
	return policy_name(view_of(hello.name), name) < 0 ? PEEK_BAD : tls;
}

enum peek peek_caller(struct view in)
{
	static const char *const heads[] = { "POST /api/",  "GET /api/",  "POST /agent/",
					     "GET /agent/", "POST /rpc/", "GET /health " };
	enum peek what = PEEK_OTHER;

	for (size_t i = 0; i < ELEMS(heads); i++) {
		if (view_starts(in, heads[i]))
			return PEEK_HTTP;
		if (in.n < strlen(heads[i]) && memcmp(in.p, heads[i], in.n) == 0)
			what = PEEK_MORE;
	}
	return what;
}
