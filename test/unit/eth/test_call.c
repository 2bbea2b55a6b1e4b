/*
 * Calls: every selector is that of its signature; what each kind spends; what is refused as unknown.
 */
#include <stdio.h>

#include "eth_rig.h"
#include "abi.h"
#include "call.h"
#include "keccak.h"

#include "poison.h"

#define US       "000000000000000000000000f39fd6e51aad88f6f4ce6ab8827279cfffb92266"
#define OTHER    "00000000000000000000000070997970c51812dc3a010c7d01b50e0d17dc79c8"
#define TOKEN    "5fbdb2315678afecb367f032d93f642f64180aa3"
#define ZERO     "0000000000000000000000000000000000000000000000000000000000000000"
#define ONE      "0000000000000000000000000000000000000000000000000000000000000001"
#define HUNDRED  "0000000000000000000000000000000000000000000000000000000000000064"
#define FULL     "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
#define X20      "0000000000000000000000000000000000000000000000000000000000000020"
#define X40      "0000000000000000000000000000000000000000000000000000000000000040"
#define X44      "0000000000000000000000000000000000000000000000000000000000000044"
#define X60      "0000000000000000000000000000000000000000000000000000000000000060"
#define PAD28    "00000000000000000000000000000000000000000000000000000000"
#define TRANSFER "a9059cbb" OTHER HUNDRED

static void read_hex(const char *data, uint64_t value, struct call *ret)
{
	const struct call_input in = { .account = (const uint8_t *)unhex(&US[24]).p,
				       .to = (const uint8_t *)unhex(TOKEN).p,
				       .value = u256_of(value),
				       .data = unhex(data) };

	call_read(&in, ret);
	buf_done(&ret->tree);
}

static void test_selectors(void **state)
{
	size_t n = 0;

	for (const struct call_selector *s; (s = call_selector_at(n)); n++) {
		char text[300];
		uint8_t hash[KECCAK_SIZE];
		snprintf(text, sizeof(text), "%s(%s)", s->name, s->types);
		keccak_of(view_of(text), hash);
		if (memcmp(hash, s->bytes, 4) != 0)
			fail_msg("%s is %02x%02x%02x%02x", text, hash[0], hash[1], hash[2], hash[3]);
	}
	assert_int_equal(n, 38);
}

