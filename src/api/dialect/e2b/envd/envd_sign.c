/*
 * Signed URLs of /files, as clients make them from the box's token: SHA-256 of
 * "path:operation:user:token" and, where it ends, ":seconds". Such a URL need not
 * name its box; then it is the one whose token fits. Nor does a request with the
 * token itself, of an old client.
 */
#include <stdio.h>

#include "clock.h"
#include "envd_impl.h"
#include "num.h"
#include "sha256.h"
#include "text.h"
#include "who.h"
#include "poison.h"

#define SIGNATURE_MAX 64

struct claim {
	const struct core *core;
	struct view path, op, user, until, signature;
};

static struct view query(const struct http_exchange *x, const char *name)
{
	struct view v = http_get_query(x, name);
	return v.p ? v : VIEW("");
}

static void read_claim(const struct http_exchange *x, const struct core *core, const char *op,
		       struct claim *ret)
{
	*ret = (struct claim){ .core = core,
			       .path = query(x, "path"),
			       .op = view_of(op),
			       .user = query(x, "username"),
			       .until = http_get_query(x, "signature_expiration"),
			       .signature = query(x, "signature") };
}

/* "v1_" and the hash in base64 without its padding. */
static void sign(const struct claim *c, const char *token, char ret[SIGNATURE_MAX])
{
	const struct view parts[] = { c->path, c->op, c->user, view_of(token), c->until };
	size_t n = c->until.p ? 5 : 4;
	struct buf text = BUF_INIT(SIGNATURE_MAX);
	uint8_t hash[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	for (size_t i = 0; i < n; i++) {
		if (i)
			sha256_add(&s, ":", 1);
		sha256_add(&s, parts[i].p, parts[i].n);
	}
	sha256_end(&s, hash);
	text_base64(&text, (struct view){ (const char *)hash, sizeof(hash) });
	struct view v = buf_view(&text);
	while (v.n && v.p[v.n - 1] == '=')
		v.n--;
	snprintf(ret, SIGNATURE_MAX, "v1_%.*s", VIEW_ARG(v));
	buf_done(&text);
}

static bool fits(void *arg, const struct box *b)
{
	const struct claim *c = arg;
	char token[TOKENS_SIZE], want[SIGNATURE_MAX];

	tokens_of(c->core, b, TOKEN_ENVD, token);
	sign(c, token, want);
	return view_eq_secret(c->signature, view_of(want));
}

bool envd_signature_fits(const struct http_exchange *x, const struct core *core, const struct box *b,
			 const char *op)
{
	struct claim c;

	read_claim(x, core, op, &c);
	return c.signature.n && fits(&c, b);
}

int envd_signed(struct http_exchange *x, const struct core *core, const struct box *b, const char *op,
		struct err *e)
{
	struct claim c;
	int64_t until = 0;

	read_claim(x, core, op, &c);
	if (c.until.p && num_i64(c.until, &until) < 0)
		return err_set(e, ERR_UNAUTHORIZED, "invalid signature expiration");
	if (!fits(&c, b))
		return err_set(e, ERR_UNAUTHORIZED, "invalid signature");
	if (c.until.p && until <= clock_wall_ms() / 1000)
		return err_set(e, ERR_UNAUTHORIZED, "signature is already expired");
	return 0;
}

/* Old clients name no box in what is no procedure call (JavaScript's 2.10), or in nothing after they have
 * connected to it (Python's before 2.31); but they send its token. */
static bool by_token(const struct http_exchange *x, struct view *ret)
{
	static const char *const paths[] = { "/files", "/health", "/metrics", "/envs", "/files/compose" };
	static const char *const services[] = { "/process.Process/", "/filesystem.Filesystem/" };
	struct view token = http_get_header(x, "x-access-token"), id = tokens_box(token);

	bool ours = false;
	for (size_t i = 0; i < ELEMS(paths); i++)
		ours |= view_is(x->path, paths[i]);
	for (size_t i = 0; i < ELEMS(services); i++)
		ours |= view_starts(x->path, services[i]);
	if (!token.p || !ours)
		return false;
	*ret = id.p ? id : VIEW(""); /* a box that is not there */
	return true;
}

struct view envd_find(const struct http_exchange *x, struct core *core)
{
	bool read = view_is(x->method, "GET");
	struct claim c;
	struct view id;

	if (by_token(x, &id))
		return id;
	if (!view_is(x->path, "/files") || (!read && !view_is(x->method, "POST")))
		return VIEW_NONE;
	read_claim(x, core, read ? "read" : "write", &c);
	if (!view_starts(c.signature, "v1_") || c.signature.n >= SIGNATURE_MAX)
		return VIEW_NONE;
	const struct box *b = boxes_match(core, fits, &c);
	return b ? view_of(b->id) : VIEW_NONE;
}
