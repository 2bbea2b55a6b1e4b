/*
 * Kept output, for the core itself: see run.h.
 */
#pragma once

#include "exec.h"
#include "run.h"

#define OUTPUTS_TENANT (64u << 20) /* bytes of all commands of a tenant, with what its requests hold */
#define OUTPUTS_ALL    (256u << 20)

/* What the room owns. */
struct outputs {
	const struct exec_way *by_shell; /* shells_way */
	struct list rows;                /* of the tenants that have some */
	size_t bytes;
	outputs_beside_fn beside; /* or NULL */
	void *beside_arg;
};

void outputs_init(struct outputs *o);
/* Whether a command may begin whose output is collected. ERR_QUOTA, ERR_UNAVAILABLE. */
int outputs_admit(struct core *c, const struct tenant *t, struct err *e) _must_check_;
size_t outputs_room(const struct output *o, unsigned channel); /* below the limit of one command */
