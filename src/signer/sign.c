/*
 * Signing what is approved. The policy runs once more; then nonce, signature, spending and state are stored
 * in one transaction, and only then are the bytes given away. Whoever asks again gets the same bytes.
 *
 * A further generation has the nonce of the first and higher fees: one of them can be mined, so that together
 * they cost what the dearest does.
 */
#include <errno.h>
#include <stdio.h>

#include "judge.h"
#include "tx.h"

#include "poison.h"

struct signature {
	struct buf raw;
	uint8_t hash[SIG_HASH];
	int64_t nonce; /* -1: not a transaction */
	struct nonce next;
};

static int finish(struct tx *t, const struct sgn_item *i, const uint8_t key[SIG_KEY], struct signature *ret,
		  struct err *e)
{
	uint8_t sender[ADDRESS_SIZE];

	ret->nonce = (int64_t)t->nonce;
	ret->raw = BUF_INIT(TX_RAW_MAX);
	if (tx_sign(t, key) < 0 || tx_encode(t, &ret->raw) < 0 || tx_hash(t, ret->hash) < 0 ||
	    tx_sender(t, sender) < 0 || i->from.n != ADDRESS_SIZE ||
	    !address_eq(sender, (const uint8_t *)i->from.p))
		return err_set(e, ERR_INTERNAL, "the transaction cannot be signed");
	return 0;
}

static int sign_tx(struct signer_call *c, const struct sgn_item *i, const struct sgn_facts *f,
		   struct judged *j, const uint8_t key[SIG_KEY], struct signature *ret, struct err *e)
{
	struct tx t = { .type = f->legacy ? TX_LEGACY : TX_BASE_FEE,
			.chain = i->chain,
			.gas = j->d.gas,
			.creation = i->to.n == 0,
			.data = i->data,
			.access = VIEW("") };

	if (nonces_next(c->s, i, j->wallet.info.kind, f, &ret->next, e) < 0)
		return -1;
	t.nonce = ret->next.next;
	if (u256_load_view(f->max_fee, &t.price) < 0 || u256_load_view(f->priority_fee, &t.priority) < 0 ||
	    u256_load_view(i->value, &t.value) < 0)
		return err_set(e, ERR_INVALID, "fees of more than 32 bytes");
	memcpy(t.to, i->to.p, i->to.n);
	return finish(&t, i, key, ret, e);
}

static int sign_hash(const struct judged *j, const uint8_t key[SIG_KEY], struct signature *ret, struct err *e)
{
	uint8_t bytes[SIG_SIZE];
	struct sig sig;

	ret->nonce = -1;
	ret->raw = BUF_INIT(SIG_SIZE);
	if (sig_sign(key, j->hash, &sig) < 0)
		return err_set(e, ERR_INTERNAL, "the message cannot be signed");
	sig_store(&sig, bytes);
	memcpy(ret->hash, j->hash, sizeof(ret->hash));
	return buf_append(&ret->raw, bytes, sizeof(bytes)) < 0 ? err_set(e, ERR_INTERNAL, "out of memory")
							       : 0;
}

/* Within the transaction. */
static int write_signature(struct signer *s, struct sgn_item *i, const struct signature *x, int64_t now,
			   struct err *e)
{
	i->generation++;
	i->raw = buf_view(&x->raw);
	i->hash = (struct view){ (const char *)x->hash, sizeof(x->hash) };
	i->nonce = x->nonce < 0 ? 0 : (uint64_t)x->nonce;
	return db_do(&s->db, DB_SIGNATURE_ADD, e, "tiibibbi", i->id, (int64_t)i->generation,
		     (int64_t)i->chain, i->from, x->nonce, i->hash, i->raw, now);
}

static int write_contacts(struct signer *s, const struct sgn_item *i, const struct call *call, struct err *e)
{
	for (unsigned k = 0; k < call->n; k++)
		if (call_reaches(&call->effects[k]) &&
		    db_do(&s->db, DB_CONTACT_ADD, e, "tib", i->wallet, (int64_t)i->chain,
			  (struct view){ (const char *)call->effects[k].to, ADDRESS_SIZE }) < 0)
			return -1;
	return 0;
}

static int store_first(struct signer_call *c, struct sgn_item *i, struct judged *j, const struct signature *x,
		       struct err *e)
{
	struct signer *s = c->s;
	struct policy_decision *d = &j->d;
	const int64_t now = moment_now(s);

