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
