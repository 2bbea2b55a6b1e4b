/*
 * The rules of spending as JSON, as GET /v1/agents/ID/limits shows them: for the api and the command line.
 * Whether a change allows more than before is the signer's to judge.
 */
#pragma once

#include "address.h"
#include "arena.h"
#include "err.h"
#include "json.h"
#include "signer_gen.h"

enum { RULEJSON_DAYS = 7 };
extern const char *const rulejson_days[RULEJSON_DAYS]; /* "mon" … "sun" */

int rulejson_chain(struct view id, uint64_t *ret, struct err *e) _must_check_;               /* "eip155:1" */
int rulejson_asset(struct view text, uint8_t ret[ADDRESS_SIZE], struct err *e) _must_check_; /* or "native" */
int rulejson_minute(struct view text, uint32_t *ret, struct err *e) _must_check_;            /* "HH:MM" */
bool rulejson_is_native(struct view asset);

/* A member that is absent stays as it is; a list takes the place of the one before. What comes of it lives in
 * the arena. */
int rulejson_change(struct arena *a, const struct json *doc, struct sgn_rules *rules,
		    struct err *e) _must_check_;
/* The same by the owner: everything that rulejson_put writes, wallets, typed data and names included. */
int rulejson_whole(struct arena *a, const struct json *doc, struct sgn_rules *rules,
		   struct err *e) _must_check_;

void rulejson_put(struct json_out *o, const struct sgn_rules *rules);
void rulejson_put_list(struct json_out *o, const struct sgn_rules *rules); /* key "limits" alone */
void rulejson_put_amount(struct json_out *o, const char *key, struct view v);
