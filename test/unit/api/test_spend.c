/*
 * What nodes say about money: which answers are read, which are refused, and what follows for a transaction.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "keccak.h"
#include "spend_moves.h"
#include "spends.h"
#include "text.h"
#include "poison.h"

#define NATIVE "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
#define OURS   "1111111111111111111111111111111111111111"
#define THEIRS "2222222222222222222222222222222222222222"
#define PAD    "000000000000000000000000"
#define HASH   "0xabababababababababababababababababababababababababababababababab"
#define ONE    "0000000000000000000000000000000000000000000000000000000000000001"

static struct arena arena = ARENA_INIT(1u << 24);
static uint8_t ours[ADDRESS_SIZE];

static int teardown(void **state)
{
	arena_done(&arena);
	return 0;
}

static const struct json *parse(const char *text)
{
	struct json *doc;
	struct err e = { 0 };

	memset(ours, 0x11, sizeof(ours));
	if (json_parse(&arena, view_of(text), &doc, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	return doc;
}

static struct ethrpc_result result(const char *text)
{
	return (struct ethrpc_result){ .result = parse(text) };
}

/* ---- logs ---- */

static size_t moves(const char *event, const char *topics, const char *data, struct sgn_move *ret)
{
	uint8_t hash[32];
	char hex[65], text[2048];
	struct spend_moves m = { .arena = &arena, .account = ours };

	keccak_of(view_of(event), hash);
	text_hex(hash, sizeof(hash), hex);
	snprintf(text, sizeof(text), "[{\"address\":\"%s\",\"topics\":[\"0x%s\"%s],\"data\":\"0x%s\"}]",
		 NATIVE, hex, topics, data);
	assert_int_equal(spend_moves_logs(&m, parse(text)), 0);
	if (m.n)
		*ret = m.items[0];
	return m.n;
}

static void test_logs(void **state)
{
	const char *from_us = ",\"0x" PAD OURS "\",\"0x" PAD THEIRS "\"",
		   *others = ",\"0x" PAD THEIRS "\",\"0x" PAD THEIRS "\"",
		   *nft = ",\"0x" PAD OURS "\",\"0x" PAD THEIRS "\",\"0x" ONE "\"",
		   *many = ",\"0x" PAD THEIRS "\",\"0x" PAD OURS "\",\"0x" PAD THEIRS "\"";
	struct sgn_move m;

	parse("1");
	assert_int_equal(moves("Transfer(address,address,uint256)", from_us, ONE, &m), 1);
	assert_memory_equal(m.from.p, ours, ADDRESS_SIZE);
	assert_int_equal(m.amount.p[31], 1);
	assert_false(m.approval);
	assert_int_equal(moves("Transfer(address,address,uint256)", nft, "", &m), 1);
	assert_int_equal(moves("Transfer(address,address,uint256)", others, ONE, &m), 0);
	assert_int_equal(moves("Approval(address,address,uint256)", from_us, ONE, &m), 1);
	assert_true(m.approval);
	assert_int_equal(moves("ApprovalForAll(address,address,bool)", from_us, ONE, &m), 1);
	assert_true(m.approval && (uint8_t)m.amount.p[0] == 0xff);
	assert_int_equal(moves("TransferSingle(address,address,address,uint256,uint256)", many, ONE ONE, &m),
			 1);
	assert_int_equal(moves("TransferBatch(address,address,address,uint256[],uint256[])", many, "", &m),
			 1);
	assert_int_equal((uint8_t)m.amount.p[0], 0xff); /* what cannot be read is all of it */
	assert_int_equal(moves("Something()", from_us, ONE, &m), 0);
}

static void test_logs_that_are_none(void **state)
{
	static const char *const bad[] = { "{}",
					   "null",
					   "[1]",
					   "[{}]",
					   "[{\"address\":\"0x12\",\"topics\":[],\"data\":\"0x\"}]",
					   "[{\"address\":\"" NATIVE "\",\"topics\":[1],\"data\":\"0x\"}]",
					   "[{\"address\":\"" NATIVE "\",\"topics\":[],\"data\":\"0x1\"}]",
					   "[{\"address\":\"" NATIVE "\",\"topics\":[]}]" };
	struct spend_moves m = { .arena = &arena, .account = ours };

	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_true(spend_moves_logs(&m, parse(bad[i])) < 0);
}

