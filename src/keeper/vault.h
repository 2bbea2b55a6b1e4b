/*
 * paddock-vault in the keeper: starts it, and restarts it when it dies. The keeper makes the streams
 * to the vault and passes their other ends to the programs that may have one; it reads none of them.
 */
#pragma once

#include "keeper.h"

void vault_start(struct keeper *k);
/* A stream between it and paddock-gate, or paddock-ai, when both are there: after the start of either. */
void vault_join_gate(struct keeper *k);
void vault_join_ai(struct keeper *k);
/* A stream to it, for somebody of this WIRE_VAULT_ROLE. -ENOTCONN while it is not there. */
int vault_connect(struct keeper *k, int32_t role, int *ret_fd) _must_check_;
