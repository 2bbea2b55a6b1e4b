/*
 * Asking, and deciding: a request is judged, its amounts are reserved, and it waits for people. One
 * transaction holds the request, its reservation and the audit's entry.
 */
#include <errno.h>
#include <stdio.h>

#include "rnd.h"
#include "sha256.h"
#include "judge.h"
#include "text.h"
#include "tx.h"

#include "poison.h"

#define AGENT_MAX   64
#define KEY_MAX     128
#define REASON_MAX  512
#define WHO_MAX     128
#define MESSAGE_MAX (16u * 1024)
#define HOUR_MS     (3600ll * 1000)
#define ENDED_MAX   2000 /* of an agent in an hour */

static bool is_text(struct view v, size_t min, size_t max)
{
	return v.n >= min && v.n <= max && text_is_utf8(v);
}

static int check_shape(const struct sgn_request *m, struct err *e)
{
	const bool tx = m->kind == SGN_REQUEST_KIND_TX;
	const size_t max = tx                                  ? TX_DATA_MAX
			   : m->kind == SGN_REQUEST_KIND_TYPED ? TYPED_JSON_MAX
							       : MESSAGE_MAX;

	if (!is_text(m->agent, 1, AGENT_MAX) || !is_text(m->idem_key, 0, KEY_MAX) ||
	    !is_text(m->reason, 0, REASON_MAX) || !is_text(m->origin, 0, REASON_MAX))
		return err_set(e, ERR_INVALID,
			       "request: agent, key, reason or origin is not what it should be");
	if (m->kind < SGN_REQUEST_KIND_TX || m->kind > SGN_REQUEST_KIND_TYPED || m->chain == 0 ||
	    m->chain > TX_CHAIN_MAX)
		return err_set(e, ERR_INVALID, "request: not a kind or not a chain");
	if ((m->to.n != 0 && m->to.n != ADDRESS_SIZE) || (m->value.n != 0 && m->value.n != U256_BYTES) ||
	    (!tx && (m->to.n || m->value.n)))
		return err_set(e, ERR_INVALID, "request: an address has 20 bytes, a value 32");
	if (m->data.n > max)
		return err_set(e, ERR_TOO_LARGE, "request: more than %zu bytes of data", max);
	return 0;
}

static void add_part(struct sha256 *h, struct view v)
{
	uint8_t n[8];

	for (unsigned i = 0; i < sizeof(n); i++)
		n[i] = (uint8_t)((uint64_t)v.n >> (56 - 8 * i));
	sha256_add(h, n, sizeof(n));
	sha256_add(h, v.p, v.n);
}

/* Of what is asked for; with an account and an id, of what is approved: then no other request has it. */
static void hash_of(const char *what, const struct sgn_item *i, struct view account, struct view id,
		    uint8_t ret[32])
{
	char numbers[64];
	struct sha256 h;

	snprintf(numbers, sizeof(numbers), "%d %llu", i->kind, (unsigned long long)i->chain);
	sha256_init(&h);
	add_part(&h, view_of(what));
	add_part(&h, i->agent);
	add_part(&h, view_of(numbers));
	add_part(&h, i->to);
	add_part(&h, i->value);
	add_part(&h, i->data);
	add_part(&h, account);
	add_part(&h, id);
	sha256_end(&h, ret);
}

/* 1: the request is there already; it is in *ret. */
static int find_same(struct signer_call *c, const struct sgn_request *m, const uint8_t content[32],
		     struct item *ret, struct err *e)
{
	const struct view hash = { (const char *)content, 32 };
	int r = 0;

	if (m->idem_key.n)
		r = items_take(c, db_ask(&c->s->db, DB_REQUEST_BY_KEY, "tt", m->agent, m->idem_key), ret, e);
	if (r == 1 && memcmp(ret->content, content, 32) != 0)
		return err_set(e, ERR_CONFLICT, "the idempotency key was used for another request");
	if (r || m->revokes) /* one of the agent's own that waits is stopped by its pause */
		return r;
	return items_take(c, db_ask(&c->s->db, DB_REQUEST_SAME, "bt", hash, m->idem_key), ret, e);
}

