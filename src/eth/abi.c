/*
 * The contract ABI: see abi.h. The types are read as they are needed: a type is a view of its text,
 * and its size is counted anew each time, which is cheap for what is a few characters long.
 */
#include "abi.h"

#include <errno.h>

#include "num.h"
#include "poison.h"

#define WORD     32
#define HEAD_MAX (1u << 20)

struct reader {
	struct arena *arena;
	unsigned values;
};

/* The first type of a list; *rest is what follows its comma. */
static struct view first_type(struct view list, struct view *rest)
{
	unsigned open = 0;

	for (size_t i = 0; i < list.n; i++) {
		open += list.p[i] == '(';
		open -= list.p[i] == ')';
		if (list.p[i] == ',' && open == 0) {
			*rest = view_skip(list, i + 1);
			return view_head(list, i);
		}
	}
	*rest = VIEW_NONE;
	return list;
}

/* T[] and T[4]: 1, with the type of its items and their count (SIZE_MAX: written in the data). */
static int array_of(struct view type, struct view *ret_item, size_t *ret_n)
{
	uint64_t n;

	if (type.n < 3 || type.p[type.n - 1] != ']')
		return 0;
	size_t at = type.n - 1;
	while (at > 0 && type.p[at] != '[')
		at--;
	const struct view count = { type.p + at + 1, type.n - at - 2 };
	*ret_item = view_head(type, at);
	*ret_n = SIZE_MAX;
	if (count.n == 0)
		return 1;
	if (num_u64(count, &n) < 0 || n == 0 || n > ABI_VALUES)
		return -EINVAL;
	*ret_n = (size_t)n;
	return 1;
}

static bool is_tuple(struct view type)
{
	return type.n >= 2 && type.p[0] == '(' && type.p[type.n - 1] == ')';
}

static struct view inside(struct view tuple)
{
	return (struct view){ tuple.p + 1, tuple.n - 2 };
}

static bool is_bytes(struct view type)
{
	return view_is(type, "bytes") || view_is(type, "string");
}

/* Bytes that it takes in the head; 0: it is dynamic and takes an offset there. -EINVAL. */
static int64_t static_size(struct view type, unsigned depth)
{
	struct view item, rest;
	size_t n;
	int64_t sum = 0;
	int r = array_of(type, &item, &n);

	if (r < 0 || depth == 0)
		return -EINVAL;
	if (r) {
		const int64_t one = n == SIZE_MAX ? 0 : static_size(item, depth - 1);
		return one <= 0 ? one : one * (int64_t)n > HEAD_MAX ? -EINVAL : one * (int64_t)n;
	}
	if (is_bytes(type))
		return 0;
	if (!is_tuple(type))
		return WORD;
	for (rest = inside(type); rest.n;) {
		const int64_t one = static_size(first_type(rest, &rest), depth - 1);
		if (one <= 0)
			return one;
		sum += one;
		if (sum > HEAD_MAX)
			return -EINVAL;
	}
	return sum;
}

/* ---- words ---- */

static bool all_are(const uint8_t *p, size_t n, uint8_t byte)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != byte)
			return false;
	return true;
}

/* How many of the 32 bytes `type` uses, and how: -EINVAL for no type of one word. */
static int check_word(struct view type, const uint8_t *w)
{
	uint64_t n;

	if (view_is(type, "address"))
		return all_are(w, 12, 0) ? 0 : -EBADMSG;
	if (view_is(type, "bool"))
		return all_are(w, 31, 0) && w[31] <= 1 ? 0 : -EBADMSG;
	if (view_starts(type, "uint") && num_u64(view_skip(type, 4), &n) == 0 && n && n <= 256 && n % 8 == 0)
		return all_are(w, 32 - n / 8, 0) ? 0 : -EBADMSG;
	if (view_starts(type, "int") && num_u64(view_skip(type, 3), &n) == 0 && n && n <= 256 && n % 8 == 0)
		return all_are(w, 32 - n / 8, w[32 - n / 8] & 0x80 ? 0xff : 0) ? 0 : -EBADMSG;
	if (view_starts(type, "bytes") && num_u64(view_skip(type, 5), &n) == 0 && n && n <= 32)
		return all_are(w + n, 32 - n, 0) ? 0 : -EBADMSG;
	return -EINVAL;
}

