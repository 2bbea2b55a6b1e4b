/*
 * Shared by the files of paddock-signer: see main.c.
 */
#pragma once

#include "db.h"
#include "ledger.h"
#include "link.h"
#include "loop.h"
#include "policy.h"
#include "sgn_state.h"
#include "xseal.h"

#define SIGNER_ID 24 /* of requests and wallets, with the NUL */

struct signer {
	struct loop *loop;
	struct link keeper;
	struct list peers;
	int dir; /* DATA/signer */
	struct db db;
	uint8_t key[XSEAL_KEY]; /* seals the wallets' keys */
	struct ledger ledger;
	struct map holds; /* requests whose amounts are reserved */
	bool paused;
	int64_t start_wall_ms, start_boot_ms; /* moment.c */
	struct loop_timer expiry;
	struct {
		struct list answers; /* that wait for the commit */
		struct loop_task task;
		unsigned n;
		size_t bytes;
	} batch;           /* batch.c */
	struct err locked; /* set: nothing can be opened, and why; every call fails with it */
};

struct signer_call {
	struct signer *s;
	int32_t role;
	struct link *link;
	const struct frame *f;
	struct arena arena; /* secret */
};

/* calls.c */
void calls_accept(struct signer *s, int32_t role, int fd);
int calls_reply(struct signer_call *c, const struct pb_msg *m, const void *msg);
const char *calls_actor(const struct signer_call *c);
/* The others who ask are told that this request is not what it was. */
void calls_changed(struct signer_call *c, struct view id);

/* batch.c: answers go out when the disk has what they say. */
void batch_answer(struct signer *s, struct link *l, const struct frame *f, const struct pb_msg *m,
		  const void *msg);
/* The same for an event, which is lost where the commit is. */
void batch_tell(struct signer *s, struct link *l, uint16_t type, const struct pb_msg *m, const void *msg);
void batch_next(struct signer *s);
void batch_commit(struct signer *s);

/* moment.c: time that does not follow the clock while the program runs, and never goes back behind what was
 * written. */
void moment_start(struct signer *s, int64_t newest_ms);
int64_t moment_now(const struct signer *s);

/* audit.c: within the caller's transaction. `detail` is JSON. */
int audit_add(struct signer *s, const char *actor, const char *action, struct view object, struct view detail,
	      struct err *e) _must_check_;
int audit_call_list(struct signer_call *c, const void *msg, struct err *e);
int audit_call_verify(struct signer_call *c, const void *msg, struct err *e);
int audit_newest(struct signer *s, int64_t *ret_ms, struct err *e) _must_check_; /* its time */
int audit_head(struct signer *s, uint64_t *ret_seq, uint8_t hash[32], struct err *e) _must_check_;

/* master.c */
int master_load(struct signer *s, int fd, struct err *e) _must_check_;

/* wallets.c */
struct wallet {
	struct sgn_wallet info; /* views into the arena */
	struct view sealed;
};
int wallets_get(struct signer_call *c, struct view id, struct wallet *ret, struct err *e) _must_check_;
/* The caller wipes it. */
int wallets_key(struct signer_call *c, const struct wallet *w, uint8_t ret[SIG_KEY],
		struct err *e) _must_check_;
int wallets_call_add(struct signer_call *c, const void *msg, struct err *e);
int wallets_call_list(struct signer_call *c, const void *msg, struct err *e);
int wallets_call_export(struct signer_call *c, const void *msg, struct err *e);
int wallets_call_remove(struct signer_call *c, const void *msg, struct err *e);

/* rules.c: an unknown scope has empty rules. */
int rules_load(struct signer_call *c, struct view scope, struct sgn_rules *ret_wire, struct policy_rules *ret,
	       struct err *e) _must_check_;
int rules_store(struct signer_call *c, const struct sgn_rules *r, struct err *e) _must_check_;
int rules_call_get(struct signer_call *c, const void *msg, struct err *e);
int rules_call_put(struct signer_call *c, const void *msg, struct err *e);

/* holds.c: the ledger's rows, in the database and in memory. The first three are within a transaction and
 * touch the database alone; the others follow when it is committed. */
int holds_write(struct signer *s, const struct sgn_item *i, const struct policy_spend *spends, size_t n,
		int state, int64_t at_ms, struct err *e) _must_check_;
