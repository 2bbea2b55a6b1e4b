/*
 * Typed data: the vector of EIP-712, what a permit would spend, and documents that must be refused.
 */
#include "eth_rig.h"
#include "call.h"
#include "typed.h"

#include "poison.h"

#define PERSON                                                                                               \
	"\"Person\":[{\"name\":\"name\",\"type\":\"string\"},{\"name\":\"wallet\",\"type\":\"address\"}]"
#define DOMAIN_TYPE                                                                                          \
	"\"EIP712Domain\":[{\"name\":\"name\",\"type\":\"string\"},{\"name\":\"version\",\"type\":"          \
	"\"string\"},"                                                                                       \
	"{\"name\":\"chainId\",\"type\":\"uint256\"},{\"name\":\"verifyingContract\",\"type\":\"address\"}]"
#define MAIL                                                                                                 \
	"{\"types\":{" DOMAIN_TYPE "," PERSON ",\"Mail\":[{\"name\":\"from\",\"type\":\"Person\"},"          \
	"{\"name\":\"to\",\"type\":\"Person\"},{\"name\":\"contents\",\"type\":\"string\"}]},"               \
	"\"primaryType\":\"Mail\",\"domain\":{\"name\":\"Ether Mail\",\"version\":\"1\",\"chainId\":1,"      \
	"\"verifyingContract\":\"0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC\"},\"message\":{\"from\":{"      \
	"\"name\":\"Cow\",\"wallet\":\"0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826\"},\"to\":{\"name\":"      \
	"\"Bob\","                                                                                           \
	"\"wallet\":\"0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB\"},\"contents\":\"Hello, Bob!\"}}"

static int setup(void **state)
{
	return sig_init();
}

static void test_mail(void **state)
{
	struct arena a = ARENA_INIT(1 << 20);
	struct typed t;
	struct err e = { 0 };
	struct sig s;
	uint8_t bytes[SIG_SIZE];

	assert_int_equal(typed_parse(&a, VIEW(MAIL), &t, &e), 0);
	assert_true(view_is(t.signature,
			    "Mail(Person from,Person to,string contents)Person(string name,address wallet)"));
	assert_hex(t.domain_hash, 32, "f2cee375fa42b42143804025fc449deafd50cc031ca257e0b194a650a912090f");
	assert_hex(t.struct_hash, 32, "c52c0ee5d84264471806290a3f2c4cecfc5490626bf912d01f240d7a274b371e");
	assert_hex(t.digest, 32, "be609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2");
	assert_true(t.has_chain && t.chain == 1 && t.has_contract && view_is(t.name, "Ether Mail"));
	/* The key of the standard: keccak("cow"). */
	assert_int_equal(sig_sign((const uint8_t *)unhex(
					  "c85ef7d79691fe79573b1a7064c19c1a9819ebdbd1faaab1a8ec92344438aaf4")
					  .p,
				  t.digest, &s),
			 0);
	sig_store(&s, bytes);
	assert_hex(bytes, sizeof(bytes),
		   "4355c47d63924e8a72e509b65029052eb6c299d53a04e167c5775fd466751c9d07299936d304c153f6443dfa0"
		   "5f40ff007d7"
		   "2911b6f72307f996231605b915621c");
	arena_done(&a);
}

static void try_text(struct view text, bool good)
{
	struct arena a = ARENA_INIT(1 << 20);
	struct typed t;
	struct err e = { 0 };

	assert_int_equal(typed_parse(&a, text, &t, &e), good ? 0 : -1);
	assert_true(good || e.code);
	arena_done(&a);
}

static void changed(const char *was, const char *is, bool good)
{
	struct buf out = BUF_INIT(1 << 16);
	const char *at = strstr(MAIL, was);

	assert_non_null(at);
	buf_append(&out, MAIL, (size_t)(at - MAIL));
	buf_puts(&out, is);
	buf_puts(&out, at + strlen(was));
	try_text(buf_view(&out), good);
	buf_done(&out);
}

