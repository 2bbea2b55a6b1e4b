/*
 * Keys, topics, envelopes and the relay's token, with the vectors of the specification and of
 * @walletconnect/utils and @walletconnect/relay-auth.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "text.h"
#include "wc_crypto.h"
#include "wc_identity.h"

#include "poison.h"

#define A_SECRET "1fb63fca5c6ac731246f2f069d3bc2454345d5208254aa8ea7bffc6d110c8862"
#define A_PUBLIC "ff7a7d5767c362b0a17ad92299ebdb7831dcbd9a56959c01368c7404543b3342"
#define B_SECRET "36bf507903537de91f5e573666eaa69b1fa313974f23b2b59645f20fea505854"
#define B_PUBLIC "590c2c627be7af08597091ff80dd41f7fa28acd10ef7191d7e830e116d3a186a"
#define SHARED   "0653ca620c7b4990392e1c53c4a51c14a2840cd20f0f1524cf435b17b6fe988c"
#define TEXT     "{\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"test_method\",\"params\":{}}"
#define TYPE_0                                                                                               \
	"AHF3ZWNmYWFzZGFkc3paHoQ96/"                                                                         \
	"mLAdanVxi17icRXq+jyrqXA8ocVgGmryQZBFMg+uwgc8yLa43EOeY+IWEv84g8hn4L3Ncsgz6397"                       \
	"sgNKnsNcL7A9k3Mg=="
#define TYPE_1                                                                                               \
	"Af96fVdnw2KwoXrZIpnr23gx3L2aVpWcATaMdARUOzNCcXdlY2ZhYXNkYWRzeloehD3r+"                              \
	"YsB1qdXGLXuJxFer6PKupcDyhxWAaavJB"                                                                  \
	"kEUyD67CBzzItrjcQ55j4hYS/ziDyGfgvc1yyDPrf3uyA0qew1wvsD2Tcy"
#define SEED "58e0254c211b858ef7896b00e3f36beeb13d568d47c6031c4218b87718061295"

static void unhex(const char *hex, uint8_t ret[WC_KEY])
{
	assert_int_equal(text_unhex(view_of(hex), ret, WC_KEY), 0);
}

static void test_keys(void **state)
{
	uint8_t secret[WC_KEY], public[WC_KEY], peer[WC_KEY], key[WC_KEY], want[WC_KEY];
	char topic[WC_TOPIC];

	unhex(A_SECRET, secret);
	wc_crypto_public(secret, public);
	unhex(A_PUBLIC, want);
	assert_memory_equal(public, want, WC_KEY);
	unhex(B_PUBLIC, peer);
	assert_int_equal(wc_crypto_agree(secret, peer, key), 0);
	unhex(SHARED, want);
	assert_memory_equal(key, want, WC_KEY);
	unhex(B_SECRET, secret);
	assert_int_equal(wc_crypto_agree(secret, public, key), 0);
	assert_memory_equal(key, want, WC_KEY);
	wc_crypto_topic(key, topic);
	assert_string_equal(topic, "2c03712132ad2f85adc472a2242e608d67bfecd4362d05012d69a89143fecd16");
	assert_true(wc_crypto_is_topic(view_of(topic)));
	topic[0] = 'A';
	assert_false(wc_crypto_is_topic(view_of(topic)));
	assert_false(wc_crypto_is_topic(view_head(view_of(topic), 63)));
	/* Points of small order give a key that everybody knows. */
	memset(peer, 0, WC_KEY);
	assert_int_equal(wc_crypto_agree(secret, peer, key), -EINVAL);
	wc_crypto_pair(secret, public);
	wc_crypto_public(secret, want);
	assert_memory_equal(public, want, WC_KEY);
}

