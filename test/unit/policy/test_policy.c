/*
 * The policy: each check refuses what it should, with the sentence that Assegai's SDK looks for, and nothing
 * else.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "policy.h"
#include "text.h"

#include "poison.h"

#define ETHER 1000000000000000000ull

static uint8_t us[20], other[20], token[20];
static struct policy_limit limits[2];
static struct policy_address addresses[2];
static struct policy_rules agent, wallet;
static struct policy_facts facts;
static struct policy_input in;
static struct ledger ledger;
static struct policy_decision d;
static char transfer[68];

static int setup(void **state)
{
	memset(us, 1, sizeof(us));
	memset(other, 2, sizeof(other));
	memset(token, 3, sizeof(token));
	limits[0] = (struct policy_limit){ .chain = 1,
					   .per_tx = u256_of(ETHER),
					   .window = { { true, u256_of(3 * ETHER) } } };
	memcpy(limits[0].asset, address_native, 20);
	limits[1] = (struct policy_limit){ .chain = 1,
					   .per_tx = u256_of(100),
					   .lifetime = { true, u256_of(250) } };
	memcpy(limits[1].asset, token, 20);
	addresses[0] = (struct policy_address){ .chain = 1 };
	memcpy(addresses[0].address, other, 20);
	addresses[1] = addresses[0];
	agent = (struct policy_rules){ .limits = limits, .n_limits = 2 };
	wallet = (struct policy_rules){ .fee_per_tx = { true, u256_of(ETHER / 100) },
					.fee_day = { true, u256_of(ETHER / 10) } };
	facts = (struct policy_facts){ .chain_id = 1,
				       .block = 5,
				       .gas = 21000,
				       .to_has_code = true,
				       .max_fee = u256_of(30000000000),
				       .priority_fee = u256_of(1000000000) };
	ledger_init(&ledger);
	in = (struct policy_input){ .kind = POLICY_TX,
				    .agent = VIEW("dca"),
				    .agent_scope = VIEW("agent:dca"),
				    .wallet_scope = VIEW("wallet:w"),
				    .agent_rules = &agent,
				    .wallet_rules = &wallet,
				    .chain = 1,
				    .account = us,
				    .to = other,
				    .value = u256_of(ETHER),
				    .data = VIEW(""),
				    .facts = &facts,
				    .ledger = &ledger,
				    .now_ms = 1000,
				    .wall_ms = 1000 };
	memcpy(transfer, "\xa9\x05\x9c\xbb", 4);
	memset(transfer + 4, 0, 64);
	memcpy(transfer + 16, other, 20);
	transfer[67] = 100;
	return 0;
}

static int teardown(void **state)
{
	policy_done(&d);
	d = (struct policy_decision){ 0 };
	ledger_done(&ledger);
	return 0;
}

static void decide(void)
{
	policy_done(&d);
	policy_decide(&in, &d);
}

static void spend(struct view scope, const uint8_t *asset, uint64_t amount, int64_t at)
{
	const struct u256 v = u256_of(amount);
	struct ledger_entry e;

	assert_int_equal(ledger_add(&ledger, &(struct ledger_what){ scope, 1, asset }, &v, at, false, &e), 0);
}

static void allowed(enum policy_verdict v)
{
	decide();
	if (d.verdict != v)
		fail_msg("%d: %s", d.verdict, d.error);
	assert_string_equal(d.error, "");
	/* In order; only the simulation asks for the limits once more. */
	bool simulated = false;
	for (unsigned i = 0; i < d.n_checks; i++) {
		assert_true(d.checks[i].passed && d.checks[i].text[0]);
		assert_true(i == 0 || simulated || d.checks[i].step >= d.checks[i - 1].step);
		simulated |= d.checks[i].step == 13;
	}
}

