/*
 * Agents ask: their account, the facts, the signer's decision, and then they wait. See spends.h.
 *
 * A client that goes away changes nothing. Clients that give up after half a minute and ask again get the
 * answer to what they asked before: the signer attaches equal requests while they are pending, and what was
 * decided while nobody waited is kept here for a while.
 */
#include "spends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agents.h"
#include "boxes.h"
#include "clock.h"
#include "core_base.h"
#include "num.h"
#include "sha256.h"
#include "text.h"
#include "poison.h"

#define KEEP_MS     (10 * 60 * 1000)
#define KEEP_MOST   256
#define DATA_MOST   (512u * 1024)
#define PATIENCE_MS 60000 /* for sending, behind the end of the approval */
#define KEY_MOST    128

struct asking {
	struct spend_op op;
	struct list waiting; /* of the entry */
	struct loop_timer timer;
	char agent[AGENT_ID + 1], key[KEY_MOST + 1], origin[256], reason[SPEND_NOTE_MAX + 1];
	char wallet[64], account_text[ADDRESS_TEXT];
	uint8_t account[ADDRESS_SIZE], from[ADDRESS_SIZE], to[ADDRESS_SIZE], value[U256_BYTES], content[32];
	bool has_account, has_from, async, account_only, revokes;
	int32_t kind;
	uint64_t chain, gas;
	struct buf data;
};

/* What was decided while nobody waited. */
struct kept {
	struct list link;
	uint8_t content[32];
	char id[SPEND_ID + 1];
	int64_t until_ms;
};

/* ---- the answer ---- */

static const char *sentence(const struct sgn_item *i, const char *note, bool refused, int *ret_status)
{
	*ret_status = 403;
	switch (i ? i->state : SGN_STATE_NONE) {
	case SGN_STATE_REJECTED:
	case SGN_STATE_WALLET_REJECTED:
		return "Transaction rejected by user";
	case SGN_STATE_CANCELLED:
		return refused ? note : "Transaction rejected by user: cancelled";
	case SGN_STATE_EXPIRED:
	case SGN_STATE_WALLET_TIMEOUT:
		*ret_status = 500;
		return "Transaction approval timeout";
	case SGN_STATE_FAILED:
		*ret_status = 500;
		return *note ? note : "RPC Error: the transaction could not be sent";
	case SGN_STATE_MISMATCH:
		*ret_status = 500;
		return i->kind == SGN_REQUEST_KIND_TX
			       ? "the wallet sent another transaction than the one that was approved"
			       : "the wallet's signature is not the account's";
	default:
		*ret_status = 500;
		return refused ? note : NULL;
	}
}

struct said_text {
	char hex[2 * SPEND_SIGNATURE_MAX + 3];
	char error[192];
};

/* False: there is nothing to say yet. */
static bool say(const struct spend_entry *x, const struct sgn_item *i, struct spend_said *ret,
		struct said_text *t)
{
	const struct view raw = i && i->raw.n ? i->raw : x ? buf_view(&x->raw) : VIEW_NONE;
	struct view bytes = VIEW_NONE;

	*ret = (struct spend_said){ .item = i, .status = 200 };
	if (i && i->state == SGN_STATE_DENIED) {
		snprintf(t->error, sizeof(t->error), "%.*s", VIEW_ARG(view_head(i->error, 180)));
		ret->error = t->error;
		ret->status = view_starts(i->error, "Rate limit") ? 429 : 403;
		return true;
	}
	ret->error = sentence(i, x ? x->note : "", x && x->refused, &ret->status);
	if (ret->error)
		return true;
	if (i && i->kind != SGN_REQUEST_KIND_TX && raw.n && raw.n <= SPEND_SIGNATURE_MAX)
		bytes = raw;
	else if (i && i->kind == SGN_REQUEST_KIND_TX && i->hash.n == SPEND_HASH &&
		 i->state >= SGN_STATE_BROADCAST)
		bytes = i->hash;
	if (!bytes.n)
		return false;
	memcpy(t->hex, "0x", 2);
	text_hex(bytes.p, bytes.n, t->hex + 2);
	ret->text = view_of(t->hex);
	ret->status = 200;
	return true;
}

static void end_asking(struct asking *q, const void *result, const struct err *e)
{
	spend_op_end(&q->op, result, e);
}

static void end_with(struct asking *q, const struct sgn_item *i)
{
	struct spend_said said;
	struct said_text t;

	(void)say(spend_find(q->op.core, i->id), i, &said, &t);
	if (!said.error && !said.text.n)
		said.status = 202;
	end_asking(q, &said, NULL);
}