static void test_envelopes(void **state)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT(WC_MESSAGE_MAX), text = BUF_INIT(WC_MESSAGE_MAX);
	uint8_t key[WC_KEY], secret[WC_KEY];

	unhex(SHARED, key);
	assert_int_equal(wc_crypto_seal_with(key, (const uint8_t *)"qwecfaasdads", VIEW(TEXT), &out), 0);
	assert_true(view_is(buf_view(&out), TYPE_0));
	assert_int_equal(wc_crypto_open(key, NULL, VIEW(TYPE_0), &text), 0);
	assert_true(view_is(buf_view(&text), TEXT));
	buf_clear(&text);
	/* Type 1 by the receiver's secret key, whatever the topic's is; and never without one. */
	unhex(B_SECRET, secret);
	memset(key, 7, WC_KEY);
	assert_int_equal(wc_crypto_open(key, secret, VIEW(TYPE_1), &text), 0);
	assert_true(view_is(buf_view(&text), TEXT));
	assert_int_equal(wc_crypto_open(key, NULL, VIEW(TYPE_1), &text), -EBADMSG);
	assert_int_equal(wc_crypto_open(key, secret, VIEW(TYPE_0), &text), -EBADMSG);
	/* Two of the same text differ. */
	buf_clear(&out);
	assert_int_equal(wc_crypto_seal(key, VIEW("x"), &out), 0);
	_cleanup_(buf_done) struct buf again = BUF_INIT(4096);
	assert_int_equal(wc_crypto_seal(key, VIEW("x"), &again), 0);
	assert_false(view_eq(buf_view(&out), buf_view(&again)));
}

static void test_damaged(void **state)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(WC_MESSAGE_MAX), all = BUF_INIT(4096);
	static const char *const bad[] = { "", "AA==", "AHF3ZWNmYWFz", "!!!!", "Ag==", "AQ==" };
	uint8_t key[WC_KEY];

	unhex(SHARED, key);
	for (size_t i = 0; i < ELEMS(bad); i++)
		assert_int_equal(wc_crypto_open(key, key, view_of(bad[i]), &text), -EBADMSG);
	/* Every byte counts, in either type. */
	assert_int_equal(text_unbase64(&all, VIEW(TYPE_0)), 0);
	for (size_t i = 0; i < buf_len(&all); i++) {
		_cleanup_(buf_done) struct buf wrong = BUF_INIT(4096);
		all.p[i] ^= 4;
		text_base64(&wrong, buf_view(&all));
		all.p[i] ^= 4;
		assert_int_equal(wc_crypto_open(key, NULL, buf_view(&wrong), &text), -EBADMSG);
	}
	assert_int_equal(buf_len(&text), 0);
}

static void test_uri(void **state)
{
	_cleanup_(buf_done) struct buf uri = BUF_INIT(4096);
	struct wc_pairing p = { .expiry_s = 1700000000 };

	unhex(SHARED, p.key);
	wc_crypto_topic(p.key, p.topic);
	assert_int_equal(wc_crypto_uri(&p, &uri), 0);
	assert_true(view_is(buf_view(&uri),
			    "wc:2c03712132ad2f85adc472a2242e608d67bfecd4362d05012d69a89143fecd16@2?relay-"
			    "protocol=irn&symKey=" SHARED "&expiryTimestamp=1700000000"));
}

static void test_identity(void **state)
{
	_cleanup_(buf_done) struct buf token = BUF_INIT(4096);
	uint8_t seed[WC_SEED];

	unhex(SEED, seed);
	assert_int_equal(
		wc_identity_token(
			seed,
			&(struct wc_token){
				.audience = VIEW("wss://relay.walletconnect.com"),
				.subject = VIEW("c479fe5dc464e771e78b193d239a65b58d278cad1c34bfb0b571"
						"6e5bb514928e"),
				.issued_s = 1656910097,
				.expires_s = 1656910097 + 86400 },
			&token),
		0);
	assert_true(view_is(
		buf_view(&token),
		"eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCJ9."
		"eyJpc3MiOiJkaWQ6a2V5Ono2TWtvZEhad25lVlJTaHRhTGY4SktZa3hwREdwMXZHWm5wR21kQnBYOE0yZXh4SCIsInN1"
		"YiI6ImM0NzlmZTVkYzQ2NGU3NzFlNzhiMTkzZDIzOWE2NWI1OGQyNzhjYWQxYzM0YmZiMGI1NzE2ZTViYjUxNDkyOGUi"
		"LCJhdWQiOiJ3c3M6Ly9yZWxheS53YWxsZXRjb25uZWN0LmNvbSIsImlhdCI6MTY1NjkxMDA5NywiZXhwIjoxNjU2OTk2"
		"NDk3fQ."
		"bAKl1swvwqqV_FgwvD4Bx3Yp987B9gTpZctyBviA-EkAuWc8iI8SyokOjkv9GJESgid4U8Tf2foCgrQp2qrxBA"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys), cmocka_unit_test(test_envelopes), cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_uri),  cmocka_unit_test(test_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
