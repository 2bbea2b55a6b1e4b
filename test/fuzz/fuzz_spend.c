/*
 * A node's answers about money. The first byte chooses which one is nonsense; the others are as they should
 * be.
 */
#include "fuzz.h"
#include "spend_moves.h"
#include "spend_read.h"

#include "poison.h"

#define BLOCK                                                                                                \
	"{\"number\":\"0x10\",\"gasLimit\":\"0x1c9c380\",\"baseFeePerGas\":\"0x64\","                        \
	"\"hash\":\"0xabababababababababababababababababababababababababababababababab\"}"

static const char *const good[SPEND_SAY_ALL] = {
	"\"0x1\"",
	BLOCK,
	"\"0x\"",
	"\"0x7\"",
	"\"0xffff\"",
	"\"0x6000\"",
	"\"0x3\"",
	"{\"reward\":[[\"0x1\"]]}",
	"\"0x9\"",
	"\"0x5208\"",
	"[{\"calls\":[{\"status\":\"0x1\",\"logs\":[]}]}]",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = ARENA_INIT(16u << 20);
	struct ethrpc_result said[SPEND_SAY_ALL] = { 0 }, bad;
	struct spend_read_from from = { .said = said, .tx = true };
	struct sgn_facts facts = { 0 };
	struct spend_receipt receipt;
	const uint8_t hash[SPEND_HASH] = { 0 };
	struct err e = { 0 };
	struct json *doc;
	bool trace;
	size_t n;

	if (size < 2 || json_parse(&a, (struct view){ (const char *)data + 1, size - 1 }, &doc, &e) < 0)
		goto out;
	bad = (struct ethrpc_result){ .result = doc };
	for (size_t i = 0; i < SPEND_SAY_ALL; i++) {
		struct json *j;
		if (json_parse(&a, view_of(good[i]), &j, &e) < 0)
			goto out;
		said[i].result = i == data[0] % SPEND_SAY_ALL ? doc : j;
	}
	if (spend_read_facts(&a, &from, &facts, &trace, &e) == 0) {
		FUZZ_CHECK(facts.moves.n <= SPEND_MOVES_MAX && facts.max_fee.n == U256_BYTES &&
			   facts.gas > 0);
		for (size_t i = 0; i < facts.moves.n; i++)
			FUZZ_CHECK(facts.moves.items[i].amount.n == U256_BYTES);
		/* What was not simulated is not said to be. */
		FUZZ_CHECK(!trace || facts.method == SGN_SIM_METHOD_ESTIMATE);
	}
	(void)spend_read_trace(&a, &bad, from.account, &facts);
	(void)!spend_read_receipt(&a, doc, hash, from.account, &receipt);
	(void)spend_read_failure(&a, VIEW("why"), doc);
	(void)spend_read_actual(&a, doc, from.account, &n);
out:
	arena_done(&a);
	return 0;
}
