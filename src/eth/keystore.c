/*
 * Keystores: see keystore.h. The numbers of a file are checked against bounds before any work is done:
 * a hostile one must not cost minutes or gigabytes.
 */
#include "keystore.h"

#include <errno.h>
/* OpenSSL has a type of the same name as one of our error codes. */
#define ERR_STATE openssl_err_state
#include <openssl/crypto.h>
#include <openssl/evp.h>
#undef ERR_STATE
#include <sodium.h>

#include "keccak.h"
#include "rnd.h"
#include "text.h"
#include "poison.h"

#define ARENA_MAX (128u * 1024)
#define ROUNDS    10000000 /* of PBKDF2, at most */
#define SALT_MAX  128
#define DERIVED   32
#define IV        16
#define SCRYPT_R  8

struct parts {
	bool scrypt;
	uint64_t n, r, p, rounds;
	struct view salt, iv, cipher, mac;
};

static int not_one(struct err *e, const char *what)
{
	return err_set(e, ERR_INVALID, "keystore: %s", what);
}

/* Some write 0x before their digits, some do not. */
static int hex_of(struct arena *a, const struct json *j, size_t min, size_t max, struct view *ret)
{
	if (!j || j->type != JSON_STRING)
		return -EINVAL;
	const struct view digits = view_starts(j->text, "0x") ? view_skip(j->text, 2) : j->text;
	const size_t n = digits.n / 2;
	char *bytes = arena_alloc(a, n + 1);
	if (digits.n % 2 || n < min || n > max || !bytes)
		return -EINVAL;
	*ret = (struct view){ bytes, n };
	return text_unhex(digits, bytes, n);
}

static bool text_equals(const struct json *j, const char *s)
{
	return j && j->type == JSON_STRING && view_is(j->text, s);
}

static int u64_of(const struct json *j, const char *key, uint64_t *ret)
{
	const struct json *v = json_get(j, key);

	return v ? json_to_u64(v, ret) : -EINVAL;
}

static int read_scrypt(const struct json *k, struct parts *p, struct err *e)
{
	if (u64_of(k, "n", &p->n) < 0 || u64_of(k, "r", &p->r) < 0 || u64_of(k, "p", &p->p) < 0)
		return not_one(e, "scrypt needs n, r and p");
	if (p->n < 2 || (p->n & (p->n - 1)) || p->n > 1u << 20 || p->r < 1 || p->r > 32 || p->p < 1 ||
	    p->p > 16 || 128 * p->n * p->r > KEYSTORE_MEMORY || 128 * p->n * p->r * p->p > KEYSTORE_WORK)
		return not_one(e, "scrypt's n, r and p are out of bounds");
	p->scrypt = true;
	return 0;
}

/* ethers writes it with a capital. */
static const struct json *crypto_of(const struct json *j)
{
	const struct json *lower = json_get(j, "crypto"), *upper = json_get(j, "Crypto");

	return lower && upper ? NULL : lower ? lower : upper;
}

static int read_parts(struct arena *a, const struct json *j, struct parts *p, struct err *e)
{
	const struct json *version = json_get(j, "version"), *c = crypto_of(j), *k = json_get(c, "kdfparams"),
			  *kdf = json_get(c, "kdf");
	uint64_t n, length;

	if (!version || json_to_u64(version, &n) < 0 || n != 3)
		return not_one(e, "not a file of version 3");
	if (!text_equals(json_get(c, "cipher"), "aes-128-ctr"))
		return not_one(e, "the cipher must be aes-128-ctr");
	if (hex_of(a, json_get(json_get(c, "cipherparams"), "iv"), IV, IV, &p->iv) < 0 ||
	    hex_of(a, json_get(c, "ciphertext"), SIG_KEY, SIG_KEY, &p->cipher) < 0 ||
	    hex_of(a, json_get(c, "mac"), KECCAK_SIZE, KECCAK_SIZE, &p->mac) < 0 ||
	    hex_of(a, json_get(k, "salt"), 1, SALT_MAX, &p->salt) < 0)
		return not_one(e, "iv, ciphertext, mac or salt is not what it should be");
	if (u64_of(k, "dklen", &length) < 0 || length != DERIVED)
		return not_one(e, "dklen must be 32");
	if (text_equals(kdf, "scrypt"))
		return read_scrypt(k, p, e);
	if (!text_equals(kdf, "pbkdf2") || !text_equals(json_get(k, "prf"), "hmac-sha256") ||
	    u64_of(k, "c", &p->rounds) < 0 || p->rounds < 1 || p->rounds > ROUNDS)
		return not_one(
			e, "the kdf must be scrypt, or pbkdf2 with hmac-sha256 and at most 10000000 rounds");
	return 0;
}

