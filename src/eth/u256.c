/*
 * Numbers of 256 bits: see u256.h.
 */
#include "u256.h"

#include <errno.h>

#include "poison.h"

struct u256 u256_load(const void *be32)
{
	const uint8_t *p = be32;
	struct u256 v = U256_ZERO;

	for (unsigned i = 0; i < U256_BYTES; i++)
		v.w[3 - i / 8] = v.w[3 - i / 8] << 8 | p[i];
	return v;
}

void u256_store(const struct u256 *v, void *be32)
{
	uint8_t *p = be32;

	for (unsigned i = 0; i < U256_BYTES; i++)
		p[i] = (uint8_t)(v->w[3 - i / 8] >> (56 - 8 * (i % 8)));
}

int u256_load_view(struct view v, struct u256 *ret)
{
	uint8_t be[U256_BYTES] = { 0 };

	if (v.n > sizeof(be))
		return -EINVAL;
	if (v.n)
		memcpy(be + sizeof(be) - v.n, v.p, v.n);
	*ret = u256_load(be);
	return 0;
}

int u256_cmp(const struct u256 *a, const struct u256 *b)
{
	for (int i = 3; i >= 0; i--)
		if (a->w[i] != b->w[i])
			return a->w[i] < b->w[i] ? -1 : 1;
	return 0;
}

bool u256_is_zero(const struct u256 *a)
{
	return (a->w[0] | a->w[1] | a->w[2] | a->w[3]) == 0;
}

bool u256_fits_u64(const struct u256 *a)
{
	return (a->w[1] | a->w[2] | a->w[3]) == 0;
}

unsigned u256_bits(const struct u256 *a)
{
	for (int i = 3; i >= 0; i--)
		if (a->w[i])
			return (unsigned)i * 64 + 64 - (unsigned)__builtin_clzll(a->w[i]);
	return 0;
}

int u256_add(const struct u256 *a, const struct u256 *b, struct u256 *ret)
{
	struct u256 r;
	unsigned __int128 carry = 0;

	for (int i = 0; i < 4; i++) {
		carry += (unsigned __int128)a->w[i] + b->w[i];
		r.w[i] = (uint64_t)carry;
		carry >>= 64;
	}
	if (carry)
		return -EOVERFLOW;
	*ret = r;
	return 0;
}

int u256_sub(const struct u256 *a, const struct u256 *b, struct u256 *ret)
{
	struct u256 r;
	bool borrow = false;

	for (int i = 0; i < 4; i++) {
		uint64_t d;
		bool under = __builtin_sub_overflow(a->w[i], b->w[i], &d);
		under |= __builtin_sub_overflow(d, (uint64_t)borrow, &r.w[i]);
		borrow = under;
	}
	if (borrow)
		return -EOVERFLOW;
	*ret = r;
	return 0;
}

int u256_mul(const struct u256 *a, const struct u256 *b, struct u256 *ret)
{
	uint64_t r[8] = { 0 };

	for (int i = 0; i < 4; i++) {
		unsigned __int128 carry = 0;
		for (int j = 0; j < 4; j++) {
			carry += (unsigned __int128)a->w[i] * b->w[j] + r[i + j];
			r[i + j] = (uint64_t)carry;
			carry >>= 64;
		}
		r[i + 4] = (uint64_t)carry;
	}
	if (r[4] | r[5] | r[6] | r[7])
		return -EOVERFLOW;
	memcpy(ret->w, r, sizeof(ret->w));
	return 0;
}

struct u256 u256_add_sat(const struct u256 *a, const struct u256 *b)
{
	struct u256 r;

	return u256_add(a, b, &r) < 0 ? U256_MAX : r;
}

uint64_t u256_divmod(struct u256 *a, uint64_t d)
{
	unsigned __int128 rest = 0;

	for (int i = 3; i >= 0; i--) {
		rest = rest << 64 | a->w[i];
		a->w[i] = (uint64_t)(rest / d);
		rest %= d;
	}
	return (uint64_t)rest;
}

/* *v = *v * 10 + digit */
static int push_digit(struct u256 *v, char c)
{
	const struct u256 ten = u256_of(10);
	struct u256 digit;

	if (c < '0' || c > '9')
		return -EINVAL;
	digit = u256_of((uint64_t)(c - '0'));
	int r = u256_mul(v, &ten, v);
	return r < 0 ? r : u256_add(v, &digit, v);
}

int u256_parse(struct view v, struct u256 *ret)
{
	struct u256 n = U256_ZERO;
	int r = v.n == 0 || (v.n > 1 && v.p[0] == '0') ? -EINVAL : 0;

	for (size_t i = 0; r == 0 && i < v.n; i++)
		r = push_digit(&n, v.p[i]);
	if (r == 0)
		*ret = n;
	return r;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

int u256_parse_hex(struct view v, struct u256 *ret)
{
	struct u256 n = U256_ZERO;

	if (v.n < 3 || v.n > 66 || v.p[0] != '0' || v.p[1] != 'x')
		return -EINVAL;
	for (size_t i = 2; i < v.n; i++) {
		int d = hex_digit(v.p[i]);
		if (d < 0)
			return -EINVAL;
		for (int w = 3; w > 0; w--)
			n.w[w] = n.w[w] << 4 | n.w[w - 1] >> 60;
		n.w[0] = n.w[0] << 4 | (uint64_t)d;
	}
	*ret = n;
	return 0;
}

int u256_parse_units(struct view v, unsigned decimals, struct u256 *ret)
{
	struct view fraction, whole = view_split(v, '.', &fraction);
	struct u256 n;

	if (decimals > U256_UNITS_MAX || (fraction.p && (fraction.n == 0 || fraction.n > decimals)))
		return -EINVAL;
	int r = u256_parse(whole, &n);
	for (unsigned i = 0; r == 0 && i < decimals; i++)
		r = push_digit(&n, i < fraction.n ? fraction.p[i] : '0');
	if (r == 0)
		*ret = n;
	return r;
}

void u256_text(const struct u256 *v, char out[U256_TEXT])
{
	char digits[U256_TEXT];
	struct u256 rest = *v;
	unsigned n = 0;

	do
		digits[n++] = (char)('0' + u256_divmod(&rest, 10));
	while (!u256_is_zero(&rest));
	for (unsigned i = 0; i < n; i++)
		out[i] = digits[n - 1 - i];
	out[n] = 0;
}

void u256_units(const struct u256 *v, unsigned decimals, char out[U256_UNITS])
{
	char digits[U256_TEXT];
	size_t n = 0;

	u256_text(v, digits);
	size_t len = strlen(digits);
	decimals = MIN(decimals, U256_UNITS_MAX);
	if (len <= decimals)
		out[n++] = '0';
	for (size_t i = 0; i + decimals < len; i++)
		out[n++] = digits[i];
	size_t point = n;
	out[n++] = '.';
	for (size_t i = len; i < decimals; i++)
		out[n++] = '0';
	for (size_t i = len > decimals ? len - decimals : 0; i < len; i++)
		out[n++] = digits[i];
	while (n > point + 1 && out[n - 1] == '0')
		n--;
	out[n == point + 1 ? point : n] = 0;
}
