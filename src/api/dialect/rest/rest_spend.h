/*
 * What the files about spending share.
 */
#pragma once

#include "buf.h"
#include "err.h"
#include "spend.h"

struct request;

/* Whoever decides has shown a key. ERR_FORBIDDEN. */
int rest_spend_somebody(struct request *r, struct err *e) _must_check_;
int rest_spend_chain(struct view id, uint64_t *ret, struct err *e) _must_check_;     /* "eip155:1" */
int rest_spend_asset(struct view text, uint8_t ret[20], struct err *e) _must_check_; /* or "native" */
int rest_spend_address(struct view text, uint8_t ret[20], struct err *e) _must_check_;

/* ---- rest_csv.c ---- */

void rest_csv_head(struct buf *out);
void rest_csv_put(struct buf *out, const struct spend_view *v);
/* A cell and what follows it. What a spreadsheet would take for a formula gets an apostrophe. */
void rest_csv_cell(struct buf *out, struct view text, char then);

/* ---- rest_limits.c ---- */

/* Changes of a body to rules, which live in the arena. */
int rest_limits_change(struct arena *a, const struct json *doc, struct sgn_rules *rules,
		       struct err *e) _must_check_;
void rest_limits_put(struct json_out *o, struct view agent, const struct sgn_rules *rules);
