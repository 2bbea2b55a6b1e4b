/*
 * The ledger of what tenants hold, of every kind (enum ledger_item, money.h), and the one
 * place where it is compared with what they may hold. Boxes, secrets and entries of logs are counted
 * as they come and go; what has a list of its own (workspaces, snapshots, templates,
 * webhooks) is counted from that list, so that nothing can be forgotten.
 */
#pragma once

#include "map.h"
#include "money.h"

struct account {
	struct map_node by_tenant;
	const struct tenant *tenant;
	struct quota quota;
	struct quota_use counted; /* what has no list */
	double tokens;            /* creates that may be made at once */
	uint64_t refilled_ms;
};

/* What a room above has of the tenant's, counted from its own list: 0 of every other item. */
typedef uint64_t ledger_list(const struct core *c, const struct tenant *t, enum ledger_item i);

/* Made when it is asked for first; NULL: no memory. */
struct account *ledger_account(struct core *c, const struct tenant *t);
uint64_t ledger_used(const struct core *c, const struct account *a, enum ledger_item i);
/* The tenant's quota, or else the default of the configuration (max.tenant); 0: no limit. */
uint64_t ledger_most(const struct core *c, const struct account *a, enum ledger_item i);

/* Whether the tenant may have so much more: ERR_QUOTA. What is not asked for is not looked at. */
int ledger_admit(struct core *c, const struct tenant *t, const struct quota_use *more,
		 struct err *e) _must_check_;
/* Whether what it has by now is too much: for what is known only when it is there. */
int ledger_check(struct core *c, const struct tenant *t, enum ledger_item i, struct err *e) _must_check_;

/* One more event, or one less. */
void ledger_count(struct core *c, const struct tenant *t, enum ledger_item i, int64_t change);
/* Who has the most of what is so counted: logs that are full for all make room at its expense, so that nobody
 * pushes out what others have, as long as these have less. NULL: nobody has any. */
const struct tenant *ledger_largest(const struct core *c, enum ledger_item i);
/* What the vault has of the tenant's. */
void ledger_set(struct core *c, const struct tenant *t, enum ledger_item i, uint64_t n);
