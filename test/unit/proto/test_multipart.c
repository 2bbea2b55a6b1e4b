/*
 * multipart/form-data: the same events however the body is cut.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "multipart_feed.h"
#include "poison.h"

static void check(const char *type, const char *body, const char *want)
{
	for (size_t piece = 1; piece <= strlen(body) + 1; piece++) {
		struct buf out = BUF_INIT(1 << 20);
		multipart_feed(&out, view_of(type), view_of(body), piece);
		buf_putc(&out, 0);
		if (strcmp(buf_view(&out).p, want) != 0)
			fail_msg("in pieces of %zu: %s", piece, buf_view(&out).p);
		buf_done(&out);
	}
}

#define TYPE "multipart/form-data; boundary=b"

static void test_plain(void **state)
{
	check(TYPE,
	      "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\nContent-Type: "
	      "text/plain\r\n\r\n"
	      "hello\r\n--b\r\ncontent-disposition:form-data;name=x\r\n\r\nvalue\r\n--b--\r\n",
	      "part f a.txt\ndata hello\nend\npart x -\ndata value\nend\nover\n");
	check(TYPE, "--b--", "over\n");
	check(TYPE, "--b--\r\n", "over\n");
}

static void test_odd_but_allowed(void **state)
{
	/* A preamble, an epilogue, space behind a delimiter, parts without bytes. */
	check(TYPE,
	      "preamble\r\n--b \t\r\nContent-Disposition: form-data; name=a; filename=e\r\n\r\n\r\n--b\r\n"
	      "Content-Disposition: form-data; name=b\r\n\r\n--b--epilogue\r\n--b\r\n",
	      "part a e\nend\npart b -\nend\nover\n");
	check(TYPE,
	      "--b\r\nContent-Disposition: form-data; name=\"q\\\"\\\\\"; filename=\"\"; "
	      "filename*=UTF-8''%c3%a4%20x\r\n\r\n"
	      "\r\n--b--",
	      "part q\"\\ \xc3\xa4 x\nend\nover\n");
	check("Multipart/Form-Data; charset=utf-8; boundary=\"a b'c\"",
	      "--a b'c\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--a b'c--",
	      "part a -\ndata x\nend\nover\n");
}

/* Bytes that begin like a delimiter and are none. */
static void test_almost_delimiters(void **state)
{
	check("multipart/form-data; boundary=abc",
	      "--abc\r\nContent-Disposition: form-data; name=a\r\n\r\n"
	      "\r\n\r\r\n-\r\n--\r\n--a\r\n--ab\r\n--abx--abc\r\n--abc--",
	      "part a -\ndata \r\n\r\r\n-\r\n--\r\n--a\r\n--ab\r\n--abx--abc\nend\nover\n");
	check("multipart/form-data; boundary=--",
	      "----\r\nContent-Disposition: form-data; name=a\r\n\r\n--x\r\n---\r\n------",
	      "part a -\ndata --x\r\n---\nend\nover\n");
}

static void test_malformed(void **state)
{
	static const char *const bodies[] = {
		"",
		"--b",
		"--b\r\n",
		"no delimiter",
		"--b\r\nContent-Disposition: form-data; name=a\r\n\r\nno end",
		"--b\r\n\r\nno head\r\n--b--",
		"--bx\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--b",
		"--b\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--",
		"--b\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--b--",
		"--b\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--b--",
		"--b\r\nContent-Disposition form-data\r\n\r\nx\r\n--b--",
		"--b\r\nContent-Disposition: form-data; name=a\nX: y\r\n\r\nx\r\n--b--",
		("--b\r\nContent-Disposition: form-data; name=a\r\nContent-Disposition: "
		 "form-data\r\n\r\nx\r\n--b--"),
		"--b\r\nContent-Disposition: form-data; filename*=latin1''x\r\n\r\nx\r\n--b--",
		"--b x\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--b--",
	};
	for (size_t i = 0; i < ELEMS(bodies); i++)
		for (size_t piece = 1; piece < 40; piece += 3) {
			struct buf out = BUF_INIT(1 << 20);
			multipart_feed(&out, VIEW(TYPE), view_of(bodies[i]), piece);
			buf_putc(&out, 0);
			const char *text = buf_view(&out).p;
			if (!strstr(text, "cut\n") && !strstr(text, "bad\n"))
				fail_msg("%zu in pieces of %zu: %s", i, piece, text);
			buf_done(&out);
		}
}

static void test_types(void **state)
{
	static const char *const types[] = {
		"",
		"text/plain",
		"multipart/form-data",
		"multipart/form-data; boundary=",
		"multipart/form-data; boundary=\"\"",
		"multipart/form-data; boundary=\"a",
		"multipart/form-data; boundary=\"a\r\n\"",
		"multipart/form-data; boundary=\"a \"",
		"multipart/mixed; boundary=a",
		("multipart/form-data; "
		 "boundary=0123456789012345678901234567890123456789012345678901234567890123456789x"),
	};
	for (size_t i = 0; i < ELEMS(types); i++) {
		struct multipart m;
		if (multipart_init(&m, view_of(types[i])) != -EINVAL)
			fail_msg("accepted: %s", types[i]);
		multipart_done(&m);
	}
}

static void test_head_has_a_limit(void **state)
{
	struct buf body = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
	buf_puts(&body, "--b\r\nX: ");
	for (int i = 0; i < 20000; i++)
		buf_putc(&body, 'x');
	multipart_feed(&out, VIEW(TYPE), buf_view(&body), 1000);
	assert_true(view_is(buf_view(&out), "bad\n"));
	buf_done(&body);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_odd_but_allowed),
		cmocka_unit_test(test_almost_delimiters),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_head_has_a_limit),
	};
	return cmocka_run_group_tests_name("multipart", tests, NULL, NULL);
}
