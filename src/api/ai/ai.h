/*
 * The AI gateway: /api/openai/… and /api/anthropic/…, on the daemon with a token of a
 * box, and on the box's own loopback without one (the gate passes those connections on).
 * Keys come from the vault for one call and are wiped; what is used is metered, limited
 * and paid from budgets.
 */
#pragma once

#include <stdio.h>

#include "core.h"
#include "http.h"

struct ai;

/* Requests that are not for it go to `next`. */
struct ai *ai_new(struct core *c, void (*next)(struct http_exchange *x, void *arg), void *arg,
		  struct err *e) _must_check_;
void ai_free(struct ai *g); /* after the server */
void ai_request(struct http_exchange *x, void *arg);
/* "METHOD /path" lines, for the check of api/openapi.yaml. */
void ai_print_routes(FILE *out);