	if (!u256_is_zero(&d->fee)) {
		memcpy(d->spends[d->n_spends].asset, policy_fee, ADDRESS_SIZE);
		d->spends[d->n_spends++].amount = d->fee;
	}
	i->state = SGN_STATE_SIGNED;
	if (db_begin(&s->db, e) < 0 || (x->nonce >= 0 && nonces_take(s, i, &x->next, j->facts, e) < 0) ||
	    write_signature(s, i, x, now, e) < 0 || holds_release_rows(s, i->id, e) < 0 ||
	    holds_write(s, i, d->spends, d->n_spends, HOLDS_COMMITTED, now, e) < 0 ||
	    write_contacts(s, i, &d->call, e) < 0 || items_update(s, i, e) < 0 ||
	    items_audit(s, i, calls_actor(c), "sign", VIEW(""), e) < 0 || db_commit(&s->db, e) < 0) {
		db_rollback(&s->db);
		return -1;
	}
	holds_release(s, i->id);
	holds_spend(s, i, d->spends, d->n_spends, now);
	calls_changed(c, i->id);
	return 0;
}

/* The rules may ask for more people than they did when it was approved, or for one where they asked for none.
 */
static int check_approval(struct signer_call *c, const struct sgn_item *i, const struct policy_decision *d,
			  struct err *e)
{
	struct view who;
	const int n = requests_votes(c, i->id, &who, e);

	if (n < 0)
		return -1;
	if (i->automatic ? d->verdict == POLICY_AUTO : (uint32_t)n >= d->approvers)
		return 0;
	return err_set(e, ERR_FORBIDDEN, "the rules ask for the approval of more people now");
}

static int sign_judged(struct signer_call *c, struct sgn_item *i, const struct sgn_facts *f, struct judged *j,
		       struct err *e)
{
	struct signature x = { 0 };
	uint8_t key[SIG_KEY];

