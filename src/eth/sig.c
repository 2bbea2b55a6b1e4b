/*
 * Signatures: see sig.h.
 */
#include "sig.h"

#include <errno.h>
#include <secp256k1.h>
#include <secp256k1_recovery.h>
#include <stdio.h>

#include "keccak.h"
#include "rnd.h"
#include "poison.h"

static secp256k1_context *context;

/* Half of the group's order: a larger s has a smaller twin, and only that one is accepted. */
static const struct u256 half = { { 0xdfe92f46681b20a0, 0x5d576e7357a4501d, 0xffffffffffffffff,
				    0x7fffffffffffffff } };

int sig_init(void)
{
	uint8_t seed[32];

	if (context)
		return 0;
	context = secp256k1_context_create(SECP256K1_CONTEXT_SIGN | SECP256K1_CONTEXT_VERIFY);
	if (!context)
		return -ENOMEM;
	rnd_bytes(seed, sizeof(seed));
	int ok = secp256k1_context_randomize(context, seed);
	explicit_bzero(seed, sizeof(seed));
	return ok ? 0 : -EIO;
}

void sig_done(void)
{
	if (context)
		secp256k1_context_destroy(context);
	context = NULL;
}

bool sig_key_valid(const uint8_t key[SIG_KEY])
{
	return secp256k1_ec_seckey_verify(context, key) == 1;
}

static void address_of(const secp256k1_pubkey *p, uint8_t ret[ADDRESS_SIZE])
{
	uint8_t point[65], hash[KECCAK_SIZE];
	size_t n = sizeof(point);

	(void)secp256k1_ec_pubkey_serialize(context, point, &n, p, SECP256K1_EC_UNCOMPRESSED);
	keccak_of((struct view){ (const char *)point + 1, n - 1 }, hash);
	memcpy(ret, hash + KECCAK_SIZE - ADDRESS_SIZE, ADDRESS_SIZE);
}

int sig_address(const uint8_t key[SIG_KEY], uint8_t ret[ADDRESS_SIZE])
{
	secp256k1_pubkey p;

	if (!sig_key_valid(key) || !secp256k1_ec_pubkey_create(context, &p, key))
		return -EINVAL;
	address_of(&p, ret);
	return 0;
}

int sig_public(const uint8_t key[SIG_KEY], uint8_t ret[SIG_PUBLIC])
{
	secp256k1_pubkey p;
	size_t n = SIG_PUBLIC;

	if (!sig_key_valid(key) || !secp256k1_ec_pubkey_create(context, &p, key))
		return -EINVAL;
	(void)secp256k1_ec_pubkey_serialize(context, ret, &n, &p, SECP256K1_EC_COMPRESSED);
	return 0;
}

int sig_key_add(uint8_t key[SIG_KEY], const uint8_t add[SIG_KEY])
{
	return sig_key_valid(key) && secp256k1_ec_seckey_tweak_add(context, key, add) ? 0 : -EINVAL;
}

int sig_sign(const uint8_t key[SIG_KEY], const uint8_t hash[SIG_HASH], struct sig *ret)
{
	secp256k1_ecdsa_recoverable_signature s;
	uint8_t compact[64];
	int y;

	if (!sig_key_valid(key) || !secp256k1_ecdsa_sign_recoverable(context, &s, hash, key, NULL, NULL))
		return -EINVAL;
	(void)secp256k1_ecdsa_recoverable_signature_serialize_compact(context, compact, &y, &s);
	/* 2 and 3 stand for an r beyond the order, which does not happen and has no place in a transaction.
	 */
	if (y > 1)
		return -EIO;
	*ret = (struct sig){ u256_load(compact), u256_load(compact + 32), (uint8_t)y };
	return 0;
}

int sig_recover(const struct sig *sig, const uint8_t hash[SIG_HASH], uint8_t ret[ADDRESS_SIZE])
{
	secp256k1_ecdsa_recoverable_signature s;
	secp256k1_pubkey p;
	uint8_t compact[64];

	if (sig->y > 1 || u256_is_zero(&sig->r) || u256_is_zero(&sig->s) || u256_cmp(&sig->s, &half) > 0)
		return -EBADMSG;
	u256_store(&sig->r, compact);
	u256_store(&sig->s, compact + 32);
	if (!secp256k1_ecdsa_recoverable_signature_parse_compact(context, &s, compact, sig->y) ||
	    !secp256k1_ecdsa_recover(context, &p, &s, hash))
		return -EBADMSG;
	address_of(&p, ret);
	return 0;
}

void sig_store(const struct sig *s, uint8_t out[SIG_SIZE])
{
	u256_store(&s->r, out);
	u256_store(&s->s, out + 32);
	out[64] = (uint8_t)(27 + s->y);
}

int sig_load(struct view v, struct sig *ret)
{
	if (v.n != SIG_SIZE)
		return -EBADMSG;
	uint8_t y = (uint8_t)v.p[64];
	y = y >= 27 ? (uint8_t)(y - 27) : y;
	if (y > 1)
		return -EBADMSG;
	*ret = (struct sig){ u256_load(v.p), u256_load(v.p + 32), y };
	return 0;
}

void sig_message_hash(struct view message, uint8_t ret[SIG_HASH])
{
	static const char head[] = "\x19"
				   "Ethereum Signed Message:\n";
	char length[24];
	struct keccak k;

	keccak_init(&k);
	keccak_add(&k, head, sizeof(head) - 1);
	keccak_add(&k, length, (size_t)snprintf(length, sizeof(length), "%zu", message.n));
	keccak_add(&k, message.p, message.n);
	keccak_end(&k, ret);
}
