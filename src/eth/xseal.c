/*
 * Sealing of columns: see xseal.h.
 */
#include "xseal.h"

#include <errno.h>
#include <sodium.h>

#include "rnd.h"
#include "sha256.h"
#include "poison.h"

#define VALUE_MAX (1u << 20)

static_assert(XSEAL_KEY == crypto_aead_xchacha20poly1305_ietf_KEYBYTES &&
		      XSEAL_NONCE == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES &&
		      XSEAL_TAG == crypto_aead_xchacha20poly1305_ietf_ABYTES,
	      "libsodium's sizes");

int xseal_init(void)
{
	return sodium_init() < 0 ? -EIO : 0;
}

int xseal_hkdf(struct view salt, struct view secret, struct view info, uint8_t *ret, size_t n)
{
	_cleanup_(buf_done) struct buf text = { .max = SHA256_SIZE + 512, .secret = true };
	uint8_t prk[SHA256_SIZE], block[SHA256_SIZE];
	size_t done = 0;

	if (n > 255 * SHA256_SIZE || info.n > 256)
		return -EINVAL;
	sha256_hmac(salt, secret, prk);
	for (uint8_t i = 1; done < n; i++) {
		buf_clear(&text);
		if (i > 1)
			buf_append(&text, block, sizeof(block));
		buf_add(&text, info);
		if (buf_putc(&text, (char)i) < 0)
			break;
		sha256_hmac((struct view){ (const char *)prk, sizeof(prk) }, buf_view(&text), block);
		const size_t part = MIN(n - done, sizeof(block));
		memcpy(ret + done, block, part);
		done += part;
	}
	explicit_bzero(prk, sizeof(prk));
	explicit_bzero(block, sizeof(block));
	return text.bad;
}

int xseal_close(const uint8_t key[XSEAL_KEY], struct view what, struct view value, struct buf *out)
{
	uint8_t nonce[XSEAL_NONCE];

	if (value.n > VALUE_MAX)
		return -EINVAL;
	char *p = buf_reserve(out, XSEAL_NONCE + value.n + XSEAL_TAG);
	if (!p)
		return out->bad;
	rnd_bytes(nonce, sizeof(nonce));
	memcpy(p, nonce, sizeof(nonce));
	if (crypto_aead_xchacha20poly1305_ietf_encrypt(
		    (uint8_t *)p + XSEAL_NONCE, NULL, (const uint8_t *)value.p, value.n,
		    (const uint8_t *)what.p, what.n, NULL, nonce, key) != 0)
		return -EIO;
	buf_commit(out, XSEAL_NONCE + value.n + XSEAL_TAG);
	return 0;
}

int xseal_open(const uint8_t key[XSEAL_KEY], struct view what, struct view sealed, struct buf *out)
{
	if (sealed.n < XSEAL_NONCE + XSEAL_TAG || sealed.n > XSEAL_NONCE + VALUE_MAX + XSEAL_TAG)
		return -EBADMSG;
	const struct view cipher = view_skip(sealed, XSEAL_NONCE);
	char *p = buf_reserve(out, cipher.n - XSEAL_TAG + 1);
	if (!p)
		return out->bad;
	if (crypto_aead_xchacha20poly1305_ietf_decrypt((uint8_t *)p, NULL, NULL, (const uint8_t *)cipher.p,
						       cipher.n, (const uint8_t *)what.p, what.n,
						       (const uint8_t *)sealed.p, key) != 0)
		return -EBADMSG;
	buf_commit(out, cipher.n - XSEAL_TAG);
	return 0;
}
