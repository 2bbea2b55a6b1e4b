/*
 * Keystores (the vectors of the definition), HKDF (RFC 5869) and sealing (draft-irtf-cfrg-xchacha).
 */
#include "eth_rig.h"
#include "keystore.h"
#include "xseal.h"

#include "poison.h"

static const char pbkdf2[] =
	"{\"crypto\":{\"cipher\":\"aes-128-ctr\",\"cipherparams\":{\"iv\":"
	"\"6087dab2f9fdbbfaddc31a909735c1e6\"},"
	"\"ciphertext\":\"5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46\",\"kdf\":"
	"\"pbkdf2\","
	"\"kdfparams\":{\"c\":262144,\"dklen\":32,\"prf\":\"hmac-sha256\","
	"\"salt\":\"ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd\"},"
	"\"mac\":\"517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2\"},"
	"\"id\":\"3198bc9c-6672-5ab3-d995-4942343ae5b6\",\"version\":3}";
static const char scrypt[] =
	"{\"crypto\":{\"cipher\":\"aes-128-ctr\",\"cipherparams\":{\"iv\":"
	"\"83dbcc02d8ccb40e466191a123791e0e\"},"
	"\"ciphertext\":\"d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c\",\"kdf\":"
	"\"scrypt\","
	"\"kdfparams\":{\"dklen\":32,\"n\":262144,\"p\":8,\"r\":1,"
	"\"salt\":\"ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19\"},"
	"\"mac\":\"2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097\"},"
	"\"id\":\"3198bc9c-6672-5ab3-d995-4942343ae5b6\",\"version\":3}";
static const char secret[] = "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d";

static int setup(void **state)
{
	return sig_init() < 0 || xseal_init() < 0 ? -1 : 0;
}

static void test_vectors(void **state)
{
	const char *const files[] = { pbkdf2, scrypt };
	uint8_t key[SIG_KEY];

	for (size_t i = 0; i < ELEMS(files); i++) {
		struct err e = { 0 };
		assert_int_equal(keystore_open(view_of(files[i]), VIEW("testpassword"), key, &e), 0);
		assert_hex(key, sizeof(key), secret);
	}
	struct err e = { 0 };
	assert_int_equal(keystore_open(view_of(pbkdf2), VIEW("testpasswore"), key, &e), -1);
	assert_int_equal(e.code, ERR_UNAUTHORIZED);
}

static void test_round_trip(void **state)
{
	struct buf out = BUF_INIT(KEYSTORE_JSON_MAX);
	struct err e = { 0 };
	uint8_t key[SIG_KEY];

	assert_int_equal(keystore_make((const uint8_t *)unhex(secret).p, VIEW("pässword"), 4, &out, &e), 0);
	assert_null(memmem(buf_view(&out).p, buf_len(&out), secret, 64));
	assert_int_equal(keystore_open(buf_view(&out), VIEW("pässword"), key, &e), 0);
	assert_hex(key, sizeof(key), secret);
	buf_done(&out);
}

/* One text of the file for another. */
static void refused(const char *file, const char *was, const char *is)
{
	struct buf out = BUF_INIT(KEYSTORE_JSON_MAX);
	const char *at = strstr(file, was);
	struct err e = { 0 };
	uint8_t key[SIG_KEY];

	assert_non_null(at);
	buf_append(&out, file, (size_t)(at - file));
	buf_puts(&out, is);
	buf_puts(&out, at + strlen(was));
	assert_int_equal(keystore_open(buf_view(&out), VIEW("testpassword"), key, &e), -1);
	assert_true(e.code == ERR_INVALID || e.code == ERR_BAD_REQUEST);
	buf_done(&out);
}

static void test_refused(void **state)
{
	refused(scrypt, "262144", "1073741824"); /* 128 GiB */
	refused(scrypt, "262144", "262145");     /* not a power of two */
	refused(scrypt, "\"r\":1", "\"r\":1000");
	refused(scrypt, "\"p\":8", "\"p\":100000");
	refused(scrypt, "\"p\":8", "\"p\":0");
	refused(scrypt, "262144", "262144.5");
	refused(pbkdf2, "262144", "1000000000");
	refused(pbkdf2, "hmac-sha256", "hmac-md5");
	refused(pbkdf2, "aes-128-ctr", "aes-256-ctr");
	refused(pbkdf2, "\"version\":3", "\"version\":1");
	refused(pbkdf2, "\"version\":3", "\"version\":3,\"version\":3");
	refused(pbkdf2, "\"version\":3",
		"\"version\":3,\"address\":\"9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f\"");
	refused(pbkdf2, "\"version\":3", "\"version\":3,\"Crypto\":{}");
	refused(pbkdf2, "6087dab2f9fdbbfaddc31a909735c1e6", "6087");
	refused(pbkdf2, "\"dklen\":32", "\"dklen\":16");
}

static void test_hkdf(void **state)
{
	uint8_t out[42];

	assert_int_equal(xseal_hkdf(unhex("000102030405060708090a0b0c"),
				    unhex("0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b"),
				    unhex("f0f1f2f3f4f5f6f7f8f9"), out, 42),
			 0);
	assert_hex(out, 42,
		   "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
	assert_int_equal(xseal_hkdf(VIEW("tangle-sandbox-blueprint-paseto-v4"), VIEW("my-operator-secret"),
				    VIEW("session-auth-symmetric-key-v1"), out, 32),
			 0);
	assert_hex(out, 32, "21897edd0ae6a7cd36cd8ed0b059b4213c0447bcc9df3a4c89352440f4cbf871");
}

static void test_seal(void **state)
{
	static const char text[] =
		"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
		"future, sunscreen would be it.";
	const struct view vector = unhex("404142434445464748494a4b4c4d4e4f5051525354555657"
					 "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731"
					 "c7f1b0b4aa6440bf3a82f4eda7e39ae64c670"
					 "8c54c216cb96b72e1213b4522f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc36"
					 "9488f76b2383565d3fff921f9664c97637da9"
					 "768812f615c68b13b52ec0875924c1c7987947deafd8780acf49");
	uint8_t key[XSEAL_KEY];
	struct buf out = BUF_INIT(4096), sealed = BUF_INIT(4096);

	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(0x80 + i);
	assert_int_equal(xseal_open(key, unhex("50515253c0c1c2c3c4c5c6c7"), vector, &out), 0);
	assert_true(view_is(buf_view(&out), text));
	assert_int_equal(xseal_close(key, VIEW("a:b:1"), VIEW("secret"), &sealed), 0);
	buf_clear(&out);
	assert_int_equal(xseal_open(key, VIEW("a:b:2"), buf_view(&sealed), &out), -EBADMSG);
	for (size_t bit = 0; bit < 8 * buf_len(&sealed); bit++) {
		sealed.p[bit / 8] ^= (char)(1 << bit % 8);
		assert_int_equal(xseal_open(key, VIEW("a:b:1"), buf_view(&sealed), &out), -EBADMSG);
		sealed.p[bit / 8] ^= (char)(1 << bit % 8);
	}
	assert_int_equal(buf_len(&out), 0);
	assert_int_equal(xseal_open(key, VIEW("a:b:1"), buf_view(&sealed), &out), 0);
	assert_true(view_is(buf_view(&out), "secret"));
	assert_int_equal(xseal_open(key, VIEW("a:b:1"), VIEW("short"), &out), -EBADMSG);
	buf_done(&out);
	buf_done(&sealed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors), cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_hkdf),
		cmocka_unit_test(test_seal),
	};
	return cmocka_run_group_tests_name("eth_keystore", tests, setup, NULL);
}
