/*
 * Wallets elsewhere that answer when the time is over.
 */
#pragma once

#include "peer.h"
#include "spend.h"

/* An answer that belongs to no errand, to a request that is wallet_timeout. Money that moved counts whenever
 * that is learned (SENT, REFUSED), and a signature that is the account's is kept. With a signature the kind
 * does not matter: whether a wallet was asked for one is known by the request. */
enum spend_late_end {
	SPEND_LATE_DONE,    /* the signer has it, or nothing follows from it */
	SPEND_LATE_AWAITED, /* the request is awaiting_wallet: its errand comes */
	SPEND_LATE_AGAIN,   /* the signer is away */
};
struct spend_late {
	struct core *core;
	char id[SPEND_ID + 1]; /* of the request */
	struct spend_answer answer;
	void (*done)(struct spend_late *l, enum spend_late_end end);
	struct signer_ask ask;
	struct spend_proof *proof;
};
void spend_late_start(struct spend_late *l); /* `done` comes later, or before it returns */
void spend_late_stop(struct spend_late *l);  /* accepts one that is done */
