/*
 * The state of the channel to paddock-signer: see peer.h.
 */
#pragma once

#include "peer.h"

struct signer_channel {
	struct core *core;
	struct mux mux;
	struct call opening;
	struct loop_timer again;
	struct list pending;  /* calls that wait for it */
	struct list watchers; /* of struct signer_watch */
	bool started;         /* the core is ready */
	bool open;
	bool wanted; /* somebody needed it: it is started if it is not there */
};

void signer_init(struct core *c);
void signer_start(struct core *c);
void signer_stop(struct core *c);