/* ---- what nobody heard ---- */

static void keep(struct core *c, const struct asking *q, const char *id)
{
	struct kept *k = calloc(1, sizeof(*k));

	if (!k)
		return;
	memcpy(k->content, q->content, sizeof(k->content));
	memcpy(k->id, id, sizeof(k->id));
	k->until_ms = clock_wall_ms() + KEEP_MS;
	list_append(&c->spends->kept, &k->link);
	if (++c->spends->n_kept > KEEP_MOST) {
		struct kept *oldest = CONTAINER(c->spends->kept.next, struct kept, link);
		list_del(&oldest->link);
		c->spends->n_kept--;
		free(oldest);
	}
}

/* Once: asked again after that, it is a new request. */
static bool recall(struct core *c, const struct asking *q, char ret[SPEND_ID + 1])
{
	bool found = false;

	LIST_EACH (it, &c->spends->kept) {
		struct kept *k = CONTAINER(it, struct kept, link);
		const bool old = clock_wall_ms() > k->until_ms,
			   same = memcmp(k->content, q->content, sizeof(k->content)) == 0;
		if (!old && (!same || found))
			continue;
		if (!old) {
			memcpy(ret, k->id, sizeof(k->id));
			found = true;
		}
		list_del(&k->link);
		c->spends->n_kept--;
		free(k);
	}
	return found;
}

void spend_forget_kept(struct core *c)
{
	LIST_EACH (it, &c->spends->kept) {
		list_del(it);
		free(CONTAINER(it, struct kept, link));
	}
	c->spends->n_kept = 0;
}

/* ---- waiting ---- */

void spend_tell_agents(struct spend_entry *x, const struct sgn_item *item)
{
	struct spend_said said;
	struct said_text t;
	struct asking *unheard = NULL;
	bool heard = false;

	if (list_empty(&x->waiters) || !say(x, item, &said, &t))
		return;
	LIST_EACH (it, &x->waiters) {
		struct asking *q = CONTAINER(it, struct asking, waiting);
		if (job_abandoned(&q->op.job))
			unheard = q;
		else
			heard = true;
	}
	if (!heard && unheard && !unheard->key[0])
		keep(x->core, unheard, x->id);
	LIST_EACH (it, &x->waiters)
		end_asking(CONTAINER(it, struct asking, waiting), &said, NULL);
}

void spend_end_waiters(struct spend_entry *x, const struct err *e)
{
	LIST_EACH (it, &x->waiters)
		end_asking(CONTAINER(it, struct asking, waiting), NULL, e);
}

static void on_patience(struct loop_timer *t)
{
	struct asking *q = CONTAINER(t, struct asking, timer);
	struct err e = { 0 };

	err_set(&e, ERR_UNAVAILABLE, "Transaction approval timeout: the transaction %s goes on", q->op.id);
	end_asking(q, NULL, &e);
}

static void wait_for(struct asking *q, struct spend_entry *x)
{
	const int64_t left = x->expires_ms - clock_wall_ms() + PATIENCE_MS;

	memcpy(q->op.id, x->id, sizeof(q->op.id));
	list_append(&x->waiters, &q->waiting);
	loop_timer_start(x->core->loop, &q->timer, (uint64_t)MAX(left, (int64_t)PATIENCE_MS), on_patience);
}

/* ---- the request ---- */

static void on_asked(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct asking *q = CONTAINER(a, struct asking, op.ask);
	struct core *c = q->op.core;
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;
	struct err failed = { 0 };
	struct spend_said said;
	struct said_text t;

	if (!i) {
		err_set(&failed, ERR_INTERNAL, "the signer's answer makes no sense");
		end_asking(q, NULL, e ? e : &failed);
		return;
	}
	spend_facts_done(&q->op.facts);
	struct spend_entry *x = spend_learn(c, i);
	if (q->async || !x || say(x, i, &said, &t))
		end_with(q, i);
	else
		wait_for(q, x);
	if (x)
		spend_drive(x);
}

static void send_request(struct asking *q, struct sgn_facts *facts)
{
	struct err e = { 0 };
	struct sgn_request m = { .agent = view_of(q->agent),
				 .kind = q->kind,
				 .chain = q->chain,
				 .data = buf_view(&q->data),
				 .gas_hint = q->gas,
				 .idem_key = view_of(q->key),
				 .reason = view_of(q->reason),
				 .facts = facts,
				 .revokes = q->revokes,
				 .origin = view_of(q->origin) };

	if (!m.data.p)
		m.data = VIEW("");
	if (q->kind == SGN_REQUEST_KIND_TX) {
		m.to = (struct view){ (const char *)q->to, ADDRESS_SIZE };
		m.value = (struct view){ (const char *)q->value, U256_BYTES };
	}
	if (signer_call(q->op.core, &q->op.ask, SGN_SIGNER_TYPE_REQUEST, &sgn_request_msg, &m,
			&sgn_item_reply_msg, on_asked, &e) < 0)
		end_asking(q, NULL, &e);
}

