/*
 * paddock-signer in the keeper: started when somebody first needs it, at every start once there is a
 * database, and again when it dies. The keeper makes the streams to it, says whose each is, and reads none.
 */
#pragma once

#include "keeper.h"

/* Starts it if this installation has wallets, or had. */
void signer_start(struct keeper *k);
/* Whether a peer of this SGN_SIGNER_ROLE can be passed to it: starts it if it is not there and has not just
 * died. ERR_UNAVAILABLE. */
int signer_ready(struct keeper *k, int32_t role, struct err *e) _must_check_;
/* Then: the stream `fd` (taken, also on failure) of that peer. */
int signer_pass(struct keeper *k, int32_t role, int fd, struct err *e) _must_check_;
/* A stream to it for the api. ERR_NOT_FOUND: there is none, and `wake` is false. */
int signer_open(struct keeper *k, bool wake, int *ret_fd, struct err *e) _must_check_;