/* An agent that is refused too often is paused. */
static int suspend(struct signer_call *c, const struct judged *j, const struct sgn_item *i, struct err *e)
{
	char scope[LEDGER_SCOPE];
	struct sgn_rules wire;
	struct policy_rules rules;

	if (i->state != SGN_STATE_DENIED || j->agent.suspend_after == 0)
		return 0;
	sqlite3_stmt *row = db_ask(&c->s->db, DB_REQUEST_REFUSED, "ti", i->agent, i->created_ms - HOUR_MS);
	int r = db_row(&c->s->db, row, e);
	const int64_t n = r == 1 ? sqlite3_column_int64(row, 0) : 0;
	db_end(row);
	if (r < 0 || n < j->agent.suspend_after)
		return r < 0 ? -1 : 0;
	snprintf(scope, sizeof(scope), "agent:%.*s", VIEW_ARG(i->agent));
	if (rules_load(c, view_of(scope), &wire, &rules, e) < 0)
		return -1;
	wire.paused = true;
	return rules_store(c, &wire, e) < 0 ? -1
					    : audit_add(c->s, "signer", "suspend", i->agent, VIEW("{}"), e);
}

/* What came to nothing is written down, too. An agent that asks in a loop is answered without that, or it
 * would fill the disk, and no other could ask for anything. */
static int check_rate(struct signer_call *c, const struct sgn_item *i, struct err *e)
{
	sqlite3_stmt *row = db_ask(&c->s->db, DB_REQUEST_ENDED, "ti", i->agent, i->created_ms - HOUR_MS);
	int r = db_row(&c->s->db, row, e);
	const int64_t n = r == 1 ? sqlite3_column_int64(row, 0) : 0;

	db_end(row);
	if (r < 0 || n < ENDED_MAX)
		return r < 0 ? -1 : 0;
	return err_set(e, ERR_RATE, "Rate limit exceeded: %lld requests came to nothing within an hour",
		       (long long)n);
}

static int enter(struct signer_call *c, const struct sgn_request *m, const struct judged *j,
		 struct item *item, struct err *e)
{
	struct signer *s = c->s;
	struct sgn_item *i = &item->i;
	const struct policy_decision *d = &j->d;
	const bool denied = d->verdict == POLICY_DENY;

	i->state = denied                      ? SGN_STATE_DENIED
		   : d->verdict == POLICY_AUTO ? SGN_STATE_APPROVED
					       : SGN_STATE_PENDING;
	i->automatic = d->verdict == POLICY_AUTO;
	if (denied)
		i->data = view_head(i->data, ITEMS_DATA_KEPT);
	i->expires_ms = i->created_ms + 1000ll * (j->agent.expiry_s ? j->agent.expiry_s : POLICY_EXPIRY);
	if (judge_describe(c, j, i) < 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (db_begin(&s->db, e) < 0 || items_insert(s, item, m->idem_key, e) < 0 ||
	    (!denied && holds_write(s, i, d->spends, d->n_spends, HOLDS_RESERVED, i->created_ms, e) < 0) ||
	    items_audit(s, i, calls_actor(c), "request", m->origin, e) < 0 || suspend(c, j, i, e) < 0 ||
	    db_commit(&s->db, e) < 0) {
		db_rollback(&s->db);
		return -1;
	}
	if (!denied)
		holds_reserve(s, i, d->spends, d->n_spends, i->created_ms);
	return 0;
}

int requests_call_ask(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_request *m = msg;
	static const char zero[U256_BYTES];
	char id[SIGNER_ID];
	uint8_t digest[32];
	struct wallet w;
	struct item item = { .gas_hint = m->gas_hint };
	struct sgn_item *i = &item.i;

	if (check_shape(m, e) < 0)
		return -1;
	*i = (struct sgn_item){ .agent = m->agent,
				.kind = m->kind,
				.chain = m->chain,
				.to = m->to,
				.data = m->data,
				.value = m->value.n ? m->value : (struct view){ zero, sizeof(zero) },
				.reason = m->reason,
				.revokes = m->revokes,
				.created_ms = moment_now(c->s) };
	hash_of("content", i, VIEW(""), VIEW(""), item.content);
	struct item there;
	int r = find_same(c, m, item.content, &there, e);
	if (r == 1) {
		there.i.attached = true;
		return items_reply(c, &there.i);
	}
	if (r < 0 || check_rate(c, i, e) < 0 || judge_wallet(c, m->agent, m->chain, &i->wallet, e) < 0 ||
	    (i->wallet.n && wallets_get(c, i->wallet, &w, e) < 0))
		return -1;
	i->from = i->wallet.n ? w.info.address : VIEW("");
	rnd_name(id, 20);
	i->id = view_of(id);
	hash_of("approval", i, i->from, i->id, digest);
	i->digest = (struct view){ (const char *)digest, sizeof(digest) };
	struct judged *j = judge_request(c, &item, m->facts, JUDGE_NEW, e);
	r = j ? enter(c, m, j, &item, e) : -1;
	if (r == 0)
		r = items_reply(c, i);
	judge_done(j);
	if (r == 0)
		items_watch(c->s);
	return r;
}

/* ---- people ---- */

int requests_votes(struct signer_call *c, struct view id, struct view *ret_who, struct err *e)
{
	sqlite3_stmt *row = db_ask(&c->s->db, DB_VOTE_COUNT, "t", id);
	int r = db_row(&c->s->db, row, e);
	const int n = r == 1 ? sqlite3_column_int(row, 0) : 0;

	*ret_who = arena_view(&c->arena, r == 1 ? db_view(row, 1) : VIEW(""));
	db_end(row);
	return r < 0 || !ret_who->p ? -1 : n;
}

/* What it would spend may have grown since it was asked for: the reservation is made anew. */
static int vote(struct signer_call *c, const struct sgn_approve *m, const struct judged *j,
		struct sgn_item *i, struct err *e)
{
	struct signer *s = c->s;
	const int64_t now = moment_now(s);
	int n = -1;

