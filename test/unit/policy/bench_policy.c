/*
 * How long a decision takes for an agent with many entries in the ledger: bench_policy [ENTRIES].
 * A transfer of a token, with limits for every window of agent and wallet. Prints microseconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "num.h"
#include "policy.h"

#include "poison.h"

#define RUNS 2000

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	static double took[RUNS];
	static struct policy_decision d;
	struct policy_limit limit = { .chain = 1, .per_tx = u256_of(100) };
	struct policy_rules agent = { .limits = &limit, .n_limits = 1 },
			    wallet = { .limits = &limit,
				       .n_limits = 1,
				       .fee_per_tx = { true, U256_MAX },
				       .fee_day = { true, U256_MAX } };
	struct policy_facts facts = { .chain_id = 1, .gas = 60000, .to_has_code = true };
	char transfer[68] = "\xa9\x05\x9c\xbb";
	struct ledger ledger;
	struct ledger_entry e;
	uint64_t entries = 10000;
	const struct u256 one = u256_of(1);

	if (argc > 1 && num_u64(view_of(argv[1]), &entries) < 0)
		return EXIT_FAILURE;
	for (int w = 0; w < LEDGER_WINDOWS; w++)
		limit.window[w] = limit.lifetime = (struct policy_amount){ true, U256_MAX };
	memset(limit.asset, 3, ADDRESS_SIZE);
	transfer[67] = 50;
	ledger_init(&ledger);
	struct policy_input in = { .kind = POLICY_TX,
				   .agent = VIEW("a"),
				   .agent_scope = VIEW("agent:a"),
				   .wallet_scope = VIEW("wallet:w"),
				   .agent_rules = &agent,
				   .wallet_rules = &wallet,
				   .chain = 1,
				   .account = address_zero,
				   .to = limit.asset,
				   .data = { transfer, sizeof(transfer) },
				   .facts = &facts,
				   .ledger = &ledger };
	/* One a minute: a day holds 1440 of them, a week all but a few. */
	for (uint64_t i = 0; i < entries; i++)
		for (int s = 0; s < 2; s++)
			if (ledger_add(&ledger,
				       &(struct ledger_what){ s ? in.agent_scope : in.wallet_scope, 1,
							      limit.asset },
				       &one, (int64_t)i * 60000, false, &e) < 0)
				return EXIT_FAILURE;
	for (int i = 0; i < RUNS; i++) {
		in.now_ms = (int64_t)entries * 60000 + i;
		const double from = now_us();
		policy_decide(&in, &d);
		took[i] = now_us() - from;
		if (d.verdict != POLICY_HUMAN)
			return EXIT_FAILURE;
		policy_done(&d);
	}
	qsort(took, RUNS, sizeof(took[0]), by_value);
	printf("%llu entries: p50 %.1f us, p99 %.1f us\n", (unsigned long long)entries, took[RUNS / 2],
	       took[RUNS * 99 / 100]);
	ledger_done(&ledger);
	return EXIT_SUCCESS;
}
