/*
 * What became of a signed request, as the api reports it; what the owner settles; what was spent so far.
 */
#include <errno.h>

#include "judge.h"

#include "poison.h"

#define NOTE_MAX      512
#define LINES_MAX     512
#define SIGNATURE_MAX 4096 /* of a contract; a key's has 65 */

/* States that follow from the chain or from somebody else's wallet. */
static bool reportable(int32_t s)
{
	return (s >= SGN_STATE_BROADCAST && s <= SGN_STATE_AWAITING_WALLET) ||
	       s == SGN_STATE_WALLET_REJECTED || s == SGN_STATE_WALLET_TIMEOUT || s == SGN_STATE_MISMATCH;
}

static int read_actual(const struct sgn_report *m, struct policy_spend *out, size_t *ret_n, struct err *e)
{
	if (m->actual.n > POLICY_SPENDS)
		return err_set(e, ERR_INVALID, "report: too many effects");
	for (size_t k = 0; k < m->actual.n; k++) {
		const struct sgn_effect *x = &m->actual.items[k];
		if (x->asset.n != ADDRESS_SIZE || x->amount.n != U256_BYTES)
			return err_set(e, ERR_INVALID, "report: an asset has 20 bytes, an amount 32");
		const struct u256 amount = u256_load(x->amount.p);
		size_t at = 0;
		while (at < *ret_n && memcmp(out[at].asset, x->asset.p, ADDRESS_SIZE) != 0)
			at++;
		if (at == *ret_n)
			memcpy(out[(*ret_n)++].asset, x->asset.p, ADDRESS_SIZE);
		out[at].amount = u256_add_sat(&out[at].amount, &amount);
	}
	return 0;
}

/* What a report adds to the ledger. Given to a wallet elsewhere, a request counts as spent: nobody here can
 * stop it any more. A mismatch adds what was spent instead, and what was asked for stays counted. */
static int count(struct signer_call *c, struct sgn_item *i, const struct sgn_report *m,
		 struct policy_spend **spends, size_t *n, struct err *e)
{
	int64_t at;

	*n = 0;
	*spends = arena_array(&c->arena, POLICY_SPENDS + 1, sizeof(**spends));
	if (!*spends)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (m->state == SGN_STATE_AWAITING_WALLET)
		return holds_read(c, i->id, spends, n, &at, e);
	if (m->state == SGN_STATE_MISMATCH)
		return read_actual(m, *spends, n, e);
	if (m->state == SGN_STATE_INCLUDED && m->has_logs)
		return deviation_look(c, i, m, *spends, n, e);
	return 0;
}

static int move_and_count(struct signer_call *c, struct sgn_item *i, const struct sgn_report *m,
			  struct policy_spend *spends, size_t n, struct err *e)
{
	struct signer *s = c->s;
	const int64_t now = moment_now(s);
	const bool given = m->state == SGN_STATE_AWAITING_WALLET;

	if (!states_may(i->state, m->state))
		return err_set(e, ERR_STATE, "the request is %s", sgn_state_name(i->state));
	for (size_t k = 0; k < n && !given; k++)
		holds_cap(s, i, &spends[k]);
	i->state = m->state;
	if (db_begin(&s->db, e) < 0 || (given && holds_release_rows(s, i->id, e) < 0) ||
	    holds_write(s, i, spends, n, HOLDS_COMMITTED, now, e) < 0 || items_update(s, i, e) < 0 ||
	    items_audit(s, i, calls_actor(c), sgn_state_name(i->state),
			i->deviation.n ? i->deviation : m->note, e) < 0 ||
	    db_commit(&s->db, e) < 0) {
		db_rollback(&s->db);
		return -1;
	}
	if (given)
		holds_release(s, i->id);
	holds_spend(s, i, spends, n, now);
	calls_changed(c, i->id);
	return 0;
}

/* A message that a wallet elsewhere has signed is worth its signature: it is stored with the state, or there
 * is no such state. */
static int take_signature(struct sgn_item *i, const struct sgn_report *m, bool external, struct err *e)
{
	const bool signs = external && i->kind != SGN_REQUEST_KIND_TX && m->state == SGN_STATE_BROADCAST;

	if (!signs && m->signature.n)
		return err_set(e, ERR_INVALID, "report: there is nothing to sign");
	if (!signs)
		return 0;
	if (m->signature.n == 0 || m->signature.n > SIGNATURE_MAX)
		return err_set(e, ERR_INVALID, "report: a signature has 1 to %d bytes", SIGNATURE_MAX);
	i->raw = m->signature;
	return 0;
}

static int reload(struct signer *s, struct err *e)
{
	holds_done(s);
	if (holds_load(s, e) == 0)
		return 0;
	s->locked = *e;
	return -1;
}

/* 1: its key is elsewhere. What was sent outlives its wallet: then it is known by the signatures made here.
 */
static int is_external(struct signer_call *c, const struct sgn_item *i, struct err *e)
{
	struct wallet w;
	struct err why = { 0 };

	if (wallets_get(c, i->wallet, &w, &why) == 0)
		return w.info.kind == SGN_WALLET_KIND_EXTERNAL;
	if (why.code == ERR_NOT_FOUND)
		return i->generation == 0;
	*e = why;
	return -1;
}

