/*
 * The time zones of the world, by name. The table is made from tzdata (scripts/gen-zones), so that a name can
 * be judged where the files of the machine cannot be read.
 */
#pragma once

#include "err.h"
#include "view.h"

#define ZONES_NAME_MAX 64

/* The zone's present rule as POSIX spells it ("CET-1CEST,M3.5.0,M10.5.0/3"); NULL: there is no such zone. */
const char *zones_rule(struct view name);
/* ERR_INVALID with a hint for a name that is none; `field` is for the message. */
int zones_check(struct view name, const char *field, struct err *e) _must_check_;
