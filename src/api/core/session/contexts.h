/*
 * Contexts for the core itself: see session.h.
 */
#pragma once

#include "guest.h"
#include "json.h"
#include "session.h"

struct box;
struct box_part;
struct context;
struct context_cell;
struct contexts;

extern const struct box_part contexts_part;
