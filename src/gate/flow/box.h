/*
 * A box, as its connections and DNS questions see it: its policy, its remaining rates and limits, and
 * the addresses that DNS has given it.
 */
#pragma once

#include "map.h"
#include "policy.h"
#include "server.h"
#include "share.h"

struct flows;

struct gate_box {
	struct map_node node; /* by id */
	struct flows *all;
	char id[24];
	struct loop_io tcp; /* the listener */
	struct server dns;
	int steer;
	struct policy *policy; /* NULL: nothing is allowed */
	bool synced;           /* it came on the api's present channel */
	struct list flows, lingers;
	struct share share; /* of the connections */
	unsigned n_over;    /* of these only wait to be told that they are too many */
	unsigned n_lingers;
	unsigned n_intercepts;
	size_t collected; /* bodies that wait for their length */
	uint64_t allowed, denied, bytes_out, bytes_in;
	uint64_t bytes_before,
		bytes_told; /* of the policy's max_bytes: used with gates before, and what the api knows */
	/* limits by time: what is left, and when it was counted last */
	uint64_t tokens_ms, bytes_left;
	double connects_left, questions_left;
	struct loop_timer refill;
	struct box_name { /* addresses that DNS gave to this box, the latest first to be overwritten last */
		struct addr addr;
		char *name;
	} * names;
	unsigned n_names, next_name;
};

/* A zeroed one with its id; its DNS is the caller's to set up, and to end. */
void box_init(struct gate_box *b, struct flows *all);
void box_done(struct gate_box *b); /* ends its connections */
/* Takes from the box's allowance of new connections; false: none is left. */
bool box_may_connect(struct gate_box *b);
bool box_may_ask(struct gate_box *b); /* DNS: a question that goes out */
/* Bytes that may be moved now, at most `want`; 0: wait, flow_let_go comes. */
size_t box_allowance(struct gate_box *b, size_t want);
void box_later(struct gate_box *b); /* accepts nothing for a moment */
void box_count(struct gate_box *b, bool out, size_t n);
/* Of the policy's max_bytes. */
uint64_t box_used(const struct gate_box *b);
/* What DNS said to the box: the name of an address, or "". */
void box_remember(struct gate_box *b, const struct addr *a, const char *name);
struct view box_name(const struct gate_box *b, const struct addr *a);
bool box_was_told(const struct gate_box *b, const struct addr *a, struct view name);
