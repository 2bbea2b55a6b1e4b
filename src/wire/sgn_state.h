/*
 * The names of the states of a request for a signature, as people, clients and the audit see them: for the
 * signer and the api.
 */
#pragma once

#include "signer_gen.h"
#include "view.h"

const char *sgn_state_name(int32_t state); /* "pending", or "unknown" */
bool sgn_state_named(struct view name, int32_t *ret);