#define INNER "{\"type\":\"CALL\",\"from\":\"0x" OURS "\",\"to\":\"0x" THEIRS "\",\"value\":\"0x5\"%s}"

static void test_traces(void **state)
{
	struct spend_moves m = { .arena = &arena, .account = ours };
	char good[256], failed[256], text[1024];

	snprintf(good, sizeof(good), INNER, "");
	snprintf(failed, sizeof(failed), INNER, ",\"error\":\"execution reverted\"");
	snprintf(text, sizeof(text),
		 "{\"type\":\"CALL\",\"from\":\"0x" OURS "\",\"to\":\"0x" THEIRS
		 "\",\"value\":\"0x0\",\"calls\":[%s,%s,"
		 "{\"type\":\"DELEGATECALL\",\"from\":\"0x" OURS "\",\"to\":\"0x" THEIRS
		 "\",\"value\":\"0x9\"}]}",
		 good, failed);
	assert_int_equal(spend_moves_trace(&m, parse(text)), 0);
	assert_int_equal(m.n, 1);
	assert_int_equal(m.items[0].amount.p[31], 5);
	assert_true(spend_moves_trace(&m, parse("{}")) < 0);
	assert_true(spend_moves_trace(&m, parse("{\"type\":\"CALL\",\"value\":\"0x1\"}")) < 0);
	assert_true(spend_moves_trace(&m, parse("{\"type\":\"CALL\",\"calls\":7}")) < 0);
}

static void assert_failure(const char *message, const char *data, const char *expected)
{
	struct view v = spend_read_failure(&arena, view_of(message), data ? parse(data) : NULL);
	char text[256];

	assert_int_equal(view_to_str(v, text, sizeof(text)), 0);
	assert_string_equal(text, expected);
}

static void test_failures(void **state)
{
	assert_failure("execution reverted", NULL, "execution reverted");
	assert_failure("", NULL, "it would fail");
	assert_failure("bad \x01\xff", NULL, "bad ??");
	assert_failure("reverted",
		       "\"0x08c379a00000000000000000000000000000000000000000000000000000000000000020"
		       "00000000000000000000000000000000000000000000000000000000000000026e6f"
		       "000000000000000000000000000000000000000000000000000000000000\"",
		       "no");
	assert_failure("reverted",
		       "\"0x4e487b710000000000000000000000000000000000000000000000000000000000000011\"",
		       "panic 0x11");
	assert_failure("reverted", "\"0x12345678\"", "reverted with the error 0x12345678");
	assert_failure("reverted", "\"0x1\"", "reverted");
}

/* ---- facts ---- */

#define BLOCK                                                                                                \
	"{\"number\":\"0x10\",\"gasLimit\":\"0x1c9c380\",\"hash\":\"" HASH "\",\"baseFeePerGas\":\"0x64\"}"

static void say_all(struct ethrpc_result *said)
{
	said[SPEND_SAY_CHAIN] = result("\"0x7a69\"");
	said[SPEND_SAY_BLOCK] = result(BLOCK);
	said[SPEND_SAY_OWN_CODE] = result("\"0x\"");
	said[SPEND_SAY_NONCE] = result("\"0x7\"");
	said[SPEND_SAY_BALANCE] = result("\"0xffff\"");
	said[SPEND_SAY_CODE] = result("\"0x6000\"");
	said[SPEND_SAY_PRIORITY] = result("\"0x3\"");
	said[SPEND_SAY_HISTORY] = result("{\"reward\":[[\"0x1\"],[\"0x5\"]]}");
	said[SPEND_SAY_PRICE] = result("\"0x9\"");
	said[SPEND_SAY_ESTIMATE] = result("\"0x5208\"");
	said[SPEND_SAY_SIMULATE] = result("[{\"calls\":[{\"status\":\"0x1\",\"logs\":[]}]}]");
}

static int read_facts(const struct ethrpc_result *said, uint64_t most, struct sgn_facts *ret, bool *ret_trace)
{
	struct spend_read_from from = { .said = said, .tx = true, .max_fee = u256_of(most) };
	struct err e = { 0 };

	memcpy(from.account, ours, sizeof(ours));
	return spend_read_facts(&arena, &from, ret, ret_trace, &e);
}

static uint64_t number(struct view v)
{
	struct u256 n;

	assert_int_equal(u256_load_view(v, &n), 0);
	return n.w[0];
}

