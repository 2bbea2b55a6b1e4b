/*
 * Requests to the nodes of chains, over HTTP/1.1 through paddock-ai, which dials. Connections are kept open
 * for the next request, and a node has at most CHAINS_CONNS of them: more requests wait for their turn. A
 * request that one node does not answer, or not in time, goes to the next one; a node that answers anything
 * in JSON has answered.
 *
 * A node decides how long its answer is and how slowly it comes, and may be the agent's own: what has come of
 * unfinished answers is counted for whom they are and over all. Past the first, the answer that grows is
 * given up; past the second, one of whoever holds most. The first CHAINS_FREE bytes of each are not counted,
 * so that others' long answers never stop a short one.
 */
#pragma once

#include "config.h"
#include "peer.h"

#define CHAINS_ANSWER_MAX (16u * 1024 * 1024)
#define CHAINS_CONNS      64
#define CHAINS_FREE       (64u * 1024)
#define CHAINS_HELD_ONE   (32u * 1024 * 1024)
#define CHAINS_HELD_ALL   (64u * 1024 * 1024)

struct chain_conn;

/* For whom answers are: an agent, a chain's node. Outlives its calls. */
struct chain_holder {
	size_t held;
};

/* Embedded in whatever waits, zeroed, with its callback. */
struct chain_call {
	struct core *core;
	const struct config_url *urls; /* borrowed until `done` or chains_cancel, and so is the body */
	size_t n, at;
	struct view body;
	struct chain_holder *holder;
	struct carrier_dial dial;
	struct list link; /* of `waiting` or `active` */
	bool dialling, reused;
	int status; /* of the last answer; 0: there was none */
	struct chain_conn *conn;
	struct loop_timer timer;
	uint64_t until_ms;
	/* The body is gone when this returns, and may be changed until then. */
	void (*done)(struct chain_call *k, char *body, size_t n, const struct err *e);
};

struct chains {
	struct core *core;
	struct list nodes; /* spend_node.c */
	struct list idle;
	unsigned n_idle;
	struct list waiting, active; /* struct chain_call */
	size_t held;
	struct loop_task wake;
	bool waking;
};

void chains_init(struct core *c);
void chains_stop(struct core *c);
/* `done` may come before this returns. */
void chains_post(struct core *c, struct chain_call *k);
void chains_cancel(struct chain_call *k); /* accepts one that is over */
