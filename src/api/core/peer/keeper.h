/*
 * The client of the keeper's channel. The keeper is trusted; losing it ends the
 * program (its next life finds the boxes as they are).
 *
 * A keeper is a peer that answers the calls of api/wire.proto about boxes, snapshots and its
 * posture. Each backend belongs to one peer. Today there is one, paddockd.
 */
#pragma once

#include "mux.h"

struct core;

struct keeper {
	struct core *core;
	struct mux mux;
	uint64_t calls;          /* that were sent, for the metrics */
	char storage_wrong[192]; /* of boxes' files, as the keeper says; "": nothing */
	uint64_t storage_size, storage_free, storage_beneath; /* bytes */
	void (*on_lost)(struct core *c);
	bool lost; /* what fails from now on was not refused by it */
	/* The PID 1 of a box has ended. */
	void (*on_exited)(struct core *c, struct view id, unsigned signo, bool oom);
};

int keeper_start(struct core *c, int fd, struct err *e) _must_check_;
void keeper_stop(struct core *c);
/* -errno: the channel is gone, no callback comes. */
int keeper_call(struct core *c, struct call *call, uint16_t type, uint32_t patience_ms,
		const struct pb_msg *pm, const void *msg) _must_check_;
/* The same, to the peer that has the boxes and snapshots of this backend. */
int keeper_call_for(struct core *c, struct view backend, struct call *call, uint16_t type,
		    uint32_t patience_ms, const struct pb_msg *pm, const void *msg) _must_check_;
/* Says that the api accepts requests. */
int keeper_say_ready(struct core *c) _must_check_;
