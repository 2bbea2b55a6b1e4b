/*
 * What requests have reserved and spent: rows of the database, and the ledger in memory that sums them up. A
 * row is written in the transaction of the step that it belongs to; memory follows when that is committed.
 * Where memory cannot follow, the program ends: the next one reads the rows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "log.h"
#include "signer.h"

#include "poison.h"

struct hold {
	struct map_node node;
	char id[SIGNER_ID];
	size_t n, room;
	struct ledger_entry *entries;
};

int holds_write(struct signer *s, const struct sgn_item *i, const struct policy_spend *spends, size_t n,
		int state, int64_t at_ms, struct err *e)
{
	for (size_t k = 0; k < n; k++) {
		char amount[U256_BYTES];
		u256_store(&spends[k].amount, amount);
		if (db_do(&s->db, DB_SPEND_PUT, e, "tttibbii", i->id, i->agent, i->wallet, (int64_t)i->chain,
			  (struct view){ (const char *)spends[k].asset, ADDRESS_SIZE },
			  (struct view){ amount, sizeof(amount) }, (int64_t)state, at_ms) < 0)
			return -1;
	}
	return 0;
}

int holds_release_rows(struct signer *s, struct view id, struct err *e)
{
	return db_do(&s->db, DB_SPEND_RELEASE, e, "t", id);
}

int holds_settle_rows(struct signer *s, struct view id, struct err *e)
{
	return db_do(&s->db, DB_SPEND_SETTLE, e, "t", id);
}

int holds_again_rows(struct signer *s, struct view id, struct err *e)
{
	return db_do(&s->db, DB_SPEND_AGAIN, e, "ti", id, moment_now(s));
}

int holds_read(struct signer_call *c, struct view id, struct policy_spend **ret, size_t *ret_n,
	       int64_t *ret_ms, struct err *e)
{
	struct policy_spend *all = arena_array(&c->arena, POLICY_SPENDS + 1, sizeof(*all));
	sqlite3_stmt *row = db_ask(&c->s->db, DB_SPEND_OF, "t", id);
	size_t n = 0;
	int r = 0;

	*ret_ms = 0;
	while (all && n <= POLICY_SPENDS && (r = db_row(&c->s->db, row, e)) == 1) {
		const struct view asset = db_view(row, 0), amount = db_view(row, 1);
		if (asset.n != ADDRESS_SIZE || amount.n != U256_BYTES)
			r = err_set(e, ERR_INTERNAL, "a row of the ledger is damaged");
		if (r < 0)
			break;
		memcpy(all[n].asset, asset.p, ADDRESS_SIZE);
		all[n++].amount = u256_load(amount.p);
		*ret_ms = sqlite3_column_int64(row, 2);
	}
	db_end(row);
	*ret = all;
	*ret_n = n;
	return r < 0 || !all ? -1 : 0;
}

/* ---- memory ---- */

static void give_up(struct signer *s, int error)
{
	log_error("the ledger cannot be kept in memory: %s", strerror(-error));
	loop_stop(s->loop, EXIT_FAILURE);
	if (!s->locked.code)
		err_set(&s->locked, ERR_UNAVAILABLE, "the signer is being restarted");
}

static struct hold *hold_of(struct signer *s, struct view id, bool make)
{
	struct map_node *n = map_get(&s->holds, id);
	struct hold *h = n ? CONTAINER(n, struct hold, node) : NULL;

	if (h || !make)
		return h;
	h = calloc(1, sizeof(*h));
	if (!h || view_to_str(id, h->id, sizeof(h->id)) < 0 ||
	    map_put(&s->holds, &h->node, view_of(h->id)) < 0) {
		free(h);
		return NULL;
	}
	return h;
}

static int keep(struct signer *s, struct view id, const struct ledger_entry *entry)
{
	struct hold *h = hold_of(s, id, true);

	if (!h)
		return -ENOMEM;
	if (h->n == h->room) {
		struct ledger_entry *more = reallocarray(h->entries, h->room + 4, sizeof(*more));
		if (!more)
			return -ENOMEM;
		h->entries = more;
		h->room += 4;
	}
	h->entries[h->n++] = *entry;
	return 0;
}

