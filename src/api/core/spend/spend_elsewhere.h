/*
 * Wallets elsewhere, for the rooms that know some: see spend.h.
 */
#pragma once

#include "spend.h"

struct core;

/* A request that a wallet elsewhere is to sign and send. It lives until it is answered or taken back. */
struct spend_errand {
	const char *id; /* of the request */
	uint64_t chain;
	uint8_t account[20];
	const char *method; /* "eth_sendTransaction", "personal_sign", "eth_signTypedData_v4" */
	struct view params; /* a JSON array */
	uint8_t digest[32]; /* what a signature is of; nothing of a transaction */
	int64_t until_ms;   /* of the wall clock */
	bool again;         /* it was sent before: the daemon was started anew */
	void *own;          /* the backend's */
};
/* Those who know wallets elsewhere, in the order of their registration: the first that has the account gets
 * the errand. With none, the request stays awaiting_wallet until a page answers (spend_wallet_answer). */
struct spend_elsewhere {
	struct list link;
	const char *name; /* "walletconnect" */
	bool (*has)(struct spend_elsewhere *b, const uint8_t account[20], uint64_t chain);
	void (*send)(struct spend_elsewhere *b, struct spend_errand *q);
	void (*take_back)(struct spend_elsewhere *b, struct spend_errand *q); /* nobody waits any more */
};
void spend_elsewhere_add(struct core *c, struct spend_elsewhere *b);
/* The backend has wallets that it did not have: what waits is offered to it again. */
void spend_elsewhere_changed(struct core *c);
/* Once for each errand, which is gone afterwards; may come before `send` returns. */
void spend_elsewhere_answer(struct core *c, struct spend_errand *q, const struct spend_answer *w);

/* Whether a signature is the account's: by its key, or (EIP-1271) by asking the contract that the account is.
 * `done` gets NULL if it is, ERR_INVALID if it is not, ERR_UNAVAILABLE if no node says so; it may come before
 * this returns, which is NULL then. */
struct spend_proof;
typedef void spend_proof_done(void *arg, const struct err *e);
struct spend_proof *spend_elsewhere_check(struct spend_errand *q, struct view signature,
					  spend_proof_done *done, void *arg);
void spend_proof_cancel(struct spend_proof *p); /* accepts NULL */
