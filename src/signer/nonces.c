/*
 * Which nonce a transaction gets. What was signed here is the truth; a node may say that more were sent, by
 * somebody else with the same key, but only so many more: one that answers 65535 once would otherwise keep
 * all that follows from being mined, for ever. Beyond that, and where the node knows of fewer than were
 * signed, the owner sets the nonce and gives up what waits for it.
 *
 * A development chain begins anew whenever it is started. Its test accounts, whose keys everybody knows,
 * follow it.
 */
#include <stdio.h>

#include "judge.h"
#include "text.h"

#include "poison.h"

#define AHEAD    64 /* of what was signed here, that a node is believed */
#define NOTE_MAX 512
#define KEY_MAX  96

static bool is_busy(struct signer *s, const struct sgn_item *i, uint64_t nonce)
{
	sqlite3_stmt *row = db_ask(&s->db, DB_NONCE_BUSY, "ibi", (int64_t)i->chain, i->from, (int64_t)nonce);
	const bool busy = db_row(&s->db, row, NULL) != 0; /* also where it cannot be told */

	db_end(row);
	return busy;
}

/* 1: it is known, 0, -1. */
static int read_next(struct signer *s, uint64_t chain, struct view address, uint64_t *ret, struct err *e)
{
	sqlite3_stmt *row = db_ask(&s->db, DB_NONCE_GET, "ib", (int64_t)chain, address);
	int r = db_row(&s->db, row, e);

	*ret = r == 1 ? (uint64_t)sqlite3_column_int64(row, 0) : 0;
	db_end(row);
	return r;
}

/* ---- a chain that begins anew ---- */

static struct view genesis_key(const struct sgn_item *i, char text[KEY_MAX])
{
	char address[2 * ADDRESS_SIZE + 1] = "";

	text_hex(i->from.p, MIN(i->from.n, (size_t)ADDRESS_SIZE), address);
	snprintf(text, KEY_MAX, "genesis:%llu:%s", (unsigned long long)i->chain, address);
	return view_of(text);
}

static int began_anew(struct signer *s, const struct sgn_item *i, const struct sgn_facts *f, bool *ret,
		      struct err *e)
{
	char key[KEY_MAX];

	*ret = false;
	if (f->genesis.n == 0)
		return 0;
	sqlite3_stmt *row = db_ask(&s->db, DB_META_GET, "t", genesis_key(i, key));
	int r = db_row(&s->db, row, e);
	*ret = r == 1 && !view_eq(db_view(row, 0), f->genesis);
	db_end(row);
	return r < 0 ? -1 : 0;
}

/* ---- signing ---- */

int nonces_next(struct signer *s, const struct sgn_item *i, int32_t wallet_kind, const struct sgn_facts *f,
		struct nonce *ret, struct err *e)
{
	const bool test = wallet_kind == SGN_WALLET_KIND_TEST;
	uint64_t ours;
	const int known = read_next(s, i->chain, i->from, &ours, e);

	*ret = (struct nonce){ 0 };
	if (known < 0 || (test && began_anew(s, i, f, &ret->anew, e) < 0))
		return -1;
	if (known && !ret->anew && f->nonce > ours && f->nonce - ours > AHEAD)
		return err_set(
			e, ERR_UNAVAILABLE,
			"the node says that the account has sent %llu transactions, and %llu are known here: "
			"if that is so, `paddock wallet nonce` says it",
			(unsigned long long)f->nonce, (unsigned long long)ours);
	ret->next = ret->anew ? f->nonce : MAX(ours, f->nonce);
	if (ret->next >= INT64_MAX / 2)
		return err_set(e, ERR_INVALID, "the account's nonce cannot be");
	while (is_busy(s, i, ret->next))
		ret->next++;
	return 0;
}

int nonces_take(struct signer *s, const struct sgn_item *i, const struct nonce *n, const struct sgn_facts *f,
		struct err *e)
{
	char key[KEY_MAX];

	/* One that was given up may have had it: it is known by its bytes. */
	if (db_do(&s->db, DB_NONCE_FREE, e, "ibi", (int64_t)i->chain, i->from, (int64_t)n->next) < 0 ||
	    db_do(&s->db, DB_NONCE_PUT, e, "ibi", (int64_t)i->chain, i->from, (int64_t)n->next + 1) < 0)
		return -1;
	return f->genesis.n == 0 ? 0 : db_do(&s->db, DB_META_PUT, e, "tb", genesis_key(i, key), f->genesis);
}

/* ---- the owner ---- */

static int set_next(struct signer_call *c, const struct wallet *w, const struct sgn_nonce *m, struct err *e)
{
	struct signer *s = c->s;
	char detail[128];

	snprintf(detail, sizeof(detail), "{\"chain\":%llu,\"next\":%llu}", (unsigned long long)m->chain,
		 (unsigned long long)m->next);
	if (db_begin(&s->db, e) < 0 ||
	    db_do(&s->db, DB_NONCE_PUT, e, "ibi", (int64_t)m->chain, w->info.address, (int64_t)m->next) < 0 ||
	    audit_add(s, calls_actor(c), "nonce", w->info.id, view_of(detail), e) < 0 ||
	    db_commit(&s->db, e) < 0) {
		db_rollback(&s->db);
		return -1;
	}
	return 0;
}

int nonces_call(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_nonce *m = msg;
	struct sgn_nonce_reply out = { 0 };
	struct wallet w;

	if (m->chain == 0 || m->chain > INT64_MAX || m->next >= INT64_MAX / 2)
		return err_set(e, ERR_INVALID, "nonce: not a chain, or not a nonce");
	if (wallets_get(c, m->wallet, &w, e) < 0 || (m->set && set_next(c, &w, m, e) < 0))
		return -1;
	const int known = read_next(c->s, m->chain, w.info.address, &out.next, e);
	if (known < 0)
		return -1;
	out.known = known;
	return calls_reply(c, &sgn_nonce_reply_msg, &out);
}

int nonces_call_abandon(struct signer_call *c, const void *msg, struct err *e)
{
	const struct sgn_abandon *m = msg;
	struct item item;

	if (m->note.n > NOTE_MAX)
		return err_set(e, ERR_INVALID, "abandon: a note has at most %d bytes", NOTE_MAX);
	if (items_get(c, m->id, &item, e) < 0)
		return -1;
	if (item.i.kind != SGN_REQUEST_KIND_TX || item.i.generation == 0)
		return err_set(e, ERR_STATE, "only a transaction that was signed here is given up");
	if (items_move(c, &item.i, SGN_STATE_DROPPED, calls_actor(c), m->note, e) < 0)
		return -1;
	return items_reply(c, &item.i);
}
