/*
 * Shells for the core itself: see session.h.
 */
#pragma once

#include "exec.h"
#include "procs.h"
#include "session.h"

/* For a wish with a shell. */
extern const struct exec_way shells_way;
extern const struct box_part shells_part;
