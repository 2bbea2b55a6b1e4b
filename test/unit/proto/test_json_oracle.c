/*
 * The JSON reader against jansson, over test/fuzz/corpus/json. The first letter of
 * a file's name says what must happen:
 *   y  both accept it and see the same values
 *   n  both refuse it
 *   a  only we accept it (numbers of any size keep their text)
 *   r  only we refuse it (JSON_DEPTH)
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dirent.h>
#include <inttypes.h>

#include "fd.h"
#include "jansson_oracle.h"
#include "json.h"

#include "poison.h"

#define CORPUS_LEAST 60

static void put_bytes(struct buf *out, struct view v)
{
	buf_printf(out, "s%zu:", v.n);
	buf_add(out, v);
}

static void put_number(struct buf *out, const struct json *j)
{
	int64_t i = 0;
	double d = 0;

	if (memchr(j->text.p, '.', j->text.n) || memchr(j->text.p, 'e', j->text.n) ||
	    memchr(j->text.p, 'E', j->text.n)) {
		assert_int_equal(json_to_double(j, &d), 0);
		buf_printf(out, "r%.17g", d);
	} else {
		assert_int_equal(json_to_i64(j, &i), 0);
		buf_printf(out, "i%" PRId64, i);
	}
}

/* The canonical text that jansson_oracle.h describes. */
static void put(struct buf *out, const struct json *j)
{
	switch (j->type) {
	case JSON_NULL:
		buf_putc(out, 'n');
		break;
	case JSON_BOOL:
		buf_putc(out, j->boolean ? 't' : 'f');
		break;
	case JSON_NUMBER:
		put_number(out, j);
		break;
	case JSON_STRING:
		put_bytes(out, j->text);
		break;
	case JSON_ARRAY:
		buf_putc(out, '[');
		for (size_t i = 0; i < j->n; i++)
			put(out, &j->items[i]);
		buf_putc(out, ']');
		break;
	case JSON_OBJECT:
		buf_putc(out, '{');
		for (size_t i = 0; i < j->n; i++) {
			put_bytes(out, j->members[i].key);
			put(out, &j->members[i].value);
		}
		buf_putc(out, '}');
		break;
	}
}

static void check_file(const char *name, struct view text)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT(16u << 20);
	_cleanup_(buf_done) struct buf ours = BUF_INIT(1 << 20), theirs = BUF_INIT(1 << 20);
	struct json *j = NULL;
	struct err e = { 0 };
	const char *why;
	bool theirs_ok = jansson_oracle(text, &theirs, &why);
	bool ours_ok = json_parse(&a, text, &j, &e) == 0;

	if (!strchr("ynar", name[0]))
		fail_msg("%s: the name must begin with y, n, a or r", name);
	if (ours_ok != (name[0] == 'y' || name[0] == 'a'))
		fail_msg("%s: we %s it (%s)", name, ours_ok ? "accept" : "refuse", e.msg);
	if (theirs_ok != (name[0] == 'y' || name[0] == 'r'))
		fail_msg("%s: jansson %s it (%s)", name, theirs_ok ? "accepts" : "refuses", why);
	if (!ours_ok || !theirs_ok)
		return;
	put(&ours, j);
	assert_int_equal(ours.bad, 0);
	assert_int_equal(theirs.bad, 0);
	if (!view_eq(buf_view(&ours), buf_view(&theirs)))
		fail_msg("%s: we see %.*s, jansson sees %.*s", name, VIEW_ARG(buf_view(&ours)),
			 VIEW_ARG(buf_view(&theirs)));
}

static void test_corpus(void **state)
{
	DIR *dir = opendir(JSON_CORPUS);
	size_t n = 0;

	(void)state;
	assert_non_null(dir);
	for (struct dirent *d; (d = readdir(dir));) {
		_cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);

		if (d->d_name[0] == '.')
			continue;
		assert_int_equal(fd_slurp(dirfd(dir), d->d_name, &text), 0);
		check_file(d->d_name, buf_view(&text));
		n++;
	}
	closedir(dir);
	assert_true(n >= CORPUS_LEAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corpus),
	};

	return cmocka_run_group_tests_name("json_oracle", tests, NULL, NULL);
}
