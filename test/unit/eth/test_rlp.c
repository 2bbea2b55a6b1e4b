/*
 * Keccak, RLP and addresses: the vectors of the standards, and what must be refused.
 */
#include "eth_rig.h"
#include "address.h"
#include "keccak.h"
#include "rlp.h"

#include "poison.h"

static void test_keccak(void **state)
{
	static const struct {
		const char *text, *hash;
	} cases[] = {
		{ "", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470" },
		{ "abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45" },
		{ "testing", "5f16f4c7f149ac4f9510d9cf8cf384038ad348b3bcdc01915f95de12df9d1b02" },
		{ "transfer(address,uint256)",
		  "a9059cbb2ab09eb219583f4a59a5d0623ade346d962bcd4e46b11da047c9049b" },
	};
	uint8_t hash[KECCAK_SIZE], pieces[KECCAK_SIZE];
	char long_text[700];

	for (size_t i = 0; i < ELEMS(cases); i++) {
		keccak_of(view_of(cases[i].text), hash);
		assert_hex(hash, sizeof(hash), cases[i].hash);
	}
	/* In pieces of every size, over several blocks. */
	memset(long_text, 'x', sizeof(long_text));
	keccak_of((struct view){ long_text, sizeof(long_text) }, hash);
	for (size_t piece = 1; piece < 300; piece += 7) {
		struct keccak k;
		keccak_init(&k);
		for (size_t at = 0; at < sizeof(long_text); at += piece)
			keccak_add(&k, long_text + at, MIN(piece, sizeof(long_text) - at));
		keccak_end(&k, pieces);
		assert_memory_equal(hash, pieces, sizeof(hash));
	}
}

/* "Lorem ipsum dolor sit amet, consectetur adipisicing elit": 56 bytes. */
#define LOREM                                                                                                \
	"b8384c6f72656d20697073756d20646f6c6f722073697420616d65742c20"                                       \
	"636f6e7365637465747572206164697069736963696e6720656c6974"

static void test_accepted(void **state)
{
	static const char *const good[] = {
		"80",
		"00",
		"0f",
		"7f",
		"8180",
		"820400",
		"83646f67",
		"c0",
		"c88363617483646f67",
		"c7c0c1c0c3c0c1c0",
		LOREM,
	};

	for (size_t i = 0; i < ELEMS(good); i++)
		assert_int_equal(rlp_check(unhex(good[i])), 0);
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"",     /* nothing */
		"8100", /* a byte that stands for itself */
		"817f",
		"b800", /* a long form for a short length */
		"b83700",
		"b90038", /* a length with a leading zero */
		"b8",     /* cut off */
		"83646f",
		"c883636174", /* a list that is cut off */
		"c28100",     /* not canonical within a list */
		"8080",       /* bytes behind the end */
		"f800",
		"bfffffffffffffffff",
		"ffffffffffffffffff",
		"bf8000000000000000",
	};
	char deep[64];

	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_int_equal(rlp_check(unhex(bad[i])), -EBADMSG);
	for (unsigned depth = 1; depth <= 20; depth++) {
		for (unsigned i = 0; i < depth; i++)
			deep[i] = (char)(0xc0 + depth - 1 - i);
		assert_int_equal(rlp_check((struct view){ deep, depth }), depth <= RLP_DEPTH ? 0 : -EBADMSG);
	}
}

static void test_numbers(void **state)
{
	uint64_t n = 1;
	struct view v = unhex("80");

	assert_int_equal(rlp_u64(&v, &n), 0);
	assert_int_equal(n, 0);
	v = unhex("00"); /* zero has no bytes */
	assert_int_equal(rlp_u64(&v, &n), -EBADMSG);
	v = unhex("820001");
	assert_int_equal(rlp_u64(&v, &n), -EBADMSG);
	v = unhex("89010000000000000000");
	assert_int_equal(rlp_u64(&v, &n), -EBADMSG);
	v = unhex("88ffffffffffffffff");
	assert_int_equal(rlp_u64(&v, &n), 0);
	assert_true(n == UINT64_MAX);
	v = unhex("c0");
	assert_int_equal(rlp_u64(&v, &n), -EBADMSG);
}

static void test_written(void **state)
{
	struct buf out = BUF_INIT(4096), items = BUF_INIT(4096);
	char text[300];

	rlp_put_bytes(&items, VIEW("cat"));
	rlp_put_bytes(&items, VIEW("dog"));
	rlp_put_list(&out, buf_view(&items));
	assert_hex(buf_view(&out).p, buf_len(&out), "c88363617483646f67");
	for (size_t n = 0; n < sizeof(text); n++) {
		struct rlp item;
		memset(text, 'a', n);
		buf_clear(&out);
		rlp_put_bytes(&out, (struct view){ text, n });
		assert_int_equal(rlp_only(buf_view(&out), &item), 0);
		assert_true(!item.list && view_eq(item.body, (struct view){ text, n }));
	}
	buf_clear(&out);
	rlp_put_u64(&out, 0);
	rlp_put_u64(&out, 1024);
	assert_hex(buf_view(&out).p, buf_len(&out), "80820400");
	buf_done(&out);
	buf_done(&items);
}

static void test_addresses(void **state)
{
	static const char *const good[] = {
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		"0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
		"0x52908400098527886E0F7030069857D2E4169EE7", "0xde709f2102306220921060314715629080e2fb77",
	};
	uint8_t a[ADDRESS_SIZE];
	char text[ADDRESS_TEXT];

	for (size_t i = 0; i < ELEMS(good); i++) {
		assert_int_equal(address_parse(view_of(good[i]), a), 0);
		address_text(a, text);
		assert_string_equal(text, good[i]);
	}
	assert_int_equal(address_parse(VIEW("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"), a), 0);
	assert_int_equal(address_parse(VIEW("0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED"), a), 0);
	assert_int_equal(address_parse(VIEW("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD"), a), -EBADMSG);
	assert_int_equal(address_parse(VIEW("5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"), a), -EINVAL);
	assert_int_equal(address_parse(VIEW("0X5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"), a), -EINVAL);
	assert_int_equal(address_parse(VIEW("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe"), a), -EINVAL);
	assert_int_equal(address_parse(VIEW("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAg0"), a), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keccak),  cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_written), cmocka_unit_test(test_addresses),
	};
	return cmocka_run_group_tests_name("eth_rlp", tests, NULL, NULL);
}
