/*
 * The installation's authority in boxes whose policy asks for names. The gate intercepts
 * encrypted ClientHellos there, which browsers send, and browsers know neither the image's
 * store nor the variables that mounts.c sets: they get files of their own (src/init/trust.c).
 *
 * The certificate is asked of the vault once for each channel and kept, and a box is told
 * once for each start by a message that nobody waits for: its PID 1 takes what comes in
 * its order, so whatever is started afterwards finds the files.
 */
#pragma once

#include "mux.h"

struct box;
struct box_part;
struct core;
struct egress_policy;
struct job;

struct trust {
	struct buf pem;   /* empty: the vault has not said it yet */
	struct buf nssdb; /* nssdb.h */
	struct job *reading;
};

/* Of a box. */
struct box_trust {
	struct box *box;
	struct call call;
	bool told, waits; /* waits: for the vault */
};

/* There is a vault. */
void trust_refresh(struct core *c);
void trust_stop(struct core *c);
struct view trust_pem(const struct core *c);

/* This policy holds now. Nothing is done for one that asks for no names, nor twice. */
void trust_box(struct box *b, const struct egress_policy *p);
/* It has started anew: what it was told is gone. */
void trust_reset(struct box *b);
extern const struct box_part trust_part;