static void test_refused(void **state)
{
	changed("Hello", "Hullo", true);
	changed("\"contents\":\"Hello, Bob!\"", "\"contents\":5", false);
	changed(",\"contents\":\"Hello, Bob!\"", "", false);                     /* missing */
	changed("\"Hello, Bob!\"", "\"Hello, Bob!\",\"more\":1", false);         /* one too many */
	changed("\"Hello, Bob!\"", "\"Hello, Bob!\",\"contents\":\"x\"", false); /* twice */
	changed("\"primaryType\":\"Mail\"", "\"primaryType\":\"Person\"", false);
	changed("\"primaryType\":\"Mail\"", "\"primaryType\":\"None\"", false);
	changed("\"primaryType\":\"Mail\"", "\"primaryType\":\"EIP712Domain\"", false);
	changed("\"chainId\":1,", "\"chainId\":\"0x1\",", true);
	changed("\"chainId\":1,", "\"chainId\":1.0,", false);
	changed("\"chainId\":1,", "\"chainId\":-1,", false);
	changed("\"chainId\":1,", "\"chainId\":9007199254740993,",
		false);                             /* JavaScript reads another number */
	changed("\"chainId\":1,", "", false);       /* its type says that it is there */
	changed("0xCD2a3d9F", "0xcD2a3d9F", false); /* the checksum */
	changed("\"name\":\"wallet\",\"type\":\"address\"", "\"name\":\"wallet\",\"type\":\"addr\"", false);
	changed("\"name\":\"wallet\",\"type\":\"address\"", "\"name\":\"wal let\",\"type\":\"address\"",
		false);
	changed("\"type\":\"uint256\"", "\"type\":\"uint\"", false);
	changed("\"type\":\"uint256\"", "\"type\":\"uint8\"",
		false); /* the domain's members have their types */
	changed("{\"types\":", "{\"extra\":1,\"types\":", false);
	changed("\"Person\":[", "\"uint7\":[],\"Person\":[", false);
	changed("\"Person\":[", "\"bytes\":[],\"Person\":[", false);
	try_text(VIEW("{}"), false);
	try_text(VIEW("[]"), false);
	try_text(VIEW("\"x\""), false);
}

/* One member of each type. */
static void member(const char *type, const char *value, bool good)
{
	struct buf out = BUF_INIT(1 << 16);

	buf_printf(
		&out,
		"{\"types\":{\"T\":[{\"name\":\"a\",\"type\":\"%s\"}]},\"primaryType\":\"T\",\"domain\":{},"
		"\"message\":{\"a\":%s}}",
		type, value);
	try_text(buf_view(&out), good);
	buf_done(&out);
}

static void test_members(void **state)
{
	member("uint8", "255", true);
	member("uint8", "256", false);
	member("uint8", "\"0xff\"", true);
	member("uint8", "\"\"", false);
	member("uint8", "\"1e1\"", false);
	member("uint7", "1", false);
	member("uint264", "1", false);
	member("uint08", "1", false);
	member("int8", "-128", true);
	member("int8", "-129", false);
	member("int8", "127", true);
	member("int8", "128", false);
	member("int8", "\"-128\"", true);
	member("int8", "\"-0x1\"", false);
	member("int8", "\"--1\"", false);
	member("int8", "\"-0\"", false);
	member("int256", "\"-57896044618658097711785492504343953926634992332820282019728792003956564819968\"",
	       true);
	member("int256", "\"-57896044618658097711785492504343953926634992332820282019728792003956564819969\"",
	       false);
	member("bool", "true", true);
	member("bool", "1", false);
	member("bool", "\"true\"", false);
	member("bytes", "\"0x\"", true);
	member("bytes", "\"0x0\"", false);
	member("bytes", "\"00\"", false);
	member("bytes2", "\"0x0102\"", true);
	member("bytes2", "\"0x01\"", false);
	member("bytes33", "\"0x01\"", false);
	member("bytes0", "\"0x\"", false);
	member("string", "null", false);
	member("uint8[]", "[]", true);
	member("uint8[]", "[1,2,3]", true);
	member("uint8[2]", "[1,2]", true);
	member("uint8[2]", "[1]", false);
	member("uint8[02]", "[1,2]", false);
	member("uint8[0]", "[]", false);
	member("uint8[2][]", "[[1,2],[3,4]]", true);
	member("uint8[2][]", "[[1,2],[3]]", false);
	member("uint8[", "[]", false);
	member("[]", "[]", false);
	member("T[]", "[]", true); /* a type within itself ends with the data */
	member("T[]", "[{\"a\":[{\"a\":[]}]}]", true);
	member("T", "{\"a\":{}}", false);
}