static void test_facts(void **state)
{
	struct ethrpc_result said[SPEND_SAY_ALL];
	struct sgn_facts f;
	bool trace;

	say_all(said);
	assert_int_equal(read_facts(said, 0, &f, &trace), 0);
	assert_int_equal(f.method, SGN_SIM_METHOD_SIMULATE_V1);
	assert_int_equal(number(f.max_fee), 203); /* twice the base fee, and the priority */
	assert_int_equal(number(f.priority_fee), 3);
	assert_true(f.nonce == 7 && f.to_has_code && !f.legacy && !trace && f.failure.n == 0);
	assert_int_equal(read_facts(said, 150, &f, &trace), 0);
	assert_int_equal(number(f.max_fee), 150);
	assert_true(read_facts(said, 99, &f, &trace) < 0); /* below the base fee */

	said[SPEND_SAY_PRIORITY] = (struct ethrpc_result){ .error = parse("{}"), .message = VIEW("no") };
	assert_int_equal(read_facts(said, 0, &f, &trace), 0);
	assert_int_equal(number(f.priority_fee), 5);
	said[SPEND_SAY_BLOCK] =
		result("{\"number\":\"0x10\",\"gasLimit\":\"0x1c9c380\",\"hash\":\"" HASH "\"}");
	assert_int_equal(read_facts(said, 0, &f, &trace), 0);
	assert_true(f.legacy && number(f.max_fee) == 9);
	said[SPEND_SAY_OWN_CODE] = result("\"0xEF0100" THEIRS "\"");
	assert_int_equal(read_facts(said, 0, &f, &trace), 0);
	assert_true(f.account_delegated);
	said[SPEND_SAY_ESTIMATE] = (struct ethrpc_result){ .error = parse("{\"data\":\"0x12345678\"}"),
							   .message = VIEW("reverted") };
	said[SPEND_SAY_SIMULATE] = (struct ethrpc_result){ .error = parse("{}"), .message = VIEW("no") };
	assert_int_equal(read_facts(said, 0, &f, &trace), 0);
	assert_true(trace && f.failure.n && f.method == SGN_SIM_METHOD_ESTIMATE);
}

static void test_facts_that_are_none(void **state)
{
	static const struct {
		enum spend_say which;
		const char *text;
	} bad[] = { { SPEND_SAY_CHAIN, "7" },
		    { SPEND_SAY_CHAIN, "\"0x10000000000000000\"" },
		    { SPEND_SAY_BLOCK, "null" },
		    { SPEND_SAY_BLOCK, "{\"number\":\"0x1\"}" },
		    { SPEND_SAY_OWN_CODE, "null" },
		    { SPEND_SAY_NONCE, "\"7\"" },
		    { SPEND_SAY_NONCE, "\"0x10000000000000000\"" },
		    { SPEND_SAY_BALANCE, "\"0x\"" },
		    { SPEND_SAY_CODE, "[]" },
		    { SPEND_SAY_ESTIMATE, "\"0x0\"" },
		    { SPEND_SAY_ESTIMATE, "-1" } };
	struct ethrpc_result said[SPEND_SAY_ALL];
	struct sgn_facts f;
	bool trace;

	for (size_t i = 0; i < ELEMS(bad); i++) {
		say_all(said);
		said[bad[i].which] = result(bad[i].text);
		assert_true(read_facts(said, 0, &f, &trace) < 0);
	}
	say_all(said);
	said[SPEND_SAY_PRIORITY] =
		result("\"0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\"");
	assert_true(read_facts(said, 0, &f, &trace) < 0); /* the sum is no number */
}

#define RECEIPT                                                                                              \
	"{\"transactionHash\":\"" HASH "\",\"blockNumber\":%s,\"blockHash\":\"" HASH                         \
	"\",\"status\":%s,\"logs\":[]}"

static void test_receipts(void **state)
{
	uint8_t hash[SPEND_HASH];
	struct spend_receipt r;
	char text[512];

	memset(hash, 0xab, sizeof(hash));
	assert_int_equal(spend_read_receipt(&arena, parse("null"), hash, ours, &r), 0);
	snprintf(text, sizeof(text), RECEIPT, "null", "\"0x1\"");
	assert_int_equal(spend_read_receipt(&arena, parse(text), hash, ours, &r), 0);
	snprintf(text, sizeof(text), RECEIPT, "\"0x5\"", "\"0x0\"");
	assert_int_equal(spend_read_receipt(&arena, parse(text), hash, ours, &r), 1);
	assert_true(r.failed && r.block == 5);
	snprintf(text, sizeof(text), RECEIPT, "\"0x5\"", "\"0x2\"");
	assert_true(spend_read_receipt(&arena, parse(text), hash, ours, &r) < 0);
	snprintf(text, sizeof(text), RECEIPT, "5", "\"0x1\"");
	assert_true(spend_read_receipt(&arena, parse(text), hash, ours, &r) < 0);
	hash[0] = 0; /* of another transaction */
	snprintf(text, sizeof(text), RECEIPT, "\"0x5\"", "\"0x1\"");
	assert_true(spend_read_receipt(&arena, parse(text), hash, ours, &r) < 0);
}