	if (db_begin(&s->db, e) < 0 || db_do(&s->db, DB_VOTE_ADD, e, "tti", i->id, m->by, now) < 0 ||
	    (n = requests_votes(c, i->id, &i->decided_by, e)) < 0)
		goto undo;
	if ((uint32_t)n >= j->d.approvers) {
		i->state = SGN_STATE_APPROVED;
		i->expires_ms = now + 1000ll * (MAX(j->agent.expiry_s, (uint32_t)POLICY_EXPIRY) +
						policy_cool_down(&j->agent, &j->wallet_rules));
	}
	i->decided_ms = now;
	if (judge_describe(c, j, i) < 0 || holds_release_rows(s, i->id, e) < 0 ||
	    holds_write(s, i, j->d.spends, j->d.n_spends, HOLDS_RESERVED, now, e) < 0 ||
	    items_update(s, i, e) < 0 || items_audit(s, i, calls_actor(c), "approve", m->by, e) < 0 ||
	    db_commit(&s->db, e) < 0)
		goto undo;
	holds_release(s, i->id);
	holds_reserve(s, i, j->d.spends, j->d.n_spends, now);
	calls_changed(c, i->id);
	return 0;
undo:
	db_rollback(&s->db);
	return -1;
}

int requests_call_approve(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_approve *m = msg;
	struct item item;
	struct sgn_item *i = &item.i;

	items_watch(c->s);
	if (!is_text(m->by, 1, WHO_MAX))
		return err_set(e, ERR_INVALID, "approve: somebody approves");
	if (items_get(c, m->id, &item, e) < 0)
		return -1;
	if (!view_eq(m->digest, i->digest))
		return err_set(e, ERR_CONFLICT, "this is not the request that was shown");
	if (i->state != SGN_STATE_PENDING)
		return err_set(e, ERR_STATE, "the request is %s", sgn_state_name(i->state));
	struct judged *j = judge_request(c, &item, m->facts, JUDGE_AGAIN, e);
	if (!j)
		return -1;
	int r = j->d.verdict == POLICY_DENY ? err_set(e, ERR_FORBIDDEN, "%.180s", j->d.error)
					    : vote(c, m, j, i, e);
	if (r == 0)
		r = items_reply(c, i);
	judge_done(j);
	return r;
}

static int end(struct signer_call *c, struct view id, struct view by, int32_t state, struct view note,
	       struct err *e)
{
	struct item item;

	items_watch(c->s);
	if (!is_text(by, 1, WHO_MAX) || !is_text(note, 0, REASON_MAX))
		return err_set(e, ERR_INVALID, "somebody decides, with a note of at most %d bytes",
			       REASON_MAX);
	if (items_get(c, id, &item, e) < 0)
		return -1;
	item.i.decided_ms = moment_now(c->s);
	item.i.decided_by = by;
	if (items_move(c, &item.i, state, calls_actor(c), note, e) < 0)
		return -1;
	return items_reply(c, &item.i);
}

int requests_call_reject(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_reject *m = msg;

	return end(c, m->id, m->by, SGN_STATE_REJECTED, m->note, e);
}

int requests_call_cancel(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_cancel *m = msg;

	return end(c, m->id, m->by, SGN_STATE_CANCELLED, VIEW(""), e);
}
