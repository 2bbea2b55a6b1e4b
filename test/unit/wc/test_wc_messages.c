/*
 * The messages of the relay and of the wallet: what is written, what is read, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wc_sign.h"

#include "poison.h"

#define TOPIC "2c03712132ad2f85adc472a2242e608d67bfecd4362d05012d69a89143fecd16"
#define KEY   "ff7a7d5767c362b0a17ad92299ebdb7831dcbd9a56959c01368c7404543b3342"
#define ONE   "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"

static struct arena arena = ARENA_INIT(1u << 20);

static int relay(const char *text, struct wc_relay_in *ret)
{
	struct err e = { 0 };
	int r = wc_relay_read(&arena, view_of(text), ret, &e);

	assert_int_equal(r < 0, e.code != 0);
	return r;
}

static int sign(const char *text, struct wc_sign_in *ret)
{
	struct err e = { 0 };
	int r = wc_sign_read(&arena, view_of(text), ret, &e);

	assert_int_equal(r < 0, e.code != 0);
	return r;
}

static void test_ids(void **state)
{
	char a[WC_ID], b[WC_ID];

	wc_relay_new_id(1763280000000, a);
	assert_int_equal(strlen(a), 19);
	assert_memory_equal(a, "1763280000000", 13);
	do
		wc_relay_new_id(1763280000000, b);
	while (strcmp(a, b) == 0);
	wc_relay_new_sign_id(1763280000000, a);
	assert_int_equal(strlen(a), 16); /* WalletKit refuses what does not fit a double */
	assert_true(wc_relay_is_id(VIEW("18446744073709551616")));
	assert_false(wc_relay_is_id(VIEW("")));
	assert_false(wc_relay_is_id(VIEW("1.5")));
	assert_false(wc_relay_is_id(VIEW("-1")));
	assert_false(wc_relay_is_id(VIEW("1e3")));
	assert_false(wc_relay_is_id(VIEW("123456789012345678901")));
}

static void test_relay_out(void **state)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(4096);
	const struct view topics[] = { VIEW("a"), VIEW("b") };

	wc_relay_put_publish(&b, "1763280000000123456",
			     &(struct wc_publish){ VIEW("t"), VIEW("m"), 1108, 300, true });
	assert_true(view_is(buf_view(&b),
			    "{\"id\":1763280000000123456,\"jsonrpc\":\"2.0\",\"method\":\"irn_"
			    "publish\",\"params\":{\"topic\":\"t\",\"message\":\"m\",\"ttl\":300,"
			    "\"tag\":1108,\"prompt\":true}}"));
	buf_clear(&b);
	wc_relay_put_subscribe(&b, "7", topics, 2);
	assert_true(view_is(buf_view(&b), "{\"id\":7,\"jsonrpc\":\"2.0\",\"method\":\"irn_batchSubscribe\","
					  "\"params\":{\"topics\":[\"a\",\"b\"]}}"));
	buf_clear(&b);
	wc_relay_put_ack(&b, VIEW("1763280000000123456"));
	assert_true(
		view_is(buf_view(&b), "{\"id\":1763280000000123456,\"jsonrpc\":\"2.0\",\"result\":true}"));
}

static void test_relay_in(void **state)
{
	struct wc_relay_in in;

	/* 19 digits survive, which no double would hold. */
	assert_int_equal(relay("{\"id\":1763280000000123457,\"jsonrpc\":\"2.0\",\"method\":\"irn_"
			       "subscription\",\"params\":{\"id\":\"s\",\"data\":{\"topic\":\"" TOPIC
			       "\",\"message\":\"AA==\",\"publishedAt\":1,\"tag\":1109}}}",
			       &in),
			 0);
	assert_int_equal(in.kind, WC_RELAY_MESSAGE);
	assert_true(view_is(in.id, "1763280000000123457"));
	assert_true(view_is(in.topic, TOPIC));
	assert_int_equal(in.tag, 1109);
	assert_int_equal(relay("{\"id\":7,\"jsonrpc\":\"2.0\",\"result\":[\"x\"]}", &in), 0);
	assert_int_equal(in.kind, WC_RELAY_RESULT);
	assert_int_equal(
		relay("{\"id\":7,\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32000,\"message\":\"no\"}}", &in),
		0);
	assert_int_equal(in.kind, WC_RELAY_ERROR);
	assert_int_equal(in.code, -32000);
	assert_int_equal(relay("{\"id\":7,\"method\":\"irn_other\",\"params\":{}}", &in), 0);
	assert_int_equal(in.kind, WC_RELAY_OTHER);
}

