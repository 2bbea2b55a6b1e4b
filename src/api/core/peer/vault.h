/*
 * The api's end of its channel to paddock-vault: opened when the core is ready and again
 * when it is lost. Calls that come meanwhile wait a little. The first message on every
 * channel says which boxes there are and what the gate may have for each.
 */
#pragma once

#include "mux.h"

struct box;
struct core;
struct egress_policy;

struct vault_channel {
	struct core *core;
	struct mux mux;
	struct call opening, syncing;
	struct loop_timer again;
	struct list pending; /* calls that wait for it */
	bool started, open;
	void (*on_open)(struct core *c);
	const struct egress_policy *(*policy_of)(const struct box *b); /* that holds for it */
};

void vault_init(struct core *c);
void vault_start(struct core *c);
void vault_stop(struct core *c);

/* Like mux_call. Bodies may hold secrets: every buffer of this channel is wiped. */
int vault_call(struct core *c, struct call *call, uint16_t type, const struct pb_msg *pm, const void *msg,
	       struct err *e) _must_check_;

/* What the vault says a tenant has: for the ledger. NULL: nothing was said. */
struct wire_secret_total;
void vault_total(struct core *c, const struct wire_secret_total *t);

/* What the gate may have for this box, by this policy. */
void vault_box_policy(struct box *b, const struct egress_policy *p);
/* What the gate may have for this box has changed, or the box is going to have secrets of its own. */
void vault_box_changed(struct box *b);
/* It is gone, with its secrets. */
void vault_box_removed(struct box *b);
