/*
 * What comes from the relay and, in an envelope, from a wallet: nothing is read past the end, and what is
 * accepted has an id that can be echoed.
 */
#include "fuzz.h"
#include "wc_sign.h"

#include "poison.h"

static void read_wallet(struct arena *a, struct view text)
{
	struct wc_settlement s;
	struct wc_sign_in in;
	struct err e = { 0 };
	uint8_t key[WC_KEY];

	if (wc_sign_read(a, text, &in, &e) < 0) {
		FUZZ_CHECK(e.code && e.msg[0]);
		return;
	}
	FUZZ_CHECK(wc_relay_is_id(in.id) && in.method < WC_METHODS);
	if (in.kind == WC_SIGN_REQUEST && wc_settle_read(in.params, &s, &e) == 0)
		FUZZ_CHECK(s.n_accounts > 0 && s.n_accounts <= WC_ACCOUNTS && s.name.n <= WC_TEXT_MAX);
	if (in.kind == WC_SIGN_RESULT)
		(void)!wc_sign_read_responder(in.result, key, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t key[WC_KEY] = { 1 };
	struct arena a = ARENA_INIT(4u << 20);
	struct buf open = BUF_INIT(WC_MESSAGE_MAX);
	struct view text = { (const char *)data, size };
	struct wc_relay_in in;
	struct err e = { 0 };

	if (wc_relay_read(&a, text, &in, &e) < 0) {
		FUZZ_CHECK(e.code && e.msg[0]);
	} else {
		FUZZ_CHECK(wc_relay_is_id(in.id));
		if (in.kind == WC_RELAY_MESSAGE)
			(void)!wc_crypto_open(key, key, in.envelope, &open);
	}
	(void)!wc_crypto_open(key, key, text, &open);
	read_wallet(&a, text);
	buf_done(&open);
	arena_done(&a);
	return 0;
}
