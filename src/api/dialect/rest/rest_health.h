/*
 * /health, the most asked-for of all.
 */
#pragma once

#include "http.h"

struct box;

/* Answers GET /health without an allocation and without a route; false: it is something else. */
bool rest_health_fast(struct http_exchange *x, const struct box *b);
