/*
 * Boxes that end with a connection (`delete_on_disconnect`): whoever holds the
 * connection says when it is gone. A restart of the api breaks every connection,
 * so such a box does not outlive it.
 */
#pragma once

#include "view.h"

struct core;

/* Whether the box of this id is still there for its holder. */
bool tied_is_there(struct core *c, struct view id);
/* Its connection is gone: it is removed. */
void tied_gone(struct core *c, struct view id);
/* After a start: removes those that were left behind. */
void tied_sweep(struct core *c);
