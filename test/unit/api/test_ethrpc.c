/*
 * JSON-RPC of agents: which methods pass, how requests are written anew, and which answers are believed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ethrpc.h"
#include "poison.h"

static struct arena arena = ARENA_INIT(1u << 22);

static int teardown(void **state)
{
	arena_done(&arena);
	return 0;
}

static int read(const char *text, struct ethrpc_request *ret, struct err *e)
{
	struct json *doc;

	if (json_parse(&arena, view_of(text), &doc, e) < 0)
		return -1;
	return ethrpc_read(doc, ret, e);
}

static void test_classes(void **state)
{
	static const char *const refused[] = {
		"eth_sendRawTransaction",
		"eth_sign",
		"eth_signTransaction",
		"personal_unlockAccount",
		"wallet_switchEthereumChain",
		"eth_sendUserOperation",
		"debug_traceCall",
		"trace_call",
		"anvil_setBalance",
		"hardhat_setBalance",
		"evm_mine",
		"admin_peers",
		"txpool_content",
		"ETH_CHAINID",
		"eth_chainid",
		"eth_chainId ",
		"eth_signTypedData",
		"eth_newPendingTransactionFilter",
		"",
		"eth_",
	};

	for (size_t i = 0; i < ELEMS(refused); i++)
		if (ethrpc_classify(view_of(refused[i])) != ETHRPC_REFUSED)
			fail_msg("%s is allowed", refused[i]);
	assert_int_equal(ethrpc_classify(VIEW("eth_call")), ETHRPC_PASS);
	assert_int_equal(ethrpc_classify(VIEW("eth_chainId")), ETHRPC_CHAIN_ID);
	assert_int_equal(ethrpc_classify(VIEW("eth_sendTransaction")), ETHRPC_SEND);
	assert_int_equal(ethrpc_classify(VIEW("eth_signTypedData_v4")), ETHRPC_SIGN);
	assert_int_equal(ethrpc_classify(VIEW("personal_sign")), ETHRPC_SIGN);
}

static void test_rewritten(void **state)
{
	struct buf out = BUF_INIT(4096);
	struct ethrpc_request r;
	struct json_out o;
	struct err e = { 0 };

	assert_int_equal(read("{\"params\":[{\"to\":\"0x1\",\"n\":9007199254740993}],\"method\":\"eth_call\","
			      "\"id\":1234567890123456789,\"jsonrpc\":\"2.0\"}",
			      &r, &e),
			 0);
	json_out_init(&o, &out);
	ethrpc_put(&o, &r, 7);
	buf_putc(&out, 0);
	assert_string_equal(
		out.p, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"eth_call\",\"params\":[{\"to\":\"0x1\","
		       "\"n\":9007199254740993}]}");
	buf_done(&out);
}

static void test_tricks(void **state)
{
	static const char *const bad[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\",\"method\":\"eth_accounts\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\",\"Method\":\"eth_accounts\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\",\"params\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_chainId\"} x",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth\\u0000_chainId\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth chainId\"}",
		"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"eth_chainId\"}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"eth_chainId\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"eth_chainId\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}",
		"[]",
		"7",
	};
	struct ethrpc_request r;
	struct err e = { 0 };

	for (size_t i = 0; i < ELEMS(bad); i++)
		if (read(bad[i], &r, &e) >= 0)
			fail_msg("taken: %s", bad[i]);
}

static int check(const char *text)
{
	struct ethrpc_request r;
	struct err e = { 0 };

	assert_int_equal(read(text, &r, &e), 0);
	return ethrpc_check(&r, &e);
}

#define LOGS(filter) "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_getLogs\",\"params\":[" filter "]}"

static void test_ranges(void **state)
{
	assert_int_equal(check(LOGS("{\"fromBlock\":\"0x0\",\"toBlock\":\"0x2710\"}")), 0);
	assert_int_equal(check(LOGS("{\"fromBlock\":\"0x0\",\"toBlock\":\"0x2711\"}")), -1);
	assert_int_equal(check(LOGS("{\"blockHash\":\"0x12\"}")), 0);
	assert_int_equal(check(LOGS("{\"fromBlock\":\"0x0\",\"toBlock\":\"latest\"}")), 0);
	assert_int_equal(check(LOGS("")), -1);
	assert_int_equal(
		check("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_getFilterLogs\",\"params\":[1]}"), -1);
}

static int answers(const char *body, bool batch, struct ethrpc_result ret[2])
{
	struct err e = { 0 };
	return ethrpc_answers(&arena, view_of(body), 5, batch ? 2 : 1, batch, ret, &e);
}

static void test_answers(void **state)
{
	struct ethrpc_result r[2];

	assert_int_equal(answers("{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":null}", false, r), 0);
	assert_non_null(r[0].result);
	assert_int_equal(answers("{\"id\":5,\"error\":{\"code\":3,\"message\":\"execution "
				 "reverted\",\"data\":\"0x\"}}",
				 false, r),
			 0);
	assert_int_equal(r[0].code, 3);
	assert_int_equal(answers("[{\"id\":6,\"result\":1},{\"id\":5,\"result\":2}]", true, r), 0);
	assert_true(view_is(r[0].result->text, "2"));
	assert_int_equal(answers("{\"id\":4,\"result\":1}", false, r), -1);
	assert_int_equal(answers("{\"id\":\"5\",\"result\":1}", false, r), -1);
	assert_int_equal(answers("{\"id\":5}", false, r), -1);
	assert_int_equal(answers("[{\"id\":5,\"result\":1}]", true, r), -1);
	assert_int_equal(answers("[{\"id\":5,\"result\":1},{\"id\":5,\"result\":1}]", true, r), -1);
	assert_int_equal(answers("{\"id\":5,\"result\":1}", true, r), -1);
	assert_int_equal(answers("<html>", false, r), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_classes, teardown),
		cmocka_unit_test_teardown(test_rewritten, teardown),
		cmocka_unit_test_teardown(test_tricks, teardown),
		cmocka_unit_test_teardown(test_ranges, teardown),
		cmocka_unit_test_teardown(test_answers, teardown),
	};
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
