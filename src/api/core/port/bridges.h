/*
 * Links between boxes, for the core itself: see port.h.
 */
#pragma once

#include "job.h"
#include "port.h"
#include "spec.h"

struct box_part;
struct core;

void bridges_start(struct core *c); /* everything is loaded and adopted */
extern const struct box_part bridges_part;
