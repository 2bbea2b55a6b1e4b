/*
 * QR codes: see qr.h. The numbers of the standard's tables have their places of origin beside them.
 */
#include "qr.h"

#include <errno.h>
#include <stdlib.h>

#include "poison.h"

#define VERSIONS      20
#define CODEWORDS_MAX 1100
#define ECC_MAX       30

/* Table 9, level M: codewords for correction in a block, and blocks. */
static const uint8_t ecc_of[VERSIONS] = { 10, 16, 26, 18, 24, 16, 18, 22, 22, 26,
					  30, 22, 22, 24, 24, 28, 28, 26, 26, 26 };
static const uint8_t blocks_of[VERSIONS] = {
	1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16
};

/* While it is drawn: what no mask may change is fixed. */
struct drawing {
	struct qr *qr;
	unsigned version;
	uint8_t fixed[QR_SIZE_MAX][QR_SIZE_MAX];
};

/* ---- bits ---- */

static unsigned raw_bits(unsigned version)
{
	unsigned bits = (16 * version + 128) * version + 64;

	if (version >= 2) {
		unsigned n = version / 7 + 2;
		bits -= (25 * n - 10) * n - 55;
	}
	return version >= 7 ? bits - 36 : bits;
}

static unsigned data_codewords(unsigned version)
{
	return raw_bits(version) / 8 - ecc_of[version - 1] * blocks_of[version - 1];
}

static void put_bits(uint8_t *to, unsigned *at, unsigned value, unsigned n)
{
	while (n--) {
		to[*at / 8] |= (uint8_t)((value >> n & 1) << (7 - *at % 8));
		(*at)++;
	}
}

/* The mode, the length, the bytes, and filling. */
static void write_data(struct view v, unsigned version, uint8_t *to)
{
	unsigned at = 0, all = 8 * data_codewords(version);

	put_bits(to, &at, 4, 4);
	put_bits(to, &at, (unsigned)v.n, version < 10 ? 8 : 16);
	for (size_t i = 0; i < v.n; i++)
		put_bits(to, &at, (uint8_t)v.p[i], 8);
	put_bits(to, &at, 0, MIN(4, all - at));
	put_bits(to, &at, 0, (8 - at % 8) % 8);
	for (unsigned pad = 0xec; at < all; pad ^= 0xec ^ 0x11)
		put_bits(to, &at, pad, 8);
}

/* ---- correction: Reed-Solomon over GF(2^8) by 0x11d ---- */

static uint8_t times(uint8_t a, uint8_t b)
{
	unsigned r = 0;

	for (int i = 7; i >= 0; i--) {
		r = r << 1 ^ (r >> 7) * 0x11d;
		r ^= (b >> i & 1) * a;
	}
	return (uint8_t)r;
}

static void divisor(unsigned n, uint8_t *ret)
{
	uint8_t root = 1;

	memset(ret, 0, n);
	ret[n - 1] = 1;
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < n; k++)
			ret[k] = (uint8_t)(times(ret[k], root) ^ (k + 1 < n ? ret[k + 1] : 0));
		root = times(root, 2);
	}
}

static void remainder_of(const uint8_t *data, unsigned n_data, const uint8_t *by, unsigned n, uint8_t *ret)
{
	memset(ret, 0, n);
	for (unsigned i = 0; i < n_data; i++) {
		uint8_t factor = data[i] ^ ret[0];
		memmove(ret, ret + 1, n - 1);
		ret[n - 1] = 0;
		for (unsigned k = 0; k < n; k++)
			ret[k] ^= times(by[k], factor);
	}
}

/* Blocks with their correction, interleaved. The later blocks are longer by one codeword. */
static unsigned interleave(const uint8_t *data, unsigned version, uint8_t *to)
{
	unsigned ecc = ecc_of[version - 1], blocks = blocks_of[version - 1];
	unsigned n = data_codewords(version), least = n / blocks, longer = n % blocks, at = 0;
	uint8_t by[ECC_MAX], fix[16][ECC_MAX];

	divisor(ecc, by);
	for (unsigned b = 0, from = 0; b < blocks; b++) {
		unsigned size = least + (b >= blocks - longer);
		remainder_of(data + from, size, by, ecc, fix[b]);
		from += size;
	}
	for (unsigned i = 0; i <= least; i++)
		for (unsigned b = 0, from = 0; b < blocks; b++) {
			unsigned size = least + (b >= blocks - longer);
			if (i < size)
				to[at++] = data[from + i];
			from += size;
		}
	for (unsigned i = 0; i < ecc; i++)
		for (unsigned b = 0; b < blocks; b++)
			to[at++] = fix[b][i];
	return at;
}

