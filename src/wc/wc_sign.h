/*
 * The messages between a dapp and a wallet, which travel in envelopes: JSON-RPC again, with ids as text.
 */
#pragma once

#include "wc_relay.h"
#include "wc_crypto.h"

/* By the names of the methods: tag of the request, tag of its answer, how long the relay keeps each. */
enum wc_method {
	WC_UNKNOWN,
	WC_PAIRING_DELETE,
	WC_PAIRING_PING,
	WC_PROPOSE,
	WC_SETTLE,
	WC_UPDATE,
	WC_EXTEND,
	WC_REQUEST,
	WC_EVENT,
	WC_DELETE,
	WC_PING,
	WC_METHODS
};
uint32_t wc_sign_tag(enum wc_method m);
uint32_t wc_sign_answer_tag(enum wc_method m);
uint32_t wc_sign_ttl(enum wc_method m);

/* Errors of the protocol that are said or heard here. */
enum wc_code {
	WC_CODE_UNSUPPORTED = 10001, /* the method */
	WC_CODE_UNAUTHORIZED = 3001, /* the method */
	WC_CODE_REJECTED = 5000,     /* by the wallet's owner */
	WC_CODE_CHAINS = 5100,       /* that were not asked for */
	WC_CODE_DISCONNECTED = 6000,
	WC_CODE_EXPIRED = 8000,
	WC_CODE_PROVIDER_REJECTED = 4001, /* EIP-1193's, which wallets send as well */
};

/* ---- out ---- */

struct wc_proposal {
	const char *id;
	const uint8_t *public_key;
	struct view name, description, url;
	const struct view *chains; /* "eip155:1" */
	size_t n_chains;
	int64_t expiry_s;
	struct view pairing;
};
int wc_sign_put_propose(struct buf *out, const struct wc_proposal *p);

/* params: JSON of the method's. */
int wc_sign_put_request(struct buf *out, const char *id, struct view chain, const char *method,
			struct view params, int64_t expiry_s);
int wc_sign_put_delete(struct buf *out, const char *id, int64_t code, const char *why);
int wc_sign_put_true(struct buf *out, struct view id);
int wc_sign_put_error(struct buf *out, struct view id, int64_t code, const char *why);

/* ---- in ---- */

enum wc_sign_kind { WC_SIGN_REQUEST, WC_SIGN_RESULT, WC_SIGN_ERROR };

/* Views point into the arena. */
struct wc_sign_in {
	enum wc_sign_kind kind;
	struct view id;
	enum wc_method method;
	const struct json *params, *result; /* either may be NULL */
	int64_t code;
	struct view text;
};
int wc_sign_read(struct arena *a, struct view text, struct wc_sign_in *ret, struct err *e) _must_check_;

/* The answer to a proposal. */
int wc_sign_read_responder(const struct json *result, uint8_t ret_key[WC_KEY], struct err *e) _must_check_;

/* ---- wc_settle.c: what a session is ---- */

#define WC_ACCOUNTS 64
#define WC_TEXT_MAX 256

struct wc_account {
	uint64_t chain;
	uint8_t address[20];
};

struct wc_settlement {
	uint8_t controller[WC_KEY];
	struct view name, url, description; /* the wallet's words about itself, at most WC_TEXT_MAX bytes */
	struct wc_account accounts[WC_ACCOUNTS];
	size_t n_accounts;
	bool sends, signs, signs_typed; /* eth_sendTransaction, personal_sign, eth_signTypedData_v4 */
	int64_t expiry_s;
};
int wc_settle_read(const struct json *params, struct wc_settlement *ret, struct err *e) _must_check_;
/* The accounts and methods alone, of wc_sessionUpdate. */
int wc_settle_namespaces(const struct json *namespaces, struct wc_settlement *ret,
			 struct err *e) _must_check_;
/* "eip155:N:0x…"; an address of mixed case must have EIP-55's. */
int wc_settle_account(struct view v, struct wc_account *ret) _must_check_;