static void test_relay_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{\"id\":1}",
		"{\"id\":\"1\",\"result\":true}",
		"{\"id\":1,\"id\":2,\"result\":true}",
		"{\"id\":1,\"result\":true,\"error\":{\"code\":1}}",
		"{\"id\":1.5,\"result\":true}",
		"{\"id\":1,\"result\":true} x",
		"{\"id\":1,\"error\":\"text\"}",
		"{\"id\":1,\"method\":\"irn_subscription\",\"params\":{\"data\":{\"topic\":\"x\"}}}",
		"{\"id\":1,\"method\":\"irn_subscription\",\"params\":{}}",
	};
	struct wc_relay_in in;

	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_int_equal(relay(bad[i], &in), -1);
}

static void test_sign_out(void **state)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(8192);
	const struct view chains[] = { VIEW("eip155:1"), VIEW("eip155:31337") };
	uint8_t key[WC_KEY] = { 0xab };
	struct wc_sign_in in;

	wc_sign_put_propose(&b, &(struct wc_proposal){ .id = "1763280000000123456",
						       .public_key = key,
						       .name = VIEW("Paddock"),
						       .description = VIEW("d"),
						       .url = VIEW("http://u"),
						       .chains = chains,
						       .n_chains = 2,
						       .expiry_s = 1700000000,
						       .pairing = VIEW(TOPIC) });
	assert_int_equal(wc_sign_read(&arena, buf_view(&b), &in, NULL), 0);
	assert_int_equal(in.method, WC_PROPOSE);
	assert_true(view_is(in.id, "1763280000000123456"));
	const struct json *wishes = json_get(json_get(in.params, "optionalNamespaces"), "eip155");
	assert_int_equal(json_get(in.params, "requiredNamespaces")->n, 0);
	assert_int_equal(json_get(wishes, "chains")->n, 2);
	assert_true(view_is(json_get(wishes, "methods")->items[0].text, "eth_sendTransaction"));
	assert_int_equal(json_get(json_get(in.params, "proposer"), "publicKey")->text.n, 64);
	buf_clear(&b);
	wc_sign_put_request(&b, "9", VIEW("eip155:1"), "personal_sign", VIEW("[\"0x61\"]"), 1700000300);
	assert_true(view_is(buf_view(&b),
			    "{\"id\":9,\"jsonrpc\":\"2.0\",\"method\":\"wc_sessionRequest\",\"params\":{"
			    "\"request\":{\"method\":\"personal_sign\",\"params\":[\"0x61\"],"
			    "\"expiryTimestamp\":1700000300},\"chainId\":\"eip155:1\"}}"));
	buf_clear(&b);
	wc_sign_put_error(&b, VIEW("9"), WC_CODE_UNSUPPORTED, "no");
	assert_int_equal(wc_sign_read(&arena, buf_view(&b), &in, NULL), 0);
	assert_int_equal(in.kind, WC_SIGN_ERROR);
	assert_int_equal(in.code, 10001);
	for (int m = WC_UNKNOWN + 1; m < WC_METHODS; m++) {
		assert_int_equal(wc_sign_answer_tag((enum wc_method)m), wc_sign_tag((enum wc_method)m) + 1);
		assert_in_range(wc_sign_ttl((enum wc_method)m), 30, 86400);
	}
	assert_int_equal(wc_sign_tag(WC_REQUEST), 1108);
}

