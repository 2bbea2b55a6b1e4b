/*
 * What becomes of transactions that were sent: every so often a node is asked about those of its chain, in
 * batches. Nothing is asked while nothing is under way. See spends.h.
 *
 * A receipt alone proves little: its block must be the one at its height, now and at each later look, until
 * enough blocks are above it.
 */
#include "spends.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "log.h"
#include "text.h"
#include "poison.h"

#define SOON_MS   20
#define SLOW      10 /* times slower for what only waits for its finality */
#define SLOW_MOST 60000
#define GAP_POLLS 2u
#define OF_EACH   2u /* and the receipts of all its attempts */

struct spend_poll {
	struct spend_node *node;
	struct spend_call call;
	size_t n;
	struct {
		struct spend_entry *x; /* NULL: it is gone */
		size_t first, n_tried;
		/* what was asked: the block at its height, the nonce at the last final block, or the
		 * transaction */
		bool by_block, by_nonce;
	} of[SPEND_BATCH];
	uint64_t head, finalized;
};

static void poll_node(struct spend_node *n);

static void on_time(struct loop_timer *t)
{
	poll_node(CONTAINER(t, struct spend_node, timer));
}

static bool only_waits(const struct spend_node *n)
{
	LIST_EACH (it, &n->followed) {
		const int32_t state = CONTAINER(it, struct spend_entry, following)->state;
		if (state != SGN_STATE_CONFIRMED && !spend_ended_in_block(state))
			return false;
	}
	return true;
}

static void plan(struct spend_node *n, bool soon)
{
	const uint64_t often = n->settings.poll_ms;

	if (n->poll || list_empty(&n->followed) || n->core->stopping)
		return;
	loop_timer_start(n->core->loop, &n->timer,
			 soon            ? SOON_MS
			 : only_waits(n) ? MIN(often * SLOW, (uint64_t)MAX(often, (uint64_t)SLOW_MOST))
					 : often,
			 on_time);
}

void spend_follow(struct spend_entry *x)
{
	struct err e = { 0 };

	if (!list_empty(&x->following))
		return;
	if (!x->node)
		x->node = spend_node_get(x->core, view_of(x->agent), x->chain, &e);
	if (!x->node) {
		spend_later(x, e.msg);
		return;
	}
	x->round = 0;
	list_append(&x->node->followed, &x->following);
	plan(x->node, true);
}

void spend_unfollow(struct spend_entry *x)
{
	struct spend_poll *p = x->node ? x->node->poll : NULL;

	list_del(&x->following);
	for (size_t i = 0; p && i < p->n; i++)
		if (p->of[i].x == x)
			p->of[i].x = NULL;
	if (x->node && list_empty(&x->node->followed))
		loop_timer_stop(&x->node->timer);
}

static void poll_free(struct spend_poll *p)
{
	spend_call_done(&p->call);
	p->node->poll = NULL;
	free(p);
}

void spend_follow_stop(struct spend_node *n)
{
	loop_timer_stop(&n->timer);
	if (n->poll)
		poll_free(n->poll);
}

/* ---- what follows ---- */

static void reorg(struct spend_entry *x)
{
	log_info("transaction %s: its block is not part of the chain any more", x->id);
	x->has_block = false;
	x->confirmations = 0;
	x->resend = buf_len(&x->raw) > 0;
	spend_report(x, &(struct sgn_report){ .state = SGN_STATE_BROADCAST, .note = VIEW("reorganisation") });
}

/* It had ended, and the owner may have settled it: it is under way again, and counts before it is sent. */
static void back(struct spend_entry *x, bool mined)
{
	log_warn("transaction %s: what ended it is not part of the chain any more", x->id);
	x->has_block = x->verified = x->refused = x->stuck = false;
	x->unknown_ms = 0;
	x->used_polls = x->free_polls = 0;
	x->resend = !mined && buf_len(&x->raw) > 0;
	spend_report(x, &(struct sgn_report){ .state = SGN_STATE_BROADCAST, .note = VIEW("reorganisation") });
}

static void report_block(struct spend_entry *x, int32_t state, const struct spend_receipt *r,
			 const uint8_t hash[SPEND_HASH])
{
	struct sgn_report m = { .state = state,
				.hash = { (const char *)hash, SPEND_HASH },
				.block = r->block,
				.block_hash = { (const char *)r->block_hash, SPEND_HASH } };

	if (state == SGN_STATE_INCLUDED) {
		m.has_logs = true;
		m.logs.items = r->moves;
		m.logs.n = r->n_moves;
	}
	spend_report(x, &m);
}