static void on_facts(struct spend_facts *f, const struct err *e)
{
	struct asking *q = CONTAINER(f, struct asking, op.facts);
	const struct agent *a = spend_agent(q->op.core, view_of(q->agent));
	struct err why = e ? *e : (struct err){ 0 };

	/* A payment runs a contract's code too. */
	if (!e && a && f->facts.to_has_code)
		(void)!agents_check_contract(a, q->to, &why);
	if (why.code)
		end_asking(q, NULL, &why);
	else
		send_request(q, &f->facts);
}

static void on_kept(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct asking *q = CONTAINER(a, struct asking, op.ask);
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;
	struct err failed = { 0 };

	err_set(&failed, ERR_INTERNAL, "the signer's answer makes no sense");
	if (i)
		end_with(q, i);
	else
		end_asking(q, NULL, e ? e : &failed);
}

static void get_item(struct asking *q, const char *id,
		     void (*done)(struct signer_ask *, const void *, const struct err *))
{
	struct err e = { 0 };

	if (signer_call(q->op.core, &q->op.ask, SGN_SIGNER_TYPE_GET, &sgn_get_msg,
			&(struct sgn_get){ .id = view_of(id) }, &sgn_item_reply_msg, done, &e) < 0)
		end_asking(q, NULL, &e);
}

static void have_account(struct asking *q)
{
	char id[SPEND_ID + 1];
	struct err e = { 0 };
	/* An agent without a wallet on this chain is refused by the signer, which notes it. */
	struct sgn_facts none = { .chain_id = q->chain };

	if (q->account_only) {
		if (q->has_account)
			address_text(q->account, q->account_text);
		else
			err_set(&e, ERR_UNSUPPORTED, "this agent has no wallet on the chain eip155:%llu",
				(unsigned long long)q->chain);
		end_asking(q, q->account_text, e.code ? &e : NULL);
		return;
	}
	if (q->has_from && (!q->has_account || !address_eq(q->from, q->account))) {
		err_set(&e, ERR_FORBIDDEN, "from is not the account of this agent");
		end_asking(q, NULL, &e);
		return;
	}
	if (!q->key[0] && recall(q->op.core, q, id)) {
		get_item(q, id, on_kept);
		return;
	}
	if (!q->has_account) {
		send_request(q, &none);
		return;
	}
	struct spend_node *n = spend_node_get(q->op.core, view_of(q->agent), q->chain, &e);
	if (!n) {
		end_asking(q, NULL, &e);
		return;
	}
	spend_facts_get(&q->op.facts, n,
			&(struct spend_meaning){ q->account,
						 q->kind,
						 { (const char *)q->to, ADDRESS_SIZE },
						 { (const char *)q->value, U256_BYTES },
						 buf_view(&q->data) },
			on_facts);
}

static void on_wallets(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct asking *q = CONTAINER(a, struct asking, op.ask);
	const struct sgn_wallet_list_reply *m = reply;

	for (size_t i = 0; !e && i < m->wallets.n; i++)
		if (view_is(m->wallets.items[i].id, q->wallet) &&
		    m->wallets.items[i].address.n == ADDRESS_SIZE) {
			memcpy(q->account, m->wallets.items[i].address.p, ADDRESS_SIZE);
			q->has_account = true;
		}
	if (e)
		end_asking(q, NULL, e);
	else
		have_account(q);
}

static void on_rules(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct asking *q = CONTAINER(a, struct asking, op.ask);
	const struct sgn_rules *r = e ? NULL : ((const struct sgn_rules_reply *)reply)->rules;
	struct err failed = { 0 };

	if (e) {
		end_asking(q, NULL, e);
		return;
	}
	for (size_t i = 0; r && i < r->wallets.n; i++)
		if (r->wallets.items[i].chain == q->chain)
			(void)!view_to_str(r->wallets.items[i].wallet, q->wallet, sizeof(q->wallet));
	if (!q->wallet[0]) {
		have_account(q);
		return;
	}
	if (signer_call(q->op.core, &q->op.ask, SGN_SIGNER_TYPE_WALLET_LIST, &sgn_wallet_list_msg,
			&(struct sgn_wallet_list){ 0 }, &sgn_wallet_list_reply_msg, on_wallets, &failed) < 0)
		end_asking(q, NULL, &failed);
}

