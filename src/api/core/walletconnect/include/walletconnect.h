/*
 * Wallets elsewhere, by WalletConnect v2: Paddock is the dapp. A pairing is a URI that a wallet reads from a
 * QR code; when its owner consents, it becomes a session, whose accounts are wallets of the kind EXTERNAL for
 * the signer. Requests of such a wallet that were approved here are sent to it, where its owner confirms them
 * a second time (spend.h, "wallets elsewhere"). For administrators.
 */
#pragma once

#include "job.h"
#include "json.h"
#include "qr.h"

struct actor;
struct core;

#define WALLETCONNECT_LABEL_MAX 64

struct walletconnect_wish {
	struct json_strlist chains; /* CAIP-2 ids; none: all of the configuration */
	struct view label;          /* of the wallets that come of it; empty: the wallet's name for itself */
};
/* Valid for five minutes. */
struct walletconnect_pairing {
	const char *id; /* that its session will have */
	struct view uri;
	int64_t expires_ms;
	const struct qr *qr; /* of the URI */
};
/* const struct walletconnect_pairing *. Done when the relay has the proposal. */
struct job *walletconnect_connect(struct core *c, const struct actor *a, const struct walletconnect_wish *w,
				  job_done *done, void *arg, struct err *e) _must_check_;

struct walletconnect_session {
	const char *id, *name, *url; /* name and url: the wallet's words */
	int64_t created_ms, expires_ms;
	void (*each_account)(const struct walletconnect_session *s,
			     void (*each)(void *arg, struct view account), void *arg); /* "eip155:1:0x…" */
	const void *own;
};
/* In the order of their making. */
int walletconnect_each(struct core *c, const struct actor *a,
		       void (*each)(void *arg, const struct walletconnect_session *s), void *arg,
		       struct err *e) _must_check_;
/* A session or a pairing. Done when it is forgotten here; the wallet is told if it can be reached. */
struct job *walletconnect_end(struct core *c, const struct actor *a, struct view id, job_done *done,
			      void *arg, struct err *e) _must_check_;