static void act(struct spend_entry *x, enum spend_next next, const struct spend_receipt *r,
		const uint8_t hash[SPEND_HASH])
{
	switch (next) {
	case SPEND_NEXT_INCLUDED:
		report_block(x, SGN_STATE_INCLUDED, r, hash);
		break;
	case SPEND_NEXT_CONFIRMED:
		report_block(x, SGN_STATE_CONFIRMED, r, hash);
		break;
	case SPEND_NEXT_FINAL:
		report_block(x, SGN_STATE_FINAL, r, hash);
		break;
	case SPEND_NEXT_REVERTED:
		report_block(x, SGN_STATE_REVERTED, r, hash);
		break;
	case SPEND_NEXT_REORG:
		reorg(x);
		break;
	case SPEND_NEXT_REPLACED:
		spend_report(
			x, &(struct sgn_report){ .state = SGN_STATE_REPLACED,
						 .note = hash ? VIEW("cancelled")
							      : VIEW("another transaction has its nonce") });
		break;
	case SPEND_NEXT_RESEND:
		if (buf_len(&x->raw)) {
			x->resend = true;
			spend_drive(x);
		} else if (spend_is_lost(x)) {
			spend_report(x, &(struct sgn_report){ .state = SGN_STATE_DROPPED,
							      .note = VIEW("no node knows it") });
		}
		break;
	case SPEND_NEXT_BACK:
		back(x, hash);
		break;
	case SPEND_NEXT_SURE:
		spend_report(x, &(struct sgn_report){ .state = x->state, .sure = true });
		break;
	case SPEND_NEXT_WAIT:
		break;
	}
}

/* ---- what a node shows ---- */

/* It was not looked at in this round, and nothing else is done with it. */
static bool is_due(const struct spend_entry *x)
{
	return x->round == 0 && !x->busy && x->n_tried;
}

static bool is_object(const struct ethrpc_result *r)
{
	return r->result && r->result->type == JSON_OBJECT;
}

/* The receipt of one of its attempts; -1: there is none. */
static int find_receipt(struct spend_poll *p, size_t i, struct spend_receipt *ret)
{
	const struct spend_entry *x = p->of[i].x;

	for (size_t k = 0; k < p->of[i].n_tried; k++) {
		const struct ethrpc_result *r = &p->call.said[p->of[i].first + OF_EACH + k];
		if (!r->error &&
		    spend_read_receipt(&p->call.arena, r->result, x->tried[k].hash, x->account, ret) == 1)
			return (int)k;
	}
	return -1;
}

static void note_stuck(struct spend_entry *x, uint64_t head)
{
	if (!x->since_head || x->state != SGN_STATE_BROADCAST || head < x->since_head)
		x->since_head = head;
	x->stuck = x->state == SGN_STATE_BROADCAST && !x->has_block &&
		   head - x->since_head >= x->node->settings.stuck_blocks;
}

/* One before it that neither the chain has nor anybody here sends, as after a node that was started anew: it
 * is never mined. Somebody else may be sending it, and once is no proof. */
static void note_gap(struct spend_entry *x, uint64_t count, bool mined)
{
	uint64_t first = count;
	bool found = true;

	while (found && first < x->nonce) {
		found = false;
		LIST_EACH (it, &x->node->followed) {
			const struct spend_entry *o = CONTAINER(it, struct spend_entry, following);
			found |= o->has_nonce && o->nonce == first && address_eq(o->account, x->account) &&
				 o->state == SGN_STATE_BROADCAST;
		}
		first += found;
	}
	const bool gap = !mined && x->state == SGN_STATE_BROADCAST && x->has_nonce && first < x->nonce;
	x->gap_polls = gap ? MIN(x->gap_polls + 1, GAP_POLLS) : 0;
	x->waits_for = first;
}

bool spend_has_gap(const struct spend_entry *x)
{
	return x->gap_polls == GAP_POLLS && x->state == SGN_STATE_BROADCAST;
}

/* True: it should be looked at again at once. */
static bool look_at(struct spend_poll *p, size_t i)
{
	struct spend_entry *x = p->of[i].x;
	const struct ethrpc_result *said = &p->call.said[p->of[i].first];
	struct spend_receipt r;
	struct spend_block at;
	uint64_t count, final;
	const int mined = find_receipt(p, i, &r);
	struct spend_seen s = { .state = x->state,
				.head = p->head,
				.finalized = p->finalized,
				.needed = x->node->settings.confirmations,
				.mined = mined >= 0 };

	/* Without these answers nothing is concluded. */
	if (spend_read_u64(said[0].result, &count) < 0 || (said[1].error && !p->of[i].by_nonce))
		return false;
	if (s.mined && !x->has_block) { /* the block is needed, too */
		x->has_block = true;
		x->block = r.block;
		return true;
	}
	if (s.mined) {
		s.failed = r.failed;
		s.block = r.block;
		s.cancels = x->tried[mined].cancels;
		s.same_block = p->of[i].by_block && x->block == r.block && is_object(&said[1]) &&
			       spend_read_block(said[1].result, &at) == 0 && at.number == r.block &&
			       memcmp(at.hash, r.block_hash, SPEND_HASH) == 0;
		x->confirmations = p->head >= r.block ? p->head - r.block + 1 : 0;
	} else {
		x->confirmations = 0;
		s.known = p->of[i].by_block || is_object(&said[1]);
		s.no_nonce = !x->has_nonce;
		s.used = x->has_nonce && count > x->nonce;
		s.used_final = s.used && p->of[i].by_nonce && p->finalized && !said[1].error &&
			       spend_read_u64(said[1].result, &final) == 0 && final > x->nonce;
	}
	x->used_polls = s.used ? x->used_polls + 1 : 0;
	x->free_polls = s.mined || s.used ? 0 : x->free_polls + 1;
	s.n_free = x->free_polls;
	if (x->used_polls == 1)
		x->used_head = p->head;
	s.n_used = x->used_polls;
	s.used_head = x->used_head;
	note_stuck(x, p->head);
	note_gap(x, count, s.mined);
	const enum spend_next next = spend_judge(&s);
	if (!s.mined || (next == SPEND_NEXT_WAIT && !s.same_block))
		x->has_block = false;
	act(x, next, &r, s.mined ? x->tried[mined].hash : NULL);
	/* Where nothing is ever final, it is enough that it is deep. */
	if (next == SPEND_NEXT_WAIT && s.state == SGN_STATE_CONFIRMED && !s.finalized &&
	    x->confirmations >= s.needed + SPEND_DEEP)
		spend_unfollow(x);
	return next == SPEND_NEXT_INCLUDED;
}