/* ---- the beginning ---- */

static void release(struct spend_op *op)
{
	struct asking *q = CONTAINER(op, struct asking, op);

	loop_timer_stop(&q->timer);
	list_del(&q->waiting);
	buf_done(&q->data);
}

static struct asking *begin(struct agent *a, struct view chain, job_done *done, void *arg, struct err *e)
{
	struct view number = config_chain_number(chain);
	struct asking *q;
	uint64_t n = 0;

	if (!number.p || num_u64(number, &n) < 0) {
		err_set(e, ERR_INVALID, "chain must be such as \"eip155:1\"");
		return NULL;
	}
	q = spend_op_new(a->core, sizeof(*q), NULL, done, arg, e);
	if (!q)
		return NULL;
	q->op.release = release;
	q->data = BUF_INIT(DATA_MOST);
	list_init(&q->waiting);
	q->chain = n;
	memcpy(q->agent, a->id, sizeof(q->agent));
	snprintf(q->origin, sizeof(q->origin), "sandbox %s", a->box);
	return q;
}

static struct job *start(struct asking *q, struct err *e)
{
	char scope[AGENT_ID + 8];

	snprintf(scope, sizeof(scope), "agent:%s", q->agent);
	if (signer_call(q->op.core, &q->op.ask, SGN_SIGNER_TYPE_RULES_GET, &sgn_rules_get_msg,
			&(struct sgn_rules_get){ .scope = view_of(scope) }, &sgn_rules_reply_msg, on_rules,
			e) < 0) {
		job_abandon(&q->op.job);
		end_asking(q, NULL, e);
		return NULL;
	}
	return &q->op.job;
}

static int read_hex(struct buf *b, struct view v)
{
	char *p = v.n % 2 == 0 ? buf_reserve(b, v.n / 2 + 1) : NULL;

	if (!p || text_unhex(v, p, v.n / 2) < 0)
		return -EINVAL;
	buf_commit(b, v.n / 2);
	return 0;
}

static bool is_hex(struct view v)
{
	struct buf b = BUF_INIT(DATA_MOST);
	bool is = v.n % 2 == 0 && v.n / 2 < DATA_MOST && read_hex(&b, v) == 0;

	buf_done(&b);
	return is;
}

static int read_tx(struct asking *q, const struct agent_ask *ask, struct err *e)
{
	struct u256 value, gas = U256_ZERO;

	q->kind = SGN_REQUEST_KIND_TX;
	if (address_parse(ask->to, q->to) < 0)
		return err_set(e, ERR_INVALID, "to is no address, or the case of its letters is wrong");
	if (u256_parse(ask->value, &value) < 0)
		return err_set(e, ERR_INVALID, "value must be an amount of wei in decimal digits");
	if (ask->gas.n && (u256_parse(ask->gas, &gas) < 0 || !u256_fits_u64(&gas)))
		return err_set(e, ERR_INVALID, "gasLimit must be in decimal digits");
	u256_store(&value, q->value);
	q->gas = gas.w[0];
	if (read_hex(&q->data, view_skip(ask->data, 2)) < 0)
		return err_set(e, ERR_INVALID, "data must be 0x and pairs of hexadecimal digits");
	return 0;
}

static int read_ask(struct asking *q, const struct agent_ask *ask, struct err *e)
{
	if (ask->from.n) {
		if (address_parse(ask->from, q->from) < 0)
			return err_set(e, ERR_INVALID, "the account is no address");
		q->has_from = true;
	}
	if (view_to_str(ask->key, q->key, sizeof(q->key)) < 0)
		return err_set(e, ERR_INVALID, "Idempotency-Key has at most %d characters", KEY_MOST);
	if (ask->by.n)
		snprintf(q->origin, sizeof(q->origin), "key %.*s", VIEW_ARG(view_head(ask->by, 240)));
	if (view_to_str(ask->reason, q->reason, sizeof(q->reason)) < 0)
		return err_set(e, ERR_INVALID, "reason has at most %d bytes", SPEND_NOTE_MAX);
	if (ask->kind == AGENT_ASK_TRANSACTION)
		return read_tx(q, ask, e);
	q->kind = ask->kind == AGENT_ASK_TYPED ? SGN_REQUEST_KIND_TYPED : SGN_REQUEST_KIND_MESSAGE;
	/* Libraries send a message's bytes in hexadecimal digits, people its text. */
	const bool hex = q->kind == SGN_REQUEST_KIND_MESSAGE && view_starts(ask->message, "0x") &&
			 is_hex(view_skip(ask->message, 2));
	if ((hex ? read_hex(&q->data, view_skip(ask->message, 2)) : buf_add(&q->data, ask->message)) < 0)
		return err_set(e, ERR_TOO_LARGE, "the message is too large");
	return 0;
}

