/*
 * The request-smuggling corpus: each file of smuggling/ is what a client sends on
 * one connection. What two servers could read in two ways must be refused, whole
 * or byte by byte. The file's name tells its class.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fd.h"
#include "http1_feed.h"
#include "poison.h"

static const struct {
	const char *file, *outcome;
} corpus[] = {
	{ "legal-get", "ok" },
	{ "legal-chunked-then-get", "ok ok" },
	{ "legal-length-then-get", "ok ok" },
	{ "legal-chunk-ext", "ok" },
	{ "legal-trailers-dropped", "ok ok" },
	{ "legal-leading-crlf", "ok" },
	{ "legal-absolute-form", "ok" },
	{ "legal-options-star", "ok" },
	{ "cl_te-both", "400" },
	{ "te_cl-both", "400" },
	{ "cl_te-zero-length", "400" },
	{ "te_te-two-headers", "400" },
	{ "te_te-two-chunked", "400" },
	{ "te_te-list-identity", "501" },
	{ "te_te-list-twice", "501" },
	{ "te_te-xchunked", "501" },
	{ "te_te-gzip-chunked", "501" },
	{ "te_te-quoted", "501" },
	{ "te_te-upper-case", "501" },
	{ "te_te-parameter", "501" },
	{ "te_te-empty", "400" },
	{ "te_te-vertical-tab", "400" },
	{ "te_te-nul-after", "400" },
	{ "te_te-high-byte", "501" },
	{ "te_te-name-with-space", "400" },
	{ "te_te-name-with-tab", "400" },
	{ "te_te-name-with-nul", "400" },
	{ "te_te-folded", "400" },
	{ "te-in-http10", "400" },
	{ "cl-duplicate-same", "400" },
	{ "cl-duplicate-differ", "400" },
	{ "cl-list-same", "400" },
	{ "cl-plus", "400" },
	{ "cl-minus", "400" },
	{ "cl-hex", "400" },
	{ "cl-space-inside", "400" },
	{ "cl-empty", "400" },
	{ "cl-decimal-point", "400" },
	{ "cl-underscore", "400" },
	{ "cl-overflow-64", "400" },
	{ "cl-overflow-63", "400" },
	{ "cl-name-with-space", "400" },
	{ "cl-folded", "400" },
	{ "bare-lf-lines", "400" },
	{ "bare-lf-in-header", "400" },
	{ "bare-lf-ends-head", "400" },
	{ "bare-cr-in-value", "400" },
	{ "bare-cr-in-request-line", "400" },
	{ "cr-cr-lf", "400" },
	{ "obs-fold", "400" },
	{ "obs-fold-first-line", "400" },
	{ "header-without-colon", "400" },
	{ "header-empty-name", "400" },
	{ "header-nul-in-value", "400" },
	{ "header-del-in-value", "400" },
	{ "header-high-byte-in-name", "400" },
	{ "header-bracket-name", "400" },
	{ "host-two", "400" },
	{ "host-two-same", "400" },
	{ "host-none-in-http11", "400" },
	{ "host-none-in-http10", "ok" },
	{ "host-empty", "400" },
	{ "host-list", "400" },
	{ "host-with-path", "400" },
	{ "host-with-userinfo", "400" },
	{ "host-bad-port", "400" },
	{ "absolute-form-mismatch", "400" },
	{ "absolute-form-port-mismatch", "400" },
	{ "absolute-form-userinfo", "400" },
	{ "absolute-form-other-scheme", "400" },
	{ "authority-form-get", "400" },
	{ "authority-form-connect", "501" },
	{ "star-for-get", "400" },
	{ "target-fragment", "400" },
	{ "target-high-byte", "400" },
	{ "target-bad-escape", "400" },
	{ "target-backslash", "400" },
	{ "http09-simple", "400" },
	{ "http09-with-version", "505" },
	{ "version-2", "505" },
	{ "version-12", "505" },
	{ "version-lower-case", "400" },
	{ "version-long", "400" },
	{ "version-space-inside", "400" },
	{ "request-line-two-spaces", "400" },
	{ "request-line-tab", "400" },
	{ "request-line-trailing-space", "400" },
	{ "request-line-leading-space", "400" },
	{ "request-line-two-empty-lines", "400" },
	{ "method-not-a-token", "400" },
	{ "tls-hello", "400" },
	{ "chunk-size-0x", "400" },
	{ "chunk-size-plus", "400" },
	{ "chunk-size-minus", "400" },
	{ "chunk-size-empty", "400" },
	{ "chunk-size-space-before", "400" },
	{ "chunk-size-space-after", "400" },
	{ "chunk-size-overflow", "400" },
	{ "chunk-size-negative-64", "413" },
	{ "chunk-size-zeros", "400" },
	{ "chunk-size-bare-lf", "400" },
	{ "chunk-size-bare-cr", "400" },
	{ "chunk-ext-bare-lf", "400" },
	{ "chunk-ext-bare-cr", "400" },
	{ "chunk-ext-lf-in-quotes", "400" },
	{ "chunk-ext-empty", "400" },
	{ "chunk-ext-empty-value", "400" },
	{ "chunk-ext-space", "400" },
	{ "chunk-ext-double", "400" },
	{ "chunk-ext-nul", "400" },
	{ "chunk-ext-too-long", "413" },
	{ "chunk-data-longer", "400" },
	{ "chunk-data-shorter", "400" },
	{ "chunk-data-lf-end", "400" },
	{ "chunk-last-bare-lf", "400" },
	{ "chunk-last-without-end", "wait" },
	{ "chunk-last-then-request", "400" },
	{ "trailer-bare-lf", "400" },
	{ "trailer-space-before-colon", "400" },
	{ "trailer-folded", "400" },
	{ "trailer-too-long", "431" },
	{ "expect-unknown", "417" },
	{ "expect-list", "417" },
	{ "connection-not-a-token", "400" },
	{ "pipelined-remainder-is-a-request", "ok ok" },
	{ "pipelined-remainder-is-no-request", "ok 400" },
	{ "body-without-length", "ok wait" },
	{ "get-with-body", "ok" },
	{ "head-too-long", "431" },
	{ "headers-too-many", "431" },
	{ "target-too-long", "414" },
	{ "method-too-long", "501" },
};

static void test_outcomes(void **state)
{
	static const size_t steps[] = { 1 << 20, 1, 2, 7, 64 };
	int dir = open(SMUGGLING_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	for (size_t i = 0; i < ELEMS(corpus); i++) {
		struct buf stream = BUF_INIT(1 << 20);
		assert_int_equal(fd_slurp(dir, corpus[i].file, &stream), 0);
		struct http1_feed whole;
		http1_feed(&whole, buf_view(&stream), steps[0]);
		if (strcmp(whole.outcome, corpus[i].outcome) != 0)
			fail_msg("%s: %s, not %s", corpus[i].file, whole.outcome, corpus[i].outcome);
		for (size_t k = 1; k < ELEMS(steps); k++) {
			struct http1_feed pieces;
			http1_feed(&pieces, buf_view(&stream), steps[k]);
			if (strcmp(whole.outcome, pieces.outcome) != 0 ||
			    !view_eq(buf_view(&whole.bodies), buf_view(&pieces.bodies)))
				fail_msg("%s by %zu: %s, not %s", corpus[i].file, steps[k], pieces.outcome,
					 whole.outcome);
			buf_done(&pieces.bodies);
		}
		buf_done(&whole.bodies);
		buf_done(&stream);
	}
	fd_close(dir);
}

/* A file that the table does not know would never be tried. */
static void test_table_is_complete(void **state)
{
	DIR *dir = opendir(SMUGGLING_DIR);
	size_t n = 0;
	assert_non_null(dir);
	for (struct dirent *d; (d = readdir(dir));) {
		bool known = d->d_name[0] == '.';
		n += !known;
		for (size_t i = 0; i < ELEMS(corpus) && !known; i++)
			known = strcmp(corpus[i].file, d->d_name) == 0;
		if (!known)
			fail_msg("%s is not in the table", d->d_name);
	}
	closedir(dir);
	assert_int_equal(n, ELEMS(corpus));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outcomes),
		cmocka_unit_test(test_table_is_complete),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
