/*
 * A request that was judged, and what is shown of it: see judge.c and card.c.
 */
#pragma once

#include "signer.h"

/* judge.c: the policy for a request, with the rules of its agent and its wallet. */
struct judged {
	struct policy_input in;
	struct policy_facts chain;
	const struct sgn_facts *facts;
	struct typed typed;
	struct policy_alike alikes[POLICY_ALIKES];
	struct policy_decision d;
	struct policy_rules agent, wallet_rules;
	struct sgn_rules agent_wire, wallet_wire;
	struct wallet wallet;
	uint8_t hash[SIG_HASH]; /* of a message or typed data: what is signed */
};
enum { JUDGE_NEW, JUDGE_AGAIN, JUDGE_SIGN };
/* In the call's arena; judge_done afterwards. NULL with e. */
struct judged *judge_request(struct signer_call *c, const struct item *i, const struct sgn_facts *f, int when,
			     struct err *e) _must_check_;
void judge_done(struct judged *j);
int judge_wallet(struct signer_call *c, struct view agent, uint64_t chain, struct view *ret,
		 struct err *e) _must_check_;
int judge_describe(struct signer_call *c, const struct judged *j, struct sgn_item *i) _must_check_;

/* deviation.c: what a report's logs show that was not expected goes to i->deviation, what was not counted to
 * `more` (room for POLICY_SPENDS). */
int deviation_look(struct signer_call *c, struct sgn_item *i, const struct sgn_report *m,
		   struct policy_spend *more, size_t *ret_n, struct err *e) _must_check_;

/* card.c */
int card_fill(struct signer_call *c, const struct judged *j, struct sgn_item *i) _must_check_;
struct view card_amount(struct signer_call *c, const struct u256 *v); /* 32 bytes; no address: no memory */
