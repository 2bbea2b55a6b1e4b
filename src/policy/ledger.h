/*
 * What was spent, summed up: for each scope (an agent, a wallet), chain and asset the sums of the last
 * 24 hours, 7 days and 30 days, and of all time. A sum is kept up to date as entries come, go and grow old,
 * so that asking costs the same however many there are.
 *
 * Time is given by the caller and never goes back. An entry counts in a window until its age reaches the
 * window's length.
 */
#pragma once

#include "address.h"
#include "map.h"
#include "u256.h"

#define LEDGER_SCOPE 80 /* "agent:" and an id, at most */

enum ledger_window { LEDGER_DAY, LEDGER_WEEK, LEDGER_MONTH, LEDGER_WINDOWS };

struct ledger {
	struct map accounts;
};

struct ledger_what {
	struct view scope;
	uint64_t chain;
	const uint8_t *asset;
};

struct ledger_sums {
	struct u256 window[LEDGER_WINDOWS], lifetime, reserved;
};

struct ledger_account;
/* An entry, for as long as the ledger lives. */
struct ledger_entry {
	struct ledger_account *account; /* NULL: none */
	uint64_t number;
};

void ledger_init(struct ledger *l);
void ledger_done(struct ledger *l);
/* -EOVERFLOW: the sum of all time would not fit; -ENOMEM; -EINVAL: a time before the newest entry's. */
int ledger_add(struct ledger *l, const struct ledger_what *what, const struct u256 *amount, int64_t at_ms,
	       bool reserved, struct ledger_entry *ret) _must_check_;
/* It no longer counts. Once. */
void ledger_release(struct ledger_entry *e);
/* It is no longer a reservation; it counts as before. */
void ledger_commit(struct ledger_entry *e);
/* Zeros for one that has no entries. */
void ledger_sums(struct ledger *l, const struct ledger_what *what, int64_t now_ms, struct ledger_sums *ret);
extern const int64_t ledger_length[LEDGER_WINDOWS]; /* in milliseconds */
/* Calls `fn` for every account of a scope. */
void ledger_each(struct ledger *l, struct view scope, int64_t now_ms,
		 void (*fn)(void *arg, uint64_t chain, const uint8_t *asset, const struct ledger_sums *s),
		 void *arg);
