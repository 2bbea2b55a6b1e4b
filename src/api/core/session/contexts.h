/*
 * Contexts for the core itself: see session.h.
 */
#pragma once

#include "guest.h"
#include "json.h"
#include "session.h"

struct box;
struct context;
struct context_cell;
struct contexts;

/* The box is going: everything fails with `why`. */
void contexts_drop_all(struct box *b, const struct err *why);
