/*
 * Spending: from an agent's request to the end of its transaction. The signer decides and keeps everything
 * (docs/design/signer.md); here are the chain, people's decisions, and what became of it. See
 * docs/design/spending.md.
 *
 * Messages of the signer are handed on as they are: api/signer.proto. Whatever a job's result points at is
 * gone when `done` returns. A job is done when the signer has stored the change.
 */
#pragma once

#include "chain.h"
#include "config.h"
#include "job.h"
#include "json.h"
#include "list.h"
#include "sgn_state.h"

struct actor;
struct agent;
struct agent_ask;
struct core;
struct tenant;

#define SPEND_ID            20
#define SPEND_NOTE_MAX      512
#define SPEND_SIGNATURE_MAX 4096 /* of a contract; a key's has 65 */

/* What the configuration says of a chain, or what holds for one that is not in it (id.n == 0). */
struct config_chain spend_settings(const struct core *c, uint64_t chain);
/* A text of the signer, which knows no symbols, with the chain's where it says "(native)" behind a number. It
 * lies in `room`, or is the signer's own where that is too small. */
struct view spend_name_native(struct buf *room, const struct core *c, uint64_t chain, struct view text);
const char *spend_kind_name(int32_t kind);        /* "transaction", "message", "typed_data" */
const char *spend_method_name(int32_t method);    /* "none", "estimate", "trace", "simulate_v1" */
const char *spend_wallet_kind_name(int32_t kind); /* "test", "generated", "imported", "external" */
bool spend_is_over(const struct sgn_item *item);  /* nothing more comes of it by itself */

/* ---- what there is ---- */

/* A request and what is known of it besides what the signer says. */
struct spend_view {
	const struct sgn_item *item; /* of a list: without data, trace and raw */
	const struct tenant *tenant; /* NULL: its agent is gone */
	const char *agent_name;      /* "": its agent is gone */
	uint64_t confirmations;      /* 0: in no block, or nobody follows it any more */
	uint32_t needed;             /* of them, on this chain */
	bool stuck;                  /* it was sent long ago and is in no block */
	bool waits;                  /* for this nonce of its account, which nobody here sends */
	uint64_t waits_for;
	const char *note; /* what hinders it now: "the node does not answer"; "": nothing */
};
struct spend_filter {
	struct view agent; /* id or name; empty: all */
	int32_t state;     /* NONE: all */
	uint64_t chain;    /* 0: all */
	struct view after; /* an id: older ones than this */
	uint32_t max;      /* 1 to 1000; 0: 100 */
};
struct spend_page {
	const struct spend_view *items; /* newest first */
	size_t n;
	bool more;
};
/* const struct spend_page *. Keys see what their tenant's agents asked for, administrators all. */
struct job *spend_list(struct core *c, const struct actor *a, const struct spend_filter *f, job_done *done,
		       void *arg, struct err *e) _must_check_;
/* const struct spend_view *, the whole of it. */
struct job *spend_get(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
		      struct err *e) _must_check_;

/* ---- people's decisions: const struct spend_view * ---- */

/* ERR_CONFLICT: another digest; ERR_STATE: decided; ERR_FORBIDDEN: the policy refuses now; ERR_UNAVAILABLE:
 * no node says what the chain is like. Signing and sending go on by themselves. */
struct job *spend_approve(struct core *c, const struct actor *a, struct view id, const uint8_t digest[32],
			  job_done *done, void *arg, struct err *e) _must_check_;
struct job *spend_reject(struct core *c, const struct actor *a, struct view id, struct view note,
			 job_done *done, void *arg, struct err *e) _must_check_;
/* Before the signature it is withdrawn; after it, a transaction with the same nonce that does nothing is sent
 * to take its place. */
struct job *spend_cancel(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			 struct err *e) _must_check_;
struct job *spend_speed_up(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			   struct err *e) _must_check_;

/* A request that was signed has allowed somebody to take a token: the agent's new request, approve(spender,
 * 0), which waits for people as others do; asked for again, the same one while it is under way. ERR_STATE: it
 * allows nothing, or nothing any more; ERR_FORBIDDEN: the policy refuses. */
struct job *spend_allowance_revoke(struct core *c, const struct actor *a, struct view id, job_done *done,
				   void *arg, struct err *e) _must_check_;

enum spend_answer_kind {
	SPEND_NO_ANSWER,
	SPEND_SENT,
	SPEND_SIGNED,
	SPEND_REFUSED,
	SPEND_TIMEOUT,
	SPEND_FOREIGN, /* a signature that is not the account's */
};
/* What a wallet elsewhere says. */
struct spend_answer {
	enum spend_answer_kind kind;
	uint8_t hash[32];      /* SENT */
	struct view signature; /* SIGNED: of a message */
	const char *note;      /* may be NULL */
};
/* A wallet in a page has answered a request that is awaiting_wallet, or has sent one that is wallet_timeout.
 * ERR_INVALID: the signature is not the account's, or of another kind than what was asked for; then it still
 * waits. */
