/*
 * Words of BIP-39: the list by its hash, the vectors of the reference implementation, and what is refused.
 */
#include "bip39.h"
#include "bip39_vectors.h"
#include "eth_rig.h"
#include "sha256.h"

#include "poison.h"

static const char junk[] = "test test test test test test test test test test test junk";

static int setup(void **state)
{
	return sig_init() < 0 ? -1 : 0;
}

static void test_list(void **state)
{
	struct sha256 h;
	uint8_t hash[32];

	sha256_init(&h);
	for (size_t i = 0; i < BIP39_WORDS; i++) {
		sha256_add(&h, bip39_words[i], strlen(bip39_words[i]));
		sha256_add(&h, "\n", 1);
		assert_true(i == 0 || strcmp(bip39_words[i - 1], bip39_words[i]) < 0);
	}
	sha256_end(&h, hash);
	assert_hex(hash, sizeof(hash), "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda");
}

static void test_vectors(void **state)
{
	for (size_t i = 0; i < ELEMS(bip39_vectors); i++) {
		const struct view entropy = unhex(bip39_vectors[i].entropy);
		char text[BIP39_TEXT], again[BIP39_TEXT];
		uint8_t back[BIP39_ENTROPY], seed[BIP39_SEED];
		struct err e = { 0 };
		size_t n;

		assert_int_equal(bip39_write((const uint8_t *)entropy.p, entropy.n, text), 0);
		assert_string_equal(text, bip39_vectors[i].words);
		assert_int_equal(bip39_read(view_of(text), again, back, &n, &e), 0);
		assert_string_equal(again, text);
		assert_int_equal(n, entropy.n);
		assert_memory_equal(back, unhex(bip39_vectors[i].entropy).p, n);
		assert_int_equal(bip39_seed(again, VIEW("TREZOR"), seed, &e), 0);
		assert_hex(seed, sizeof(seed), bip39_vectors[i].seed);
	}
}

static void refused(const char *text, const char *why)
{
	char out[BIP39_TEXT];
	uint8_t entropy[BIP39_ENTROPY];
	struct err e = { 0 };
	size_t n;

	assert_int_equal(bip39_read(view_of(text), out, entropy, &n, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_non_null(strstr(e.msg, why));
}

static void test_refused(void **state)
{
	refused("", "there must be");
	refused("test test", "there must be");
	refused("test test test test test test test test test test test test test junk", "there must be");
	refused("test test test test test test test test test test test test", "do not belong together");
	refused("test test test test test test test test test test junk test", "do not belong together");
	refused("test test test test testt test test test test test test junk", "word 5");
	refused("test test test test test test test test test test test jun", "word 12");
	refused("test test test test test test test test test test test j\xc3\xbcnk", "word 12");
	refused("abandonabandon", "word 1");
	for (unsigned i = 0; i < 300; i++) { /* more than 24 */
		static char many[1600];
		memcpy(many + 5 * i, "test ", 5);
		if (i >= 24)
			refused(many, "there must be");
	}
}

static void test_forms(void **state)
{
	char text[BIP39_TEXT];
	uint8_t entropy[BIP39_ENTROPY], seed[BIP39_SEED], key[SIG_KEY];
	struct err e = { 0 };
	size_t n;

	assert_int_equal(
		bip39_read(VIEW("  TEST\ttest Test test test test\n test test test test test JUNK\r\n"), text,
			   entropy, &n, &e),
		0);
	assert_string_equal(text, junk);
	assert_int_equal(n, 16);
	assert_int_equal(bip39_seed(text, VIEW(""), seed, &e), 0);
	assert_int_equal(bip39_account(seed, 0, key, &e), 0);
	assert_hex(key, sizeof(key), "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
	assert_int_equal(bip39_account(seed, 9, key, &e), 0);
	assert_hex(key, sizeof(key), "2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6");
	assert_int_equal(bip39_account(seed, 0x80000000u, key, &e), -1);
	assert_int_equal(bip39_seed(text, VIEW("p\xc3\xa4ss"), seed, &e), -1);
	assert_int_equal(bip39_write(entropy, 17, text), -EINVAL);
	assert_int_equal(bip39_write(entropy, 12, text), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_list), cmocka_unit_test(test_vectors),
					    cmocka_unit_test(test_refused), cmocka_unit_test(test_forms) };

	return cmocka_run_group_tests(tests, setup, NULL);
}