/* ---- patterns ---- */

static void fix(struct drawing *d, unsigned x, unsigned y, bool dark)
{
	if (x >= d->qr->size || y >= d->qr->size)
		return;
	d->qr->dark[y][x] = dark;
	d->fixed[y][x] = 1;
}

/* Squares within squares around a middle, which may reach over the border. */
static void draw_square(struct drawing *d, unsigned x, unsigned y, int reach, unsigned light)
{
	for (int dy = -reach; dy <= reach; dy++)
		for (int dx = -reach; dx <= reach; dx++) {
			unsigned far = (unsigned)MAX(abs(dx), abs(dy));
			fix(d, x + (unsigned)dx, y + (unsigned)dy, !(light >> far & 1));
		}
}

static void draw_alignment(struct drawing *d)
{
	unsigned n = d->version < 2 ? 0 : d->version / 7 + 2, at[8] = { 6 }, size = d->qr->size;
	unsigned step = n ? (d->version * 8 + n * 3 + 5) / (n * 4 - 4) * 2 : 0;

	for (unsigned i = n, pos = size - 7; i-- > 1; pos -= step)
		at[i] = pos;
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < n; k++)
			if (!((i == 0 && k == 0) || (i == 0 && k == n - 1) || (i == n - 1 && k == 0)))
				draw_square(d, at[i], at[k], 2, 1u << 1);
}

static void draw_version(struct drawing *d)
{
	unsigned rest = d->version;

	if (d->version < 7)
		return;
	for (int i = 0; i < 12; i++)
		rest = rest << 1 ^ (rest >> 11) * 0x1f25;
	unsigned bits = d->version << 12 | rest;
	for (unsigned i = 0; i < 18; i++) {
		unsigned a = d->qr->size - 11 + i % 3, b = i / 3;
		fix(d, a, b, bits >> i & 1);
		fix(d, b, a, bits >> i & 1);
	}
}

/* Level M is 0. */
static void draw_format(struct drawing *d, unsigned mask)
{
	unsigned rest = mask, size = d->qr->size;

	for (int i = 0; i < 10; i++)
		rest = rest << 1 ^ (rest >> 9) * 0x537;
	unsigned bits = (mask << 10 | rest) ^ 0x5412;
	for (unsigned i = 0; i < 6; i++)
		fix(d, 8, i, bits >> i & 1);
	fix(d, 8, 7, bits >> 6 & 1);
	fix(d, 8, 8, bits >> 7 & 1);
	fix(d, 7, 8, bits >> 8 & 1);
	for (unsigned i = 9; i < 15; i++)
		fix(d, 14 - i, 8, bits >> i & 1);
	for (unsigned i = 0; i < 8; i++)
		fix(d, size - 1 - i, 8, bits >> i & 1);
	for (unsigned i = 8; i < 15; i++)
		fix(d, 8, size - 15 + i, bits >> i & 1);
	fix(d, 8, size - 8, true);
}

static void draw_patterns(struct drawing *d)
{
	unsigned size = d->qr->size;

	for (unsigned i = 0; i < size; i++) {
		fix(d, 6, i, i % 2 == 0);
		fix(d, i, 6, i % 2 == 0);
	}
	/* Light at the distances 2 and 4 of the middle. */
	draw_square(d, 3, 3, 4, 1u << 2 | 1u << 4);
	draw_square(d, size - 4, 3, 4, 1u << 2 | 1u << 4);
	draw_square(d, 3, size - 4, 4, 1u << 2 | 1u << 4);
	draw_alignment(d);
	draw_format(d, 0);
	draw_version(d);
}

