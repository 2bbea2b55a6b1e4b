/*
 * RLP and transactions: what is read is written again as the same bytes, so there is one way to write it.
 */
#include "fuzz.h"
#include "rlp.h"
#include "tx.h"

#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct view raw = { (const char *)data, size };
	struct buf again = BUF_INIT(TX_RAW_MAX + 64);
	uint8_t hash[SIG_HASH], sender[ADDRESS_SIZE];
	struct tx t;

	FUZZ_CHECK(sig_init() == 0);
	if (rlp_check(raw) == 0) {
		struct rlp item;
		FUZZ_CHECK(rlp_only(raw, &item) == 0 && view_eq(item.whole, raw));
		if (item.list)
			rlp_put_list(&again, item.body);
		else
			rlp_put_bytes(&again, item.body);
		FUZZ_CHECK(again.bad || view_eq(buf_view(&again), raw));
		buf_clear(&again);
	}
	if (tx_decode(raw, &t) == 0 && t.type != TX_SET_CODE) {
		FUZZ_CHECK(tx_encode(&t, &again) == 0 && view_eq(buf_view(&again), raw));
		FUZZ_CHECK(tx_sign_hash(&t, hash) == 0);
		FUZZ_CHECK(t.unprotected == (t.chain == 0));
		if (t.is_signed)
			(void)!tx_sender(&t, sender);
	}
	buf_done(&again);
	return 0;
}
