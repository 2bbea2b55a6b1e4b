/*
 * SHA-256: the vectors of FIPS 180-4, and sha256sum as an oracle over every length
 * from 0 to 300 (all positions of the padding, several times).
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "fd.h"
#include "rnd.h"
#include "sha256.h"
#include "text.h"
#include "poison.h"

static void check(struct view v, const char *want)
{
	uint8_t d[SHA256_SIZE];
	char hex[2 * SHA256_SIZE + 1];
	sha256_of(v, d);
	text_hex(d, sizeof(d), hex);
	assert_string_equal(hex, want);
}

static void test_vectors(void **state)
{
	check(VIEW_NONE, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check(VIEW("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	check(VIEW("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
	      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	check(VIEW("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
		   "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
	      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
	char *million = malloc(1000000);
	assert_non_null(million);
	memset(million, 'a', 1000000);
	check((struct view){ million, 1000000 },
	      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(million);
}

/* RFC 4231: short keys, and one that is longer than a block. */
static void test_hmac(void **state)
{
	static const struct {
		const char *key, *text, *want;
	} cases[] = {
		{ "\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b",
		  "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
		{ "Jefe", "what do ya want for nothing?",
		  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
		{ NULL, "Test Using Larger Than Block-Size Key - Hash Key First",
		  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
	};
	char longest[131], hex[2 * SHA256_SIZE + 1];
	uint8_t d[SHA256_SIZE];

	memset(longest, 0xaa, sizeof(longest));
	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct view key =
			cases[i].key ? view_of(cases[i].key) : (struct view){ longest, sizeof(longest) };
		sha256_hmac(key, view_of(cases[i].text), d);
		text_hex(d, sizeof(d), hex);
		assert_string_equal(hex, cases[i].want);
	}
}

/* One sha256sum for all files: its start costs more than its work. */
static void test_oracle(void **state)
{
	enum { LENGTHS = 301 };
	char dir[] = "/tmp/paddock-test-sha256-XXXXXX", path[64], cmd[128], bytes[LENGTHS];
	assert_non_null(mkdtemp(dir));
	rnd_bytes(bytes, sizeof(bytes));
	for (int n = 0; n < LENGTHS; n++) {
		snprintf(path, sizeof(path), "%s/%03d", dir, n);
		assert_int_equal(fd_replace(AT_FDCWD, path, bytes, (size_t)n, 0600, false), 0);
	}
	snprintf(cmd, sizeof(cmd), "cd %s && sha256sum *", dir);
	FILE *f = popen(cmd, "re");
	assert_non_null(f);
	char line[160];
	int n = 0;
	while (fgets(line, sizeof(line), f)) {
		line[64] = 0;
		check((struct view){ bytes, (size_t)n++ }, line);
	}
	assert_int_equal(pclose(f), 0);
	assert_int_equal(n, LENGTHS);
	for (n = 0; n < LENGTHS; n++) {
		snprintf(path, sizeof(path), "%s/%03d", dir, n);
		unlink(path);
	}
	assert_int_equal(rmdir(dir), 0);
}

/* In pieces of any size it is the same as in one. */
static void test_pieces(void **state)
{
	char bytes[1000];
	uint8_t whole[SHA256_SIZE], parts[SHA256_SIZE];
	rnd_bytes(bytes, sizeof(bytes));
	sha256_of((struct view){ bytes, sizeof(bytes) }, whole);
	for (size_t step = 1; step < 200; step++) {
		struct sha256 s;
		sha256_init(&s);
		for (size_t at = 0; at < sizeof(bytes); at += step) {
			sha256_add(&s, NULL, 0);
			sha256_add(&s, bytes + at, MIN(step, sizeof(bytes) - at));
		}
		sha256_end(&s, parts);
		assert_memory_equal(parts, whole, sizeof(whole));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_hmac),
		cmocka_unit_test(test_oracle),
		cmocka_unit_test(test_pieces),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
