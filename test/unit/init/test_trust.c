/*
 * What browsers are given to read.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "trust.h"

#include "poison.h"

static void chromium(void **state)
{
	static const char *const bad[] = {
		"", "-----BEGIN CERTIFICATE-----\nAAAA\n", "AAAA",
		"-----END CERTIFICATE----------BEGIN CERTIFICATE-----",
		"-----BEGIN CERTIFICATE-----\nAA\"]}AA\n-----END CERTIFICATE-----\n"
	};
	struct buf out = BUF_INIT(4096);

	assert_int_equal(
		trust_chromium(VIEW("-----BEGIN CERTIFICATE-----\nAb+/\r\n12==\n-----END CERTIFICATE-----\n"),
			       &out),
		0);
	buf_putc(&out, 0);
	assert_string_equal(out.p,
			    "{\"CACertificates\":[\"Ab+/12==\"],\"EncryptedClientHelloEnabled\":false}\n");
	for (size_t i = 0; i < ELEMS(bad); i++) {
		buf_clear(&out);
		assert_int_not_equal(trust_chromium(view_of(bad[i]), &out), 0);
	}
	/* with a NUL in it */
	buf_clear(&out);
	assert_int_not_equal(
		trust_chromium(VIEW("-----BEGIN CERTIFICATE-----\nA\0A\n-----END CERTIFICATE-----\n"), &out),
		0);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(chromium) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