static void on_polled(struct spend_call *k, const struct err *e)
{
	struct spend_poll *p = CONTAINER(k, struct spend_poll, call);
	struct spend_node *n = p->node;
	struct spend_block head, finalized;
	bool soon = false,
	     good = !e && is_object(&k->said[1]) && spend_read_block(k->said[1].result, &head) == 0;

	if (good) {
		p->head = n->head = head.number;
		if (is_object(&k->said[2]) && spend_read_block(k->said[2].result, &finalized) == 0)
			p->finalized = finalized.number;
	}
	for (size_t i = 0; i < p->n; i++) {
		struct spend_entry *x = p->of[i].x;
		if (!x || x->busy)
			continue;
		if (!good) {
			spend_note(x, e ? e->msg : "RPC Error: the node's answer makes no sense");
			continue;
		}
		if (!loop_timer_active(&x->timer))
			x->note[0] = 0;
		soon |= look_at(p, i);
	}
	/* Those that did not fit come at once. */
	LIST_EACH (it, &n->followed)
		soon |= good && is_due(CONTAINER(it, struct spend_entry, following));
	poll_free(p);
	plan(n, soon);
}

static void add_entry(struct spend_poll *p, struct spend_entry *x)
{
	struct spend_call *k = &p->call;
	char account[ADDRESS_TEXT], hash[2 * SPEND_HASH + 1];

	p->of[p->n].x = x;
	p->of[p->n].first = k->n;
	p->of[p->n].n_tried = x->n_tried;
	p->of[p->n].by_block = x->has_block;
	p->of[p->n].by_nonce = !x->has_block && x->has_nonce && spend_ended_in_block(x->state);
	p->n++;
	address_text(x->account, account);
	spend_call_add(k, "eth_getTransactionCount", "[\"%s\",\"latest\"]", account);
	if (x->has_block) {
		spend_call_add(k, "eth_getBlockByNumber", "[\"0x%" PRIx64 "\",false]", x->block);
	} else if (p->of[p->n - 1].by_nonce) {
		spend_call_add(k, "eth_getTransactionCount", "[\"%s\",\"finalized\"]", account);
	} else {
		text_hex(x->tried[x->n_tried - 1].hash, SPEND_HASH, hash);
		spend_call_add(k, "eth_getTransactionByHash", "[\"0x%s\"]", hash);
	}
	for (size_t i = 0; i < x->n_tried; i++) {
		text_hex(x->tried[i].hash, SPEND_HASH, hash);
		spend_call_add(k, "eth_getTransactionReceipt", "[\"0x%s\"]", hash);
	}
	x->round = 1;
}

/* All that were not looked at in this round, as many as fit. */
static void choose(struct spend_node *n, struct spend_poll *p)
{
	bool left = false;

	LIST_EACH (it, &n->followed)
		left |= is_due(CONTAINER(it, struct spend_entry, following));
	LIST_EACH (it, &n->followed) {
		struct spend_entry *x = CONTAINER(it, struct spend_entry, following);
		if (!left)
			x->round = 0;
		if (is_due(x) && p->call.n + OF_EACH + x->n_tried <= SPEND_BATCH)
			add_entry(p, x);
	}
}

static void poll_node(struct spend_node *n)
{
	struct spend_poll *p = calloc(1, sizeof(*p));

	if (!p) {
		plan(n, false);
		return;
	}
	p->node = n;
	spend_call_init(&p->call, n);
	spend_call_add(&p->call, "eth_getBlockByNumber", "[\"latest\",false]");
	spend_call_add(&p->call, "eth_getBlockByNumber", "[\"finalized\",false]");
	choose(n, p);
	if (p->n == 0) {
		spend_call_done(&p->call);
		free(p);
		plan(n, false);
		return;
	}
	n->poll = p;
	spend_call_go(&p->call, on_polled);
}