	if (j->d.verdict == POLICY_DENY)
		return err_set(e, ERR_FORBIDDEN, "%.180s", j->d.error);
	if (j->d.verdict == POLICY_WAIT)
		return err_set(e, ERR_UNAVAILABLE, "a first transfer to this address must wait");
	if (check_approval(c, i, &j->d, e) < 0)
		return -1;
	if (judge_describe(c, j, i) < 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (wallets_key(c, &j->wallet, key, e) < 0)
		return -1;
	int r = i->kind == SGN_REQUEST_KIND_TX ? sign_tx(c, i, f, j, key, &x, e) : sign_hash(j, key, &x, e);
	explicit_bzero(key, sizeof(key));
	if (r == 0)
		r = store_first(c, i, j, &x, e);
	if (r == 0)
		r = items_reply(c, i);
	buf_done(&x.raw);
	return r;
}

/* ---- further generations ---- */

/* An eighth more, rounded up, or what the chain asks for now. */
static int raise(struct u256 *fee, struct view now)
{
	struct u256 more = *fee, asked;
	const struct u256 seven = u256_of(7);

	if (u256_add(&more, &seven, &more) < 0 || u256_load_view(now, &asked) < 0)
		return -EINVAL;
	(void)u256_divmod(&more, 8);
	if (u256_add(fee, &more, fee) < 0)
		return -EOVERFLOW;
	*fee = u256_cmp(&asked, fee) > 0 ? asked : *fee;
	return 0;
}

static bool covers(const struct policy_amount *limit, enum policy_scope who, const struct u256 *v)
{
	return limit->set ? u256_cmp(v, &limit->v) <= 0 : who == POLICY_AGENT;
}

static int check_fees_of(struct signer_call *c, const struct sgn_item *i, enum policy_scope who,
			 const struct u256 *now, const struct u256 *more, struct err *e)
{
	static const char *const names[] = { [POLICY_AGENT] = "agent", [POLICY_WALLET] = "wallet" };
	const struct view id = who == POLICY_AGENT ? i->agent : i->wallet;
	struct sgn_rules wire;
	struct policy_rules rules;
	struct ledger_sums sums;
	char scope[LEDGER_SCOPE];

	snprintf(scope, sizeof(scope), "%s:%.*s", names[who], VIEW_ARG(id));
	if (rules_load(c, view_of(scope), &wire, &rules, e) < 0)
		return -1;
	ledger_sums(&c->s->ledger, &(struct ledger_what){ view_of(scope), i->chain, policy_fee },
		    moment_now(c->s), &sums);
	const struct u256 sum = u256_add_sat(&sums.window[LEDGER_DAY], more);
	if (covers(&rules.fee_per_tx, who, now) && covers(&rules.fee_day, who, &sum))
		return 0;
	return err_set(e, ERR_FORBIDDEN, "the %s's limit for fees does not cover the replacement",
		       names[who]);
}

/* The limits for fees hold for the difference, too: the wallet's; and the agent's, but for a cancellation,
 * which is the owner's way out of what the agent asked for. */
static int check_fees(struct signer_call *c, const struct sgn_item *i, bool cancel, const struct u256 *before,
		      const struct u256 *now, struct u256 *ret_more, struct err *e)
{
	if (u256_sub(now, before, ret_more) < 0)
		*ret_more = U256_ZERO;
	if (check_fees_of(c, i, POLICY_WALLET, now, ret_more, e) < 0)
		return -1;
	return cancel ? 0 : check_fees_of(c, i, POLICY_AGENT, now, ret_more, e);
}

static int store_next(struct signer_call *c, struct sgn_item *i, const struct signature *x,
		      const struct u256 *more, const char *action, struct err *e)
{
	struct signer *s = c->s;
	const int64_t now = moment_now(s);
	struct policy_spend fee = { .amount = *more };

	memcpy(fee.asset, policy_fee, ADDRESS_SIZE);
	if (db_begin(&s->db, e) < 0 || write_signature(s, i, x, now, e) < 0 ||
	    holds_write(s, i, &fee, 1, HOLDS_COMMITTED, now, e) < 0 || items_update(s, i, e) < 0 ||
	    items_audit(s, i, calls_actor(c), action, VIEW(""), e) < 0 || db_commit(&s->db, e) < 0) {
		db_rollback(&s->db);
		return -1;
	}
	holds_spend(s, i, &fee, 1, now);
	calls_changed(c, i->id);
	return 0;
}

static void make_cancel(struct tx *t, const struct sgn_item *i)
{
	memcpy(t->to, i->from.p, ADDRESS_SIZE);
	t->creation = false;
	t->value = U256_ZERO;
	t->data = VIEW("");
	t->gas = 21000;
}

static bool is_cancel(const struct tx *t, const struct sgn_item *i)
{
	return !t->creation && address_eq(t->to, (const uint8_t *)i->from.p) && u256_is_zero(&t->value) &&
	       t->data.n == 0;
}

/* 1: it was replaced already, and in this way: the answer was lost, and is given again. */
static int was_done(const struct sgn_item *i, const struct sgn_sign *m, const struct tx *newest,
		    struct err *e)
{
	if (m->generation == 0 || m->generation == i->generation)
		return 0;
	if (m->generation + 1 == i->generation && is_cancel(newest, i) == (m->mode == SGN_SIGN_MODE_CANCEL))
		return 1;
	return err_set(e, ERR_CONFLICT, "the newest signature is number %u", i->generation);
}

static int sign_again(struct signer_call *c, struct sgn_item *i, const struct sgn_sign *m, struct err *e)
{
	const bool cancel = m->mode == SGN_SIGN_MODE_CANCEL;
	struct signature x = { 0 };
	struct wallet w;
	struct u256 before, now, more;
	uint8_t key[SIG_KEY];
	struct tx t;

	if (i->kind != SGN_REQUEST_KIND_TX ||
	    (i->state != SGN_STATE_SIGNED && i->state != SGN_STATE_BROADCAST))
		return err_set(e, ERR_STATE, "the request is %s", sgn_state_name(i->state));
	if (c->s->paused && !cancel)
		return err_set(e, ERR_FORBIDDEN, "all spending is stopped");
	if (!m->facts || m->facts->chain_id != i->chain || tx_decode(i->raw, &t) < 0 ||
	    tx_fee(&t, &before) < 0)
		return err_set(e, ERR_INVALID,
			       "the node serves another chain, or there is nothing to replace");
	int r = was_done(i, m, &t, e);
	if (r)
		return r < 0 ? -1 : items_reply(c, i);
	if (cancel)
		make_cancel(&t, i);
	if (raise(&t.price, m->facts->max_fee) < 0 || raise(&t.priority, m->facts->priority_fee) < 0 ||
	    u256_cmp(&t.priority, &t.price) > 0 || tx_fee(&t, &now) < 0)
		return err_set(e, ERR_INVALID, "the fees make no sense");
	if (check_fees(c, i, cancel, &before, &now, &more, e) < 0 || wallets_get(c, i->wallet, &w, e) < 0 ||
	    wallets_key(c, &w, key, e) < 0)
		return -1;
	t.is_signed = false;
	r = finish(&t, i, key, &x, e);
	explicit_bzero(key, sizeof(key));
	if (r == 0)
		r = store_next(c, i, &x, &more, cancel ? "sign.cancel" : "sign.speed_up", e);
	if (r == 0)
		r = items_reply(c, i);
	buf_done(&x.raw);
	return r;
}

int sign_call(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_sign *m = msg;
	struct item item;

	items_watch(c->s);
	if (items_get(c, m->id, &item, e) < 0)
		return -1;
	if (m->mode != SGN_SIGN_MODE_FIRST)
		return sign_again(c, &item.i, m, e);
	if (item.i.raw.n) /* it was signed: these bytes and no others */
		return items_reply(c, &item.i);
	if (item.i.state != SGN_STATE_APPROVED)
		return err_set(e, ERR_STATE, "the request is %s", sgn_state_name(item.i.state));
	struct judged *j = judge_request(c, &item, m->facts, JUDGE_SIGN, e);
	int r = j ? sign_judged(c, &item.i, m->facts, j, e) : -1;
	judge_done(j);
	return r;
}
