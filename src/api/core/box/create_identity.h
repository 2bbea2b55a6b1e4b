/*
 * A new machine id for a box that was made from another's files.
 */
#pragma once

#include "guest.h"

/* Embedded in the creation. `done` is called once, perhaps before create_identity returns. */
struct create_identity {
	struct guest *guest;
	void (*done)(struct create_identity *id);
	struct call call;
};

void create_identity(struct create_identity *id);
