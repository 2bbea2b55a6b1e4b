/*
 * The signer's rules for people and for programs: sentences, and the JSON of GET /v1/agents/ID/limits.
 */
#pragma once

#include "buf.h"
#include "json.h"
#include "signer_gen.h"

/* key "agent" or "wallet" with the id of the scope, and everything else. */
void rules_show_json(struct json_out *o, const struct sgn_rules *r);
/* What an agent may do, as sentences. */
void rules_show_agent(struct buf *out, const struct sgn_rules *r);
/* What holds for all agents of a wallet together. */
void rules_show_wallet(struct buf *out, const struct sgn_rules *r);

/* ---- one of each, without the end of a line ---- */

void rules_show_limit(struct buf *out, const struct sgn_limit *l);
void rules_show_address(struct buf *out, const struct sgn_address_rule *a);
void rules_show_typed(struct buf *out, const struct sgn_typed_rule *t);
void rules_show_window(struct buf *out, const struct sgn_window *w);
void rules_show_seconds(struct buf *out, uint32_t s);
