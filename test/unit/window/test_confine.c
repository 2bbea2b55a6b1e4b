/*
 * Where the window may go, and the origin that decides it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "confine.h"

#include "poison.h"

#define OWN "http://127.0.0.1:7080"

static void check(const char *origin, const char *uri, enum confine expected)
{
	enum confine got = confine_decide(view_of(origin), view_of(uri));

	if (got != expected)
		fail_msg("%s: %d, not %d", uri, (int)got, (int)expected);
}

static void test_own(void **state)
{
	static const struct {
		const char *uri;
		enum confine where;
	} cases[] = {
		{ OWN, CONFINE_SHOW },
		{ OWN "/", CONFINE_SHOW },
		{ OWN "/#/approvals", CONFINE_SHOW },
		{ OWN "/?x=1#/sandboxes/abc/files/etc/passwd", CONFINE_SHOW },
		{ OWN "#/start", CONFINE_SHOW },
		{ OWN "/docs", CONFINE_SHOW },
		{ OWN "/docs/egress#top", CONFINE_SHOW },
		{ OWN "/docsx", CONFINE_REFUSE },
		{ OWN "/openapi.json", CONFINE_BROWSER },
		{ OWN "/v1/previews/abc/8000/t/", CONFINE_FRAME },
		{ OWN "/v1/sandboxes/abc/files/work/a.bin?signature=x", CONFINE_DOWNLOAD },
		{ OWN "/v1/sandboxes//files/a", CONFINE_REFUSE },
		{ OWN "/v1/sandboxes/abc/ports/8000/", CONFINE_REFUSE },
		{ OWN "/v1/sandboxes/abc/ports/8000/files/a", CONFINE_REFUSE },
		{ OWN "/v1/sandboxes/abc/filesystem", CONFINE_REFUSE },
		{ OWN "/v1/sandboxes", CONFINE_REFUSE },
		{ OWN "/mcp", CONFINE_REFUSE },
		{ OWN "/docs/../v1/sandboxes/abc/ports/80/", CONFINE_REFUSE },
		{ "blob:" OWN "/4f3c", CONFINE_DOWNLOAD },
		{ "blob:http://evil.example/4f3c", CONFINE_REFUSE },
		{ "blob:null/4f3c", CONFINE_REFUSE },
		{ "about:blank", CONFINE_FRAME },
		{ "about:srcdoc", CONFINE_FRAME },
		{ "about:config", CONFINE_REFUSE },
	};

	for (size_t i = 0; i < ELEMS(cases); i++)
		check(OWN, cases[i].uri, cases[i].where);
}

static void test_elsewhere(void **state)
{
	static const struct {
		const char *uri;
		enum confine where;
	} cases[] = {
		{ "https://example.com/a?b#c", CONFINE_BROWSER },
		{ "http://8000-abc.localhost:7080/", CONFINE_BROWSER },
		{ "http://127.0.0.1:70801/", CONFINE_BROWSER },
		{ "http://127.0.0.1:708/", CONFINE_BROWSER },
		{ "https://127.0.0.1:7080/", CONFINE_BROWSER },
		{ "http://127.0.0.1:7080.evil.example/", CONFINE_BROWSER },
		{ "http://127.0.0.1:7080@evil.example/", CONFINE_REFUSE },
		{ "http://user:secret@example.com/", CONFINE_REFUSE },
		{ "http://", CONFINE_REFUSE },
		{ "https:///path", CONFINE_REFUSE },
		{ "http://example.com/a b", CONFINE_REFUSE },
		{ "http://example.com/`id`", CONFINE_REFUSE },
		{ "http://example.com/\"; id", CONFINE_REFUSE },
		{ "http://example.com/\n", CONFINE_REFUSE },
		{ "http://b\xc3\xbc"
		  "cher.example/",
		  CONFINE_REFUSE },
		{ "file:///etc/passwd", CONFINE_REFUSE },
		{ "javascript:alert(1)", CONFINE_REFUSE },
		{ "data:text/html,x", CONFINE_REFUSE },
		{ "ftp://example.com/", CONFINE_REFUSE },
		{ "mailto:a@example.com", CONFINE_REFUSE },
		{ "-x", CONFINE_REFUSE },
		{ "", CONFINE_REFUSE },
	};
	char long_uri[8192] = "http://example.com/";

	for (size_t i = 0; i < ELEMS(cases); i++)
		check(OWN, cases[i].uri, cases[i].where);
	memset(long_uri + strlen(long_uri), 'a', sizeof(long_uri) - strlen(long_uri) - 1);
	check(OWN, long_uri, CONFINE_REFUSE);
	/* Before the daemon is known, nothing is its own. */
	check("", OWN "/", CONFINE_BROWSER);
	check("", "blob:x", CONFINE_REFUSE);
}

static void test_origin(void **state)
{
	static const struct {
		const char *url, *origin; /* NULL: refused */
	} cases[] = {
		{ "http://127.0.0.1:7080", OWN },
		{ "http://127.0.0.1:7080/", OWN },
		{ "http://Paddock.Example:80", "http://paddock.example" },
		{ "https://paddock.example:443/", "https://paddock.example" },
		{ "https://paddock.example", "https://paddock.example" },
		{ "https://paddock.example:80", "https://paddock.example:80" },
		{ "http://[::1]:7080", "http://[::1]:7080" },
		{ "http://[fe80::1]", "http://[fe80::1]" },
		{ "http://host7080", "http://host7080" },
		{ "ftp://x", NULL },
		{ "127.0.0.1:7080", NULL },
		{ "http://", NULL },
		{ "http://:80", NULL },
		{ "http://a b", NULL },
		{ "http://x:0", NULL },
		{ "http://x:65536", NULL },
		{ "http://x:99999999999", NULL },
		{ "http://u@x", NULL },
		{ "http://x/path", NULL },
		{ "http://x#y", NULL },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		char got[CONFINE_ORIGIN_MAX];
		struct err e = { 0 };
		int r = confine_origin(view_of(cases[i].url), got, &e);

		if ((r == 0) != (cases[i].origin != NULL))
			fail_msg("%s: %s", cases[i].url, r ? e.msg : got);
		if (r == 0)
			assert_string_equal(got, cases[i].origin);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_origin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