/* libsodium's scrypt: OpenSSL's refuses the n and r of the definition's own test vector. */
static int derive(const struct parts *p, struct view password, uint8_t ret[DERIVED])
{
	const uint8_t *salt = (const uint8_t *)p->salt.p;

	if (p->scrypt)
		return crypto_pwhash_scryptsalsa208sha256_ll((const uint8_t *)password.p, password.n, salt,
							     p->salt.n, p->n, (uint32_t)p->r, (uint32_t)p->p,
							     ret, DERIVED) == 0
			       ? 0
			       : -ENOMEM;
	return PKCS5_PBKDF2_HMAC(password.p, (int)password.n, salt, (int)p->salt.n, (int)p->rounds,
				 EVP_sha256(), DERIVED, ret) == 1
		       ? 0
		       : -EIO;
}

static int no_memory(const struct parts *p, struct err *e)
{
	return err_set(e, ERR_UNAVAILABLE,
		       "keystore: scrypt needs %llu MiB of memory, which must fit into RLIMIT_MEMLOCK where "
		       "memory is locked",
		       (unsigned long long)(128 * p->n * p->r >> 20));
}

static void count_mac(const uint8_t derived[DERIVED], struct view cipher, uint8_t ret[KECCAK_SIZE])
{
	struct keccak k;

	keccak_init(&k);
	keccak_add(&k, derived + 16, 16);
	keccak_add(&k, cipher.p, cipher.n);
	keccak_end(&k, ret);
	explicit_bzero(&k, sizeof(k));
}

/* CTR: both ways. */
static int crypt(const uint8_t key[16], struct view iv, const void *in, uint8_t out[SIG_KEY])
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int n, ok = c && EVP_EncryptInit_ex(c, EVP_aes_128_ctr(), NULL, key, (const uint8_t *)iv.p) == 1 &&
		    EVP_EncryptUpdate(c, out, &n, in, SIG_KEY) == 1 && n == SIG_KEY;

	EVP_CIPHER_CTX_free(c);
	return ok ? 0 : -EIO;
}

/* With or without 0x, in any case; a file need not say it. */
static int check_address(struct arena *a, const struct json *j, const uint8_t key[SIG_KEY], struct err *e)
{
	const struct json *said = json_get(j, "address");
	uint8_t address[ADDRESS_SIZE];
	struct view bytes;

	if (sig_address(key, address) < 0)
		return not_one(e, "the key is not a key");
	if (said && (hex_of(a, said, ADDRESS_SIZE, ADDRESS_SIZE, &bytes) < 0 ||
		     memcmp(bytes.p, address, ADDRESS_SIZE) != 0))
		return not_one(e, "the key belongs to another address than the file says");
	return 0;
}

static int open_parts(struct arena *a, const struct json *j, const struct parts *p, struct view password,
		      uint8_t ret[SIG_KEY], struct err *e)
{
	uint8_t derived[DERIVED], mac[KECCAK_SIZE], key[SIG_KEY];
	int r = -1;

	if (derive(p, password, derived) < 0) {
		no_memory(p, e);
	} else {
		count_mac(derived, p->cipher, mac);
		if (!view_eq_secret((struct view){ (const char *)mac, sizeof(mac) }, p->mac))
			err_set(e, ERR_UNAUTHORIZED, "keystore: the password is wrong");
		else if (crypt(derived, p->iv, p->cipher.p, key) < 0)
			err_set(e, ERR_INTERNAL, "keystore: OpenSSL");
		else
			r = check_address(a, j, key, e);
	}
	if (r == 0)
		memcpy(ret, key, SIG_KEY);
	explicit_bzero(derived, sizeof(derived));
	explicit_bzero(key, sizeof(key));
	return r;
}