/* A word that is a length or an offset. */
static int word_size(struct view data, size_t at, size_t *ret)
{
	struct u256 v;

	if (at > data.n || data.n - at < WORD)
		return -EBADMSG;
	v = u256_load(data.p + at);
	if (!u256_fits_u64(&v) || v.w[0] > data.n)
		return -EBADMSG;
	*ret = (size_t)v.w[0];
	return 0;
}

/* ---- values ---- */

static int read_value(struct reader *r, struct view type, struct view data, size_t *at, unsigned depth,
		      struct abi *ret);

/* n values with heads and tails from *at on; each has `item` as its type, or, where that is none, the next of
 * `types`. *at moves behind the last tail. */
static int read_list(struct reader *r, struct view item, struct view types, size_t n, struct view data,
		     size_t *at, unsigned depth, struct abi *ret)
{
	const size_t base = *at;
	size_t head = base, tail = base, offset;

	if (depth == 0 || n > ABI_VALUES - r->values)
		return -ENOMEM;
	r->values += (unsigned)n;
	struct abi *items = arena_array(r->arena, n, sizeof(*items));
	if (!items)
		return -ENOMEM;
	struct view rest = types;
	for (size_t i = 0; i < n; i++) {
		const int64_t size = static_size(item.p ? item : first_type(rest, &rest), ABI_DEPTH);
		if (size < 0)
			return -EINVAL;
		tail += size ? (size_t)size : WORD;
	}
	rest = types;
	for (size_t i = 0; i < n; i++) {
		const struct view type = item.p ? item : first_type(rest, &rest);
		const bool dynamic = static_size(type, ABI_DEPTH) == 0;
		int e = 0;
		if (dynamic) {
			e = word_size(data, head, &offset);
			if (e == 0 && offset != tail - base)
				e = -EBADMSG; /* nobody would write it there */
			head += WORD;
		}
		if (e == 0)
			e = read_value(r, type, data, dynamic ? &tail : &head, depth - 1, &items[i]);
		if (e < 0)
			return e;
	}
	*ret = (struct abi){ .kind = ABI_LIST, .n = n, .items = items };
	*at = tail;
	return 0;
}

static int read_bytes(struct view data, size_t *at, struct abi *ret)
{
	size_t n;
	int r = word_size(data, *at, &n);

	if (r < 0)
		return r;
	const size_t from = *at + WORD, padded = (n + WORD - 1) / WORD * WORD;
	if (padded > data.n - from || !all_are((const uint8_t *)data.p + from + n, padded - n, 0))
		return -EBADMSG;
	*ret = (struct abi){ .kind = ABI_BYTES, .bytes = { data.p + from, n } };
	*at = from + padded;
	return 0;
}

static size_t count_types(struct view list)
{
	size_t n = 0;

	for (struct view rest = list; rest.n; n++)
		(void)first_type(rest, &rest);
	return n;
}

static int read_value(struct reader *r, struct view type, struct view data, size_t *at, unsigned depth,
		      struct abi *ret)
{
	struct view item;
	size_t n;
	int e = array_of(type, &item, &n);

	if (e < 0)
		return e;
	if (e) {
		if (n == SIZE_MAX) {
			e = word_size(data, *at, &n);
			if (e < 0)
				return e;
			*at += WORD;
		}
		return read_list(r, item, VIEW_NONE, n, data, at, depth, ret);
	}
	if (is_tuple(type))
		return read_list(r, VIEW_NONE, inside(type), count_types(inside(type)), data, at, depth, ret);
	if (is_bytes(type))
		return read_bytes(data, at, ret);
	if (*at > data.n || data.n - *at < WORD)
		return -EBADMSG;
	*ret = (struct abi){ .kind = ABI_WORD, .bytes = { data.p + *at, WORD } };
	*at += WORD;
	return check_word(type, (const uint8_t *)ret->bytes.p);
}

int abi_decode(struct arena *a, const char *types, struct view data, struct abi *ret)
{
	struct reader r = { .arena = a };
	size_t at = 0;
	struct abi list;
	int e = read_list(&r, VIEW_NONE, view_of(types), count_types(view_of(types)), data, &at, ABI_DEPTH,
			  &list);

	if (e == 0 && at != data.n)
		e = -EBADMSG;
	if (e == 0)
		*ret = list;
	return e;
}