static void test_plain(void **state)
{
	static const struct {
		const char *data;
		enum call_class class;
		unsigned n; /* effects, without a value */
		uint64_t amount;
		bool approval, unlimited, erc20;
	} cases[] = {
		{ "", CALL_NATIVE, 0, 0, false, false, false },
		{ TRANSFER, CALL_ERC20_TRANSFER, 1, 100, false, false, true },
		{ "23b872dd" US OTHER HUNDRED, CALL_ERC20_TRANSFER, 1, 100, false, false, true },
		{ "23b872dd" OTHER US HUNDRED, CALL_ERC20_TRANSFER, 0, 0, false, false, true },
		/* Somebody else's, who lets us; and the token 0 of an ERC-721. */
		{ "23b872dd" OTHER OTHER HUNDRED, CALL_ERC20_TRANSFER, 1, 100, false, false, true },
		{ "23b872dd" US OTHER ZERO, CALL_ERC20_TRANSFER, 1, 1, false, false, true },
		{ "095ea7b3" OTHER HUNDRED, CALL_APPROVAL, 1, 100, true, false, true },
		{ "095ea7b3" OTHER ZERO, CALL_APPROVAL, 1, 0, true, false, true },
		{ "095ea7b3" OTHER FULL, CALL_APPROVAL, 1, UINT64_MAX, true, true, true },
		{ "a22cb465" OTHER ZERO, CALL_APPROVAL, 0, 0, false, false, false },
		{ "42842e0e" US OTHER HUNDRED, CALL_NFT, 1, 1, false, false, false },
		{ "d0e30db0", CALL_WRAPPED, 0, 0, false, false, false },
		{ "42966c68" HUNDRED, CALL_ERC20_TRANSFER, 1, 100, false, false, true },
		{ "12345678", CALL_UNKNOWN, 0, 0, false, false, false },
		{ "a905", CALL_UNKNOWN, 0, 0, false, false, false },
		/* Not what an encoder writes: a byte more, a byte less, dirt above an address. */
		{ TRANSFER "00", CALL_UNKNOWN, 0, 0, false, false, false },
		{ "a9059cbb" OTHER "0000000000000000000000000000000000000000000000000000000000000064" ZERO,
		  CALL_UNKNOWN, 0, 0, false, false, false },
		{ "a9059cbb" OTHER "00000000000000000000000000000000000000000000000000000000000064",
		  CALL_UNKNOWN, 0, 0, false, false, false },
		{ "a9059cbb"
		  "00000000000000000000000170997970c51812dc3a010c7d01b50e0d17dc79c8" HUNDRED,
		  CALL_UNKNOWN, 0, 0, false, false, false },
		/* A bool that is 2. */
		{ "a22cb465" OTHER "0000000000000000000000000000000000000000000000000000000000000002",
		  CALL_UNKNOWN, 0, 0, false, false, false },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct call c;
		read_hex(cases[i].data, 0, &c);
		if (c.class != cases[i].class || c.n != cases[i].n)
			fail_msg("%s: %s, %u effects", cases[i].data, call_class_name(c.class), c.n);
		assert_int_equal(c.erc20, cases[i].erc20);
		if (c.n) {
			assert_true(c.effects[0].amount.w[0] == cases[i].amount);
			assert_int_equal(c.effects[0].approval, cases[i].approval);
			assert_int_equal(c.effects[0].unlimited, cases[i].unlimited);
			assert_hex(c.effects[0].asset, 20, TOKEN);
		}
		/* The value counts beside whatever the call says. */
		read_hex(cases[i].data, 5, &c);
		assert_int_equal(c.n, cases[i].n + 1);
		assert_true(address_eq(c.effects[c.n - 1].asset, address_native));
		assert_int_equal(c.effects[c.n - 1].amount.w[0], 5);
	}
}

static void test_wrapped(void **state)
{
	struct call c;

	/* multicall([transfer]) */
	read_hex("ac9650d8" X20 ONE X20 X44 TRANSFER PAD28, 0, &c);
	assert_int_equal(c.class, CALL_WRAPPED);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.effects[0].amount.w[0], 100);
	assert_false(c.erc20);
	/* multicall([unknown]) */
	read_hex("ac9650d8" X20 ONE X20 "0000000000000000000000000000000000000000000000000000000000000004"
		 "12345678" PAD28,
		 0, &c);
	assert_int_equal(c.class, CALL_UNKNOWN);
	/* execute(other, 100, ""): a value within; the larger of the two counts */
	read_hex("b61d27f6" OTHER HUNDRED X60 ZERO, 7, &c);
	assert_int_equal(c.class, CALL_WRAPPED);
	assert_int_equal(c.n, 1);
	assert_true(c.effects[0].target && !c.effects[0].opaque);
	assert_hex(c.effects[0].to, 20, &OTHER[24]);
	assert_true(address_eq(c.effects[0].asset, address_native));
	assert_int_equal(c.effects[0].amount.w[0], 100);
	/* execute(token, 0, transfer): the token is the inner target */
	read_hex("b61d27f6" OTHER ZERO X60 X44 TRANSFER PAD28, 0, &c);
	assert_int_equal(c.n, 2);
	assert_hex(c.effects[0].asset, 20, &OTHER[24]);
	assert_false(c.effects[0].target);
	assert_true(c.effects[1].target && u256_is_zero(&c.effects[1].amount));
	assert_hex(c.effects[1].to, 20, &OTHER[24]);
	/* Who gives an allowance: with multicall our account, with execute the contract that calls the token.
	 */
	read_hex("ac9650d8" X20 ONE X20 X44 "095ea7b3" OTHER HUNDRED PAD28, 0, &c);
	assert_int_equal(c.n, 1);
	assert_true(c.effects[0].approval && !c.effects[0].others);
	assert_hex(c.effects[0].keeper, 20, TOKEN);
	read_hex("b61d27f6" OTHER ZERO X60 X44 "095ea7b3" OTHER HUNDRED PAD28, 0, &c);
	assert_int_equal(c.n, 2);
	assert_true(c.effects[0].approval && c.effects[0].others);
	assert_hex(c.effects[0].keeper, 20, &OTHER[24]);
	/* Permit2 keeps it, of the token that is named */
	read_hex("87517c45" OTHER OTHER HUNDRED ONE, 0, &c);
	assert_int_equal(c.n, 1);
	assert_hex(c.effects[0].asset, 20, &OTHER[24]);
	assert_hex(c.effects[0].keeper, 20, TOKEN);
	assert_false(c.effects[0].others);
	/* ERC-7579, a delegated call */
	read_hex("e9ae5c53" FULL X40 ZERO, 0, &c);
	assert_int_equal(c.class, CALL_DANGEROUS);
	/* ERC-7579, one call, packed */
	read_hex("e9ae5c53" ZERO X40 "0000000000000000000000000000000000000000000000000000000000000034"
		 "70997970c51812dc3a010c7d01b50e0d17dc79c8" HUNDRED "000000000000000000000000",
		 0, &c);
	assert_int_equal(c.class, CALL_WRAPPED);
	assert_int_equal(c.effects[0].amount.w[0], 100);
	/* multiSend of a delegated call */
	read_hex("8d80ff0a" X20 "0000000000000000000000000000000000000000000000000000000000000055"
		 "0170997970c51812dc3a010c7d01b50e0d17dc79c8" HUNDRED ZERO "0000000000000000000000",
		 0, &c);
	assert_int_equal(c.class, CALL_DANGEROUS);
	assert_int_equal(c.effects[0].amount.w[0], 100);
}