static void denied(unsigned step, const char *name, const char *error)
{
	decide();
	assert_int_equal(d.verdict, POLICY_DENY);
	const struct policy_check *last = &d.checks[d.n_checks - 1];
	if (last->step != step || strcmp(last->name, name) != 0 || !strstr(d.error, error))
		fail_msg("step %u %s: %s", last->step, last->name, d.error);
	assert_false(last->passed);
	for (unsigned i = 0; i + 1 < d.n_checks; i++)
		assert_true(d.checks[i].passed); /* the first that fails ends it */
}

static void test_native(void **state)
{
	allowed(POLICY_HUMAN);
	assert_int_equal(d.n_spends, 1);
	assert_int_equal(d.gas, 21000);
	assert_int_equal(d.approvers, 1);
	assert_non_null(strstr(d.summary, "Agent dca wants to send 1 (native) to 0x"));
	in.value = u256_of(ETHER + 1);
	denied(9, "per_tx", "Requested amount exceeds the configured allowance for this token");
	in.value = U256_MAX;
	denied(9, "per_tx", "allowance");
}

static void test_asking(void **state)
{
	in.paused = true;
	denied(0, "kill_switch", "Agent is paused");
	in.revokes = true;
	denied(0, "kill_switch", "also no revocation");
	in.paused = in.revokes = false;
	agent.paused = true;
	denied(0, "paused", "Agent is paused");
	agent.paused = false;
	wallet.paused = true;
	denied(0, "paused", "Agent is paused");
	wallet.paused = false;
	const struct policy_window never = { .days = 0x7f, .from = 60, .to = 120 };
	agent.windows = &never;
	agent.n_windows = 1;
	denied(0, "hours", "not allowed at this hour");
	in.wall_ms = 61 * 60000; /* a Thursday, 01:01 */
	allowed(POLICY_HUMAN);
	const struct policy_window friday = { .days = 1 << 4, .from = 0, .to = 1440 };
	agent.windows = &friday;
	denied(0, "hours", "not allowed at this hour");
	agent.n_windows = 0;
	in.pending = 5;
	denied(2, "pending", "Rate limit");
	agent.max_pending = 6;
	allowed(POLICY_HUMAN);
	in.account = NULL;
	denied(3, "chain", "Chain eip155:1 is not allowed for this agent");
	in.account = us;
	facts.chain_id = 2;
	denied(3, "chain_id", "RPC Error");
	facts.chain_id = 1;
	in.test_account = true;
	denied(4, "wallet", "test account");
	in.test_account = false;
	facts.delegated = true;
	denied(5, "delegated", "7702");
}

static void test_test_account(void **state)
{
	in.test_account = true;
	in.chain = facts.chain_id = limits[0].chain = 31337;
	denied(4, "wallet", "test account");
	facts.loopback = true;
	allowed(POLICY_HUMAN);
	in.chain = facts.chain_id = limits[0].chain = 8453;
	denied(4, "wallet", "test account");
}

static void test_addresses(void **state)
{
	agent.addresses = addresses;
	agent.n_addresses = 1;
	agent.only_listed = true;
	allowed(POLICY_HUMAN);
	in.to = token;
	denied(6, "to", "not allowed");
	in.to = other;
	/* A permission on another chain is none on this one; on chain 0 it is on all. */
	addresses[0].chain = 2;
	denied(6, "to", "not allowed");
	addresses[0].chain = 0;
	allowed(POLICY_HUMAN);
	addresses[0].chain = 1;
	addresses[1].deny = true; /* a denial beats a permission */
	agent.n_addresses = 2;
	denied(6, "to", "denied");
	agent.n_addresses = 0;
	denied(6, "to", "not allowed");
	agent.only_listed = false;
	wallet.addresses = &addresses[1];
	wallet.n_addresses = 1;
	denied(6, "to", "denied");
	/* The recipient of a token's transfer counts like the target. */
	in.to = token;
	in.value = U256_ZERO;
	in.data = (struct view){ transfer, sizeof(transfer) };
	facts.gas = 60000;
	denied(6, "recipient", "denied");
}