/* Two columns at a time, from the right, up and down in turn; column 6 is not counted. */
static void draw_codewords(struct drawing *d, const uint8_t *p, unsigned n)
{
	unsigned size = d->qr->size, at = 0;

	for (unsigned right = size - 1; right >= 1 && right < size; right -= 2) {
		if (right == 6)
			right = 5;
		for (unsigned v = 0; v < size; v++)
			for (unsigned k = 0; k < 2; k++) {
				unsigned x = right - k;
				unsigned y = (right + 1) & 2 ? v : size - 1 - v;
				if (d->fixed[y][x] || at >= 8 * n)
					continue;
				d->qr->dark[y][x] = p[at / 8] >> (7 - at % 8) & 1;
				at++;
			}
	}
}

/* ---- masks ---- */

static bool masked(unsigned mask, unsigned x, unsigned y)
{
	switch (mask) {
	case 0:
		return (x + y) % 2 == 0;
	case 1:
		return y % 2 == 0;
	case 2:
		return x % 3 == 0;
	case 3:
		return (x + y) % 3 == 0;
	case 4:
		return (x / 3 + y / 2) % 2 == 0;
	case 5:
		return x * y % 2 + x * y % 3 == 0;
	case 6:
		return (x * y % 2 + x * y % 3) % 2 == 0;
	default:
		return ((x + y) % 2 + x * y % 3) % 2 == 0;
	}
}

static void apply(struct drawing *d, unsigned mask)
{
	for (unsigned y = 0; y < d->qr->size; y++)
		for (unsigned x = 0; x < d->qr->size; x++)
			if (!d->fixed[y][x])
				d->qr->dark[y][x] ^= masked(mask, x, y);
}

static bool dark_at(const struct qr *q, bool down, unsigned line, unsigned i)
{
	return down ? q->dark[i][line] : q->dark[line][i];
}

/* Runs of one colour, and what looks like a finder pattern with light beside it, in one line. */
static unsigned penalty_of_line(const struct qr *q, bool down, unsigned line)
{
	unsigned run = 0, sum = 0, window = 0;

	for (unsigned i = 0; i < q->size; i++) {
		bool dark = dark_at(q, down, line, i);
		run = i && dark == dark_at(q, down, line, i - 1) ? run + 1 : 1;
		sum += run == 5 ? 3 : run > 5;
		window = (window << 1 | dark) & 0x7ff;
		if (i >= 10 && (window == 0x05d || window == 0x5d0))
			sum += 40;
	}
	return sum;
}

static unsigned penalty(const struct qr *q)
{
	unsigned sum = 0, dark = 0, all = q->size * q->size;

	for (unsigned y = 0; y < q->size; y++) {
		sum += penalty_of_line(q, false, y) + penalty_of_line(q, true, y);
		for (unsigned x = 0; x < q->size; x++) {
			unsigned c = q->dark[y][x];
			dark += c;
			if (x && y && c == q->dark[y][x - 1] && c == q->dark[y - 1][x] &&
			    c == q->dark[y - 1][x - 1])
				sum += 3;
		}
	}
	unsigned far = (unsigned)abs((int)(20 * dark) - (int)(10 * all));
	return sum + 10 * (far / all);
}

static void choose_mask(struct drawing *d)
{
	unsigned best = 0, least = ~0u;

	for (unsigned mask = 0; mask < 8; mask++) {
		apply(d, mask);
		draw_format(d, mask);
		unsigned p = penalty(d->qr);
		if (p < least) {
			least = p;
			best = mask;
		}
		apply(d, mask); /* takes it off again */
	}
	apply(d, best);
	draw_format(d, best);
}

int qr_encode(struct view bytes, struct qr *ret)
{
	uint8_t data[CODEWORDS_MAX] = { 0 }, words[CODEWORDS_MAX];
	struct drawing d = { .qr = ret, .version = 1 };

	while (d.version <= VERSIONS && bytes.n + (d.version < 10 ? 2 : 3) > data_codewords(d.version))
		d.version++;
	if (d.version > VERSIONS)
		return -E2BIG;
	*ret = (struct qr){ .size = 17 + 4 * d.version };
	write_data(bytes, d.version, data);
	draw_patterns(&d);
	draw_codewords(&d, words, interleave(data, d.version, words));
	choose_mask(&d);
	return 0;
}
