/*
 * Tokens of the proxy that every box has on its loopback: see policies.h. A token is a
 * JWT (HS256) with the claims that agentbox gives it. The key is the box's own, so that a
 * token of one box is worth nothing in another, and is made of the installation's secret:
 * nothing is stored.
 */
#include "index.h"
#include "boxes.h"
#include "clock.h"
#include "core_base.h"
#include "policies.h"
#include "sha256.h"
#include "sign.h"
#include "text.h"
#include "who.h"
#include "poison.h"

#define TOKEN_MAX 8000

static_assert(POLICIES_KEY_SIZE == SIGN_SIZE, "a key is what sign_parts makes");

void policies_token_key(const struct box *b, char ret[POLICIES_KEY_SIZE])
{
	const struct view parts[] = { VIEW("egress token"), view_of(b->id) };

	sign_parts(b->in->core, parts, ELEMS(parts), ret);
}

/* As JWTs have it: other signs for the last two of the alphabet, and no padding. */
static void put_base64url(struct buf *out, struct view in)
{
	struct buf plain = BUF_INIT(2 * TOKEN_MAX);

	text_base64(&plain, in);
	struct view v = buf_view(&plain);
	for (size_t i = 0; i < v.n && v.p[i] != '='; i++)
		buf_putc(out, v.p[i] == '+' ? '-' : v.p[i] == '/' ? '_' : v.p[i]);
	if (plain.bad)
		out->bad = plain.bad;
	buf_done(&plain);
}

static int put_claims(const struct box *b, const struct json_strlist *hosts, int64_t now_s, int64_t until_s,
		      struct buf *out)
{
	struct buf list = BUF_INIT(TOKEN_MAX);
	struct json_out o;

	for (size_t i = 0; i < hosts->n; i++) {
		if (i)
			buf_putc(&list, ',');
		buf_add(&list, hosts->items[i]);
	}
	json_out_init(&o, out);
	json_out_object(&o);
	json_out_kz(&o, "iss", "sandbox-egress-control");
	json_out_kz(&o, "session_id", b->id);
	json_out_kz(&o, "tenant_id", b->tenant->id);
	json_out_kstr(&o, "allowed_hosts", buf_view(&list));
	json_out_ki64(&o, "iat", now_s);
	json_out_ki64(&o, "exp", until_s);
	json_out_end(&o, '}');
	int r = list.bad ? list.bad : out->bad;
	buf_done(&list);
	return r;
}

static int check_hosts(const struct json_strlist *hosts, struct err *e)
{
	struct arena tmp = ARENA_INIT(64 * 1024);
	int r = 0;

	for (size_t i = 0; r >= 0 && i < hosts->n; i++) {
		struct egress_rule rule;

		r = egress_target(&tmp, hosts->items[i], NULL, &rule, e);
		if (r >= 0 && (!rule.host.n || rule.n_ports || rule.protocol || view_is(rule.host, "*")))
			r = err_set(e, ERR_INVALID, "is not a host such as a.example or *.example");
		if (r < 0)
			err_wrap(e, "allowed_hosts[%zu]", i);
	}
	arena_done(&tmp);
	return r;
}

int policies_token(struct core *c, const struct actor *a, struct view ref, const struct json_strlist *hosts,
		   uint64_t ttl_seconds, struct arena *arena, struct policies_token *ret, struct err *e)
{
	const struct box *b = boxes_find(c, a, ACT_BOX_CHANGE, ref, e);
	struct buf token = BUF_INIT(TOKEN_MAX), claims = BUF_INIT(TOKEN_MAX);
	int64_t now_s = clock_wall_ms() / 1000, until_s = now_s + (int64_t)ttl_seconds;
	char key[POLICIES_KEY_SIZE];
	uint8_t mac[SHA256_SIZE];

	if (!b || check_hosts(hosts, e) < 0)
		return -1;
	put_base64url(&token, VIEW("{\"alg\":\"HS256\",\"typ\":\"JWT\"}"));
	buf_putc(&token, '.');
	if (put_claims(b, hosts, now_s, until_s, &claims) >= 0)
		put_base64url(&token, buf_view(&claims));
	policies_token_key(b, key);
	sha256_hmac(view_of(key), buf_view(&token), mac);
	explicit_bzero(key, sizeof(key));
	buf_putc(&token, '.');
	put_base64url(&token, (struct view){ (const char *)mac, sizeof(mac) });
	struct view text = token.bad || claims.bad ? VIEW_NONE : arena_view(arena, buf_view(&token));
	buf_done(&token);
	buf_done(&claims);
	if (!text.p)
		return err_set(e, ERR_TOO_LARGE, "allowed_hosts: the token would be larger than %d bytes",
			       TOKEN_MAX);
	*ret = (struct policies_token){ .expires_ms = until_s * 1000, .text = text };
	return 0;
}
