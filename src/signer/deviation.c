/*
 * What happened against what was expected: the logs of a receipt, as the api read them, compared with the
 * simulation that people saw, or with what the call says where there was none. A difference is written down
 * in the request. What left the account beyond what was counted is counted now, so that a contract that
 * behaves otherwise on the chain than in the simulation does not stretch a limit for the next request.
 *
 * Logs say nothing about the native asset: its amount is in the transaction itself.
 */
#include <stdio.h>

#include "judge.h"

#include "poison.h"

#define LOGS_MAX 512
#define TEXT_MAX 256

static bool is_valid(const struct sgn_move *m)
{
	return m->asset.n == ADDRESS_SIZE && m->from.n == ADDRESS_SIZE && m->to.n == ADDRESS_SIZE &&
	       m->amount.n == U256_BYTES;
}

/* Less what comes back. */
static struct u256 outflow(const struct sgn_move *moves, size_t n, struct view account, struct view asset)
{
	struct u256 out = U256_ZERO, in = U256_ZERO;

	for (size_t k = 0; k < n; k++) {
		if (moves[k].approval || !view_eq(moves[k].asset, asset))
			continue;
		const struct u256 amount = u256_load(moves[k].amount.p);
		if (view_eq(moves[k].from, account))
			out = u256_add_sat(&out, &amount);
		if (view_eq(moves[k].to, account))
			in = u256_add_sat(&in, &amount);
	}
	return u256_sub(&out, &in, &out) < 0 ? U256_ZERO : out;
}

static struct u256 expected(const struct sgn_item *i, struct view asset)
{
	struct u256 sum = U256_ZERO;

	if (i->method >= SGN_SIM_METHOD_TRACE)
		return outflow(i->moves.items, i->moves.n, i->from, asset);
	for (size_t k = 0; k < i->effects.n; k++)
		if (!i->effects.items[k].approval && view_eq(i->effects.items[k].asset, asset)) {
			const struct u256 amount = u256_load(i->effects.items[k].amount.p);
			sum = u256_add_sat(&sum, &amount);
		}
	return sum;
}

static bool was_shown(const struct sgn_item *i, const struct sgn_move *m)
{
	const struct u256 amount = u256_load(m->amount.p);

	for (size_t k = 0; k < i->effects.n; k++) {
		const struct sgn_effect *x = &i->effects.items[k];
		const struct u256 shown = u256_load(x->amount.p);
		if (x->approval && view_eq(x->asset, m->asset) && view_eq(x->to, m->to) &&
		    u256_cmp(&amount, &shown) <= 0)
			return true;
	}
	return u256_is_zero(&amount);
}

static void say(struct signer_call *c, struct sgn_item *i, struct view asset, const struct u256 *got,
		const struct u256 *meant)
{
	char text[TEXT_MAX], a[U256_TEXT], b[U256_TEXT], token[ADDRESS_TEXT];

	u256_text(got, a);
	u256_text(meant, b);
	address_text((const uint8_t *)asset.p, token);
	snprintf(text, sizeof(text), "%s of %s left the account, where %s was expected", a, token, b);
	i->deviation = arena_view(&c->arena, view_of(text));
}

static void say_approval(struct signer_call *c, struct sgn_item *i, const struct sgn_move *m)
{
	const struct u256 amount = u256_load(m->amount.p);
	char text[TEXT_MAX], a[U256_TEXT], token[ADDRESS_TEXT], to[ADDRESS_TEXT];

	u256_text(&amount, a);
	address_text((const uint8_t *)m->asset.p, token);
	address_text((const uint8_t *)m->to.p, to);
	snprintf(text, sizeof(text), "%s may take %s of %s, which nobody was shown", to, a, token);
	i->deviation = arena_view(&c->arena, view_of(text));
}

static int counted(struct signer_call *c, const struct sgn_item *i, struct view asset, struct u256 *ret,
		   struct err *e)
{
	sqlite3_stmt *row = db_ask(&c->s->db, DB_SPEND_ALL_OF, "t", i->id);
	int r;

	*ret = U256_ZERO;
	while ((r = db_row(&c->s->db, row, e)) == 1) {
		const struct view amount = db_view(row, 1);
		if (!view_eq(db_view(row, 0), asset) || amount.n != U256_BYTES)
			continue;
		const struct u256 v = u256_load(amount.p);
		*ret = u256_add_sat(ret, &v);
	}
	db_end(row);
	return r < 0 ? -1 : 0;
}

static int add_more(struct signer_call *c, struct sgn_item *i, struct view asset, const struct u256 *got,
		    struct policy_spend *more, size_t *n, struct err *e)
{
	struct u256 have;

	for (size_t k = 0; k < *n; k++)
		if (memcmp(more[k].asset, asset.p, ADDRESS_SIZE) == 0)
			return 0;
	if (counted(c, i, asset, &have, e) < 0)
		return -1;
	if (u256_cmp(got, &have) <= 0 || *n == POLICY_SPENDS)
		return 0;
	memcpy(more[*n].asset, asset.p, ADDRESS_SIZE);
	if (u256_sub(got, &have, &more[*n].amount) == 0)
		++*n;
	return 0;
}

/* What was expected to leave, and did not. */
static void look_for_missing(struct signer_call *c, struct sgn_item *i, const struct sgn_report *m)
{
	const struct view native = { (const char *)address_native, ADDRESS_SIZE };

	for (size_t k = 0; k < i->effects.n && i->deviation.n == 0; k++) {
		const struct view asset = i->effects.items[k].asset;
		const struct u256 got = outflow(m->logs.items, m->logs.n, i->from, asset),
				  meant = expected(i, asset);
		if (!view_eq(asset, native) && u256_cmp(&got, &meant) != 0)
			say(c, i, asset, &got, &meant);
	}
}

int deviation_look(struct signer_call *c, struct sgn_item *i, const struct sgn_report *m,
		   struct policy_spend *more, size_t *ret_n, struct err *e)
{
	if (m->logs.n > LOGS_MAX)
		return err_set(e, ERR_INVALID, "report: more than %d logs", LOGS_MAX);
	i->deviation = VIEW("");
	for (size_t k = 0; k < m->logs.n; k++) {
		const struct sgn_move *x = &m->logs.items[k];
		if (!is_valid(x))
			return err_set(e, ERR_INVALID, "report: an address has 20 bytes, an amount 32");
		if (!view_eq(x->from, i->from))
			continue;
		const struct u256 got = x->approval ? u256_load(x->amount.p)
						    : outflow(m->logs.items, m->logs.n, i->from, x->asset),
				  meant = x->approval ? U256_ZERO : expected(i, x->asset);
		if (x->approval ? was_shown(i, x) : u256_cmp(&got, &meant) == 0)
			continue;
		if (i->deviation.n == 0) {
			if (x->approval)
				say_approval(c, i, x);
			else
				say(c, i, x->asset, &got, &meant);
		}
		if (add_more(c, i, x->asset, &got, more, ret_n, e) < 0)
			return -1;
	}
	look_for_missing(c, i, m);
	return 0;
}
