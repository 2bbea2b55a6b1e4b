/*
 * Names and versions of catalogues, and how an index is signed.
 */
/* OpenSSL has a type of the same name as one of our error codes. */
#define ERR_STATE openssl_err_state
#include <openssl/evp.h>
#undef ERR_STATE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "catalogue.h"

#include "poison.h"

static void test_names(void **state)
{
	char name[64];

	assert_true(catalogue_name(VIEW("My Agent!"), name));
	assert_string_equal(name, "my-agent");
	assert_false(catalogue_name(VIEW("..//"), name));
	assert_true(catalogue_is_name(VIEW("a-1")));
	assert_false(catalogue_is_name(VIEW("-a")));
	assert_false(catalogue_is_name(VIEW("a/b")));
	assert_false(catalogue_is_name(VIEW("")));
}

static void test_versions(void **state)
{
	static const char *const rising[] = { "0.9.9",  "1.0.0-alpha", "1.0.0-beta", "1.0.0",
					      "1.0.10", "1.9.0",       "1.10.0",     "10.0.0" };

	for (size_t i = 0; i < ELEMS(rising); i++)
		for (size_t k = 0; k < ELEMS(rising); k++) {
			int r = catalogue_compare(view_of(rising[i]), view_of(rising[k]));
			assert_int_equal((r > 0) - (r < 0), (i > k) - (i < k));
		}
	assert_false(catalogue_is_version(VIEW("1.0")));
	assert_false(catalogue_is_version(VIEW("1.0.0/..")));
	assert_false(catalogue_is_version(VIEW("v1.0.0")));
	assert_false(catalogue_is_version(VIEW("1.0.9999999999")));
}

static void test_newest(void **state)
{
	struct catalogue_agent agents[] = { { .name = VIEW("a"), .version = VIEW("1.9.0") },
					    { .name = VIEW("a"), .version = VIEW("1.10.0") },
					    { .name = VIEW("a"), .version = VIEW("2.0.0-rc.1") },
					    { .name = VIEW("b"), .version = VIEW("3.0.0") } };
	const struct catalogue c = { .agents = agents, .n = ELEMS(agents) };

	assert_ptr_equal(catalogue_find(&c, VIEW("a"), VIEW_NONE), &agents[1]);
	assert_ptr_equal(catalogue_find(&c, VIEW("a"), VIEW("2.0.0-rc.1")), &agents[2]);
	assert_null(catalogue_find(&c, VIEW("c"), VIEW_NONE));
	assert_null(catalogue_find(&c, VIEW("a"), VIEW("3.0.0")));
}

static void test_signatures(void **state)
{
	char dir[] = "/tmp/catalogue-XXXXXX", path[64];
	uint8_t key[CATALOGUE_KEY], again[CATALOGUE_KEY], signature[CATALOGUE_SIGNATURE];
	struct err e = { 0 };

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/key", dir);
	assert_int_equal(catalogue_key_new(path, key, &e), 0);
	assert_int_equal(catalogue_key_new(path, again, &e), -1);
	e = (struct err){ 0 };
	assert_int_equal(catalogue_sign(path, VIEW("text"), signature, again, &e), 0);
	assert_memory_equal(key, again, sizeof(key));
	assert_true(catalogue_verify(key, VIEW("text"), signature));
	assert_false(catalogue_verify(key, VIEW("Text"), signature));
	for (size_t i = 0; i < sizeof(signature); i++) {
		signature[i] ^= 1;
		assert_false(catalogue_verify(key, VIEW("text"), signature));
		signature[i] ^= 1;
	}
	key[0] ^= 1;
	assert_false(catalogue_verify(key, VIEW("text"), signature));
	unlink(path);
	rmdir(dir);
}

/* As OpenSSL alone sees it. */
static bool fits_anyway(const uint8_t key[CATALOGUE_KEY], const char *text,
			const uint8_t signature[CATALOGUE_SIGNATURE])
{
	EVP_PKEY *k = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, CATALOGUE_KEY);
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	const bool fits = k && md && EVP_DigestVerifyInit(md, NULL, NULL, NULL, k) == 1 &&
			  EVP_DigestVerify(md, signature, CATALOGUE_SIGNATURE, (const unsigned char *)text,
					   strlen(text)) == 1;

	EVP_MD_CTX_free(md);
	EVP_PKEY_free(k);
	return fits;
}

/* R = 1 and S = 0 fit every text whose hash, times the key, is the neutral element. */
static void test_keys_of_small_order(void **state)
{
	static const char *const keys[] = {
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0000000000000000000000000000000000000000000000000000000000000080",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"0100000000000000000000000000000000000000000000000000000000000080",
	};
	static const uint8_t signature[CATALOGUE_SIGNATURE] = { 1 };
	unsigned forged = 0;

	for (size_t i = 0; i < ELEMS(keys); i++) {
		uint8_t key[CATALOGUE_KEY];
		bool ever = false;
		assert_true(catalogue_hex(view_of(keys[i]), key, sizeof(key)));
		for (unsigned n = 0; n < 256; n++) {
			char text[16];
			snprintf(text, sizeof(text), "text %u", n);
			ever |= fits_anyway(key, text, signature);
			assert_false(catalogue_verify(key, view_of(text), signature));
		}
		forged += ever;
	}
	assert_true(forged >= 12); /* the control: without our own look these are forgeries */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_newest),
		cmocka_unit_test(test_signatures),
		cmocka_unit_test(test_keys_of_small_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
