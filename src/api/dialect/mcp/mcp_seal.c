/*
 * Sealed text that somebody else keeps for us: encrypted, authenticated, bound to a purpose, with an end.
 *
 *   base64( nonce[16] | expires[8] | text ^ keystream | tag[32] )
 *
 * The keystream is HMAC-SHA256(enc, nonce | counter), the tag HMAC-SHA256(mac, all before it | bound); enc
 * and mac are derived from the key. Encrypt, then authenticate: nothing is decrypted that is not ours. Pure.
 */
#include <errno.h>

#include "mcp_impl.h"
#include "rnd.h"
#include "sha256.h"
#include "text.h"
#include "poison.h"

#define NONCE 16
#define HEAD  (NONCE + 8)

static struct view bytes(const void *p, size_t n)
{
	return (struct view){ p, n };
}

static void put_number(uint8_t *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t get_number(const uint8_t *p)
{
	uint64_t v = 0;
	for (int i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

static void mix(const uint8_t key[32], const uint8_t *nonce, uint8_t *p, size_t n)
{
	uint8_t enc[SHA256_SIZE], block[SHA256_SIZE], at[NONCE + 8];

	sha256_hmac(bytes(key, 32), VIEW("enc"), enc);
	memcpy(at, nonce, NONCE);
	for (size_t i = 0; i < n; i++) {
		if (i % SHA256_SIZE == 0) {
			put_number(at + NONCE, i / SHA256_SIZE);
			sha256_hmac(bytes(enc, sizeof(enc)), bytes(at, sizeof(at)), block);
		}
		p[i] ^= block[i % SHA256_SIZE];
	}
	explicit_bzero(enc, sizeof(enc));
	explicit_bzero(block, sizeof(block));
}

static int tag_of(const uint8_t key[32], struct view sealed, struct view bound, uint8_t ret[SHA256_SIZE])
{
	uint8_t mac[SHA256_SIZE], n[8];
	struct buf all = BUF_INIT(sealed.n + bound.n + sizeof(n));

	sha256_hmac(bytes(key, 32), VIEW("mac"), mac);
	put_number(n, sealed.n);
	buf_append(&all, n, sizeof(n));
	buf_add(&all, sealed);
	buf_add(&all, bound);
	int r = all.bad;
	if (r == 0)
		sha256_hmac(bytes(mac, sizeof(mac)), buf_view(&all), ret);
	buf_done(&all);
	explicit_bzero(mac, sizeof(mac));
	return r;
}

int mcp_seal(const uint8_t key[32], struct view bound, int64_t expires_s, struct view text, struct buf *out)
{
	uint8_t head[HEAD], tag[SHA256_SIZE];
	struct buf b = BUF_INIT(HEAD + text.n + SHA256_SIZE);

	rnd_bytes(head, NONCE);
	put_number(head + NONCE, (uint64_t)expires_s);
	buf_append(&b, head, sizeof(head));
	buf_add(&b, text);
	int r = b.bad;
	if (r == 0) {
		mix(key, head, (uint8_t *)b.p + HEAD, text.n);
		r = tag_of(key, buf_view(&b), bound, tag);
	}
	if (r == 0)
		r = buf_append(&b, tag, sizeof(tag));
	if (r == 0)
		r = text_base64(out, buf_view(&b));
	buf_done(&b);
	return r;
}

int mcp_seal_open(const uint8_t key[32], struct view bound, int64_t now_s, struct view sealed,
		  struct buf *out)
{
	uint8_t tag[SHA256_SIZE];
	struct buf b = BUF_INIT(MCP_STATE_MAX);
	int r = sealed.n <= MCP_STATE_MAX && text_unbase64(&b, sealed) >= 0 &&
				buf_len(&b) >= HEAD + SHA256_SIZE
			? 0
			: -EBADMSG;

	if (r == 0) {
		struct view body = view_head(buf_view(&b), buf_len(&b) - SHA256_SIZE);
		r = tag_of(key, body, bound, tag);
		if (r == 0 && !view_eq_secret(bytes(tag, sizeof(tag)), view_skip(buf_view(&b), body.n)))
			r = -EBADMSG;
		if (r == 0 && (int64_t)get_number((const uint8_t *)b.p + NONCE) <= now_s)
			r = -ETIME;
		if (r == 0) {
			mix(key, (const uint8_t *)b.p, (uint8_t *)b.p + HEAD, body.n - HEAD);
			r = buf_append(out, b.p + HEAD, body.n - HEAD);
		}
	}
	buf_done(&b);
	return r;
}
