/*
 * The AI gateway: /api/openai/… and /api/anthropic/…, on the daemon with a token of a
 * box, and on the box's own loopback without one (the gate passes those connections on).
 * Keys come from the vault for one call and are wiped; what is used is metered, limited
 * and paid from budgets.
 */
#pragma once

#include "dialect.h"

extern const struct dialect models_dialect;
