/*
 * A local TCP connection joined to a port of a box, over the daemon's tunnel.
 */
#pragma once

#include "session.h"

/* Carries until both ends have ended it, or it breaks. Takes the socket. */
int forward_carry(struct session *s, const char *box, unsigned port, int fd, struct err *e) _must_check_;