int keystore_check(struct view text, struct err *e)
{
	_cleanup_(arena_done) struct arena a = { .max = ARENA_MAX };
	struct parts p = { 0 };
	struct json *j;

	if (text.n > KEYSTORE_JSON_MAX)
		return not_one(e, "too large");
	return json_parse(&a, text, &j, e) < 0 ? -1 : read_parts(&a, j, &p, e);
}

int keystore_open(struct view text, struct view password, uint8_t ret[SIG_KEY], struct err *e)
{
	_cleanup_(arena_done) struct arena a = { .max = ARENA_MAX, .secret = true };
	struct parts p = { 0 };
	struct json *j;

	if (text.n > KEYSTORE_JSON_MAX || password.n > 4096)
		return not_one(e, "too large");
	if (json_parse(&a, text, &j, e) < 0 || read_parts(&a, j, &p, e) < 0)
		return -1;
	return open_parts(&a, j, &p, password.p ? password : VIEW(""), ret, e);
}

/* ---- writing ---- */

static void put_hex(struct json_out *o, const char *key, const void *p, size_t n)
{
	char text[2 * 64 + 1];

	text_hex(p, MIN(n, 64u), text);
	json_out_kz(o, key, text);
}

static void put_id(struct json_out *o)
{
	uint8_t id[16];
	char hex[33], text[37];
	unsigned n = 0;

	rnd_bytes(id, sizeof(id));
	id[6] = (uint8_t)((id[6] & 0x0f) | 0x40);
	id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
	text_hex(id, sizeof(id), hex);
	for (unsigned i = 0; i < 32; i++) {
		if (i == 8 || i == 12 || i == 16 || i == 20)
			text[n++] = '-';
		text[n++] = hex[i];
	}
	text[n] = 0;
	json_out_kz(o, "id", text);
}

static void put_crypto(struct json_out *o, const struct parts *p)
{
	json_out_key(o, "crypto");
	json_out_object(o);
	json_out_kz(o, "cipher", "aes-128-ctr");
	json_out_key(o, "cipherparams");
	json_out_object(o);
	put_hex(o, "iv", p->iv.p, p->iv.n);
	json_out_end(o, '}');
	put_hex(o, "ciphertext", p->cipher.p, p->cipher.n);
	json_out_kz(o, "kdf", "scrypt");
	json_out_key(o, "kdfparams");
	json_out_object(o);
	json_out_ku64(o, "dklen", DERIVED);
	json_out_ku64(o, "n", p->n);
	json_out_ku64(o, "p", p->p);
	json_out_ku64(o, "r", p->r);
	put_hex(o, "salt", p->salt.p, p->salt.n);
	json_out_end(o, '}');
	put_hex(o, "mac", p->mac.p, p->mac.n);
	json_out_end(o, '}');
}

int keystore_make(const uint8_t key[SIG_KEY], struct view password, unsigned log_n, struct buf *out,
		  struct err *e)
{
	char salt[32], iv[IV];
	uint8_t derived[DERIVED], cipher[SIG_KEY], mac[KECCAK_SIZE], address[ADDRESS_SIZE];
	struct parts p = { .scrypt = true,
			   .r = SCRYPT_R,
			   .p = 1,
			   .salt = { salt, sizeof(salt) },
			   .iv = { iv, sizeof(iv) },
			   .cipher = { (const char *)cipher, sizeof(cipher) },
			   .mac = { (const char *)mac, sizeof(mac) } };
	struct json_out o;

	if (log_n < 1 || log_n > 18 || sig_address(key, address) < 0)
		return err_set(e, ERR_INVALID, "keystore: not a key or not a cost");
	p.n = 1ull << log_n;
	rnd_bytes(salt, sizeof(salt));
	rnd_bytes(iv, sizeof(iv));
	int r = derive(&p, password, derived);
	if (r == 0)
		r = crypt(derived, p.iv, key, cipher);
	if (r == 0)
		count_mac(derived, p.cipher, mac);
	explicit_bzero(derived, sizeof(derived));
	if (r < 0)
		return no_memory(&p, e);
	json_out_init(&o, out);
	json_out_object(&o);
	put_hex(&o, "address", address, sizeof(address));
	put_crypto(&o, &p);
	put_id(&o);
	json_out_ku64(&o, "version", 3);
	json_out_end(&o, '}');
	return out->bad ? err_sys(e, ERR_INTERNAL, out->bad, "keystore") : 0;
}
