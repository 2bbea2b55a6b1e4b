/*
 * Whether a request may be signed: a pure function of the request, the rules of its agent and its wallet, the
 * ledger, and what is known from the chain. It answers with a verdict, the sentence for the agent, the
 * amounts to reserve, and a trace of every check in the order in which they were made.
 *
 * Facts from the chain come from the api and are not believed where that would allow more: they only add to
 * what is counted, and to the reasons for a refusal.
 */
#pragma once

#include "call.h"
#include "ledger.h"
#include "policy_card.h"
#include "policy_rules.h"
#include "typed.h"

#define POLICY_CHECKS  48
#define POLICY_SPENDS  CALL_EFFECTS
#define POLICY_PENDING RULE_USUAL_max_pending /* of an agent, by default */
#define POLICY_EXPIRY  RULE_USUAL_expiry_s    /* seconds */

/* ---- the request ---- */

enum policy_kind { POLICY_TX = 1, POLICY_MESSAGE, POLICY_TYPED };
enum policy_method { POLICY_SIM_NONE, POLICY_SIM_ESTIMATE, POLICY_SIM_TRACE, POLICY_SIM_V1 };

struct policy_move {
	uint8_t asset[ADDRESS_SIZE], from[ADDRESS_SIZE], to[ADDRESS_SIZE];
	struct u256 amount;
	bool approval;
};

struct policy_facts {
	uint64_t chain_id, block, gas;
	bool loopback, legacy, to_has_code, delegated;
	struct policy_amount balance;
	struct u256 max_fee, priority_fee;
	struct view failure;
	enum policy_method method;
	const struct policy_move *moves;
	size_t n_moves;
};

struct policy_spend {
	uint8_t asset[ADDRESS_SIZE];
	struct u256 amount;
};

struct policy_input {
	enum policy_kind kind;
	struct view agent;                     /* its id */
	struct view agent_scope, wallet_scope; /* of the ledger */
	const struct policy_rules *agent_rules, *wallet_rules;
	bool paused;  /* the kill switch */
	bool revokes; /* a person asks, to take an allowance back */
	uint64_t chain;
	const uint8_t *account; /* NULL: the agent has no wallet on this chain */
	bool test_account;      /* of the development chains alone */
	const uint8_t *to;      /* NULL: a creation */
	struct u256 value;
	struct view data; /* call data or message */
	const struct typed *typed;
	uint64_t gas_hint;
	const struct policy_facts *facts;
	struct ledger *ledger;
	int64_t now_ms;   /* for windows; see ledger.h */
	int64_t wall_ms;  /* for times of the day */
	uint32_t pending; /* of the agent, without this one */
	bool new_recipient;
	uint64_t first; /* a bit for each effect: it goes to an address that is new */
	const struct policy_alike *alikes;
	unsigned n_alikes;
	/* When it is run again: what the request has reserved itself, and when. */
	const struct policy_spend *own;
	size_t n_own;
	int64_t own_ms, created_ms;
	bool signing;
};

/* ---- the decision ---- */

enum policy_verdict { POLICY_DENY, POLICY_WAIT /* signing: not yet */, POLICY_HUMAN, POLICY_AUTO };

struct policy_check {
	uint8_t step; /* the number in the order of evaluation */
	bool passed;
	const char *name;
	char text[448];
};

struct policy_decision {
	enum policy_verdict verdict;
	char error[448];   /* for the agent */
	char summary[448]; /* for a person */
	struct call call;
	struct policy_spend spends[POLICY_SPENDS + 1];
	unsigned n_spends;
	uint64_t gas;
	struct u256 fee; /* at most */
	uint32_t approvers;
	struct policy_check checks[POLICY_CHECKS];
	unsigned n_checks;
	struct policy_line lines[POLICY_LINES];
	unsigned n_lines;
	bool sim_more; /* the simulation shows more than the call says */
};

/* `ret` is large and must be given back by policy_done. */
void policy_decide(const struct policy_input *in, struct policy_decision *ret);
void policy_done(struct policy_decision *d);
/* Whether `now` allows nothing that `before` did not. The first thing that it does is named in `ret_why`.
 * What is absent means something else for a wallet than for an agent: see policy_rules.h. */
bool policy_stricter(const struct policy_rules *now, const struct policy_rules *before,
		     enum policy_scope scope, const char **ret_why);
const struct policy_limit *policy_limit_of(const struct policy_rules *r, uint64_t chain,
					   const uint8_t *asset);
/* Seconds that a first transfer to an address waits. */
uint32_t policy_cool_down(const struct policy_rules *agent, const struct policy_rules *wallet);
extern const uint8_t policy_fee[ADDRESS_SIZE]; /* the asset under which the ledger has fees */