static void test_tokens(void **state)
{
	in.to = token;
	in.data = (struct view){ transfer, sizeof(transfer) };
	facts.gas = 60000;
	denied(9, "token_value", "ERC20 transfers must have a transaction value of 0");
	in.value = U256_ZERO;
	allowed(POLICY_HUMAN);
	assert_int_equal(d.gas, 72000);
	in.gas_hint = 21000; /* what the SDK always says */
	allowed(POLICY_HUMAN);
	in.gas_hint = 65000;
	allowed(POLICY_HUMAN);
	assert_int_equal(d.gas, 65000);
	in.gas_hint = 50000;
	denied(12, "gas", "gas");
	in.gas_hint = 0;
	transfer[67] = 101;
	denied(9, "per_tx", "Requested amount exceeds the configured allowance for this token");
	transfer[67] = 100;
	spend(in.agent_scope, token, 150, 500);
	allowed(POLICY_HUMAN);
	spend(in.agent_scope, token, 1, 501);
	denied(11, "limit.lifetime", "Total spending limit exceeded");
	agent.n_limits = 1;
	denied(9, "allowance",
	       "No allowance found for 0x0303030303030303030303030303030303030303 on chain eip155:1");
	facts.to_has_code = false;
	denied(7, "code", "no code");
}

static void test_windows(void **state)
{
	spend(in.agent_scope, address_native, 2 * ETHER, 1000);
	allowed(POLICY_HUMAN); /* exactly the limit */
	spend(in.agent_scope, address_native, 1, 1000);
	denied(10, "limit.day", "Total spending limit exceeded");
	in.now_ms = 1000 + ledger_length[LEDGER_DAY] - 1;
	denied(10, "limit.day", "Total spending limit exceeded");
	in.now_ms++;
	allowed(POLICY_HUMAN);
	/* The wallet's, over all agents. */
	struct policy_limit w = limits[0];
	w.window[0].v = u256_of(ETHER);
	wallet.limits = &w;
	wallet.n_limits = 1;
	allowed(POLICY_HUMAN);
	spend(in.wallet_scope, address_native, 1, in.now_ms);
	denied(10, "limit.day", "Total spending limit exceeded");
	w.window[0].set = false;
	allowed(POLICY_HUMAN);
	/* What the ledger could not hold is refused, with limits or without. */
	const struct u256 most = U256_MAX;
	struct ledger_entry entry;
	const struct ledger_what other_wallet = { VIEW("wallet:x"), 1, address_native };
	assert_int_equal(ledger_add(&ledger, &other_wallet, &most, in.now_ms, false, &entry), 0);
	in.wallet_scope = VIEW("wallet:x");
	denied(10, "sum", "too large");
	in.wallet_scope = VIEW("wallet:w");
	w.per_tx = u256_of(ETHER - 1);
	denied(9, "per_tx", "allowance");
}

static void test_own(void **state)
{
	struct policy_spend own = { .amount = u256_of(ETHER) };

	memcpy(own.asset, address_native, 20);
	spend(in.agent_scope, address_native, 3 * ETHER, 1000);
	denied(10, "limit.day", "limit");
	in.own = &own;
	in.n_own = 1;
	in.own_ms = 1000;
	allowed(POLICY_HUMAN);
	/* A reservation that the window no longer counts is not taken off once more. */
	spend(in.agent_scope, address_native, 3 * ETHER, 1000 + ledger_length[LEDGER_DAY]);
	in.now_ms = 1000 + ledger_length[LEDGER_DAY];
	denied(10, "limit.day", "limit");
}