static void test_sign_in(void **state)
{
	struct wc_sign_in in;
	uint8_t key[WC_KEY];

	assert_int_equal(sign("{\"id\":1,\"jsonrpc\":\"2.0\",\"result\":{\"relay\":{\"protocol\":\"irn\"},"
			      "\"responderPublicKey\":\"" KEY "\"}}",
			      &in),
			 0);
	assert_int_equal(wc_sign_read_responder(in.result, key, NULL), 0);
	assert_int_equal(key[0], 0xff);
	assert_int_equal(sign("{\"id\":1,\"result\":null}", &in), 0);
	assert_int_equal(wc_sign_read_responder(in.result, key, NULL), -1);
	assert_int_equal(sign("{\"id\":1,\"error\":{\"code\":5000,\"message\":\"User rejected.\"}}", &in), 0);
	assert_int_equal(in.code, WC_CODE_REJECTED);
	assert_int_equal(sign("{\"id\":1,\"method\":\"wc_sessionPing\",\"params\":{}}", &in), 0);
	assert_int_equal(in.method, WC_PING);
	assert_int_equal(sign("{\"id\":1,\"method\":\"wc_other\"}", &in), 0);
	assert_int_equal(in.method, WC_UNKNOWN);
	assert_int_equal(sign("{\"id\":1,\"method\":\"wc_sessionPing\",\"result\":true}", &in), -1);
	assert_int_equal(sign("{\"id\":1,\"result\":\"0x1\",\"result\":\"0x2\"}", &in), -1);
	assert_int_equal(sign("{\"id\":1,\"method\":7}", &in), -1);
	assert_int_equal(sign("{\"id\":1,\"error\":{\"message\":\"x\"}}", &in), -1);
}

static int settle(const char *params, struct wc_settlement *ret)
{
	struct err e = { 0 };
	struct json *doc;

	assert_int_equal(json_parse(&arena, view_of(params), &doc, &e), 0);
	return wc_settle_read(doc, ret, &e);
}

#define SETTLED(accounts, methods)                                                                           \
	"{\"relay\":{\"protocol\":\"irn\"},\"controller\":{\"publicKey\":\"" KEY                             \
	"\",\"metadata\":{\"name\":\"W\",\"url\":\"https://w\",\"description\":\"\",\"icons\":[]}},"         \
	"\"namespaces\":{\"eip155\":{\"accounts\":[" accounts "],\"methods\":[" methods                      \
	"],\"events\":[]}},\"expiry\":1700000000}"

static void test_settle(void **state)
{
	static const char *const bad[] = {
		"{}",
		SETTLED("", "\"eth_sendTransaction\""),
		SETTLED("\"eip155:1:0xf39fd6e51aad88F6F4ce6aB8827279cffFb92266\"", ""), /* the checksum */
		SETTLED("\"eip155:01:" ONE "\"", ""),
		SETTLED("\"eip155:1\"", ""),
		SETTLED("\"solana:1:" ONE "\"", ""),
		SETTLED("7", ""),
	};
	struct wc_settlement s;

	assert_int_equal(settle(SETTLED("\"eip155:31337:" ONE "\",\"eip155:1:" ONE "\"",
					"\"eth_sendTransaction\",\"personal_sign\""),
				&s),
			 0);
	assert_int_equal(s.n_accounts, 2);
	assert_int_equal(s.accounts[0].chain, 31337);
	assert_int_equal(s.accounts[1].address[0], 0xf3);
	assert_true(s.sends && s.signs && !s.signs_typed);
	assert_true(view_is(s.name, "W"));
	assert_int_equal(s.expiry_s, 1700000000);
	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_int_equal(settle(bad[i], &s), -1);
}

static int stop(void **state)
{
	arena_done(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),      cmocka_unit_test(test_relay_out),
		cmocka_unit_test(test_relay_in), cmocka_unit_test(test_relay_refused),
		cmocka_unit_test(test_sign_out), cmocka_unit_test(test_sign_in),
		cmocka_unit_test(test_settle),
	};

	return cmocka_run_group_tests(tests, NULL, stop);
}
