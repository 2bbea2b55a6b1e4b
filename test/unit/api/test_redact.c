/*
 * What looks like a secret goes, everything else stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "redact.h"
#include "poison.h"

#define R REDACT_MARK

static void expect(const char *text, bool cut, const char *want)
{
	struct buf out = BUF_INIT(1 << 20);

	assert_int_equal(redact(view_of(text), cut, &out), 0);
	buf_putc(&out, 0);
	assert_string_equal(out.p, want);
	buf_done(&out);
}

static void test_secrets(void **state)
{
	static const char *const cases[][2] = {
		{ "use sk-openai-7f3c9d1122.", "use " R "." },
		{ "sk-ant-api03-AbC_d-e1234567890", R },
		{ "(ghp_0123456789abcdefABCDEF)", "(" R ")" },
		{ "AKIAIOSFODNN7EXAMPLE and ASIAIOSFODNN7EXAMPLE", R " and " R },
		{ "\"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln-_x\"", "\"" R "\"" },
		{ "Authorization: Bearer abcd1234+/x==\r\n", "Authorization: Bearer " R "\r\n" },
		{ "authorization: basic dXNlcjpwYXNzMTIz", "authorization: basic " R },
		{ "{\"api_key\": \"0123456789abcdef0123\"}", "{\"api_key\": \"" R "\"}" },
		{ "{\"content\": \"{\\\"apiKey\\\":\\\"0123456789abcdef0123\\\"}\"}",
		  "{\"content\": \"{\\\"apiKey\\\":\\\"" R "\\\"}\"}" },
		{ "SECRET_TOKEN=Zm9vYmFyYmF6cXV4MTIz\nnext", "SECRET_TOKEN=" R "\nnext" },
		{ "the token is deadbeefdeadbeef00", "the token is " R },
		{ "key: AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh", "key: " R },
		{ "password: hunter2, and", "password: " R ", and" },
		{ "PWD='correct!horse' x", "PWD='" R "' x" },
		{ "postgres://me:s3cr3t@db/x http://a:b@c", "postgres://me:" R "@db/x http://a:" R "@c" },
		{ "-----BEGIN RSA PRIVATE KEY-----\\nMIIabc\\n-----END RSA PRIVATE KEY-----\\nafter",
		  R "\\nafter" },
		{ "a -----BEGIN PRIVATE KEY-----\nMIIabc", "a " R },
		{ "sk-aaaaaaaa1234 sk-bbbbbbbb1234", R " " R },
	};

	for (size_t i = 0; i < ELEMS(cases); i++)
		expect(cases[i][0], false, cases[i][1]);
}

static void test_other_text(void **state)
{
	static const char *const cases[] = {
		"",
		("{\"model\":\"gpt-4o-mini\",\"max_tokens\":50,\"messages\":[{\"role\":\"user\",\"content\":"
		 "\"hello\"}]}"),
		"{\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":1234567890123456789}}",
		"the key to happiness, a token of love, the secret of success; my password is not told",
		"https://example.com:8080/path?x=1 and mail@example.com",
		"-----BEGIN CERTIFICATE-----\nMIIabc0123456789\n-----END CERTIFICATE-----",
		"task-force-1234567890123 desk-0123456789abcdef monkey bars",
		"bearer of news, basic instinct",
		"key",
		"token=",
		"password:",
		"://",
		"sk-",
		"-----BEGIN ",
		"key: \"short1\"",
	};

	for (size_t i = 0; i < ELEMS(cases); i++)
		expect(cases[i], false, cases[i]);
}

/* At every place where a text can end the secret is whole and known, or gone. */
static void test_cut(void **state)
{
	const struct view text = VIEW(
		"tell me: \"sk-openai-7f3c9d1122\" and Bearer abcdefgh12345678 then password=hunter22 end");

	for (size_t n = 0; n <= text.n; n++) {
		struct buf out = BUF_INIT(4096);
		assert_int_equal(redact(view_head(text, n), true, &out), 0);
		buf_putc(&out, 0);
		assert_null(strstr(out.p, "sk-o"));
		assert_null(strstr(out.p, "abc"));
		assert_null(strstr(out.p, "hunt"));
		buf_done(&out);
	}
	expect("whole words sta", true, "whole words ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_other_text),
		cmocka_unit_test(test_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
