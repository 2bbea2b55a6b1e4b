/*
 * WebSocket frames: the examples of RFC 6455, what is refused and with which
 * code, and that it does not matter where the network cuts.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "rnd.h"
#include "websocket.h"

#include "poison.h"

#define MAX_MESSAGE 100000

/* What came out, as text: "T[abc]" for text, "B" binary, "P" ping, "Q" pong, "C1000[reason]", "!1002". */
static void run(struct buf *out, enum websocket_role role, struct view in, size_t step)
{
	static const char names[] = { [WEBSOCKET_TEXT] = 'T',
				      [WEBSOCKET_BINARY] = 'B',
				      [WEBSOCKET_CLOSE] = 'C',
				      [WEBSOCKET_PING] = 'P',
				      [WEBSOCKET_PONG] = 'Q' };
	struct websocket w;
	struct websocket_piece p;
	int r = 0;

	websocket_init(&w, role, MAX_MESSAGE);
	while (in.n && r >= 0) {
		struct view now = view_head(in, step);
		in = view_skip(in, now.n);
		while ((r = websocket_next(&w, &now, &p)) > 0) {
			if (p.first)
				buf_putc(out, names[p.kind]);
			if (p.kind == WEBSOCKET_CLOSE)
				buf_printf(out, "%u", p.code);
			if (p.first)
				buf_putc(out, '[');
			buf_add(out, p.data);
			if (p.last)
				buf_putc(out, ']');
		}
		assert_int_equal(r < 0 ? 0 : now.n, 0);
	}
	if (r < 0)
		buf_printf(out, "!%u", w.code);
}

static void expect_from(enum websocket_role role, struct view in, const char *want)
{
	for (size_t step = 1; step <= in.n + 1; step = step < 8 ? step + 1 : step * 3) {
		struct buf out = BUF_INIT(1 << 20);
		run(&out, role, in, step);
		buf_putc(&out, 0);
		assert_string_equal(buf_view(&out).p, want);
		buf_done(&out);
	}
}

#define FROM_SERVER(bytes, want) expect_from(WEBSOCKET_CLIENT, VIEW(bytes), want)

/* A client's frame around a payload; the mask is 1 2 3 4. */
static void put_masked(struct buf *b, uint8_t first, struct view payload)
{
	buf_putc(b, (char)first);
	if (payload.n < 126) {
		buf_putc(b, (char)(0x80 | payload.n));
	} else {
		buf_putc(b, (char)(0x80 | 126));
		buf_putc(b, (char)(payload.n >> 8));
		buf_putc(b, (char)payload.n);
	}
	buf_append(b, "\1\2\3\4", 4);
	for (size_t i = 0; i < payload.n; i++)
		buf_putc(b, (char)(payload.p[i] ^ (char)(1 + (i & 3))));
}

static void from_client(uint8_t first, struct view payload, const char *want)
{
	struct buf b = BUF_INIT(1 << 20);
	put_masked(&b, first, payload);
	expect_from(WEBSOCKET_SERVER, buf_view(&b), want);
	buf_done(&b);
}

