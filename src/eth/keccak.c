/*
 * Keccak-f[1600] with a rate of 136 bytes: see keccak.h.
 */
#include "keccak.h"

#include "poison.h"

#define RATE   136
#define ROUNDS 24

static const uint64_t constants[ROUNDS] = {
	0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b,
	0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
	0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b, 0x8000000000008089,
	0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
	0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
};
/* rho's turns and pi's places, along the cycle that begins at lane 1. */
static const uint8_t turns[ROUNDS] = { 1,  3,  6,  10, 15, 21, 28, 36, 45, 55, 2,  14,
				       27, 41, 56, 8,  25, 43, 62, 18, 39, 61, 20, 44 };
static const uint8_t places[ROUNDS] = { 10, 7,  11, 17, 18, 3, 5,  16, 8,  21, 24, 4,
					15, 23, 19, 13, 12, 2, 20, 14, 22, 9,  6,  1 };

static uint64_t rol(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static void permute(uint64_t s[25])
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t c[5], t = s[1];
		for (unsigned x = 0; x < 5; x++)
			c[x] = s[x] ^ s[x + 5] ^ s[x + 10] ^ s[x + 15] ^ s[x + 20];
		for (unsigned x = 0; x < 5; x++) {
			const uint64_t d = c[(x + 4) % 5] ^ rol(c[(x + 1) % 5], 1);
			for (unsigned y = 0; y < 25; y += 5)
				s[x + y] ^= d;
		}
		t = s[1];
		for (unsigned i = 0; i < ROUNDS; i++) {
			const uint64_t next = s[places[i]];
			s[places[i]] = rol(t, turns[i]);
			t = next;
		}
		for (unsigned y = 0; y < 25; y += 5) {
			memcpy(c, s + y, sizeof(c));
			for (unsigned x = 0; x < 5; x++)
				s[x + y] = c[x] ^ (~c[(x + 1) % 5] & c[(x + 2) % 5]);
		}
		s[0] ^= constants[round];
	}
}

static void mix(struct keccak *k, unsigned at, uint8_t byte)
{
	k->s[at / 8] ^= (uint64_t)byte << 8 * (at % 8);
}

void keccak_init(struct keccak *k)
{
	*k = (struct keccak){ 0 };
}

void keccak_add(struct keccak *k, const void *p, size_t n)
{
	const uint8_t *bytes = p;

	for (size_t i = 0; i < n; i++) {
		mix(k, k->at++, bytes[i]);
		if (k->at == RATE) {
			permute(k->s);
			k->at = 0;
		}
	}
}

void keccak_end(struct keccak *k, uint8_t out[KECCAK_SIZE])
{
	mix(k, k->at, 0x01);
	mix(k, RATE - 1, 0x80);
	permute(k->s);
	for (unsigned i = 0; i < KECCAK_SIZE; i++)
		out[i] = (uint8_t)(k->s[i / 8] >> 8 * (i % 8));
}

void keccak_of(struct view v, uint8_t out[KECCAK_SIZE])
{
	struct keccak k;

	keccak_init(&k);
	keccak_add(&k, v.p, v.n);
	keccak_end(&k, out);
}
