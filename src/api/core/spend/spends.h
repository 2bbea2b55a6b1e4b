/*
 * What the files of spending share: see spend.h.
 *
 * spend.c has the index of what is under way, spend_node.c asks nodes, spend_facts.c what the signer must
 * know of the chain, spend_ask.c is for agents, spend_people.c and spend_pass.c for people, spend_send.c
 * signs and sends, spend_follow.c looks what becomes of it, spend_elsewhere.c is about wallets elsewhere,
 * spend_proof.c about their signatures, spend_allowance.c takes allowances back.
 */
#pragma once

#include "agent.h"
#include "map.h"
#include "peer.h"
#include "spend.h"
#include "spend_elsewhere.h"
#include "spend_node.h"
#include "who.h"

#define SPEND_ATTEMPTS 8
#define SPEND_NOTE     192
#define SPEND_DEEP     64 /* blocks above the confirmations: final, where no block is ever called so */

/* ---- spend.c ---- */

struct spend_tried {
	uint8_t hash[SPEND_HASH];
	bool cancels;
};

/* What is needed of a node for a request. */
struct spend_work {
	struct spend_entry *entry;
	struct spend_facts facts;
	struct spend_call call;
};

/* A request that is under way. */
struct spend_entry {
	struct core *core;
	char id[SPEND_ID + 1], agent[AGENT_ID + 45];
	struct map_node by_id;
	struct spend_node *node; /* NULL until it is needed */
	int32_t kind, state;
	uint64_t chain, nonce;
	bool has_nonce; /* a wallet elsewhere chooses it: it is known when the node has shown what it sent */
	uint8_t account[ADDRESS_SIZE];
	struct buf raw; /* the newest signed transaction, or a signature */
	struct spend_tried tried[SPEND_ATTEMPTS];
	size_t n_tried;
	int64_t expires_ms;
	struct list waiters; /* agents that wait for it */
	bool refused;        /* SIGN was refused: why is in `note` */

	/* what is done with it now: one thing at a time */
	bool busy;
	struct signer_ask ask;
	struct spend_work *work; /* NULL until a node is asked: most of them wait for a person */
	struct loop_timer timer;
	unsigned failures; /* in a row */
	bool resend;       /* its bytes are to be sent (again) */
	bool look;         /* what is known of it is old: GET first */
	char note[SPEND_NOTE];

	/* spend_follow.c */
	struct list following;
	uint64_t round, since_head, used_head;
	unsigned used_polls, free_polls;
	int64_t unknown_ms;
	bool has_block, stuck;
	unsigned gap_polls; /* looks in a row at which one before it was missing */
	uint64_t waits_for; /* its nonce */
	uint64_t block, confirmations;
	uint8_t block_hash[SPEND_HASH];

	/* spend_elsewhere.c */
	struct spend_errand errand;
	struct spend_elsewhere *elsewhere; /* that has the errand */
	struct buf params;
	uint8_t digest[SPEND_HASH];
	bool elsewhere_before;        /* the errand was sent before a restart */
	bool external, verified;      /* what was sent is what was approved */
	struct spend_answer answered; /* that the signer may not have yet; its signature is in `raw` */
};

struct spends {
	struct core *core;
	struct map by_id;
	struct list watches, elsewhere, ops;
	struct list kept; /* what was decided while nobody waited */
	unsigned n_kept;
	struct signer_watch watch;
	struct spend_watch events;
	struct spend_sync *sync;
	bool started;
};

void spend_init(struct core *c);
void spend_start(struct core *c); /* the core is ready */
void spend_stop(struct core *c);  /* core_stop */
void spend_done(struct core *c);

struct spend_entry *spend_find(struct core *c, struct view id);
/* What the signer says of a request now: the index learns it, those who wait and watch are told. NULL:
 * nothing more comes of it, and it is not in the index. */
struct spend_entry *spend_learn(struct core *c, const struct sgn_item *item);
/* Goes on with it, if nothing is under way. */
void spend_drive(struct spend_entry *x);
/* The step that was under way is over. */
void spend_step_over(struct spend_entry *x);
/* Again after a while, longer with each failure in a row. */
void spend_later(struct spend_entry *x, const char *why);
void spend_note(struct spend_entry *x, const char *why); /* for people; without control characters */
/* REPORT; what is learned moves it on. */
void spend_report(struct spend_entry *x, const struct sgn_report *r);
void spend_view_of(struct core *c, const struct sgn_item *item, struct spend_view *ret);
const struct agent *spend_agent(struct core *c, struct view id); /* NULL: it is gone */
/* The node of this agent's manifest, or that of the configuration. ERR_UNAVAILABLE: there is none. */
struct spend_node *spend_node_get(struct core *c, struct view agent, uint64_t chain, struct err *e);

/* ---- spend_revoke.c ---- */

/* The agent goes: its rules allow nothing from now on, and what waits is cancelled. */
struct job *spend_revoke(struct core *c, struct view agent, job_done *done, void *arg,
			 struct err *e) _must_check_;

