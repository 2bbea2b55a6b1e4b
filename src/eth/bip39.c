/*
 * Words of BIP-39, and the keys that come from them: see bip39.h.
 */
#include "bip39.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

#include "sha256.h"

#include "poison.h"

#define MOST_WORDS     24
#define BITS           11 /* that a word stands for */
#define ROUNDS         2048
#define PASSPHRASE_MAX 256
#define HARD           0x80000000u

static bool is_length(size_t bytes)
{
	return bytes >= 16 && bytes <= BIP39_ENTROPY && bytes % 4 == 0;
}

static uint8_t checksum(const uint8_t *entropy, size_t n)
{
	struct sha256 h;
	uint8_t hash[32];

	sha256_init(&h);
	sha256_add(&h, entropy, n);
	sha256_end(&h, hash);
	return hash[0];
}

int bip39_write(const uint8_t *entropy, size_t n, char ret[static BIP39_TEXT])
{
	uint8_t bits[BIP39_ENTROPY + 1];
	size_t used = 0;

	if (!is_length(n))
		return -EINVAL;
	memcpy(bits, entropy, n);
	bits[n] = checksum(entropy, n);
	for (size_t w = 0; w < n * 3 / 4; w++) {
		unsigned index = 0;
		for (size_t b = w * BITS; b < (w + 1) * BITS; b++)
			index = index << 1 | (bits[b / 8] >> (7 - b % 8) & 1);
		const size_t length = strlen(bip39_words[index]);
		if (w)
			ret[used++] = ' ';
		memcpy(ret + used, bip39_words[index], length);
		used += length;
	}
	ret[used] = 0;
	explicit_bzero(bits, sizeof(bits));
	return 0;
}

