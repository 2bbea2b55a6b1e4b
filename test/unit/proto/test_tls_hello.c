/*
 * ClientHellos of a real client, whole, cut at every place, in records of every size,
 * and bent: what is not exactly one is refused, and nothing is read past the end.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "buf.h"
#include "tls_hello.h"
#include "tls_hello_bytes.h"

#include "poison.h"

static struct view bytes(const void *p, size_t n)
{
	return (struct view){ p, n };
}

static void real(void **state)
{
	struct tls_hello h;
	assert_int_equal(tls_hello_parse(bytes(named, sizeof(named)), &h), 1);
	assert_string_equal(h.name, "www.a.test");
	assert_true(h.alpn_h2 && !h.ech);
	assert_int_equal(tls_hello_parse(bytes(nameless, sizeof(nameless)), &h), 1);
	assert_true(h.name[0] == 0 && !h.alpn_h2);
	for (size_t i = 0; i < sizeof(named); i++) {
		char *copy = malloc(i + 1); /* so that a byte too many is noticed */
		assert_non_null(copy);
		memcpy(copy, named, i);
		assert_int_equal(tls_hello_parse(bytes(copy, i), &h), 0);
		free(copy);
	}
}

static void records(void **state)
{
	struct tls_hello h;
	for (size_t size = 1; size < 300; size += 7) {
		struct buf out = BUF_INIT(65536);
		for (size_t at = 5; at < sizeof(named); at += size) {
			size_t n = MIN(size, sizeof(named) - at);
			buf_append(&out, (uint8_t[]){ 22, 3, 1, (uint8_t)(n >> 8), (uint8_t)n }, 5);
			buf_append(&out, named + at, n);
		}
		assert_int_equal(tls_hello_parse(buf_view(&out), &h), 1);
		assert_string_equal(h.name, "www.a.test");
		assert_int_equal(tls_hello_parse(view_head(buf_view(&out), buf_len(&out) - 1), &h), 0);
		buf_done(&out);
	}
}

/* A hello with the given extensions. */
static int with_extensions(const char *ext, size_t n, struct tls_hello *h)
{
	struct buf body = BUF_INIT(65536), out = BUF_INIT(65536);
	buf_append(&body, "\3\3", 2);
	for (int i = 0; i < 32; i++)
		buf_putc(&body, 'r');
	buf_append(&body, "\0\0\2\x13\1\1\0", 7);
	buf_append(&body, (uint8_t[]){ (uint8_t)(n >> 8), (uint8_t)n }, 2);
	buf_append(&body, ext, n);
	size_t size = buf_len(&body);
	buf_append(&out,
		   (uint8_t[]){ 22, 3, 1, (uint8_t)((size + 4) >> 8), (uint8_t)(size + 4), 1, 0,
				(uint8_t)(size >> 8), (uint8_t)size },
		   9);
	buf_add(&out, buf_view(&body));
	int r = tls_hello_parse(buf_view(&out), h);
	buf_done(&body);
	buf_done(&out);
	return r;
}

#define EXT(s) (s), sizeof(s) - 1
#define SNI    "\0\0\0\x0b\0\x09\0\0\6a.test"

static void extensions(void **state)
{
	struct tls_hello h;
	assert_int_equal(with_extensions(EXT(SNI), &h), 1);
	assert_string_equal(h.name, "a.test");
	assert_int_equal(with_extensions(EXT(SNI "\xfe\x0d\0\3abc"), &h), 1);
	assert_true(h.ech);
	assert_int_equal(with_extensions(EXT("\xfe\x0d\0\0" SNI), &h), 1);
	assert_true(h.ech);
	/* as drafts had it */
	assert_int_equal(with_extensions(EXT("\xfe\x09\0\0" SNI), &h), 1);
	assert_true(h.ech);
	assert_int_equal(with_extensions(EXT("\xff\xce\0\0" SNI), &h), 1);
	assert_true(h.ech);
	assert_int_equal(with_extensions(EXT("\xfe\x0e\0\0" SNI), &h), 1);
	assert_false(h.ech);
	assert_int_equal(with_extensions(EXT(SNI SNI), &h), -EINVAL); /* two of them */
	assert_int_equal(with_extensions(EXT("\0\0\0\x14\0\x12\0\0\6a.test\0\0\6b.test"), &h),
			 -EINVAL);                                                            /* two names */
	assert_int_equal(with_extensions(EXT("\0\0\0\x0b\0\x09\0\0\6a\0test"), &h), -EINVAL); /* a NUL */
	assert_int_equal(with_extensions(EXT("\0\0\0\x0b\0\x08\0\0\6a.test"), &h), -EINVAL);
	assert_int_equal(with_extensions(EXT("\0\0\0\x0b\0\x09\1\0\6a.test"), &h), -EINVAL);
	assert_int_equal(with_extensions(EXT("\0\0\0\x05\0\x03\0\0\0"), &h), -EINVAL); /* empty */
	assert_int_equal(with_extensions(EXT("\0\x2b\0\x05x"), &h), -EINVAL); /* longer than there is */
	assert_int_equal(with_extensions(EXT("\0"), &h), -EINVAL);
}

static void not_a_hello(void **state)
{
	struct tls_hello h;
	uint8_t bent[sizeof(named)];
	memcpy(bent, named, sizeof(named));
	bent[5] = 2;
	assert_int_equal(tls_hello_parse(bytes(bent, sizeof(bent)), &h), -EINVAL);
	bent[5] = 1;
	bent[6] = 1; /* 65536 bytes and more */
	assert_int_equal(tls_hello_parse(bytes(bent, sizeof(bent)), &h), -EINVAL);
	assert_int_equal(tls_hello_parse(bytes("\x17\3\1", 3), &h), -EINVAL);
	assert_int_equal(tls_hello_parse(bytes("\x16\3\1\0\0", 5), &h), -EINVAL); /* an empty record */
	assert_int_equal(tls_hello_parse(bytes("\x16\3\1\x41\0", 5), &h), -EINVAL);
	assert_int_equal(tls_hello_parse(bytes("\x80\x2e\1\3\1", 5), &h), -EINVAL); /* SSL 2 */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(real), cmocka_unit_test(records),
					    cmocka_unit_test(extensions), cmocka_unit_test(not_a_hello) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
