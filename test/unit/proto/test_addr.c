/*
 * Addresses: one spelling each, ranges, and what is not the public internet in all of
 * its disguises.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "addr.h"

#include "poison.h"

static struct addr of(const char *text)
{
	struct addr a;
	assert_int_equal(addr_parse(view_of(text), &a), 0);
	return a;
}

static void spellings(void **state)
{
	static const char *const bad[] = { "",           "1",          "1.2.3",      "127.1",
					   "0177.0.0.1", "0x7f.0.0.1", "2130706433", "1.2.3.4.",
					   "1.2.3.256",  "[1::2",      "1::2]",      "::1%lo",
					   " 1.2.3.4",   "1.2.3.4 ",   "a.b",        "1.2.3.04x" };
	char text[ADDR_TEXT];
	struct addr a, b = of("::ffff:1.2.3.4");

	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_true(addr_parse(view_of(bad[i]), &a) < 0);
	a = of("1.2.3.4");
	assert_true(addr_eq(&a, &b) && addr_is_v4(&b));
	assert_string_equal(addr_text(&b, text), "1.2.3.4");
	a = of("[2001:DB8::1]");
	assert_string_equal(addr_text(&a, text), "2001:db8::1");
	assert_true(addr_parse((struct view){ "1.2.3.4\0.evil", 13 }, &a) < 0);
}

static void sockaddrs(void **state)
{
	static const char *const texts[] = { "1.2.3.4", "2001:db8::7" };

	for (size_t i = 0; i < ELEMS(texts); i++) {
		struct sockaddr_storage ss;
		struct addr a = of(texts[i]), b;
		socklen_t n = addr_to_sockaddr(&a, 443, &ss);
		assert_int_equal(n, i ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
		assert_true(addr_from_sockaddr((struct sockaddr *)&ss, &b) && addr_eq(&a, &b));
	}
	assert_false(addr_from_sockaddr(&(struct sockaddr){ .sa_family = AF_UNIX }, &(struct addr){ 0 }));
}

static void ranges(void **state)
{
	static const char *const bad[] = { "10.0.0.1/8", "10.0.0.0/33",  "::/129", "10.0.0.0/",
					   "/8",         "10.0.0.0/8/8", "[::1]",  "10.0.0.0/-1" };
	struct addr_net n, outer;
	struct addr a = of("10.255.0.1"), b = of("11.0.0.0"), c = of("10.128.0.0");

	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_true(addr_net_parse(view_of(bad[i]), &n) < 0);
	assert_int_equal(addr_net_parse(VIEW("10.0.0.0/8"), &outer), 0);
	assert_true(addr_net_has(&outer, &a) && !addr_net_has(&outer, &b));
	assert_int_equal(addr_net_parse(VIEW("10.128.0.0/9"), &n), 0);
	assert_true(addr_net_has(&n, &c) && addr_net_within(&n, &outer) && !addr_net_within(&outer, &n));
	assert_int_equal(addr_net_parse(VIEW("0.0.0.0/0"), &n), 0);
	struct addr six = of("2001:db8::1");
	assert_true(addr_net_has(&n, &b) && !addr_net_has(&n, &six));
	assert_int_equal(addr_net_parse(VIEW("::/0"), &n), 0);
	assert_true(addr_net_has(&n, &b) && addr_net_has(&n, &six));
	assert_int_equal(addr_net_parse(VIEW("1.2.3.4"), &n), 0);
	assert_int_equal(n.bits, 128);
}

static void special(void **state)
{
	static const char *const inner[] = { "10.1.2.3",
					     "10.255.255.255",
					     "192.168.255.255",
					     "169.254.255.255",
					     "172.16.0.1",
					     "172.31.255.255",
					     "192.168.0.1",
					     "127.0.0.1",
					     "127.255.255.255",
					     "169.254.169.254",
					     "100.64.0.1",
					     "100.127.255.255",
					     "100.100.100.200",
					     "168.63.129.16",
					     "192.0.0.192",
					     "198.18.0.1",
					     "198.19.255.255",
					     "::1",
					     "fe80::1",
					     "fc00::1",
					     "fd00:ec2::254",
					     "fec0::1",
					     "::ffff:127.0.0.1",
					     "64:ff9b::7f00:1",
					     "64:ff9b::a9fe:a9fe",
					     "64:ff9b:1::1",
					     "2002:7f00:1::1",
					     "2002:a9fe:a9fe::",
					     "2002:a00:1::1" };
	static const char *const never[] = {
		"0.0.0.0",         "0.1.2.3",          "224.0.0.1",  "239.1.1.1",
		"240.0.0.1",       "255.255.255.255",  "::",         "::7f00:1",
		"::ffff:0:7f00:1", "::ffff:0:808:808", "ff02::1",    "64:ff9b::e000:1",
		"2002:e000:1::",   "2001:0:1::1",      "192.88.99.1"
	};
	static const char *const outer[] = { "1.1.1.1",          "9.255.255.255",   "11.0.0.0",
					     "100.63.255.255",   "100.128.0.0",     "126.255.255.255",
					     "128.0.0.1",        "169.253.0.1",     "172.15.0.1",
					     "172.32.0.1",       "192.167.1.1",     "192.0.1.1",
					     "223.255.255.255",  "2606:4700::1",    "2001:db8::1",
					     "64:ff9b::808:808", "2002:808:808::1", "::ffff:8.8.8.8" };

	for (size_t i = 0; i < ELEMS(inner); i++) {
		struct addr a = of(inner[i]);
		if (!addr_special(&a) || addr_never(&a))
			fail_msg("%s", inner[i]);
	}
	for (size_t i = 0; i < ELEMS(never); i++) {
		struct addr a = of(never[i]);
		if (!addr_special(&a) || !addr_never(&a))
			fail_msg("%s", never[i]);
	}
	for (size_t i = 0; i < ELEMS(outer); i++) {
		struct addr a = of(outer[i]);
		if (addr_special(&a) || addr_never(&a))
			fail_msg("%s", outer[i]);
	}
}

/* What a webhook may not dial, by the words of webhooks.refuse. */
static void refused(void **state)
{
	static const struct {
		const char *text;
		bool none, link, private;
	} cases[] = {
		{ "8.8.8.8", false, false, false },        { "2606:4700::1", false, false, false },
		{ "127.0.0.1", false, false, true },       { "::1", false, false, true },
		{ "10.1.2.3", false, false, true },        { "::ffff:192.168.0.1", false, false, true },
		{ "64:ff9b::7f00:1", false, false, true }, { "2002:a00:1::1", false, false, true },
		{ "fd12::1", false, false, true },         { "100.64.0.1", false, false, true },
		{ "100.100.100.200", false, true, true },  { "168.63.129.16", false, true, true },
		{ "169.254.169.254", false, true, true },  { "64:ff9b::a9fe:a9fe", false, true, true },
		{ "192.0.0.192", false, true, true },      { "fe80::1", false, true, true },
		{ "fd00:ec2::254", false, true, true },    { "0.0.0.0", true, true, true },
		{ "224.0.0.1", true, true, true },         { "::", true, true, true },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct addr a = of(cases[i].text);
		if (addr_refused(&a, VIEW("none")) != cases[i].none ||
		    addr_refused(&a, VIEW("link-local")) != cases[i].link ||
		    addr_refused(&a, VIEW("private")) != cases[i].private ||
		    addr_refused(&a, VIEW("nonsense")) != cases[i].private)
			fail_msg("%s", cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(spellings), cmocka_unit_test(sockaddrs),
					    cmocka_unit_test(ranges), cmocka_unit_test(special),
					    cmocka_unit_test(refused) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
