/*
 * Numbers from text: see num.h.
 */
#include "num.h"

#include <errno.h>

#include "poison.h"

static int digits(struct view v, unsigned base, uint64_t *ret)
{
	if (v.n == 0)
		return -EINVAL;
	uint64_t n = 0;
	for (size_t i = 0; i < v.n; i++) {
		unsigned char c = v.p[i];
		unsigned d = c >= '0' && c <= '9'   ? c - '0'
			     : c >= 'a' && c <= 'f' ? c - 'a' + 10
			     : c >= 'A' && c <= 'F' ? c - 'A' + 10
						    : 99;
		if (d >= base)
			return -EINVAL;
		if (__builtin_mul_overflow(n, (uint64_t)base, &n) ||
		    __builtin_add_overflow(n, (uint64_t)d, &n))
			return -ERANGE;
	}
	*ret = n;
	return 0;
}

int num_u64(struct view v, uint64_t *ret)
{
	return digits(v, 10, ret);
}

int num_hex(struct view v, uint64_t *ret)
{
	return digits(v, 16, ret);
}

int num_u32(struct view v, uint32_t *ret)
{
	uint64_t n;
	int r = digits(v, 10, &n);
	if (r < 0)
		return r;
	if (n > UINT32_MAX)
		return -ERANGE;
	*ret = (uint32_t)n;
	return 0;
}

int num_i64(struct view v, int64_t *ret)
{
	bool minus = v.n && v.p[0] == '-';
	uint64_t n;
	int r = digits(view_skip(v, minus), 10, &n);
	if (r < 0)
		return r;
	if (n > (uint64_t)INT64_MAX + minus)
		return -ERANGE;
	*ret = minus ? (int64_t)(0 - n) : (int64_t)n;
	return 0;
}