static void test_classes(void **state)
{
	in.to = NULL;
	in.data = VIEW("\x60");
	facts.gas = 60000;
	denied(8, "class.creation", "not allowed");
	agent.allow_creation = true;
	allowed(POLICY_HUMAN);
	in.to = other;
	in.data = VIEW("\x12\x34\x56\x78");
	denied(8, "class.unknown", "cannot be decoded");
	addresses[0].call = true;
	agent.addresses = addresses;
	agent.n_addresses = 1;
	denied(8, "class.unknown", "simulation");
	facts.method = POLICY_SIM_V1;
	allowed(POLICY_HUMAN);
	/* setApprovalForAll */
	char operator[68] = "\xa2\x2c\xb4\x65";
	memcpy(operator+ 16, other, 20);
	operator[67] = 1;
	in.data = (struct view){ operator, sizeof(operator) };
	denied(8, "class.dangerous", "control");
	in.kind = POLICY_MESSAGE;
	in.data = VIEW("hello");
	denied(8, "class.message", "not allowed");
	agent.allow_messages = true;
	allowed(POLICY_HUMAN);
	assert_int_equal(d.n_spends, 0);
}

static void test_approvals(void **state)
{
	memcpy(transfer, "\x09\x5e\xa7\xb3", 4);
	in.to = token;
	in.value = U256_ZERO;
	in.data = (struct view){ transfer, sizeof(transfer) };
	facts.gas = 60000;
	allowed(POLICY_HUMAN);
	assert_int_equal(d.spends[0].amount.w[0], 100); /* it is spending */
	transfer[67] = 101;
	denied(9, "per_tx", "allowance");
	memset(transfer + 36, 0xff, 32);
	denied(9, "unlimited", "not allowed");
	limits[1].unlimited_approvals = true;
	allowed(POLICY_HUMAN);
	assert_int_equal(d.spends[0].amount.w[0], 100); /* per_tx */
}

static void test_fees(void **state)
{
	facts.max_fee = u256_of(476190476190); /* × 21000 = 0.00999… */
	facts.priority_fee = u256_of(1);
	allowed(POLICY_HUMAN);
	facts.max_fee = u256_of(476190476191);
	denied(12, "fee.per_tx", "Fees");
	facts.max_fee = u256_of(476190476190);
	spend(in.wallet_scope, policy_fee, ETHER / 100 * 9, 900);
	allowed(POLICY_HUMAN);
	spend(in.wallet_scope, policy_fee, ETHER / 100, 901);
	denied(12, "fee.day", "Fees");
	wallet.fee_day = (struct policy_amount){ 0 };
	denied(12, "fee.day", "no limit for fees");
	wallet.fee_day = (struct policy_amount){ true, U256_MAX };
	facts.max_fee = U256_MAX;
	denied(12, "fee", "make no sense");
	facts.max_fee = u256_of(0);
	facts.priority_fee = u256_of(1);
	denied(12, "fee", "make no sense");
	facts.priority_fee = u256_of(0);
	facts.balance = (struct policy_amount){ true, u256_of(ETHER) };
	allowed(POLICY_HUMAN);
	facts.balance.v = u256_of(ETHER - 1);
	denied(12, "balance", "balance");
}

static void test_simulation(void **state)
{
	struct policy_move moves[3] = { 0 };

	facts.failure = VIEW("execution reverted: no");
	denied(13, "sim.revert", "no");
	facts.failure = VIEW("");
	agent.require_simulation = true;
	denied(13, "sim.method", "not simulated");
	facts.method = POLICY_SIM_TRACE;
	facts.moves = moves;
	facts.n_moves = 1;
	allowed(POLICY_HUMAN);
	/* A token leaves that the call did not name. */
	memcpy(moves[0].asset, token, 20);
	memcpy(moves[0].from, us, 20);
	memcpy(moves[0].to, other, 20);
	moves[0].amount = u256_of(100);
	allowed(POLICY_HUMAN);
	assert_int_equal(d.n_spends, 2);
	moves[0].amount = u256_of(101);
	denied(9, "per_tx", "allowance");
	/* … but comes back. */
	moves[1] = moves[0];
	memcpy(moves[1].from, other, 20);
	memcpy(moves[1].to, us, 20);
	facts.n_moves = 2;
	allowed(POLICY_HUMAN);
	/* More native value than the transaction's. */
	moves[2] = moves[0];
	memcpy(moves[2].asset, address_native, 20);
	moves[2].amount = u256_of(ETHER + 1);
	facts.n_moves = 3;
	denied(9, "per_tx", "allowance");
	/* An approval that nobody declared. */
	moves[2] = moves[0];
	moves[2].approval = true;
	moves[2].amount = u256_of(1);
	denied(13, "sim.approval", "approval");
	moves[2].amount = u256_of(0);
	allowed(POLICY_HUMAN);
	/* An asset without a limit. */
	memset(moves[2].asset, 9, 20);
	moves[2].approval = false;
	moves[2].amount = u256_of(1);
	denied(9, "allowance", "No allowance found");
}