static void hash_content(struct asking *q)
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, q->agent, sizeof(q->agent));
	sha256_add(&h, &q->kind, sizeof(q->kind));
	sha256_add(&h, &q->chain, sizeof(q->chain));
	sha256_add(&h, q->to, sizeof(q->to));
	sha256_add(&h, q->value, sizeof(q->value));
	sha256_add(&h, buf_view(&q->data).p, buf_len(&q->data));
	sha256_end(&h, q->content);
}

struct job *spend_ask(struct agent *a, const struct agent_ask *ask, bool async, job_done *done, void *arg,
		      struct err *e)
{
	struct asking *q = begin(a, ask->chain, done, arg, e);

	if (!q)
		return NULL;
	q->async = async;
	q->revokes = ask->revokes;
	if (read_ask(q, ask, e) < 0) {
		job_abandon(&q->op.job);
		end_asking(q, NULL, e);
		return NULL;
	}
	hash_content(q);
	return start(q, e);
}

struct job *spend_account(struct agent *a, struct view chain, job_done *done, void *arg, struct err *e)
{
	struct asking *q = begin(a, chain, done, arg, e);

	if (!q)
		return NULL;
	q->account_only = true;
	return start(q, e);
}

/* ---- its own requests ---- */

static void on_own(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct asking *q = CONTAINER(a, struct asking, op.ask);
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;
	struct err failed = { 0 };

	if (e && e->code != ERR_NOT_FOUND) {
		end_asking(q, NULL, e);
		return;
	}
	if (!i || !view_is(i->agent, q->agent)) {
		err_set(&failed, ERR_NOT_FOUND, "no such transaction");
		end_asking(q, NULL, &failed);
		return;
	}
	end_with(q, i);
}

static struct asking *begin_own(struct agent *a, struct view id, job_done *done, void *arg, struct err *e)
{
	struct asking *q = begin(a, VIEW("eip155:1"), done, arg, e);

	if (q && view_to_str(id, q->op.id, sizeof(q->op.id)) < 0)
		q->op.id[0] = 0; /* there is none of this name */
	return q;
}

static struct job *get_own(struct asking *q,
			   void (*on_item)(struct signer_ask *, const void *, const struct err *),
			   struct err *e)
{
	if (!q)
		return NULL;
	if (signer_call(q->op.core, &q->op.ask, SGN_SIGNER_TYPE_GET, &sgn_get_msg,
			&(struct sgn_get){ .id = view_of(q->op.id) }, &sgn_item_reply_msg, on_item, e) < 0) {
		job_abandon(&q->op.job);
		end_asking(q, NULL, e);
		return NULL;
	}
	return &q->op.job;
}

struct job *spend_ask_status(struct agent *a, struct view id, job_done *done, void *arg, struct err *e)
{
	return get_own(begin_own(a, id, done, arg, e), on_own, e);
}

static void on_cancelled(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct asking *q = CONTAINER(a, struct asking, op.ask);
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;
	struct err failed = { 0 };

	if (!i) {
		err_set(&failed, ERR_INTERNAL, "the signer's answer makes no sense");
		end_asking(q, NULL, e ? e : &failed);
		return;
	}
	struct spend_entry *x = spend_learn(q->op.core, i);
	end_with(q, i);
	if (x)
		spend_drive(x);
}

static void on_own_to_cancel(struct signer_ask *a, const void *reply, const struct err *e)
{
	struct asking *q = CONTAINER(a, struct asking, op.ask);
	const struct sgn_item *i = e ? NULL : ((const struct sgn_item_reply *)reply)->item;
	struct sgn_cancel m = { .id = view_of(q->op.id), .by = VIEW("agent") };
	struct err failed = { 0 };

	if (!i || !view_is(i->agent, q->agent)) {
		on_own(a, reply, e);
		return;
	}
	if (signer_call(q->op.core, &q->op.ask, SGN_SIGNER_TYPE_CANCEL, &sgn_cancel_msg, &m,
			&sgn_item_reply_msg, on_cancelled, &failed) < 0)
		end_asking(q, NULL, &failed);
}

struct job *spend_ask_cancel(struct agent *a, struct view id, job_done *done, void *arg, struct err *e)
{
	return get_own(begin_own(a, id, done, arg, e), on_own_to_cancel, e);
}
