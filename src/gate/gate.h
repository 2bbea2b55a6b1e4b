/*
 * What the files of paddock-gate share: see main.c. The rooms, each below the next one:
 *
 *   policy/     rules, tokens, shares, verdicts: pure
 *   dns/        DNS for boxes
 *   intercept/  TLS that is looked into, to put secrets in
 *   flow/       connections of boxes, from accept to their end; begin with states.c
 *
 * and over them
 *
 *   boxes.c     what the keeper and the api say: listeners, policies
 *   verdict.c   what was decided, to the api
 */
#pragma once

#include "flow.h"
#include "link.h"

struct gate {
	struct flows flows;
	struct link keeper, api;
	struct map tenants;
	struct buf verdicts; /* encoded, not yet sent */
	unsigned n_verdicts;
	uint64_t lost; /* verdicts */
	struct loop_timer flush, tell_used;
};

/* ---- boxes.c ---- */
extern const struct link_ops boxes_keeper_ops;
extern const struct flows_ops boxes_flows_ops;

/* ---- verdict.c ---- */
void verdict_say(struct gate_box *b, const struct verdict *v);
void verdict_flush(struct gate *g);