static void test_deciders(void **state)
{
	agent.auto_below = (struct policy_amount){ true, u256_of(ETHER) };
	allowed(POLICY_HUMAN); /* not a listed recipient */
	agent.addresses = addresses;
	agent.n_addresses = 1;
	allowed(POLICY_AUTO);
	agent.auto_below.v = u256_of(ETHER - 1);
	allowed(POLICY_HUMAN);
	agent.auto_below.v = u256_of(ETHER);
	wallet.approvers = 2;
	allowed(POLICY_HUMAN);
	assert_int_equal(d.approvers, 2);
	wallet.approvers = 0;
	agent.cool_down_s = 60;
	in.new_recipient = true;
	allowed(POLICY_HUMAN);
	in.signing = true;
	in.created_ms = 1000;
	decide();
	assert_int_equal(d.verdict, POLICY_WAIT);
	in.now_ms = 61000;
	decide();
	assert_true(d.verdict >= POLICY_HUMAN);
}

static void test_typed(void **state)
{
	struct typed t = { .primary = VIEW("Mail"),
			   .signature = VIEW("Mail(string a)"),
			   .has_chain = true,
			   .chain = 1,
			   .has_contract = true };
	struct policy_typed rule = { .chain = 1, .primary = VIEW("Mail") };

	memcpy(t.contract, other, 20);
	memcpy(rule.contract, other, 20);
	in.kind = POLICY_TYPED;
	in.typed = &t;
	denied(8, "class.unknown", "listed contract");
	agent.typed = &rule;
	agent.n_typed = 1;
	allowed(POLICY_HUMAN);
	t.chain = 2;
	denied(5, "typed_chain", "chain");
	t.has_chain = false;
	denied(5, "typed_chain", "names no chain");
	t = (struct typed){ .primary = VIEW("SafeTx"),
			    .signature = VIEW("SafeTx(string a)"),
			    .has_chain = true,
			    .chain = 1,
			    .has_contract = true };
	memcpy(t.contract, other, 20);
	rule.primary = VIEW("SafeTx");
	denied(8, "class.dangerous", "control");
}

