/*
 * Errors: the table has no holes, docs/errors.md says the same, and messages are
 * cut rather than overrun.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "err.h"
#include "fd.h"
#include "poison.h"

static const char *const connect_codes[] = {
	"canceled",        "unknown",           "invalid_argument",   "deadline_exceeded",   "not_found",
	"already_exists",  "permission_denied", "resource_exhausted", "failed_precondition", "aborted",
	"out_of_range",    "unimplemented",     "internal",           "unavailable",         "data_loss",
	"unauthenticated",
};

static void test_table(void **state)
{
	for (enum err_code c = ERR_OK + 1; c < ERR_CODES; c++) {
		assert_non_null(err_name(c));
		assert_true(strlen(err_name(c)) > 0);
		assert_in_range(err_http(c), 400, 599);
		assert_in_range(err_grpc(c), 1, 16);
		/* Connect's names are gRPC's codes in words, in the same order. */
		assert_string_equal(err_connect(c), connect_codes[err_grpc(c) - 1]);
		assert_int_equal(err_from_name(err_name(c)), c); /* so names are unique too */
	}
	assert_string_equal(err_name(ERR_OK), "ok");
	assert_int_equal(err_http(ERR_OK), 200);
	assert_int_equal(err_grpc(ERR_OK), 0);
}

static void test_outside_of_table(void **state)
{
	enum err_code c = (enum err_code)(ERR_CODES + 7);
	assert_string_equal(err_name(c), "internal");
	assert_string_equal(err_connect(c), "internal");
	assert_int_equal(err_http(c), 500);
	assert_int_equal(err_grpc(c), 13);
	assert_int_equal(err_from_name("no such name"), ERR_INTERNAL);
	assert_int_equal(err_from_name("ok"), ERR_INTERNAL); /* a failure is never "ok" */
}

static void test_documented(void **state)
{
	struct buf text = BUF_INIT(1u << 20);
	assert_int_equal(fd_slurp(AT_FDCWD, ERRORS_MD, &text), 0);
	assert_int_equal(buf_putc(&text, 0), 0);
	unsigned rows = 0;
	for (enum err_code c = ERR_OK + 1; c < ERR_CODES; c++, rows++) {
		char row[160];
		snprintf(row, sizeof(row), "\n| `%s` | %d | %d | %s | ", err_name(c), err_http(c),
			 err_grpc(c), err_connect(c));
		if (!strstr(text.p, row))
			fail_msg("docs/errors.md lacks the row%s", row);
	}
	/* and nothing that the table has not */
	for (const char *at = text.p; (at = strstr(at, "\n| `")); at++)
		rows--;
	assert_int_equal(rows, 0);
	buf_done(&text);
}

static void test_set(void **state)
{
	struct err e = { 0 };
	assert_int_equal(err_set(&e, ERR_NOT_FOUND, "no %s", "box"), -1);
	assert_int_equal(e.code, ERR_NOT_FOUND);
	assert_string_equal(e.msg, "no box");
	assert_int_equal(err_sys(&e, ERR_STORAGE, -ENOSPC, "write"), -1);
	assert_int_equal(e.sys, ENOSPC);
	assert_string_equal(e.msg, "write: No space left on device");
	assert_int_equal(err_sys(&e, ERR_STORAGE, ENOENT, "read"), -1);
	assert_int_equal(e.sys, ENOENT);
	/* A later plain error has no errno. */
	err_set(&e, ERR_INVALID, "x");
	assert_int_equal(e.sys, 0);
	assert_int_equal(err_wrap(&e, "box %d", 7), -1);
	assert_string_equal(e.msg, "box 7: x");
	assert_int_equal(e.code, ERR_INVALID);
	assert_int_equal(err_set(NULL, ERR_INVALID, "x"), -1);
	assert_int_equal(err_sys(NULL, ERR_INVALID, 1, "x"), -1);
	assert_int_equal(err_wrap(NULL, "x"), -1);
}

static void test_cut(void **state)
{
	/* Canaries: what follows the message must stay. */
	struct {
		struct err e;
		char canary[16];
	} b;
	char text[600];
	memset(text, 'a', sizeof(text));
	for (size_t n = 180; n < 400; n++) {
		memset(&b, 0x5a, sizeof(b));
		err_set(&b.e, ERR_INTERNAL, "%.*s", (int)n, text);
		assert_int_equal(strlen(b.e.msg), n < 191 ? n : 191);
		err_sys(&b.e, ERR_INTERNAL, EIO, "%.*s", (int)n, text);
		assert_true(strlen(b.e.msg) <= 191);
		err_set(&b.e, ERR_INTERNAL, "the reason");
		err_wrap(&b.e, "%.*s", (int)n, text);
		/* What it was doing comes first, the reason is cut. */
		assert_memory_equal(b.e.msg, text, n < 191 ? n : 191);
		assert_int_equal(b.e.msg[191], 0);
		for (size_t i = 0; i < sizeof(b.canary); i++)
			assert_int_equal(b.canary[i], 0x5a);
	}
	err_set(&b.e, ERR_INTERNAL, "%.*s", 191, text);
	for (int i = 0; i < 5; i++)
		err_wrap(&b.e, "layer %d", i);
	assert_int_equal(strncmp(b.e.msg, "layer 4: layer 3: layer 2: layer 1: layer 0: aaa", 48), 0);
	assert_int_equal(strlen(b.e.msg), 191);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),      cmocka_unit_test(test_outside_of_table),
		cmocka_unit_test(test_documented), cmocka_unit_test(test_set),
		cmocka_unit_test(test_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