/* Nothing can bring it back: it is kept with the request, so that nobody looks for it any more. */
static int make_sure(struct signer_call *c, struct sgn_item *i, const struct sgn_report *m, struct err *e)
{
	struct signer *s = c->s;

	if (!states_ended_in_block(m->state) || i->state != m->state)
		return err_set(e, ERR_STATE, "the request is %s", sgn_state_name(i->state));
	i->sure = true;
	if (db_begin(&s->db, e) < 0 || items_update(s, i, e) < 0 ||
	    items_audit(s, i, calls_actor(c), "sure", m->note, e) < 0 || db_commit(&s->db, e) < 0) {
		db_rollback(&s->db);
		return -1;
	}
	return items_reply(c, i);
}

int report_call(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_report *m = msg;
	struct item item;
	struct sgn_item *i = &item.i;
	struct policy_spend *spends;
	size_t n;

	if (!reportable(m->state) || m->note.n > NOTE_MAX || (m->hash.n != 0 && m->hash.n != 32) ||
	    (m->block_hash.n != 0 && m->block_hash.n != 32))
		return err_set(e, ERR_INVALID, "report: not a state that is reported, or not a hash");
	if (items_get(c, m->id, &item, e) < 0)
		return -1;
	if (m->sure)
		return make_sure(c, i, m, e);
	const int32_t before = i->state;
	if (before == SGN_STATE_FAILED && i->hash.n == 0)
		return err_set(e, ERR_STATE, "the request is failed, and was never signed");
	i->sure = false;
	const int external = is_external(c, i, e);
	if (external < 0)
		return -1;
	if (!external && (m->state >= SGN_STATE_AWAITING_WALLET))
		return err_set(e, ERR_STATE, "the key of this wallet is here");
	if (take_signature(i, m, external, e) < 0)
		return -1;
	if (external && m->hash.n)
		i->hash = m->hash;
	if (m->block || m->state == SGN_STATE_BROADCAST) { /* a reorganisation takes it out of its block */
		i->block = m->block;
		i->block_hash = m->block_hash;
	}
	if (count(c, i, m, &spends, &n, e) < 0)
		return -1;
	int r = n || i->deviation.n ? move_and_count(c, i, m, spends, n, e)
				    : items_move(c, i, m->state, calls_actor(c), m->note, e);
	/* What a wallet elsewhere refused was counted as spent; what was settled and sent all the same was
	 * not.
	 */
	if (r == 0 && (m->state == SGN_STATE_WALLET_REJECTED || states_revives(before, m->state)))
		r = reload(c->s, e);
	return r < 0 ? -1 : items_reply(c, i);
}

int report_call_settle(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_settle *m = msg;
	struct item item;
	struct signer *s = c->s;

	if (m->note.n > NOTE_MAX)
		return err_set(e, ERR_INVALID, "settle: a note has at most %d bytes", NOTE_MAX);
	if (items_get(c, m->id, &item, e) < 0)
		return -1;
	switch (item.i.state) {
	case SGN_STATE_DROPPED:
		if (item.i.generation > 0 && item.i.kind == SGN_REQUEST_KIND_TX)
			return err_set(
				e, ERR_STATE,
				"the request was given up, and whoever has its bytes may still send it: it "
				"counts until something else was mined with its nonce, %llu",
				(unsigned long long)item.i.nonce);
		break;
	case SGN_STATE_REPLACED:
	case SGN_STATE_REVERTED:
	case SGN_STATE_FAILED:
	case SGN_STATE_WALLET_TIMEOUT:
		break;
	case SGN_STATE_MISMATCH:
		if (item.i.kind != SGN_REQUEST_KIND_TX) /* somebody else's signature spends nothing */
			break;
		_fallthrough_;
	default:
		return err_set(e, ERR_STATE, "the request is %s", sgn_state_name(item.i.state));
	}
	if (db_begin(&s->db, e) < 0 || holds_settle_rows(s, item.i.id, e) < 0 ||
	    items_audit(s, &item.i, calls_actor(c), "settle", m->note, e) < 0 || db_commit(&s->db, e) < 0) {
		db_rollback(&s->db);
		return -1;
	}
	if (reload(s, e) < 0)
		return -1;
	calls_changed(c, item.i.id);
	return items_reply(c, &item.i);
}

struct collecting {
	struct signer_call *c;
	struct sgn_spent_reply out;
};

static void collect(void *arg, uint64_t chain, const uint8_t *asset, const struct ledger_sums *s)
{
	struct collecting *x = arg;
	struct signer_call *c = x->c;

	if (x->out.lines.n == LINES_MAX)
		return;
	x->out.lines.items[x->out.lines.n++] = (struct sgn_spent_line){
		.chain = chain,
		.asset = arena_view(&c->arena, (struct view){ (const char *)asset, ADDRESS_SIZE }),
		.day = card_amount(c, &s->window[LEDGER_DAY]),
		.week = card_amount(c, &s->window[LEDGER_WEEK]),
		.month = card_amount(c, &s->window[LEDGER_MONTH]),
		.lifetime = card_amount(c, &s->lifetime),
		.reserved = card_amount(c, &s->reserved),
	};
}

int report_call_spent(struct signer_call *c, const void *msg, struct err *e)
{
	struct collecting x = { .c = c };

	items_watch(c->s);
	x.out.lines.items = arena_array(&c->arena, LINES_MAX, sizeof(*x.out.lines.items));
	if (!x.out.lines.items)
		return err_set(e, ERR_INTERNAL, "out of memory");
	ledger_each(&c->s->ledger, ((const struct sgn_spent *)msg)->scope, moment_now(c->s), collect, &x);
	return calls_reply(c, &sgn_spent_reply_msg, &x.out);
}
