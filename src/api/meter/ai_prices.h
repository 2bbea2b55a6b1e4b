/*
 * etc/prices.json, as text (scripts/embed-text).
 */
#pragma once

#include <stddef.h>

extern const char ai_prices[];
extern const size_t ai_prices_size;
