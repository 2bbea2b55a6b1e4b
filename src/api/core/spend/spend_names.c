/*
 * The names of the signer's kinds, and of chains' assets, as clients see them: see spend.h.
 */
#include "spend.h"

#include <stdio.h>

#include "core_base.h"
#include "poison.h"

static const char *name_in(const char *const *names, size_t n, int32_t i)
{
	return i >= 0 && (size_t)i < n ? names[i] : "unknown";
}

const char *spend_kind_name(int32_t kind)
{
	static const char *const names[] = { "none", "transaction", "message", "typed_data" };

	return name_in(names, ELEMS(names), kind);
}

const char *spend_method_name(int32_t method)
{
	static const char *const names[] = { "none", "estimate", "trace", "simulate_v1" };

	return name_in(names, ELEMS(names), method);
}

const char *spend_wallet_kind_name(int32_t kind)
{
	static const char *const names[] = { "none", "test", "generated", "imported", "external" };

	return name_in(names, ELEMS(names), kind);
}

bool spend_is_over(const struct sgn_item *item)
{
	switch (item->state) {
	case SGN_STATE_PENDING:
	case SGN_STATE_APPROVED:
	case SGN_STATE_INCLUDED:
	case SGN_STATE_CONFIRMED:
	case SGN_STATE_AWAITING_WALLET:
		return false;
	case SGN_STATE_DROPPED:   /* whoever has its bytes may send it again */
	case SGN_STATE_BROADCAST: /* of a message: a wallet elsewhere has signed it */
	case SGN_STATE_SIGNED:
		return item->kind != SGN_REQUEST_KIND_TX;
	default:
		return true;
	}
}

/* ---- chains ---- */

struct config_chain spend_settings(const struct core *c, uint64_t chain)
{
	const struct config *cfg = c->config;
	struct config_chain unknown;
	char id[40];

	snprintf(id, sizeof(id), "eip155:%llu", (unsigned long long)chain);
	for (size_t i = 0; i < cfg->agents.n_chains; i++)
		if (view_is(cfg->agents.chain_list[i].id, id))
			return cfg->agents.chain_list[i];
	config_chain_default(view_of(id), &unknown);
	unknown.id = VIEW_NONE;
	return unknown;
}

struct view spend_name_native(struct buf *room, const struct core *c, uint64_t chain, struct view text)
{
	static const char mark[] = " (native)";
	const struct view symbol = spend_settings(c, chain).symbol;
	const struct view whole = text;
	const char *at;

	while (symbol.n && text.n && (at = memmem(text.p, text.n, mark, strlen(mark)))) {
		const size_t before = (size_t)(at - text.p);
		const bool number = before && at[-1] >= '0' && at[-1] <= '9';
		buf_add(room, view_head(text, before));
		buf_printf(room, " %.*s", VIEW_ARG(number ? symbol : VIEW("(native)")));
		text = view_skip(text, before + strlen(mark));
	}
	buf_add(room, text);
	return room->bad ? whole : buf_view(room);
}