/* Once for the agent and once for the wallet. */
static int add(struct signer *s, struct view id, struct view agent, struct view wallet, uint64_t chain,
	       const struct policy_spend *x, bool reserved, int64_t at_ms)
{
	char scopes[2][LEDGER_SCOPE];
	int r = 0;

	snprintf(scopes[0], sizeof(scopes[0]), "agent:%.*s", VIEW_ARG(agent));
	snprintf(scopes[1], sizeof(scopes[1]), "wallet:%.*s", VIEW_ARG(wallet));
	for (int i = 0; r == 0 && i < 2; i++) {
		struct ledger_entry entry;
		r = ledger_add(&s->ledger, &(struct ledger_what){ view_of(scopes[i]), chain, x->asset },
			       &x->amount, at_ms, reserved, &entry);
		if (r == 0 && reserved)
			r = keep(s, id, &entry);
	}
	return r;
}

void holds_reserve(struct signer *s, const struct sgn_item *i, const struct policy_spend *spends, size_t n,
		   int64_t at_ms)
{
	int r = 0;

	for (size_t k = 0; r == 0 && k < n; k++)
		r = add(s, i->id, i->agent, i->wallet, i->chain, &spends[k], true, at_ms);
	if (r < 0)
		give_up(s, r);
}

void holds_spend(struct signer *s, const struct sgn_item *i, const struct policy_spend *spends, size_t n,
		 int64_t at_ms)
{
	int r = 0;

	for (size_t k = 0; r == 0 && k < n; k++)
		r = add(s, i->id, i->agent, i->wallet, i->chain, &spends[k], false, at_ms);
	if (r < 0)
		give_up(s, r);
}

void holds_cap(struct signer *s, const struct sgn_item *i, struct policy_spend *x)
{
	const struct u256 most = U256_MAX;
	char scopes[2][LEDGER_SCOPE];

	snprintf(scopes[0], sizeof(scopes[0]), "agent:%.*s", VIEW_ARG(i->agent));
	snprintf(scopes[1], sizeof(scopes[1]), "wallet:%.*s", VIEW_ARG(i->wallet));
	for (int k = 0; k < 2; k++) {
		struct ledger_sums sums;
		struct u256 room;
		ledger_sums(&s->ledger, &(struct ledger_what){ view_of(scopes[k]), i->chain, x->asset },
			    moment_now(s), &sums);
		if (u256_sub(&most, &sums.lifetime, &room) == 0 && u256_cmp(&x->amount, &room) > 0)
			x->amount = room;
	}
}

static void drop(struct signer *s, struct hold *h)
{
	map_del(&s->holds, &h->node);
	free(h->entries);
	free(h);
}

void holds_release(struct signer *s, struct view id)
{
	struct hold *h = hold_of(s, id, false);

	if (!h)
		return;
	for (size_t i = 0; i < h->n; i++)
		ledger_release(&h->entries[i]);
	drop(s, h);
}

void holds_done(struct signer *s)
{
	for (struct map_node *n = map_first(&s->holds), *next; n; n = next) {
		next = map_next(&s->holds, n);
		drop(s, CONTAINER(n, struct hold, node));
	}
	map_done(&s->holds);
	ledger_done(&s->ledger);
}

int holds_load(struct signer *s, struct err *e)
{
	sqlite3_stmt *row = db_ask(&s->db, DB_SPEND_LOAD, "");
	int64_t newest = 0;
	int r;

	ledger_init(&s->ledger);
	map_init(&s->holds);
	while ((r = db_row(&s->db, row, e)) == 1) {
		struct policy_spend x;
		const struct view asset = db_view(row, 4), amount = db_view(row, 5);
		if (asset.n != ADDRESS_SIZE || amount.n != U256_BYTES) {
			r = err_set(e, ERR_UNAVAILABLE, "a row of the ledger is damaged");
			break;
		}
		memcpy(x.asset, asset.p, ADDRESS_SIZE);
		x.amount = u256_load(amount.p);
		newest = sqlite3_column_int64(row, 7);
		r = add(s, db_view(row, 0), db_view(row, 1), db_view(row, 2),
			(uint64_t)sqlite3_column_int64(row, 3), &x,
			sqlite3_column_int(row, 6) == HOLDS_RESERVED, newest);
		if (r < 0) {
			r = err_sys(e, ERR_UNAVAILABLE, r, "the ledger cannot be read");
			break;
		}
	}
	db_end(row);
	if (r == 0 && s->start_boot_ms == 0) {
		int64_t written;
		r = audit_newest(s, &written, e);
		moment_start(s, MAX(newest, written));
	}
	return r < 0 ? -1 : 0;
}
