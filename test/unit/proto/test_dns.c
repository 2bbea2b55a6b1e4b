/*
 * DNS messages: questions as resolvers send them, answers with compression, and what
 * must not be understood.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>

#include "dns.h"

#include "poison.h"

#define BYTES(s) ((struct view){ "" s "", sizeof(s) - 1 })
#define HEAD     "\x12\x34\1\0\0\1\0\0\0\0\0\0"
#define QUESTION "\1A\4Test\0\0\1\0\1"

static void queries(void **state)
{
	struct dns_query q;
	struct view in = BYTES(HEAD QUESTION);
	assert_int_equal(dns_query_parse(in, &q), 0);
	assert_string_equal(q.name, "a.test");
	assert_true(q.id == 0x1234 && q.type == DNS_A && q.recursion && !q.edns && q.question == in.n - 12);
	for (size_t i = 0; i < in.n; i++)
		assert_true(dns_query_parse(view_head(in, i), &q) < 0);
	assert_int_equal(
		dns_query_parse(BYTES("\x12\x34\1\0\0\1\0\0\0\0\0\1" QUESTION "\0\0\x29\4\xd0\0\0\0\0\0\0"),
				&q),
		0);
	assert_true(q.edns);
	static const struct view bad[] = {
		BYTES("\x12\x34\x81\0\0\1\0\0\0\0\0\0" QUESTION), /* an answer */
		BYTES("\x12\x34\x09\0\0\1\0\0\0\0\0\0" QUESTION), /* another opcode */
		BYTES("\x12\x34\1\0\0\2\0\0\0\0\0\0" QUESTION QUESTION),
		BYTES("\x12\x34\1\0\0\1\0\1\0\0\0\0" QUESTION),
		BYTES(HEAD "\xc0\x0c\0\1\0\1"),    /* points to itself */
		BYTES(HEAD "\3a.b\0\0\1\0\1"),     /* a dot inside of a label */
		BYTES(HEAD "\3a\0b\0\0\1\0\1"),    /* a NUL */
		BYTES(HEAD "\1a\4test\0\0\1\0\3"), /* another class */
		BYTES("\x12\x34\1\0\0\1\0\0\0\0\0\1" QUESTION "\0\0\x01\4\xd0\0\0\0\0\0\0"),
	};
	for (size_t i = 0; i < ELEMS(bad); i++)
		if (dns_query_parse(bad[i], &q) == 0)
			fail_msg("case %zu", i);
}

static void answers(void **state)
{
	struct view in = BYTES(HEAD QUESTION);
	struct dns_address found[2] = { { { 1, 2, 3, 4 } }, { { 5, 6, 7, 8 } } };
	struct buf out = BUF_INIT(DNS_MESSAGE);
	struct dns_query q;
	struct dns_reply r;
	assert_int_equal(dns_query_parse(in, &q), 0);
	assert_int_equal(dns_answer(&out, in, &q, DNS_NOERROR, found, 2, 60), 0);
	/* Our own reader understands it as an answer to that question. */
	assert_int_equal(dns_reply_parse(buf_view(&out), in, DNS_A, &r), 0);
	assert_true(r.n == 2 && r.ttl == 60 && r.rcode == DNS_NOERROR && !r.truncated);
	assert_memory_equal(r.found[1].b, found[1].b, 4);
	for (size_t i = 0; i < buf_len(&out); i++)
		(void)!dns_reply_parse(view_head(buf_view(&out), i), in, DNS_A, &r);
	buf_clear(&out);
	assert_int_equal(dns_answer(&out, in, &q, DNS_NXDOMAIN, NULL, 0, 0), 0);
	assert_int_equal(dns_reply_parse(buf_view(&out), in, DNS_A, &r), 0);
	assert_true(r.n == 0 && r.rcode == DNS_NXDOMAIN);
	buf_done(&out);
}

static void replies(void **state)
{
	struct buf asked = BUF_INIT(DNS_MESSAGE), got = BUF_INIT(4096);
	struct dns_reply r;
	assert_int_equal(dns_question(&asked, 7, VIEW("www.a.test"), DNS_A), 0);
	/* A CNAME before the address, with pointers. */
	buf_add(&got, buf_view(&asked));
	got.p[2] = (char)0x81;
	got.p[3] = (char)0x80;
	got.p[7] = 2;
	buf_append(&got,
		   "\xc0\x0c\0\5\0\1\0\0\0\x0a\0\2\xc0\x10"
		   "\xc0\x10\0\1\0\1\0\0\0\x1e\0\4\1\2\3\4",
		   30);
	assert_int_equal(dns_reply_parse(buf_view(&got), buf_view(&asked), DNS_A, &r), 0);
	assert_true(r.n == 1 && r.ttl == 30);
	assert_memory_equal(r.found[0].b, "\1\2\3\4", 4);
	/* Another id, another question, a question instead of an answer. */
	got.p[1] = 8;
	assert_int_equal(dns_reply_parse(buf_view(&got), buf_view(&asked), DNS_A, &r), -EBADMSG);
	got.p[1] = 7;
	got.p[13] = 'x';
	assert_int_equal(dns_reply_parse(buf_view(&got), buf_view(&asked), DNS_A, &r), -EBADMSG);
	got.p[13] = 'w';
	got.p[2] = 1;
	assert_int_equal(dns_reply_parse(buf_view(&got), buf_view(&asked), DNS_A, &r), -EBADMSG);
	assert_true(dns_question(&asked, 7, VIEW("a..b"), DNS_A) < 0);
	assert_true(dns_question(&asked, 7, VIEW(""), DNS_A) < 0);
	buf_done(&asked);
	buf_done(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(queries), cmocka_unit_test(answers),
					    cmocka_unit_test(replies) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