int holds_release_rows(struct signer *s, struct view id, struct err *e) _must_check_;
/* The owner's release, and its end: it was sent after all. Memory follows by reading all anew. */
int holds_settle_rows(struct signer *s, struct view id, struct err *e) _must_check_;
int holds_again_rows(struct signer *s, struct view id, struct err *e) _must_check_;
int holds_read(struct signer_call *c, struct view id, struct policy_spend **ret, size_t *ret_n,
	       int64_t *ret_ms, struct err *e) _must_check_;
int holds_load(struct signer *s, struct err *e) _must_check_;
void holds_reserve(struct signer *s, const struct sgn_item *i, const struct policy_spend *spends, size_t n,
		   int64_t at_ms);
void holds_release(struct signer *s, struct view id);
void holds_spend(struct signer *s, const struct sgn_item *i, const struct policy_spend *spends, size_t n,
		 int64_t at_ms);
/* Makes an amount that is reported small enough for the sums: the ledger can always be read again. */
void holds_cap(struct signer *s, const struct sgn_item *i, struct policy_spend *x);
void holds_done(struct signer *s);
enum { HOLDS_RESERVED = 1, HOLDS_COMMITTED, HOLDS_RELEASED, HOLDS_SETTLED };

/* items.c: requests as they are stored. */
struct item {
	struct sgn_item i;
	uint64_t gas_hint;
	uint8_t content[32]; /* equal for equal requests */
};
int items_get(struct signer_call *c, struct view id, struct item *ret, struct err *e) _must_check_;
/* The row at hand; ends the statement. 1, 0: there is none. */
int items_take(struct signer_call *c, sqlite3_stmt *row, struct item *ret, struct err *e) _must_check_;
/* Of the data of what ended without a signature: nobody fills a disk with it. */
#define ITEMS_DATA_KEPT 4096
int items_insert(struct signer *s, struct item *i, struct view idem, struct err *e) _must_check_;
int items_update(struct signer *s, struct sgn_item *i, struct err *e) _must_check_;
int items_reply(struct signer_call *c, struct sgn_item *i);
/* State, ledger and audit of one step, as one transaction. */
int items_move(struct signer_call *c, struct sgn_item *i, int32_t to, const char *actor, struct view note,
	       struct err *e) _must_check_;
int items_audit(struct signer *s, const struct sgn_item *i, const char *actor, const char *action,
		struct view note, struct err *e) _must_check_;
int items_call_get(struct signer_call *c, const void *msg, struct err *e);
int items_call_list(struct signer_call *c, const void *msg, struct err *e);
int items_call_pause(struct signer_call *c, const void *msg, struct err *e);
int items_call_status(struct signer_call *c, const void *msg, struct err *e);
int items_load_paused(struct signer *s, struct err *e) _must_check_;
void items_watch(struct signer *s); /* ends overdue ones, now and as long as there are open ones */

/* requests.c, sign.c, report.c */
int requests_call_ask(struct signer_call *c, const void *msg, struct err *e);
/* How many have approved it, and who. */
int requests_votes(struct signer_call *c, struct view id, struct view *ret_who, struct err *e) _must_check_;
int requests_call_approve(struct signer_call *c, const void *msg, struct err *e);
int requests_call_reject(struct signer_call *c, const void *msg, struct err *e);
int requests_call_cancel(struct signer_call *c, const void *msg, struct err *e);
int sign_call(struct signer_call *c, const void *msg, struct err *e);
int report_call(struct signer_call *c, const void *msg, struct err *e);
int report_call_settle(struct signer_call *c, const void *msg, struct err *e);
int report_call_spent(struct signer_call *c, const void *msg, struct err *e);

/* nonces.c */
struct nonce {
	uint64_t next;
	bool anew; /* the chain began anew */
};
int nonces_next(struct signer *s, const struct sgn_item *i, int32_t wallet_kind, const struct sgn_facts *f,
		struct nonce *ret, struct err *e) _must_check_;
/* Within the transaction of the signature. */
int nonces_take(struct signer *s, const struct sgn_item *i, const struct nonce *n, const struct sgn_facts *f,
		struct err *e) _must_check_;
int nonces_call(struct signer_call *c, const void *msg, struct err *e);
int nonces_call_abandon(struct signer_call *c, const void *msg, struct err *e);

/* states.c */
bool states_may(int32_t from, int32_t to);
bool states_unsigned(int32_t s);               /* it ended before a signature */
bool states_releases(int32_t s);               /* entering it ends the reservation */
bool states_revives(int32_t from, int32_t to); /* what was settled is spent after all */
bool states_ended_in_block(int32_t s);         /* until that block is final, it may come back */