/* So many transfers out of our account that nobody can look at them, and one log of 200 KiB. */
static void put_logs(struct buf *b, size_t transfers)
{
	buf_puts(b, "[");
	for (size_t i = 0; i < transfers; i++)
		buf_printf(b,
			   "{\"address\":\"0x" THEIRS
			   "\",\"topics\":[\"0xddf252ad1be2c89b69c2b068fc378daa952ba7f1"
			   "63c4a11628f55a4df523b3ef\",\"0x000000000000000000000000" OURS
			   "\",\"0x000000000000000000000000" THEIRS "\"],\"data\":\"0x%064zx\"},",
			   i + 1);
	buf_puts(b, "{\"address\":\"0x" THEIRS "\",\"topics\":[],\"data\":\"0x");
	for (size_t i = 0; i < 200u * 1024; i++)
		buf_puts(b, "00");
	buf_puts(b, "\"}]");
}

static const char *text_of(struct buf *b)
{
	buf_putc(b, 0);
	return buf_view(b).p;
}

static void test_more_than_can_be_read(void **state)
{
	_cleanup_(buf_done) struct buf few = BUF_INIT(4u << 20), many = BUF_INIT(4u << 20);
	struct ethrpc_result said[SPEND_SAY_ALL];
	struct sgn_facts f;
	struct spend_receipt r;
	uint8_t hash[SPEND_HASH];
	bool trace;

	put_logs(&few, 3);
	put_logs(&many, SPEND_MOVES_MAX + 1);
	for (int i = 0; i < 2; i++) {
		_cleanup_(buf_done) struct buf all = BUF_INIT(4u << 20), receipt = BUF_INIT(4u << 20);
		say_all(said);
		buf_puts(&all, "[{\"calls\":[{\"status\":\"0x1\",\"logs\":");
		buf_add(&all, buf_view(i ? &many : &few));
		buf_puts(&all, "}]}]");
		said[SPEND_SAY_SIMULATE] = result(text_of(&all));
		assert_int_equal(read_facts(said, 0, &f, &trace), 0);
		assert_int_equal(f.method, SGN_SIM_METHOD_SIMULATE_V1);
		assert_false(trace);                   /* no weaker way is tried */
		assert_int_equal(f.failure.n != 0, i); /* it is refused */
		buf_puts(&receipt,
			 "{\"transactionHash\":\"" HASH "\",\"blockNumber\":\"0x5\",\"blockHash\":\"" HASH
			 "\",\"status\":\"0x1\",\"logs\":");
		buf_add(&receipt, buf_view(i ? &many : &few));
		buf_puts(&receipt, "}");
		memset(hash, 0xab, sizeof(hash));
		assert_int_equal(spend_read_receipt(&arena, parse(text_of(&receipt)), hash, ours, &r), 1);
		assert_int_equal(r.n_moves, i ? SPEND_MOVES_MAX : 3);
	}
}

static void test_sent(void **state)
{
	static const struct {
		const char *message;
		enum spend_sent means;
	} errors[] = { { "already known", SPEND_SENT_OK },
		       { "transaction already imported", SPEND_SENT_OK },
		       { "ALREADY EXISTS", SPEND_SENT_OK },
		       { "nonce too low: next nonce 5, tx nonce 4", SPEND_SENT_USED },
		       { "insufficient funds for gas * price + value", SPEND_SENT_REFUSED },
		       { "", SPEND_SENT_REFUSED } };

	for (size_t i = 0; i < ELEMS(errors); i++) {
		struct ethrpc_result r = { .error = parse("{}"), .message = view_of(errors[i].message) };
		assert_int_equal(spend_read_sent(&r), errors[i].means);
	}
	struct ethrpc_result good = result("\"" HASH "\"");
	assert_int_equal(spend_read_sent(&good), SPEND_SENT_OK);
}

