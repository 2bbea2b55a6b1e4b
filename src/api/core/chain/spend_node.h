/*
 * What nodes are asked for spending: batches of requests, and what the signer must know of a chain.
 */
#pragma once

#include "chain.h"
#include "chains.h"
#include "config.h"
#include "ethrpc.h"
#include "spend_moves.h"
#include "spend_read.h"

#define SPEND_BATCH 48 /* of one request to a node */

/* ---- spend_node.c ---- */

/* The nodes of one chain: those of the configuration, or the one of an agent's manifest. */
struct spend_node {
	struct list link;
	struct core *core;
	char *url; /* the manifest's; NULL: of the configuration */
	char id[CHAIN_ID_MAX + 1];
	uint64_t chain;
	struct config_chain settings;
	struct config_url one;
	enum spend_health health;
	uint64_t singly; /* which of settings.rpc take no batches: a bit each */
	uint64_t head, said_id;
	int64_t checked_ms;
	struct chain_holder holder;

	/* Of whoever follows what was sent there (spend_follow.c). */
	struct list followed; /* struct spend_entry, by `following` */
	struct spend_poll *poll;
	struct loop_timer timer;
};
/* At `url`, or (empty) those of the configuration. ERR_UNAVAILABLE: nobody has a node for this chain. */
struct spend_node *spend_node_at(struct core *c, uint64_t chain, struct view url, struct err *e);
void spend_node_free_all(struct core *c);

/* Requests in one batch, of which the first is eth_chainId. A node that takes no batches is asked one by one,
 * and for its chain id once more at the end. Embedded, zeroed. */
struct spend_call {
	struct spend_node *node;
	struct buf body, starts; /* `starts`: where each request begins, uint32_t */
	struct arena arena;      /* of the answers */
	struct ethrpc_result *said;
	size_t n, at; /* requests; which of the nodes is asked */
	bool single;  /* one by one, `got` are answered */
	size_t got;
	bool loopback; /* the node that answered is on this machine */
	bool wrong_id; /* one of the nodes served another chain */
	struct err why;
	struct chain_call post;
	struct loop_timer timer;
	bool posted;
	/* Every answer is there, and the chain is the right one; or the error. spend_call_done follows. May
	 * come before spend_call_go returns. */
	void (*done)(struct spend_call *k, const struct err *e);
};
void spend_call_init(struct spend_call *k, struct spend_node *n);
/* `params` is JSON, with printf's directives. */
void spend_call_add(struct spend_call *k, const char *method, const char *params, ...) _printf_(3, 4);
void spend_call_go(struct spend_call *k, void (*done)(struct spend_call *k, const struct err *e));
/* The answer is of no use: another node is asked, or `done` gets the error. */
void spend_call_next(struct spend_call *k, const struct err *why);
void spend_call_done(struct spend_call *k); /* cancels and frees; accepts a zeroed one */

/* ---- spend_facts.c ---- */

struct spend_facts {
	struct spend_call call, trace;
	struct sgn_facts facts;
	struct arena arena;
	struct buf tx; /* {from, to, value, data} */
	uint8_t account[ADDRESS_SIZE];
	bool is_tx;
	size_t at_genesis; /* 0: not asked */
	struct spend_approval approvals[SPEND_ALLOWANCES];
	size_t n_approvals, first_approval; /* the first answer about them */
	void (*done)(struct spend_facts *f, const struct err *e);
};
struct spend_meaning {
	const uint8_t *account;
	int32_t kind;
	struct view to, value, data; /* bytes */
};
/* `done` may come before this returns. The facts live until spend_facts_done. */
void spend_facts_get(struct spend_facts *f, struct spend_node *n, const struct spend_meaning *m,
		     void (*done)(struct spend_facts *f, const struct err *e));
void spend_facts_done(struct spend_facts *f); /* accepts a zeroed one */
