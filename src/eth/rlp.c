/*
 * RLP: see rlp.h.
 */
#include "rlp.h"

#include <errno.h>

#include "poison.h"

#define SHORT_MAX 55

/* The length behind a long form's prefix; *at moves to the body. */
static int long_length(struct view v, unsigned bytes, size_t *at, size_t *ret)
{
	uint64_t n = 0;

	if (v.n < 1 + bytes || v.p[1] == 0)
		return -EBADMSG;
	for (unsigned i = 1; i <= bytes; i++)
		n = n << 8 | (uint8_t)v.p[i];
	if (n <= SHORT_MAX || n > SIZE_MAX / 2)
		return -EBADMSG;
	*at = 1 + bytes;
	*ret = (size_t)n;
	return 0;
}

/* Takes the first item off `rest`. -EBADMSG. */
static int rlp_next(struct view *rest, struct rlp *ret)
{
	const struct view v = *rest;
	size_t at = 1, n;
	int r = 0;

	if (v.n == 0)
		return -EBADMSG;
	const uint8_t first = (uint8_t)v.p[0];
	if (first < 0x80) {
		at = 0;
		n = 1;
	} else if (first <= 0xb7) {
		n = first - 0x80u;
	} else if (first < 0xc0) {
		r = long_length(v, first - 0xb7u, &at, &n);
	} else if (first <= 0xf7) {
		n = first - 0xc0u;
	} else {
		r = long_length(v, first - 0xf7u, &at, &n);
	}
	if (r < 0 || n > v.n - at)
		return -EBADMSG;
	if (first == 0x81 && (uint8_t)v.p[1] < 0x80)
		return -EBADMSG; /* it stands for itself */
	ret->list = first >= 0xc0;
	ret->body = (struct view){ v.p + at, n };
	ret->whole = view_head(v, at + n);
	*rest = view_skip(v, at + n);
	return 0;
}

int rlp_only(struct view v, struct rlp *ret)
{
	int r = rlp_next(&v, ret);

	return r < 0 ? r : v.n ? -EBADMSG : 0;
}

static int check_all(struct view rest, unsigned depth)
{
	struct rlp item;

	while (rest.n) {
		if (rlp_next(&rest, &item) < 0)
			return -EBADMSG;
		if (item.list && (depth == 0 || check_all(item.body, depth - 1) < 0))
			return -EBADMSG;
	}
	return 0;
}

int rlp_check(struct view v)
{
	struct rlp item;
	int r = rlp_only(v, &item);

	return r < 0 ? r : item.list ? check_all(item.body, RLP_DEPTH - 1) : 0;
}

static int next_kind(struct view *rest, bool list, struct view *ret)
{
	struct view after = *rest;
	struct rlp item;

	if (rlp_next(&after, &item) < 0 || item.list != list)
		return -EBADMSG;
	*rest = after;
	*ret = item.body;
	return 0;
}

int rlp_bytes(struct view *rest, struct view *ret)
{
	return next_kind(rest, false, ret);
}

int rlp_list(struct view *rest, struct view *ret)
{
	return next_kind(rest, true, ret);
}

int rlp_fixed(struct view *rest, void *ret, size_t n)
{
	struct view v;

	if (rlp_bytes(rest, &v) < 0 || v.n != n)
		return -EBADMSG;
	memcpy(ret, v.p, n);
	return 0;
}

int rlp_u256(struct view *rest, struct u256 *ret)
{
	struct view v;

	if (rlp_bytes(rest, &v) < 0 || v.n > U256_BYTES || (v.n && v.p[0] == 0))
		return -EBADMSG;
	return u256_load_view(v, ret) < 0 ? -EBADMSG : 0;
}

int rlp_u64(struct view *rest, uint64_t *ret)
{
	struct u256 v;

	if (rlp_u256(rest, &v) < 0 || !u256_fits_u64(&v))
		return -EBADMSG;
	*ret = v.w[0];
	return 0;
}

static void put_prefix(struct buf *out, uint8_t base, size_t n)
{
	char head[9];
	unsigned bytes = 0;

	if (n <= SHORT_MAX) {
		buf_putc(out, (char)(base + n));
		return;
	}
	for (size_t rest = n; rest; rest >>= 8)
		bytes++;
	head[0] = (char)(base + SHORT_MAX + bytes);
	for (unsigned i = 0; i < bytes; i++)
		head[1 + i] = (char)(n >> 8 * (bytes - 1 - i));
	buf_append(out, head, 1 + bytes);
}

void rlp_put_bytes(struct buf *out, struct view v)
{
	if (v.n != 1 || (uint8_t)v.p[0] >= 0x80)
		put_prefix(out, 0x80, v.n);
	buf_add(out, v);
}

void rlp_put_u256(struct buf *out, const struct u256 *v)
{
	char be[U256_BYTES];
	const unsigned n = (u256_bits(v) + 7) / 8;

	u256_store(v, be);
	rlp_put_bytes(out, (struct view){ be + sizeof(be) - n, n });
}

void rlp_put_u64(struct buf *out, uint64_t v)
{
	const struct u256 wide = u256_of(v);

	rlp_put_u256(out, &wide);
}

void rlp_put_list(struct buf *out, struct view items)
{
	put_prefix(out, 0xc0, items.n);
	buf_add(out, items);
}
