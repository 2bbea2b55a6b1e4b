/*
 * What a person is shown of an agent's request before deciding: as JSON, and as plain text for terminals and
 * chats. The words of the agent come last and are quoted; what a terminal would act on is taken out.
 */
#pragma once

#include "core.h"
#include "json.h"
#include "spend.h"

#define CARD_DIGEST 67 /* 0x, 64 digits, NUL */

/* An object. `whole`: with the card, which needs an item of spend_get or of a decision. */
void card_put(struct json_out *o, const struct core *c, const struct spend_view *v, bool whole);
/* Several lines. */
void card_text(struct buf *out, const struct core *c, const struct spend_view *v);
/* One sentence, without the words of the agent. */
void card_sentence(struct buf *out, const struct core *c, const struct spend_view *v);
/* Digits of an address, which a person must type to approve it; false: not this one. */
struct card_confirm {
	char digits[9];
	char hint[256]; /* which they are: a sentence for a person */
};
bool card_confirm(const struct sgn_item *i, struct card_confirm *ret) _must_check_;

/* ---- for both, and for lists ---- */

/* {address, symbol, decimals} */
void card_put_asset(struct json_out *o, const char *key, struct view asset, uint32_t decimals,
		    struct view symbol);
void card_put_amount(struct json_out *o, const char *key, struct view amount);     /* "0" for none */
void card_put_amount_any(struct json_out *o, const char *key, struct view amount); /* null for none */
void card_put_address(struct json_out *o, const char *key, struct view address);   /* null for none */
void card_put_hex(struct json_out *o, const char *key, struct view bytes);         /* null for none */
void card_put_chain(struct json_out *o, const char *key, uint64_t chain);          /* "eip155:1" */
/* An address that gets nothing: a wrapper calls it, or it is given control. */
bool card_only_reaches(const struct sgn_effect *f);
/* "0.5 ETH", "100 USDC (0x…)", "7 base units of 0x…" */
void card_amount(struct buf *out, struct view asset, struct view amount, uint32_t decimals,
		 struct view symbol);
/* Of the native asset, and of fees. */
bool card_is_native(struct view asset);
struct view card_chain_name(const struct core *c, uint64_t chain); /* of the configuration; empty: none */
/* What people call an asset: the chain's symbol for the native one, which the signer does not know, or else
 * the owner's, `symbol`. */
struct view card_symbol(const struct core *c, uint64_t chain, struct view asset, struct view symbol);
