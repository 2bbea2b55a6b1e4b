/*
 * Transactions and signatures: the vectors of EIP-155, 191, 1559 and 2930, and what must be refused.
 */
#include "eth_rig.h"
#include "rlp.h"
#include "tx.h"

#include "poison.h"

static const char key0[] = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
static const char eip155[] = "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76"
			     "400008025a028ef61340bd939bc21"
			     "95fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800c"
			     "cf555c9f3dc64214b297fb1966a3b"
			     "6d83";

static int setup(void **state)
{
	return sig_init();
}

static void test_eip155(void **state)
{
	struct tx t = { 0 }, back;
	struct buf out = BUF_INIT(TX_RAW_MAX);
	uint8_t hash[SIG_HASH], sender[ADDRESS_SIZE];
	const struct view key = unhex("4646464646464646464646464646464646464646464646464646464646464646");

	t.nonce = 9;
	t.chain = 1;
	t.gas = 21000;
	t.price = u256_of(20000000000);
	t.value = u256_of(1000000000000000000);
	t.data = t.access = VIEW("");
	memset(t.to, 0x35, sizeof(t.to));
	assert_int_equal(tx_sign_hash(&t, hash), 0);
	assert_hex(hash, sizeof(hash), "daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53");
	assert_int_equal(tx_sign(&t, (const uint8_t *)key.p), 0);
	assert_int_equal(tx_encode(&t, &out), 0);
	assert_hex(buf_view(&out).p, buf_len(&out), eip155);
	assert_int_equal(tx_decode(buf_view(&out), &back), 0);
	assert_true(back.is_signed && !back.unprotected && back.chain == 1 && back.nonce == 9 &&
		    back.gas == 21000);
	assert_int_equal(tx_sender(&back, sender), 0);
	assert_hex(sender, sizeof(sender), "9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f");
	/* As it is hashed: with the chain and two zeros. */
	buf_clear(&out);
	back.is_signed = false;
	assert_int_equal(tx_encode(&back, &out), 0);
	assert_int_equal(tx_decode(buf_view(&out), &back), 0);
	assert_true(!back.is_signed && back.chain == 1);
	buf_done(&out);
}

static struct tx sample(uint8_t type)
{
	struct tx t = {
		.type = type, .chain = 31337, .nonce = 7, .gas = 21000, .data = VIEW(""), .access = VIEW("")
	};

	t.price = u256_of(type == TX_BASE_FEE ? 3000000000 : 2000000000);
	t.priority = u256_of(1000000000);
	t.value = u256_of(1000000000000000);
	memcpy(t.to, unhex("70997970c51812dc3a010c7d01b50e0d17dc79c8").p, ADDRESS_SIZE);
	return t;
}

static void test_types(void **state)
{
	static const char *const hashes[] = {
		[0] = "07812b4fc77e2397207f315bf66da0f7571b8ae35931e3be720c2274a535f414",
		[2] = "fbb951ae17827b81526f6b80ead1a28684d86f19e9aaa49d40b7ba39af759ba7",
	};

	for (uint8_t type = 0; type < 3; type++) {
		struct tx t = sample(type), back;
		struct buf out = BUF_INIT(TX_RAW_MAX), again = BUF_INIT(TX_RAW_MAX);
		uint8_t hash[SIG_HASH], sender[ADDRESS_SIZE];
		if (type == 1) /* one address with one key */
			t.access = unhex("f79470997970c51812dc3a010c7d01b50e0d17dc79c8e1a0"
					 "0000000000000000000000000000000000000000000000000000000000000001");
		assert_int_equal(tx_sign(&t, (const uint8_t *)unhex(key0).p), 0);
		assert_int_equal(tx_encode(&t, &out), 0);
		assert_int_equal(tx_hash(&t, hash), 0);
		if (hashes[type])
			assert_hex(hash, sizeof(hash), hashes[type]);
		assert_int_equal(tx_decode(buf_view(&out), &back), 0);
		assert_true(back.type == type && back.is_signed && back.chain == 31337 && !back.creation);
		assert_int_equal(tx_sender(&back, sender), 0);
		assert_hex(sender, sizeof(sender), "f39fd6e51aad88f6f4ce6ab8827279cfffb92266");
		assert_int_equal(tx_encode(&back, &again), 0);
		assert_true(view_eq(buf_view(&out), buf_view(&again)));
		/* A byte more or less is not a transaction. */
		buf_putc(&again, 0);
		assert_int_equal(tx_decode(buf_view(&again), &back), -EBADMSG);
		assert_int_equal(tx_decode(view_head(buf_view(&out), buf_len(&out) - 1), &back), -EBADMSG);
		buf_done(&out);
		buf_done(&again);
	}
}

