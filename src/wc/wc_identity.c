/*
 * The relay's idea of a client: see wc_identity.h.
 */
#include "wc_identity.h"

#include <sodium.h>

#include "json.h"
#include "text.h"
#include "poison.h"

#define BASE58_DIGITS 50

/* Bitcoin's digits. There are no leading zeros here: the key begins with its kind, 0xed01. */
static void base58(const uint8_t *p, size_t n, char *dst)
{
	static const char digits[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
	uint8_t d[BASE58_DIGITS] = { 0 };
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned carry = p[i];
		for (size_t k = 0; k < used || carry; k++) {
			carry += 256u * d[k];
			d[k] = (uint8_t)(carry % 58);
			carry /= 58;
			used = MAX(used, k + 1);
		}
	}
	for (size_t i = 0; i < used; i++)
		dst[i] = digits[d[used - 1 - i]];
	dst[used] = 0;
}

static void expand(const uint8_t seed[WC_SEED], uint8_t public[crypto_sign_PUBLICKEYBYTES],
		   uint8_t secret[crypto_sign_SECRETKEYBYTES])
{
	crypto_sign_seed_keypair(public, secret, seed);
}

static void name_of(const uint8_t public[crypto_sign_PUBLICKEYBYTES], char ret[WC_CLIENT_MAX])
{
	uint8_t key[2 + crypto_sign_PUBLICKEYBYTES] = { 0xed, 0x01 };

	memcpy(key + 2, public, crypto_sign_PUBLICKEYBYTES);
	memcpy(ret, "did:key:z", 9);
	base58(key, sizeof(key), ret + 9);
}

/* base64url without padding. */
static void put_base64url(struct buf *out, struct view v)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(4096);

	text_base64(&b, v);
	struct view text = buf_view(&b);
	for (size_t i = 0; i < text.n && text.p[i] != '='; i++)
		buf_putc(out, text.p[i] == '+' ? '-' : text.p[i] == '/' ? '_' : text.p[i]);
	if (b.bad && !out->bad)
		out->bad = b.bad;
}

int wc_identity_token(const uint8_t seed[WC_SEED], const struct wc_token *t, struct buf *out)
{
	_cleanup_(buf_done) struct buf payload = BUF_INIT(2048);
	uint8_t public[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES],
		mark[crypto_sign_BYTES];
	char name[WC_CLIENT_MAX];
	struct json_out o;
	size_t at = buf_len(out);

	expand(seed, public, secret);
	name_of(public, name);
	json_out_init(&o, &payload);
	json_out_object(&o);
	json_out_kz(&o, "iss", name);
	json_out_kstr(&o, "sub", t->subject);
	json_out_kstr(&o, "aud", t->audience);
	json_out_ki64(&o, "iat", t->issued_s);
	json_out_ki64(&o, "exp", t->expires_s);
	json_out_end(&o, '}');
	put_base64url(out, VIEW("{\"alg\":\"EdDSA\",\"typ\":\"JWT\"}"));
	buf_putc(out, '.');
	put_base64url(out, buf_view(&payload));
	struct view text = view_skip(buf_view(out), at);
	crypto_sign_detached(mark, NULL, (const uint8_t *)text.p, text.n, secret);
	explicit_bzero(secret, sizeof(secret));
	buf_putc(out, '.');
	put_base64url(out, (struct view){ (const char *)mark, sizeof(mark) });
	return payload.bad ? payload.bad : out->bad;
}
