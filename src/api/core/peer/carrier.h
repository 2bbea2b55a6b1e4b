/*
 * The api's end of its channel to paddock-ai: see peer.h.
 */
#pragma once

#include "mux.h"
#include "peer.h"

struct carrier {
	struct core *core;
	struct mux mux;
	struct call opening;
	struct list pending; /* dials that wait for it */
	bool open;
};

void carrier_init(struct core *c);
void carrier_stop(struct core *c);
