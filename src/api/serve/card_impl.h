/*
 * What card.c and card_text.c share.
 */
#pragma once

#include "card.h"

/* What the wallet gains or loses of the asset of a move; false: nothing, or an earlier move told it. */
bool card_delta(const struct sgn_item *i, size_t move, bool *ret_less, uint8_t ret[32]) _must_check_;
/* The owner's words for an asset: effects have them. */
void card_find_asset(const struct sgn_item *i, struct view asset, uint32_t *ret_decimals,
		     struct view *ret_symbol);
