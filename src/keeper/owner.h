/*
 * RUN/owner.sock: how the owner of the machine reaches paddock-signer. Every connection of root is passed to
 * it with the role OWNER; nobody else's is. The keeper reads no byte of them.
 */
#pragma once

#include "keeper.h"

int owner_listen(struct keeper *k, struct err *e) _must_check_;