/* ---- reading ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The next word in small letters; 0 at the end, -1 if it is none. */
static int next_word(struct view *text, char ret[BIP39_WORD])
{
	size_t n = 0;

	while (text->n && is_space(text->p[0]))
		*text = view_skip(*text, 1);
	if (text->n == 0)
		return 0;
	for (; text->n && !is_space(text->p[0]); *text = view_skip(*text, 1)) {
		const char c = text->p[0];
		if (n == BIP39_WORD - 1 || !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
			return -1;
		ret[n++] = (char)(c | 0x20);
	}
	ret[n] = 0;
	return 1;
}

/* What is wrong is said by a word's place and never by the word: it may be of a key. */
static int read_bits(struct view text, uint8_t bits[static BIP39_ENTROPY + 1], size_t *ret_words,
		     struct err *e)
{
	char word[BIP39_WORD];
	size_t n = 0;
	int r;

	while ((r = next_word(&text, word)) == 1) {
		const char *found = bsearch(word, bip39_words, BIP39_WORDS, sizeof(bip39_words[0]), by_text);
		if (!found || n == MOST_WORDS)
			break;
		const size_t index = (size_t)(found - bip39_words[0]) / sizeof(bip39_words[0]);
		for (size_t b = 0; b < BITS; b++)
			if (index >> (BITS - 1 - b) & 1)
				bits[(n * BITS + b) / 8] |= (uint8_t)(0x80 >> (n * BITS + b) % 8);
		n++;
	}
	explicit_bzero(word, sizeof(word));
	*ret_words = n;
	if (r != 0 && n < MOST_WORDS)
		return err_set(e, ERR_INVALID, "word %zu is not one of the 2048 English words of BIP-39",
			       n + 1);
	if (r != 0 || n % 3 || n < 12)
		return err_set(e, ERR_INVALID, "there must be 12, 15, 18, 21 or 24 words");
	return 0;
}

int bip39_read(struct view text, char ret[static BIP39_TEXT], uint8_t entropy[static BIP39_ENTROPY],
	       size_t *ret_n, struct err *e)
{
	uint8_t bits[BIP39_ENTROPY + 1] = { 0 };
	size_t words;
	int r = read_bits(text, bits, &words, e);

	if (r == 0) {
		const size_t n = words * 4 / 3;
		const uint8_t mask = (uint8_t)(0xff << (8 - words / 3));
		if ((bits[n] & mask) != (checksum(bits, n) & mask))
			r = err_set(e, ERR_INVALID,
				    "the words do not belong together: one is wrong, or their order");
		else
			r = bip39_write(bits, n, ret);
		memcpy(entropy, bits, n);
		*ret_n = n;
	}
	explicit_bzero(bits, sizeof(bits));
	return r;
}

/* ---- keys ---- */

/* PBKDF2 with HMAC-SHA-512, of one block. By libsodium: OpenSSL's would cost 2.5 MiB of memory for the rest
 * of the program's life. */
static void stretch(struct view password, struct view salt, uint8_t ret[BIP39_SEED])
{
	static const uint8_t block[4] = { 0, 0, 0, 1 };
	crypto_auth_hmacsha512_state keyed, s;
	uint8_t u[BIP39_SEED];

	crypto_auth_hmacsha512_init(&keyed, (const uint8_t *)password.p, password.n);
	s = keyed;
	crypto_auth_hmacsha512_update(&s, (const uint8_t *)salt.p, salt.n);
	crypto_auth_hmacsha512_update(&s, block, sizeof(block));
	crypto_auth_hmacsha512_final(&s, u);
	memcpy(ret, u, sizeof(u));
	for (unsigned i = 1; i < ROUNDS; i++) {
		s = keyed;
		crypto_auth_hmacsha512_update(&s, u, sizeof(u));
		crypto_auth_hmacsha512_final(&s, u);
		for (unsigned k = 0; k < sizeof(u); k++)
			ret[k] ^= u[k];
	}
	explicit_bzero(&keyed, sizeof(keyed));
	explicit_bzero(&s, sizeof(s));
	explicit_bzero(u, sizeof(u));
}

int bip39_seed(const char *sentence, struct view passphrase, uint8_t ret[static BIP39_SEED], struct err *e)
{
	char salt[8 + PASSPHRASE_MAX] = "mnemonic";

	for (size_t i = 0; i < passphrase.n; i++)
		if (passphrase.p[i] < ' ' || passphrase.p[i] > '~')
			return err_set(e, ERR_INVALID,
				       "the passphrase of the words must be of ASCII characters");
	if (passphrase.n > PASSPHRASE_MAX)
		return err_set(e, ERR_INVALID, "the passphrase of the words has at most %d bytes",
			       PASSPHRASE_MAX);
	if (passphrase.n)
		memcpy(salt + 8, passphrase.p, passphrase.n);
	stretch(view_of(sentence), (struct view){ salt, 8 + passphrase.n }, ret);
	explicit_bzero(salt, sizeof(salt));
	return 0;
}

static void hmac(const uint8_t *key, size_t key_n, const uint8_t *data, size_t n, uint8_t ret[64])
{
	crypto_auth_hmacsha512_state s;

	crypto_auth_hmacsha512_init(&s, key, key_n);
	crypto_auth_hmacsha512_update(&s, data, n);
	crypto_auth_hmacsha512_final(&s, ret);
	explicit_bzero(&s, sizeof(s));
}

/* One step of BIP-32: node is key and chain code. */
static int step(uint8_t node[64], uint32_t index)
{
	uint8_t data[37] = { 0 }, out[64];
	int r = 0;

	if (index & HARD)
		memcpy(data + 1, node, SIG_KEY);
	else
		r = sig_public(node, data);
	for (unsigned i = 0; i < 4; i++)
		data[33 + i] = (uint8_t)(index >> (24 - 8 * i));
	hmac(node + 32, 32, data, sizeof(data), out);
	if (r == 0)
		r = sig_key_add(node, out); /* fails once in 2^127 */
	memcpy(node + 32, out + 32, 32);
	explicit_bzero(data, sizeof(data));
	explicit_bzero(out, sizeof(out));
	return r;
}

int bip39_account(const uint8_t seed[static BIP39_SEED], uint32_t account, uint8_t ret[static SIG_KEY],
		  struct err *e)
{
	const uint32_t path[] = { HARD | 44, HARD | 60, HARD | 0, 0, account };
	uint8_t node[64];
	int r = account & HARD ? -EINVAL : 0;

	hmac((const uint8_t *)"Bitcoin seed", 12, seed, BIP39_SEED, node);
	if (!sig_key_valid(node))
		r = -EINVAL;
	for (size_t i = 0; r == 0 && i < ELEMS(path); i++)
		r = step(node, path[i]);
	if (r == 0)
		memcpy(ret, node, SIG_KEY);
	explicit_bzero(node, sizeof(node));
	return r < 0 ? err_set(e, ERR_INVALID, "no key comes from these words for this account") : 0;
}