static void test_targets(void **state)
{
	struct call c;

	/* Who gets control: an operator, an owner. The value stands before them. */
	read_hex("a22cb465" OTHER ONE, 5, &c);
	assert_int_equal(c.class, CALL_DANGEROUS);
	assert_int_equal(c.n, 2);
	assert_int_equal(c.effects[0].amount.w[0], 5);
	assert_false(c.effects[0].target);
	assert_true(c.effects[1].target && u256_is_zero(&c.effects[1].amount));
	assert_hex(c.effects[1].to, 20, &OTHER[24]);
	read_hex("f2fde38b" OTHER, 0, &c);
	assert_int_equal(c.n, 1);
	assert_true(c.effects[0].target && call_reaches(&c.effects[0]));
	/* execute(other, 3, unknown), with 10: three go to `other`, whose call nobody can read; the rest
	 * stays. */
	read_hex("b61d27f6" OTHER "0000000000000000000000000000000000000000000000000000000000000003" X60
		 "0000000000000000000000000000000000000000000000000000000000000004"
		 "12345678" PAD28,
		 10, &c);
	assert_int_equal(c.class, CALL_UNKNOWN);
	assert_int_equal(c.n, 2);
	assert_true(c.effects[0].target && c.effects[0].opaque);
	assert_int_equal(c.effects[0].amount.w[0], 3);
	assert_hex(c.effects[1].to, 20, TOKEN);
	assert_int_equal(c.effects[1].amount.w[0], 7);
	/* multicall([unknown]) calls the contract itself, which is the outermost. */
	read_hex("ac9650d8" X20 ONE X20 "0000000000000000000000000000000000000000000000000000000000000004"
		 "12345678" PAD28,
		 0, &c);
	assert_int_equal(c.n, 0);
}

static void put_word(struct buf *b, uint64_t v)
{
	char word[32];
	const struct u256 n = u256_of(v);

	u256_store(&n, word);
	buf_append(b, word, sizeof(word));
}