static void test_never_signed(void **state)
{
	struct tx t = sample(TX_LEGACY), back;
	const uint8_t *key = (const uint8_t *)unhex(key0).p;
	struct buf out = BUF_INIT(TX_RAW_MAX);

	t.chain = 0;
	t.unprotected = true;
	assert_int_equal(tx_sign(&t, key), -EINVAL);
	t.unprotected = false; /* a chain without a number */
	assert_int_equal(tx_sign(&t, key), -EINVAL);
	t = sample(TX_SET_CODE);
	assert_int_equal(tx_sign(&t, key), -EINVAL);
	t = sample(3);
	assert_int_equal(tx_sign(&t, key), -EINVAL);
	t = sample(TX_BASE_FEE);
	t.nonce = UINT64_MAX;
	assert_int_equal(tx_sign(&t, key), -EINVAL);
	assert_false(t.is_signed);
	t = sample(TX_BASE_FEE);
	t.priority = u256_of(3000000001); /* above the highest fee */
	assert_int_equal(tx_sign(&t, key), -EINVAL);
	assert_int_equal(tx_decode(unhex("02df0180825208010294709979"
					 "70c51812dc3a3a0c7d01b50e0d17dc79c88080c0"),
				   &back),
			 -EBADMSG);
	assert_int_equal(tx_decode(unhex("03c0"), &back), -EOPNOTSUPP);
	assert_int_equal(tx_decode(unhex("05c0"), &back), -EOPNOTSUPP);
	assert_int_equal(tx_decode(unhex("02c0"), &back), -EBADMSG);
	buf_done(&out);
}

/* EIP-7702: it is recognised for what it is. */
static void test_set_code(void **state)
{
	struct buf items = BUF_INIT(4096), entry = BUF_INIT(4096), list = BUF_INIT(4096),
		   raw = BUF_INIT(4096);
	struct tx t;

	rlp_put_u64(&entry, 1);
	rlp_put_bytes(&entry, unhex("70997970c51812dc3a010c7d01b50e0d17dc79c8"));
	rlp_put_u64(&entry, 0);
	rlp_put_u64(&entry, 1);
	rlp_put_u64(&entry, 5);
	rlp_put_u64(&entry, 6);
	rlp_put_list(&list, buf_view(&entry));
	for (unsigned i = 0; i < 5; i++) /* chain, nonce, two fees, gas */
		rlp_put_u64(&items, i + 1);
	rlp_put_bytes(&items, unhex("70997970c51812dc3a010c7d01b50e0d17dc79c8"));
	rlp_put_u64(&items, 0);
	rlp_put_bytes(&items, VIEW(""));
	rlp_put_list(&items, VIEW(""));
	rlp_put_list(&items, buf_view(&list));
	buf_putc(&raw, TX_SET_CODE);
	rlp_put_list(&raw, buf_view(&items));
	assert_int_equal(tx_decode(buf_view(&raw), &t), 0);
	assert_true(t.type == TX_SET_CODE && t.authorizations.n);
	assert_int_equal(tx_encode(&t, &items), -EINVAL);
	buf_done(&items);
	buf_done(&entry);
	buf_done(&list);
	buf_done(&raw);
}

static void test_signatures(void **state)
{
	static const char siwe[] =
		"localhost:8765 wants you to sign in with your Ethereum account:\n"
		"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266\n\nSign in to the sandbox daemon.\n\n"
		"URI: http://localhost:8765\nVersion: 1\nChain ID: 31337\nNonce: 32891756abcdef01\n"
		"Issued At: 2026-11-15T00:00:00.000Z\nExpiration Time: 2026-11-15T00:05:00.000Z\n"
		"Request ID: req-1\nResources:\n- urn:sandboxd:role:admin";
	uint8_t hash[SIG_HASH], bytes[SIG_SIZE], address[ADDRESS_SIZE];
	struct sig s;

	sig_message_hash(view_of(siwe), hash);
	assert_hex(hash, sizeof(hash), "2279c47905b0a49ee8d852d3ded477cb4c85327e93288db522de2d0522de7506");
	assert_int_equal(sig_sign((const uint8_t *)unhex(key0).p, hash, &s), 0);
	sig_store(&s, bytes);
	assert_hex(bytes, sizeof(bytes),
		   "18eec049ce9d0a0d888e8e42a60d4bb0d002a3477dee84b29525a3c429f2964d4380101fcab75b911d87c8c1f"
		   "b6c6205d87b"
		   "3852a3b4937a00213625e57962301b");
	assert_int_equal(sig_load((struct view){ (const char *)bytes, sizeof(bytes) }, &s), 0);
	assert_int_equal(sig_recover(&s, hash, address), 0);
	assert_hex(address, sizeof(address), "f39fd6e51aad88f6f4ce6ab8827279cfffb92266");
	/* The twin with a high s: order - s. */
	const struct u256 order =
		u256_load(unhex("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141").p);
	assert_int_equal(u256_sub(&order, &s.s, &s.s), 0);
	s.y ^= 1;
	assert_int_equal(sig_recover(&s, hash, address), -EBADMSG);
	s.s = s.r = U256_ZERO;
	assert_int_equal(sig_recover(&s, hash, address), -EBADMSG);
	bytes[64] = 29;
	assert_int_equal(sig_load((struct view){ (const char *)bytes, sizeof(bytes) }, &s), -EBADMSG);
	assert_int_equal(sig_load((struct view){ (const char *)bytes, 64 }, &s), -EBADMSG);
	/* Not a key: 0, and the order. */
	uint8_t key[SIG_KEY] = { 0 };
	assert_int_equal(sig_sign(key, hash, &s), -EINVAL);
	u256_store(&order, key);
	assert_int_equal(sig_address(key, address), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_eip155),       cmocka_unit_test(test_types),
		cmocka_unit_test(test_never_signed), cmocka_unit_test(test_set_code),
		cmocka_unit_test(test_signatures),
	};
	return cmocka_run_group_tests_name("eth_tx", tests, setup, NULL);
}