static void test_permit(void **state)
{
	static const char text[] = "{\"types\":{\"Permit\":[{\"name\":\"owner\",\"type\":\"address\"},{"
				   "\"name\":\"spender\",\"type\":"
				   "\"address\"},{\"name\":\"value\",\"type\":\"uint256\"},{\"name\":"
				   "\"nonce\",\"type\":\"uint256\"},{"
				   "\"name\":\"deadline\",\"type\":\"uint256\"}]},\"primaryType\":\"Permit\","
				   "\"domain\":{\"name\":\"T\","
				   "\"chainId\":31337,\"verifyingContract\":"
				   "\"0x5fbdb2315678afecb367f032d93f642f64180aa3\"},\"message\":{"
				   "\"owner\":\"0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266\",\"spender\":"
				   "\"0x70997970c51812dc3a010c7d01b50e0d17dc79c8\",\"value\":\"500000\","
				   "\"nonce\":0,\"deadline\":1}}";
	struct arena a = ARENA_INIT(1 << 20);
	struct typed t;
	struct err e = { 0 };
	struct call c;

	assert_int_equal(typed_parse(&a, view_of(text), &t, &e), 0);
	call_read_typed(&t, (const uint8_t *)unhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266").p, &c);
	assert_int_equal(c.class, CALL_APPROVAL);
	assert_int_equal(c.n, 1);
	assert_true(c.effects[0].approval && !c.effects[0].unlimited && c.effects[0].amount.w[0] == 500000);
	assert_hex(c.effects[0].asset, 20, "5fbdb2315678afecb367f032d93f642f64180aa3");
	assert_hex(c.effects[0].to, 20, "70997970c51812dc3a010c7d01b50e0d17dc79c8");
	assert_hex(c.effects[0].keeper, 20, "5fbdb2315678afecb367f032d93f642f64180aa3");
	assert_false(c.effects[0].others || c.effects[0].once);
	buf_done(&c.tree);
	/* Of another account: it is not ours to sign. */
	call_read_typed(&t, (const uint8_t *)unhex("00000000000000000000000000000000000000aa").p, &c);
	assert_int_equal(c.class, CALL_UNKNOWN);
	buf_done(&c.tree);
	/* The name of a permit with other members is not a permit. */
	assert_int_equal(typed_parse(&a, VIEW(MAIL), &t, &e), 0);
	t.primary = VIEW("Permit");
	call_read_typed(&t, (const uint8_t *)unhex("00000000000000000000000000000000000000aa").p, &c);
	assert_int_equal(c.class, CALL_UNKNOWN);
	buf_done(&c.tree);
	t.primary = VIEW("SafeTx");
	call_read_typed(&t, (const uint8_t *)unhex("00000000000000000000000000000000000000aa").p, &c);
	assert_int_equal(c.class, CALL_DANGEROUS);
	buf_done(&c.tree);
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mail),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_permit),
	};
	return cmocka_run_group_tests_name("eth_typed", tests, setup, NULL);
}
