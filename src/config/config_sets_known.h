/*
 * etc/egress-sets.json, as the build embeds it.
 */
#pragma once

#include <stddef.h>

extern const char config_sets_known[];
extern const size_t config_sets_known_size;
