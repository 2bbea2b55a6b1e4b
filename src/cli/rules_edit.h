/*
 * Changes to the rules of an agent or a wallet, one at a time. What they add lives in the arena.
 */
#pragma once

#include "arena.h"
#include "err.h"
#include "signer_gen.h"

struct view rules_edit_native(void); /* the native asset */

/* Each takes the place of the one for the same asset, address, chain or type. */
int rules_edit_limit(struct arena *a, struct sgn_rules *r, const struct sgn_limit *l,
		     struct err *e) _must_check_;
int rules_edit_address(struct arena *a, struct sgn_rules *r, const struct sgn_address_rule *rule,
		       struct err *e) _must_check_;
int rules_edit_wallet(struct arena *a, struct sgn_rules *r, uint64_t chain, struct view wallet,
		      struct err *e) _must_check_;
int rules_edit_typed(struct arena *a, struct sgn_rules *r, const struct sgn_typed_rule *t,
		     struct err *e) _must_check_;
/* "mon-fri@09:00-17:00", "sat,sun@…", "daily@…"; UTC */
int rules_edit_window(struct arena *a, struct sgn_rules *r, struct view text, struct err *e) _must_check_;

/* Everything about an address, or about a chain. */
int rules_edit_remove(struct arena *a, struct sgn_rules *r, struct view what, struct err *e) _must_check_;
/* Back to what holds where nothing was said: "limits", "windows", "approvers", … */
int rules_edit_reset(struct sgn_rules *r, struct view name, struct err *e) _must_check_;