static void test_examples(void **state)
{
	/* RFC 6455, 5.7 */
	FROM_SERVER("\x81\x05Hello", "T[Hello]");
	expect_from(WEBSOCKET_SERVER, VIEW("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "T[Hello]");
	FROM_SERVER("\x01\x03Hel\x80\x02lo", "T[Hello]");
	FROM_SERVER("\x89\x05Hello", "P[Hello]");
	expect_from(WEBSOCKET_SERVER, VIEW("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "Q[Hello]");
	FROM_SERVER("\x82\x00", "B[]");
	FROM_SERVER("\x02\x01x\x89\x01p\x00\x00\x80\x01y", "B[xP[p]y]");
	FROM_SERVER("\x88\x00", "C1005[]");
	FROM_SERVER("\x88\x05\x03\xe8"
		    "bye\x81\x01x",
		    "C1000[bye]");
}

static void test_accept(void **state)
{
	char accept[WEBSOCKET_ACCEPT];

	assert_int_equal(websocket_accept(VIEW("dGhlIHNhbXBsZSBub25jZQ=="), accept), 0);
	assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	assert_true(websocket_accept(VIEW("dGhlIHNhbXBsZSBub25j"), accept) < 0);
	assert_true(websocket_accept(VIEW("dGhlIHNhbXBsZSBub25jZQ=!"), accept) < 0);
	assert_true(websocket_accept(VIEW("AAAAAAAAAAAAAAAAAAAAAAAA"), accept) < 0);
	assert_true(websocket_accept(VIEW_NONE, accept) < 0);
}

static void test_violations(void **state)
{
	expect_from(WEBSOCKET_SERVER, VIEW("\x81\x01x"), "!1002"); /* not masked */
	FROM_SERVER("\x81\x81\1\2\3\4x", "!1002");                 /* masked */
	FROM_SERVER("\xc1\x01x", "!1002");                         /* reserved bits */
	FROM_SERVER("\xa1\x01x", "!1002");
	FROM_SERVER("\x91\x01x", "!1002");
	FROM_SERVER("\x83\x00", "!1002"); /* opcodes */
	FROM_SERVER("\x87\x00", "!1002");
	FROM_SERVER("\x8b\x00", "!1002");
	FROM_SERVER("\x8f\x00", "!1002");
	FROM_SERVER("\x80\x00", "!1002"); /* a continuation of nothing */
	FROM_SERVER("\x01\x01x\x81\x01y", "T[x!1002");
	FROM_SERVER("\x81\x01x\x80\x01y", "T[x]!1002");
	FROM_SERVER("\x09\x00", "!1002"); /* control: in fragments, long */
	FROM_SERVER("\x89\x7e\x00\x7e", "!1002");
	FROM_SERVER("\x82\x7e\x00\x7d", "!1002"); /* length: not the shortest */
	FROM_SERVER("\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff", "!1002");
	FROM_SERVER("\x82\x7f\x80\x00\x00\x00\x00\x01\x00\x00", "!1002");
	FROM_SERVER("\x82\x7f\x00\x00\x00\x00\x00\x10\x00\x00", "!1009");
	FROM_SERVER("\x88\x01\x03", "!1002"); /* close codes */
	FROM_SERVER("\x88\x02\x03\xe7", "!1002");
	FROM_SERVER("\x88\x02\x03\xec", "!1002");
	FROM_SERVER("\x88\x02\x03\xed", "!1002");
	FROM_SERVER("\x88\x02\x03\xee", "!1002");
	FROM_SERVER("\x88\x02\x03\xf7", "!1002");
	FROM_SERVER("\x88\x02\x0b\xb7", "!1002");
	FROM_SERVER("\x88\x02\x13\x88", "!1002");
	FROM_SERVER("\x88\x03\x03\xe8\xff", "!1007");
}

static void test_utf8(void **state)
{
	static const char *const bad[] = {
		"\xff",         "\xc0\x80",     "\xc1\xbf",         "\x80",
		"\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
		"\xf5\x80",     "\xe2\x82",     "\xf0\x9f\x98",     "\xc3",
		"a\xe2\x28\xa1"
	};
	static const char *const good[] = { "\xc2\x80",         "\xdf\xbf",          "\xe0\xa0\x80",
					    "\xed\x9f\xbf",     "\xef\xbf\xbf",      "\xf0\x90\x80\x80",
					    "\xf4\x8f\xbf\xbf", "a\xf0\x9f\x98\x80z" };

	for (size_t i = 0; i < ELEMS(bad); i++) {
		struct buf in = BUF_INIT(1024), out = BUF_INIT(1024);
		struct view v = view_of(bad[i]);
		put_masked(&in, 0x81, v);
		run(&out, WEBSOCKET_SERVER, buf_view(&in), 1);
		assert_true(buf_len(&out) >= 5 &&
			    memcmp(buf_view(&out).p + buf_len(&out) - 5, "!1007", 5) == 0);
		buf_clear(&in);
		buf_clear(&out);
		put_masked(&in, 0x82, v); /* binary may be anything */
		run(&out, WEBSOCKET_SERVER, buf_view(&in), 3);
		assert_int_equal(buf_len(&out), v.n + 3);
		buf_done(&in);
		buf_done(&out);
	}
	for (size_t i = 0; i < ELEMS(good); i++) {
		struct buf want = BUF_INIT(1024);
		buf_printf(&want, "T[%s]", good[i]);
		buf_putc(&want, 0);
		from_client(0x81, view_of(good[i]), buf_view(&want).p);
		buf_done(&want);
	}
	/* Split over fragments in the middle of a character. */
	FROM_SERVER("\x01\x02\xf0\x9f\x89\x00\x80\x02\x98\x80", "T[\xf0\x9fP[]\x98\x80]");
}

/* What one side writes the other reads, whatever the length. */
static void test_round_trip(void **state)
{
	static const size_t sizes[] = { 0, 1, 125, 126, 127, 4095, 4096, 4097, 65535, 65536, 70000 };
	static char data[70000];

	rnd_bytes(data, sizeof(data));
	for (size_t i = 0; i < ELEMS(sizes) * 2; i++) {
		enum websocket_role role = i & 1 ? WEBSOCKET_CLIENT : WEBSOCKET_SERVER;
		struct view v = { data, sizes[i / 2] };
		struct buf wire = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
		assert_int_equal(websocket_put(&wire, role, WEBSOCKET_BINARY, v), 0);
		assert_int_equal(websocket_put_close(&wire, role, WEBSOCKET_AWAY, VIEW("later")), 0);
		run(&out, role == WEBSOCKET_SERVER ? WEBSOCKET_CLIENT : WEBSOCKET_SERVER, buf_view(&wire),
		    1000);
		struct view got = buf_view(&out);
		assert_int_equal(got.n, v.n + 3 + strlen("C1001[later]"));
		assert_memory_equal(got.p + 2, data, v.n);
		assert_memory_equal(got.p + 2 + v.n, "]C1001[later]", 13);
		buf_done(&wire);
		buf_done(&out);
	}
}

static void test_close_reason_is_cut_between_characters(void **state)
{
	struct buf wire = BUF_INIT(1024);
	char reason[130];

	memset(reason, 'a', sizeof(reason));
	memcpy(reason + 122, "\xe2\x82\xac", 3); /* 122 bytes fit whole, 123 would split it */
	assert_int_equal(websocket_put_close(&wire, WEBSOCKET_SERVER, 1000, (struct view){ reason, 125 }), 0);
	assert_int_equal(buf_len(&wire), 2 + 2 + 122);
	buf_done(&wire);
}

static void test_nothing_counts_after_a_close(void **state)
{
	struct websocket w;
	struct websocket_piece p;
	struct view in = VIEW("\x88\x00\xff\xff\xff");

	websocket_init(&w, WEBSOCKET_CLIENT, 10);
	assert_int_equal(websocket_next(&w, &in, &p), 1);
	assert_int_equal(websocket_next(&w, &in, &p), 0);
	in = VIEW("\x81\x01x");
	assert_int_equal(websocket_next(&w, &in, &p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_accept),
		cmocka_unit_test(test_violations),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_close_reason_is_cut_between_characters),
		cmocka_unit_test(test_nothing_counts_after_a_close),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
