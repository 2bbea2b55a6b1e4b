/*
 * Questions to a name server, and what may come back.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "dns.h"
#include "poison.h"

static struct question {
	uint16_t id;
	struct view host;
	bool v6;
} q = { .id = 0x1234, .host = { "a.example", 9 } };
static struct dns_reply found;
static size_t found_len;

static uint16_t type_of(const struct question *it)
{
	return it->v6 ? DNS_AAAA : DNS_A;
}

/* The question's length, or 0 where there is none. */
static size_t resolve_ask(const struct question *it, uint8_t out[DNS_MESSAGE])
{
	struct buf b = BUF_INIT(DNS_MESSAGE);
	size_t n = dns_question(&b, it->id, it->host, type_of(it)) < 0 ? 0 : b.n;

	if (n)
		memcpy(out, b.p, n);
	buf_done(&b);
	return n;
}

/* 1: an address, in found; 0: none; -1: not an answer to the question. */
static int resolve_read(const struct question *it, const uint8_t *m, size_t len)
{
	uint8_t asked[DNS_MESSAGE];
	size_t n = resolve_ask(it, asked);

	if (dns_reply_parse((struct view){ (const char *)m, len }, (struct view){ (const char *)asked, n },
			    type_of(it), &found) < 0)
		return -1;
	found_len = found.n;
	return found.n > 0;
}

/* An answer to q with these records behind the question; its length. */
static size_t answer(uint8_t *m, unsigned count, const char *records, size_t n)
{
	size_t len = resolve_ask(&q, m);

	assert_true(len > 0);
	m[2] |= 0x80;
	m[6] = (uint8_t)(count >> 8);
	m[7] = (uint8_t)count;
	memcpy(m + len, records, n);
	return len + n;
}

static int read_records(unsigned count, const char *records, size_t n)
{
	uint8_t m[DNS_MESSAGE];

	found_len = 0;
	return resolve_read(&q, m, answer(m, count, records, n));
}

#define READ(count, lit) read_records(count, lit, sizeof(lit) - 1)
#define NAME             "\xc0\x0c"
#define A                NAME "\0\1\0\1\0\0\0\1\0\4"
#define CNAME            NAME "\0\5\0\1\0\0\0\1\0\3\1x\0"

static void test_question(void **state)
{
	static const char expected[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0\1a\7example\0\0\1\0\1";
	uint8_t m[DNS_MESSAGE];
	char longest[256];
	struct question bad = { 0 };

	assert_int_equal(resolve_ask(&q, m), sizeof(expected) - 1);
	assert_memory_equal(m, expected, sizeof(expected) - 1);
	memset(longest, 'x', sizeof(longest));
	const struct view hosts[] = { VIEW(""), VIEW("a..b"), VIEW(".a"), { longest, 64 }, { longest, 256 } };
	for (size_t i = 0; i < ELEMS(hosts); i++) {
		bad.host = hosts[i];
		assert_int_equal(resolve_ask(&bad, m), 0);
	}
	/* the longest name there is */
	for (size_t i = 0; i < 253; i++)
		longest[i] = i % 64 == 63 ? '.' : 'x';
	bad.host = (struct view){ longest, 253 };
	assert_int_equal(resolve_ask(&bad, m), 12 + 255 + 4);
}

static void test_found(void **state)
{
	char text[64];

	assert_int_equal(READ(1, A "\x0a\0\0\7"), 1);
	assert_int_equal(found_len, 1);
	inet_ntop(AF_INET, found.found[0].b, text, sizeof(text));
	assert_string_equal(text, "10.0.0.7");
	/* behind another name for it, and beside one of another class */
	assert_int_equal(READ(3, CNAME NAME "\0\1\0\3\0\0\0\1\0\4\1\1\1\1" A "\x0a\0\0\x08"), 1);
	inet_ntop(AF_INET, found.found[0].b, text, sizeof(text));
	assert_string_equal(text, "10.0.0.8");
	q.v6 = true;
	assert_int_equal(
		READ(2, A "\x0a\0\0\7" NAME "\0\x1c\0\1\0\0\0\1\0\x10\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"), 1);
	assert_int_equal(found_len, 1);
	inet_ntop(AF_INET6, found.found[0].b, text, sizeof(text));
	assert_string_equal(text, "fd00::1");
	q.v6 = false;
}

static void test_none(void **state)
{
	assert_int_equal(READ(0, ""), 0);
	assert_int_equal(READ(0, A "\x0a\0\0\7"), 0); /* it says that there are none */
	assert_int_equal(READ(1, CNAME), 0);
	assert_int_equal(READ(1, NAME "\0\1\0\1\0\0\0\1\0\3abc"), 0); /* an address of three bytes */
	/* cut off, in a name, a head, the data; and counts that lie */
	assert_int_equal(READ(1, NAME), 0);
	assert_int_equal(READ(1, "\xc0"), 0);
	assert_int_equal(READ(1, "\x3f"
				 "abc"),
			 0);
	assert_int_equal(READ(1, "\x80"
				 "abc"),
			 0);
	assert_int_equal(READ(1, NAME "\0\1\0\1\0\0\0\1\0\4\1\2\3"), 0);
	assert_int_equal(READ(1, NAME "\0\1\0\1\0\0\0\1\xff\xff\1\2\3\4"), 0);
	assert_int_equal(READ(0xffff, CNAME), 0);
	assert_int_equal(found_len, 0);
}

static void test_not_the_answer(void **state)
{
	uint8_t m[DNS_MESSAGE];
	size_t len = answer(m, 1, A "\x0a\0\0\7", sizeof(A) + 3);
	static const size_t matters[] = { 0, 1, 4, 5, 13, 20 };

	assert_int_equal(resolve_read(&q, m, len), 1);
	for (size_t i = 0; i < ELEMS(matters); i++) {
		m[matters[i]] ^= 1;
		assert_int_equal(resolve_read(&q, m, len), -1);
		m[matters[i]] ^= 1;
	}
	m[2] &= 0x7f; /* our own question, come back */
	assert_int_equal(resolve_read(&q, m, len), -1);
	m[2] |= 0x80;
	for (size_t n = 0; n < 12 + 15; n++)
		assert_int_equal(resolve_read(&q, m, n), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_question),
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_not_the_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