struct job *spend_wallet_answer(struct core *c, const struct actor *a, struct view id,
				const struct spend_answer *w, job_done *done, void *arg,
				struct err *e) _must_check_;

/* ---- wallets, limits, the signer ---- */

struct job *spend_wallets(struct core *c, const struct actor *a, job_done *done, void *arg,
			  struct err *e) _must_check_; /* const struct sgn_wallet_list_reply * */
enum spend_scope { SPEND_OF_AGENT, SPEND_OF_WALLET };
/* `ref`: an agent's id or name, or a wallet's id (administrators). const struct sgn_rules_reply *. */
struct job *spend_rules_get(struct core *c, const struct actor *a, enum spend_scope s, struct view ref,
			    job_done *done, void *arg, struct err *e) _must_check_;
/* Nowhere looser than before, else ERR_FORBIDDEN. `scope` of the rules is set here. */
struct job *spend_rules_put(struct core *c, const struct actor *a, enum spend_scope s, struct view ref,
			    const struct sgn_rules *rules, job_done *done, void *arg,
			    struct err *e) _must_check_;
struct job *spend_spent(struct core *c, const struct actor *a, enum spend_scope s, struct view ref,
			job_done *done, void *arg, struct err *e) _must_check_; /* sgn_spent_reply */
struct job *spend_signer(struct core *c, const struct actor *a, job_done *done, void *arg,
			 struct err *e) _must_check_; /* sgn_status_reply */
/* The kill switch; only the owner ends it. For administrators. sgn_paused. */
struct job *spend_pause(struct core *c, const struct actor *a, bool cancel_pending, job_done *done, void *arg,
			struct err *e) _must_check_;
struct job *spend_audit(struct core *c, const struct actor *a, uint64_t after, uint32_t max, job_done *done,
			void *arg, struct err *e) _must_check_; /* sgn_audit_reply; administrators */
struct job *spend_audit_verify(struct core *c, const struct actor *a, job_done *done, void *arg,
			       struct err *e) _must_check_; /* sgn_audit_verified; administrators */

struct spend_chain {
	struct view id, name, symbol, explorer;
	size_t nodes;
	enum spend_health health; /* UNKNOWN: nobody has needed it yet */
	uint64_t head, said_id;
	int64_t checked_ms;
	uint32_t confirmations;
	unsigned under_way; /* transactions that are followed */
};
int spend_chains(struct core *c, const struct actor *a, void (*each)(void *arg, const struct spend_chain *x),
		 void *arg, struct err *e) _must_check_;

/* ---- changes ---- */

enum spend_change { SPEND_ASKED, SPEND_DECIDED, SPEND_CHANGED };
/* Told when a request waits for people, when it was decided (approved, denied, rejected, expired,
 * cancelled), and of every later state. */
struct spend_watch {
	struct list link;
	void (*on_change)(struct spend_watch *w, enum spend_change what, const struct spend_view *v);
};
void spend_watch(struct core *c, struct spend_watch *w);
void spend_unwatch(struct spend_watch *w); /* accepts a zeroed one */

/* ---- agents: for agents_sign.c ---- */

struct spend_said {
	const struct sgn_item *item;
	struct view text;  /* the hash or the signature as 0x…; empty: there is none yet */
	const char *error; /* the sentence for the agent; NULL: none */
	int status;        /* of HTTP, for the error */
};
/* const struct spend_said *. Done when the request has a hash or a signature or has failed; with `async`,
 * when the signer has it. Whoever abandons the job leaves the request as it is. */
struct job *spend_ask(struct agent *a, const struct agent_ask *ask, bool async, job_done *done, void *arg,
		      struct err *e) _must_check_;
/* Of the agent's own. const struct spend_said *. */
struct job *spend_ask_status(struct agent *a, struct view id, job_done *done, void *arg,
			     struct err *e) _must_check_;
struct job *spend_ask_cancel(struct agent *a, struct view id, job_done *done, void *arg,
			     struct err *e) _must_check_;
/* Its account on the chain: const char *, with EIP-55's case; ERR_UNSUPPORTED where it has none. */
struct job *spend_account(struct agent *a, struct view chain, job_done *done, void *arg,
			  struct err *e) _must_check_;

/* ---- agents_rpc.c ---- */

#define AGENT_RPC_BODY (1024u * 1024)

/* One HTTP request with JSON-RPC; embedded, zeroed, with its callback, and kept until `done` or
 * agents_rpc_cancel. `done` may come before the call returns. */
struct agent_rpc {
	struct agent_rpc_state *state;
	/* status 200: body is JSON-RPC. Other: message is the text of an error. wait: seconds. */
	void (*done)(struct agent_rpc *r, int status, struct view body, const char *message, unsigned wait);
};
void agents_rpc(struct agent *a, struct view chain, struct view body, struct agent_rpc *r);
/* One method; the body of the answer is {"result": …}. */
void agents_rpc_one(struct agent *a, struct view chain, struct view method, const struct json *params,
		    struct agent_rpc *r);
void agents_rpc_cancel(struct agent_rpc *r); /* accepts one that is over or was never started */
