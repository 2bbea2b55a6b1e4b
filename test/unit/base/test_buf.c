/*
 * Buffers: the maximum is exact, the first failure sticks, bytes survive moves.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "buf.h"
#include "poison.h"

static void test_max(void **state)
{
	struct buf b = BUF_INIT(5);
	assert_int_equal(buf_room(&b), 5);
	assert_int_equal(buf_puts(&b, "hello"), 0);
	assert_int_equal(buf_room(&b), 0);
	assert_true(view_is(buf_view(&b), "hello"));
	assert_int_equal(buf_append(&b, NULL, 0), 0); /* nothing always fits */
	assert_int_equal(buf_putc(&b, '!'), -ENOBUFS);
	assert_true(view_is(buf_view(&b), "hello"));
	buf_done(&b);
	assert_int_equal(b.max, 5);
	assert_int_equal(b.bad, 0);
	assert_int_equal(buf_puts(&b, "hello!"), -ENOBUFS);
	assert_int_equal(buf_len(&b), 0);
	buf_done(&b);
	buf_done(NULL);

	buf_init(&b, 0);
	assert_int_equal(buf_putc(&b, 'x'), -ENOBUFS);
	buf_done(&b);
}

static void test_bad_sticks(void **state)
{
	struct buf b = BUF_INIT(4);
	assert_int_equal(buf_puts(&b, "ab"), 0);
	assert_int_equal(buf_puts(&b, "cde"), -ENOBUFS);
	/* "f" would fit: but then a hole would be where "cde" is missing. */
	assert_int_equal(buf_puts(&b, "f"), -ENOBUFS);
	assert_int_equal(buf_printf(&b, "f"), -ENOBUFS);
	assert_null(buf_reserve(&b, 1));
	assert_int_equal(b.bad, -ENOBUFS);
	assert_true(view_is(buf_view(&b), "ab"));
	buf_clear(&b);
	assert_int_equal(buf_puts(&b, "f"), 0);
	buf_done(&b);
}

/* printf needs a place for its NUL, which is not part of the text. */
static void test_printf_edges(void **state)
{
	for (size_t max = 0; max < 200; max++)
		for (size_t n = max < 3 ? 0 : max - 3; n <= max + 2; n++) {
			struct buf b = BUF_INIT(max);
			int r = buf_printf(&b, "%*s", (int)n, "");
			assert_int_equal(r, n <= max ? 0 : -ENOBUFS);
			assert_int_equal(buf_len(&b), n <= max ? n : 0);
			buf_done(&b);
		}
	/* After an append that left no room for more than the text. */
	for (size_t have = 1; have <= 64; have++) {
		struct buf b = BUF_INIT(64);
		char fill[64];
		memset(fill, 'x', sizeof(fill));
		assert_int_equal(buf_append(&b, fill, have), 0);
		assert_int_equal(buf_printf(&b, "%0*d", (int)(64 - have), 7), have == 64 ? -ENOBUFS : 0);
		assert_int_equal(buf_len(&b), 64);
		if (have < 64)
			assert_int_equal(b.p[63], '7');
		assert_int_equal(buf_putc(&b, '!'), -ENOBUFS);
		buf_done(&b);
	}
}

static void test_printf_moves(void **state)
{
	struct buf b = BUF_INIT(1u << 16);
	for (int i = 0; i < 2000; i++)
		assert_int_equal(buf_printf(&b, "<%d>", i), 0);
	const char *at = b.p;
	for (int i = 0; i < 2000; i++) {
		char want[16];
		int n = snprintf(want, sizeof(want), "<%d>", i);
		assert_memory_equal(at, want, n);
		at += n;
	}
	assert_ptr_equal(at, b.p + b.n);
	buf_done(&b);
}

/* Against a plain array, by random appends and consumes. */
static void test_consume(void **state)
{
	enum { MAX = 1000 };
	struct buf b = BUF_INIT(MAX);
	char model[MAX];
	size_t n = 0;
	unsigned char next = 0;
	uint32_t seed = 1;
	for (int i = 0; i < 200000; i++) {
		seed = seed * 1103515245u + 12345u;
		size_t k = seed >> 16 & 127;
		if (seed >> 24 & 1) {
			char add[128];
			for (size_t j = 0; j < k; j++)
				add[j] = (char)next++;
			int r = buf_append(&b, add, k);
			if (n + k <= MAX) {
				assert_int_equal(r, 0);
				memcpy(model + n, add, k);
				n += k;
			} else {
				assert_int_equal(r, -ENOBUFS);
				b.bad = 0;
			}
		} else {
			k = k > n ? n : k;
			buf_consume(&b, k);
			memmove(model, model + k, n - k);
			n -= k;
		}
		assert_int_equal(buf_len(&b), n);
		assert_int_equal(buf_room(&b), MAX - n);
		assert_true(b.cap <= MAX + 1);
		if (n)
			assert_memory_equal(buf_view(&b).p, model, n);
	}
	buf_done(&b);
}

static void test_reserve(void **state)
{
	struct buf b = BUF_INIT(100);
	char *p = buf_reserve(&b, 100);
	assert_non_null(p);
	memset(p, 'x', 100);
	buf_commit(&b, 40); /* less than was reserved */
	assert_int_equal(buf_len(&b), 40);
	buf_consume(&b, 30);
	p = buf_reserve(&b, 90); /* the front is room again */
	assert_non_null(p);
	assert_memory_equal(buf_view(&b).p, "xxxxxxxxxx", 10);
	assert_null(buf_reserve(&b, 91));
	assert_int_equal(b.bad, -ENOBUFS);
	buf_done(&b);
}

static void test_shrink(void **state)
{
	struct buf b = BUF_INIT(1u << 20);
	assert_non_null(buf_reserve(&b, 100000));
	buf_commit(&b, 100000);
	buf_shrink(&b);
	assert_non_null(b.p); /* not while it holds something */
	buf_consume(&b, 100000);
	buf_shrink(&b);
	assert_null(b.p);
	assert_int_equal(b.max, 1u << 20);
	assert_int_equal(buf_puts(&b, "small"), 0);
	buf_consume(&b, 5);
	buf_shrink(&b);
	assert_non_null(b.p); /* little is kept */
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_max),          cmocka_unit_test(test_bad_sticks),
		cmocka_unit_test(test_printf_edges), cmocka_unit_test(test_printf_moves),
		cmocka_unit_test(test_consume),      cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_shrink),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