/* ---- spend_events.c ---- */

void spend_events_start(struct core *c); /* events_start was called */

/* ---- agents_rpc.c ---- */

void agents_rpc_end(struct agent *a); /* its requests under way are over */

/* ---- spend_send.c ---- */

/* It has a node, and memory to ask it; if not, it is tried again later. */
bool spend_ready(struct spend_entry *x);
void spend_sign(struct spend_entry *x); /* approved */
void spend_send(struct spend_entry *x); /* its bytes */
/* SIGN in this mode, by whoever asked; the job's result is a spend_view. */
struct job *spend_again(struct core *c, struct spend_entry *x, int32_t mode, job_done *done, void *arg,
			struct err *e);

/* ---- spend_follow.c ---- */

void spend_follow(struct spend_entry *x);   /* it is under way on the chain */
void spend_unfollow(struct spend_entry *x); /* accepts one that is not */
void spend_follow_stop(struct spend_node *n);
bool spend_has_gap(const struct spend_entry *x); /* it waits for another, that nobody here sends */

/* ---- spend_judge.c: pure ---- */

enum spend_next {
	SPEND_NEXT_WAIT,
	SPEND_NEXT_INCLUDED,
	SPEND_NEXT_CONFIRMED,
	SPEND_NEXT_FINAL,
	SPEND_NEXT_REVERTED,
	SPEND_NEXT_REORG,    /* it was in a block and is not any more */
	SPEND_NEXT_REPLACED, /* something else has its nonce */
	SPEND_NEXT_RESEND,   /* the node does not know it */
	SPEND_NEXT_BACK,     /* what ended it is gone */
	SPEND_NEXT_SURE,     /* what ended it is final */
};
/* What a node showed of a transaction that was sent. */
struct spend_seen {
	int32_t state;
	uint64_t head, finalized; /* 0: the node has no such tag */
	uint32_t needed;          /* confirmations */
	bool mined, failed, cancels, same_block;
	uint64_t block;
	bool used;          /* the account's nonce is beyond its own */
	unsigned n_used;    /* looks in a row at which it was, and it was in no block */
	uint64_t used_head; /* the head at the first of them */
	bool known;         /* to the node */
	/* of what a block ended: replaced, reverted, failed */
	bool no_nonce;   /* nobody knows its nonce */
	bool used_final; /* the nonce is used in a block that is final */
	unsigned n_free; /* looks in a row at which the nonce was not used */
};
enum spend_next spend_judge(const struct spend_seen *s);
bool spend_ended_in_block(int32_t state);

/* ---- spend_elsewhere.c ---- */

void spend_elsewhere_begin(struct spend_entry *x); /* awaiting_wallet */
void spend_elsewhere_end(struct spend_entry *x);   /* accepts one that has no errand */
void spend_verify(struct spend_entry *x);          /* what a wallet elsewhere has sent */

/* ---- spend_dropped.c ---- */

/* Whether it is known for longer than is patience for what a wallet elsewhere sent: notes the first time. */
bool spend_is_lost(struct spend_entry *x);
void spend_watch_dropped(struct spend_entry *x);

/* ---- spend_proof.c ---- */

/* What is signed of a message or typed data; -EINVAL: there is nothing, and it is zero. */
int spend_proof_digest(const struct sgn_item *i, uint8_t ret[SPEND_HASH]) _must_check_;
/* As spend_elsewhere_check does it, for an agent's account on a chain. */
struct spend_prover {
	struct core *core;
	struct view agent;
	uint64_t chain;
	const uint8_t *account;
};
struct spend_proof *spend_proof_start(const struct spend_prover *who, const uint8_t digest[SPEND_HASH],
				      struct view signature, spend_proof_done *done, void *arg);

/* ---- spend_ask.c ---- */

/* Whoever waits for it is told, if it is far enough. */
void spend_tell_agents(struct spend_entry *x, const struct sgn_item *item);
void spend_end_waiters(struct spend_entry *x, const struct err *e);
void spend_forget_kept(struct core *c);

/* ---- spend_allowance.c ---- */

/* What spend_allowance_revoke does for somebody who may: the result is a spend_view. */
struct job *spend_allowance(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			    struct err *e);

/* ---- spend_people.c ---- */

/* One operation of somebody: a job with a call and facts. */
struct spend_op {
	struct job job;
	struct list link; /* of spends.ops */
	struct core *core;
	struct actor actor;
	char by[KEYS_ID_SIZE + KEYS_NAME_MAX + 4], id[SPEND_ID + 1];
	struct signer_ask ask;
	struct spend_facts facts;
	struct arena arena;
	struct job *inner;                    /* that it waits for; abandoned with it */
	void (*release)(struct spend_op *op); /* may be NULL */
};
/* Of this size, which begins with a struct spend_op; NULL with ERR_INTERNAL. */
void *spend_op_new(struct core *c, size_t size, const struct actor *a, job_done *done, void *arg,
		   struct err *e);
void spend_op_end(struct spend_op *op, const void *result, const struct err *e);
