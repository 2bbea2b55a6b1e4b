/*
 * Keys, topics and envelopes: see wc_crypto.h.
 */
#include "wc_crypto.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>

#include "rnd.h"
#include "sha256.h"
#include "text.h"
#include "poison.h"

#define NONCE 12
#define TAG   16

void wc_crypto_public(const uint8_t secret[WC_KEY], uint8_t ret_public[WC_KEY])
{
	crypto_scalarmult_curve25519_base(ret_public, secret);
}

void wc_crypto_pair(uint8_t ret_secret[WC_KEY], uint8_t ret_public[WC_KEY])
{
	rnd_bytes(ret_secret, WC_KEY);
	wc_crypto_public(ret_secret, ret_public);
}

/* HKDF of RFC 5869 with no salt, no info, and one block of output. */
static void derive(const uint8_t shared[WC_KEY], uint8_t ret_key[WC_KEY])
{
	static const char salt[SHA256_SIZE];
	uint8_t prk[SHA256_SIZE];

	sha256_hmac((struct view){ salt, sizeof(salt) }, (struct view){ (const char *)shared, WC_KEY }, prk);
	sha256_hmac((struct view){ (const char *)prk, sizeof(prk) }, VIEW("\x01"), ret_key);
	explicit_bzero(prk, sizeof(prk));
}

int wc_crypto_agree(const uint8_t secret[WC_KEY], const uint8_t peer[WC_KEY], uint8_t ret_key[WC_KEY])
{
	uint8_t shared[WC_KEY];

	if (crypto_scalarmult_curve25519(shared, secret, peer) < 0)
		return -EINVAL; /* a point of small order */
	derive(shared, ret_key);
	explicit_bzero(shared, sizeof(shared));
	return 0;
}

void wc_crypto_topic(const uint8_t key[WC_KEY], char ret[WC_TOPIC])
{
	uint8_t hash[SHA256_SIZE];

	sha256_of((struct view){ (const char *)key, WC_KEY }, hash);
	text_hex(hash, sizeof(hash), ret);
}

bool wc_crypto_is_topic(struct view v)
{
	for (size_t i = 0; i < v.n; i++)
		if (!(v.p[i] >= '0' && v.p[i] <= '9') && !(v.p[i] >= 'a' && v.p[i] <= 'f'))
			return false;
	return v.n == WC_TOPIC - 1;
}

int wc_crypto_seal_with(const uint8_t key[WC_KEY], const uint8_t nonce[NONCE], struct view text,
			struct buf *out)
{
	_cleanup_(buf_done) struct buf raw = BUF_INIT(1 + NONCE + WC_MESSAGE_MAX + TAG);
	unsigned long long n;

	buf_putc(&raw, 0);
	buf_append(&raw, nonce, NONCE);
	char *room = text.n <= WC_MESSAGE_MAX ? buf_reserve(&raw, text.n + TAG) : NULL;
	if (!room)
		return text.n > WC_MESSAGE_MAX ? -ENOBUFS : -ENOMEM;
	crypto_aead_chacha20poly1305_ietf_encrypt((uint8_t *)room, &n, (const uint8_t *)text.p, text.n, NULL,
						  0, NULL, nonce, key);
	buf_commit(&raw, (size_t)n);
	return text_base64(out, buf_view(&raw));
}

int wc_crypto_seal(const uint8_t key[WC_KEY], struct view text, struct buf *out)
{
	uint8_t nonce[NONCE];

	rnd_bytes(nonce, sizeof(nonce));
	return wc_crypto_seal_with(key, nonce, text, out);
}

static int open_box(const uint8_t key[WC_KEY], struct view box, struct buf *out)
{
	unsigned long long n;

	if (box.n < NONCE + TAG)
		return -EBADMSG;
	struct view text = view_skip(box, NONCE);
	char *room = buf_reserve(out, text.n);
	if (!room)
		return -ENOMEM;
	if (crypto_aead_chacha20poly1305_ietf_decrypt((uint8_t *)room, &n, NULL, (const uint8_t *)text.p,
						      text.n, NULL, 0, (const uint8_t *)box.p, key) < 0)
		return -EBADMSG;
	buf_commit(out, (size_t)n);
	return 0;
}

int wc_crypto_open(const uint8_t key[WC_KEY], const uint8_t *secret, struct view envelope, struct buf *out)
{
	_cleanup_(buf_done) struct buf raw = BUF_INIT(1 + WC_KEY + NONCE + WC_MESSAGE_MAX + TAG);
	uint8_t own[WC_KEY];

	if (text_unbase64(&raw, envelope) < 0 || buf_len(&raw) < 1)
		return -EBADMSG;
	struct view v = buf_view(&raw);
	if (v.p[0] == 0)
		return open_box(key, view_skip(v, 1), out);
	if (v.p[0] != 1 || !secret || v.n < 1 + WC_KEY ||
	    wc_crypto_agree(secret, (const uint8_t *)v.p + 1, own) < 0)
		return -EBADMSG;
	int r = open_box(own, view_skip(v, 1 + WC_KEY), out);
	explicit_bzero(own, sizeof(own));
	return r;
}

int wc_crypto_uri(const struct wc_pairing *p, struct buf *out)
{
	char key[2 * WC_KEY + 1];

	text_hex(p->key, WC_KEY, key);
	int r = buf_printf(out, "wc:%s@2?relay-protocol=irn&symKey=%s&expiryTimestamp=%" PRId64, p->topic,
			   key, p->expiry_s);
	explicit_bzero(key, sizeof(key));
	return r;
}