/* multicall within multicall, around a transfer: four are looked into, five are unknown. */
static void test_deep(void **state)
{
	for (unsigned depth = 1; depth <= 6; depth++) {
		struct buf data = BUF_INIT(1 << 16), outer = BUF_INIT(1 << 16);
		struct call c;
		buf_add(&data, unhex(TRANSFER));
		for (unsigned i = 0; i < depth; i++) {
			const size_t n = buf_len(&data);
			buf_clear(&outer);
			buf_add(&outer, unhex("ac9650d8"));
			put_word(&outer, 0x20);
			put_word(&outer, 1);
			put_word(&outer, 0x20);
			put_word(&outer, n);
			buf_add(&outer, buf_view(&data));
			for (size_t k = n; k % 32; k++)
				buf_putc(&outer, 0);
			buf_clear(&data);
			buf_add(&data, buf_view(&outer));
		}
		const struct call_input in = { .account = address_zero,
					       .to = address_native,
					       .data = buf_view(&data) };
		call_read(&in, &c);
		assert_int_equal(c.class, depth <= CALL_DEPTH ? CALL_WRAPPED : CALL_UNKNOWN);
		assert_int_equal(c.n, depth <= CALL_DEPTH ? 1 : 0);
		buf_done(&c.tree);
		buf_done(&data);
		buf_done(&outer);
	}
}

static void test_creation(void **state)
{
	const struct call_input in = {
		.account = address_zero, .to = NULL, .value = u256_of(1), .data = VIEW("\x60")
	};
	struct call c;

	call_read(&in, &c);
	assert_int_equal(c.class, CALL_CREATION);
	assert_int_equal(c.n, 1);
	buf_done(&c.tree);
}

static void test_abi(void **state)
{
	static const struct {
		const char *types, *data;
		int r;
	} cases[] = {
		{ "", "", 0 },
		{ "uint8", "00000000000000000000000000000000000000000000000000000000000000ff", 0 },
		{ "uint8", "0000000000000000000000000000000000000000000000000000000000000100", -EBADMSG },
		{ "int8", "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff80", 0 },
		{ "int8", "0000000000000000000000000000000000000000000000000000000000000080", -EBADMSG },
		{ "bytes4", "1234567800000000000000000000000000000000000000000000000000000000", 0 },
		{ "bytes4", "1234567801000000000000000000000000000000000000000000000000000000", -EBADMSG },
		{ "bytes", X20 ONE "6100000000000000000000000000000000000000000000000000000000000000", 0 },
		{ "bytes", X20 ONE "6101000000000000000000000000000000000000000000000000000000000000",
		  -EBADMSG },
		{ "bytes", X20 ONE "61", -EBADMSG },
		{ "bytes", X40 ZERO ONE "6100000000000000000000000000000000000000000000000000000000000000",
		  -EBADMSG },
		{ "bytes", ZERO, -EBADMSG }, /* an offset to itself */
		{ "bytes", X20 FULL, -EBADMSG },
		{ "uint256[]", X20 FULL, -EBADMSG },
		{ "uint256[]", X20 ONE ONE, 0 },
		{ "uint256[]", X20 ONE, -EBADMSG },
		{ "uint256[2]", ONE ONE, 0 },
		{ "(uint256,bytes)[]", X20 ONE X20 ONE X40 ZERO, 0 },
		{ "bytes,bytes", X40 X40 ZERO, -EBADMSG }, /* two that share their bytes */
		{ "bytes,bytes", X40 X60 ZERO ZERO, 0 },
		{ "bytes,bytes", X60 X40 ZERO ZERO, -EBADMSG }, /* out of order */
		{ "uint7", ONE, -EINVAL },
		{ "word", ONE, -EINVAL },
	};

	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct arena a = ARENA_INIT(1 << 20);
		struct abi v;
		int r = abi_decode(&a, cases[i].types, unhex(cases[i].data), &v);
		if (r != cases[i].r)
			fail_msg("%s of %s: %d", cases[i].types, cases[i].data, r);
		arena_done(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_selectors), cmocka_unit_test(test_plain),
		cmocka_unit_test(test_wrapped),   cmocka_unit_test(test_targets),
		cmocka_unit_test(test_deep),      cmocka_unit_test(test_creation),
		cmocka_unit_test(test_abi),
	};
	return cmocka_run_group_tests_name("eth_call", tests, NULL, NULL);
}
