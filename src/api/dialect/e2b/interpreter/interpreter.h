/*
 * E2B's code interpreter, as its clients see it on port 49999 of a box: code
 * contexts (core/contexts.h) in other words. In the box there is no server, only
 * the interpreters themselves.
 */
#pragma once

#include "dialect.h"

/* The port is a guarded one. */
extern const struct surface interpreter_surface;
