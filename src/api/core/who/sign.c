/*
 * The secret of this installation: see sign.h.
 */
#include "sign.h"

#include <stdlib.h>

#include "core_base.h"
#include "rnd.h"
#include "sha256.h"
#include "text.h"
#include "who.h"
#include "poison.h"

#define SETTING    "url_secret"
#define HMAC_BLOCK 64

/* ---- HMAC-SHA256 (RFC 2104) ---- */

static void hmac_start(struct sha256 *s, const uint8_t secret[SIGN_SECRET], uint8_t pad)
{
	uint8_t block[HMAC_BLOCK];
	memset(block, pad, sizeof(block));
	for (size_t i = 0; i < SIGN_SECRET; i++)
		block[i] ^= secret[i];
	sha256_init(s);
	sha256_add(s, block, sizeof(block));
	explicit_bzero(block, sizeof(block));
}

static void hmac_end(struct sha256 *s, const uint8_t secret[SIGN_SECRET], uint8_t ret[SHA256_SIZE])
{
	uint8_t inner[SHA256_SIZE];
	sha256_end(s, inner);
	hmac_start(s, secret, 0x5c);
	sha256_add(s, inner, sizeof(inner));
	sha256_end(s, ret);
}

/* With its length before it: no two lists of parts are the same bytes. */
static void add_part(struct sha256 *s, struct view v)
{
	uint8_t n[8];
	for (int i = 0; i < 8; i++)
		n[i] = (uint8_t)((uint64_t)v.n >> 8 * i);
	sha256_add(s, n, sizeof(n));
	sha256_add(s, v.p, v.n);
}

void sign_parts(const struct core *c, const struct view *parts, size_t n, char ret[SIGN_SIZE])
{
	struct sha256 s;
	uint8_t mac[SHA256_SIZE];

	hmac_start(&s, c->who->sign_secret, 0x36);
	for (size_t i = 0; i < n; i++)
		add_part(&s, parts[i]);
	hmac_end(&s, c->who->sign_secret, mac);
	text_hex(mac, sizeof(mac), ret);
	explicit_bzero(mac, sizeof(mac));
}

void sign_key(const struct core *c, struct view purpose, uint8_t ret[32])
{
	const struct view parts[] = { VIEW("paddock key 1"), purpose };
	char text[SIGN_SIZE];

	sign_parts(c, parts, ELEMS(parts), text);
	if (text_unhex(view_of(text), ret, SHA256_SIZE) < 0)
		abort(); /* text_hex wrote it */
	explicit_bzero(text, sizeof(text));
}

/* ---- the secret ---- */

void sign_load(struct core *c, const struct store_setting *s)
{
	if (view_is(s->name, SETTING) && s->value.n == SIGN_SECRET) {
		memcpy(c->who->sign_secret, s->value.p, SIGN_SECRET);
		c->who->has_sign_secret = true;
	}
}

int sign_ensure(struct core *c, struct err *e)
{
	if (c->who->has_sign_secret)
		return 0;
	rnd_bytes(c->who->sign_secret, SIGN_SECRET);
	c->who->has_sign_secret = true;
	struct store_setting s = { VIEW(SETTING), { (const char *)c->who->sign_secret, SIGN_SECRET } };
	store_setting_put(c->store, &s, core_store_done, c);
	return 0;
}