/* ---- what follows ---- */

static void test_judge(void **state)
{
	const struct spend_seen mined = { .state = SGN_STATE_BROADCAST,
					  .head = 10,
					  .needed = 3,
					  .mined = true,
					  .same_block = true,
					  .block = 9 };
	struct spend_seen s = mined;

	assert_int_equal(spend_judge(&s), SPEND_NEXT_INCLUDED);
	s.same_block = false; /* a receipt of a fork proves nothing */
	assert_int_equal(spend_judge(&s), SPEND_NEXT_WAIT);
	s.state = SGN_STATE_INCLUDED;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_REORG);
	s.same_block = true;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_WAIT); /* 2 of 3 */
	s.head = 11;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_CONFIRMED);
	s.failed = true;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_REVERTED);
	s = mined;
	s.state = SGN_STATE_CONFIRMED;
	s.finalized = 8;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_WAIT);
	s.finalized = 9;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_FINAL);
	s.mined = false;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_REORG);
	s = mined;
	s.cancels = true;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_WAIT);
	s.head = 11;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_REPLACED);
}

static void test_judge_what_is_in_no_block(void **state)
{
	struct spend_seen s = { .state = SGN_STATE_BROADCAST, .head = 10, .needed = 3, .known = true };

	assert_int_equal(spend_judge(&s), SPEND_NEXT_WAIT);
	s.known = false;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_RESEND);
	s.used = true;
	s.n_used = 1;
	s.used_head = 10;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_WAIT);
	s.n_used = 9; /* many looks, and still no block above */
	assert_int_equal(spend_judge(&s), SPEND_NEXT_WAIT);
	s.head = 12;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_REPLACED);
}

/* Replaced, reverted, failed: it is looked at until the block that ended it is final. */
static void test_judge_what_ended(void **state)
{
	struct spend_seen s = { .state = SGN_STATE_REVERTED,
				.head = 12,
				.finalized = 8,
				.needed = 3,
				.mined = true,
				.failed = true,
				.same_block = true,
				.block = 9 };

	assert_int_equal(spend_judge(&s), SPEND_NEXT_WAIT);
	s.finalized = 9;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_SURE);
	s.finalized = 0; /* no block is ever final: it must be deep */
	s.head = 9 + 3 + SPEND_DEEP - 2;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_WAIT);
	s.head++;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_SURE);
	s.failed = false; /* mined again, and now it does what it is for */
	assert_int_equal(spend_judge(&s), SPEND_NEXT_BACK);
	s.same_block = false;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_WAIT);
	s.same_block = s.cancels = true; /* by nothing */
	assert_int_equal(spend_judge(&s), SPEND_NEXT_SURE);
	s.cancels = false;
	s.failed = true;
	s.state = SGN_STATE_REPLACED; /* it was mined instead of the other, whatever it did */
	assert_int_equal(spend_judge(&s), SPEND_NEXT_BACK);
}

static void test_judge_what_ended_in_no_block(void **state)
{
	struct spend_seen s = {
		.state = SGN_STATE_REPLACED, .head = 12, .finalized = 8, .needed = 3, .used = true
	};

	s.used_head = 6;
	s.n_used = 2;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_WAIT);
	s.finalized = 9;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_SURE);
	s.finalized = 0;
	s.head = 6 + 3 + SPEND_DEEP - 1;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_WAIT);
	s.head++;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_SURE);
	s.head = 12;
	s.used_final = true;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_SURE);
	s.used = s.used_final = false; /* nothing has its nonce any more */
	s.n_free = 1;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_WAIT);
	s.n_free = 2;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_BACK);
	s.state = SGN_STATE_FAILED;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_BACK);
	s.no_nonce = true; /* a wallet's elsewhere */
	assert_int_equal(spend_judge(&s), SPEND_NEXT_WAIT);
	s.known = true;
	assert_int_equal(spend_judge(&s), SPEND_NEXT_BACK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_logs),
		cmocka_unit_test(test_logs_that_are_none),
		cmocka_unit_test(test_traces),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_facts_that_are_none),
		cmocka_unit_test(test_receipts),
		cmocka_unit_test(test_sent),
		cmocka_unit_test(test_more_than_can_be_read),
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_judge_what_is_in_no_block),
		cmocka_unit_test(test_judge_what_ended),
		cmocka_unit_test(test_judge_what_ended_in_no_block),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