static void test_stricter(void **state)
{
	struct policy_rules now = agent;
	struct policy_limit l[2];
	const char *why = NULL;

	memcpy(l, limits, sizeof(l));
	now.limits = l;
	assert_true(policy_stricter(&now, &agent, POLICY_AGENT, &why));
	l[0].per_tx = u256_of(1);
	l[0].lifetime = (struct policy_amount){ true, u256_of(1) };
	now.paused = now.only_listed = now.require_simulation = true;
	now.n_limits = 1;
	now.approvers = 3;
	assert_true(policy_stricter(&now, &agent, POLICY_AGENT, &why));
	assert_false(policy_stricter(&agent, &now, POLICY_AGENT, &why));
#define LOOSER(change, part)                                                                                 \
	do {                                                                                                 \
		memcpy(l, limits, sizeof(l));                                                                \
		now = agent;                                                                                 \
		now.limits = l;                                                                              \
		change;                                                                                      \
		assert_false(policy_stricter(&now, &agent, POLICY_AGENT, &why));                             \
		assert_string_equal(why, part);                                                              \
	} while (0)
	LOOSER(l[0].per_tx = u256_of(ETHER + 1), "limits");
	LOOSER(l[0].window[0].v = u256_of(4 * ETHER), "limits");
	LOOSER(l[0].window[0].set = false, "limits");
	LOOSER(l[1].lifetime.set = false, "limits");
	LOOSER(l[1].unlimited_approvals = true, "limits");
	LOOSER(l[1].chain = 2, "limits");
	LOOSER(now.allow_creation = true, "flags");
	LOOSER(now.allow_messages = true, "flags");
	LOOSER(now.allow_dangerous = true, "flags");
	LOOSER(now.auto_below = ((struct policy_amount){ true, u256_of(1) }), "auto_below");
	/* What is absent does not limit an agent, and allows a wallet nothing, where it is about fees; and a
	 * wallet's limit that is gone limits no more. */
	const struct policy_amount one = { true, u256_of(1) };
	agent.fee_per_tx = agent.fee_day = one;
	LOOSER(now.fee_day.set = false, "fee_day");
	LOOSER(now.fee_per_tx.v = u256_of(2), "fee_per_tx");
	now = agent;
	now.fee_day.set = now.fee_per_tx.set = false;
	assert_true(policy_stricter(&agent, &now, POLICY_AGENT, &why));
	assert_true(policy_stricter(&now, &agent, POLICY_WALLET, &why));
	assert_false(policy_stricter(&agent, &now, POLICY_WALLET, &why));
	now = agent;
	now.n_limits = 1;
	assert_true(policy_stricter(&now, &agent, POLICY_AGENT, &why));
	assert_false(policy_stricter(&now, &agent, POLICY_WALLET, &why));
	assert_string_equal(why, "limits");
	assert_true(policy_stricter(&agent, &now, POLICY_WALLET, &why));
	LOOSER(now.max_pending = 6, "counts");
	LOOSER(now.expiry_s = 301, "counts");
	agent.approvers = 2;
	agent.cool_down_s = 10;
	agent.suspend_after = 5;
	LOOSER(now.approvers = 1, "counts");
	LOOSER(now.approvers = 0, "counts"); /* which is 1 */
	LOOSER(now.cool_down_s = 9, "counts");
	LOOSER(now.suspend_after = 6, "counts");
	LOOSER(now.suspend_after = 0, "counts"); /* never */
	now = agent;
	now.max_pending = 4;
	now.expiry_s = 299;
	now.approvers = 3;
	now.cool_down_s = 11;
	now.suspend_after = 4;
	assert_true(policy_stricter(&now, &agent, POLICY_AGENT, &why));
	agent.only_listed = agent.require_simulation = agent.paused = true;
	LOOSER(now.only_listed = false, "flags");
	LOOSER(now.require_simulation = false, "flags");
	LOOSER(now.paused = false, "flags");
	LOOSER((now.addresses = addresses, now.n_addresses = 1), "addresses");
	agent.addresses = addresses;
	agent.n_addresses = 1;
	addresses[0].deny = true;
	LOOSER(now.n_addresses = 0, "addresses");
	const struct policy_window night = { .days = 0x7f, .from = 0, .to = 60 },
				   longer = { .days = 0x7f, .from = 0, .to = 61 };
	agent.windows = &night;
	agent.n_windows = 1;
	LOOSER(now.n_windows = 0, "windows");
	LOOSER(now.windows = &longer, "windows");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_native),    TEST(test_asking),   TEST(test_test_account), TEST(test_addresses),
		TEST(test_tokens),    TEST(test_windows),  TEST(test_own),          TEST(test_classes),
		TEST(test_approvals), TEST(test_fees),     TEST(test_simulation),   TEST(test_deciders),
		TEST(test_typed),     TEST(test_stricter),
	};
	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
