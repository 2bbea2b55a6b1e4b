/*
 * Listening on the box's loopback for a link to another box: what connects is
 * handed to the calls that wait for it, one by one.
 */
#pragma once

#include "stream.h"

/* Listen: holds the socket as long as the stream lives. */
int acceptor_listen(const struct conn_call *call, struct err *e) _must_check_;
/* Accept: the next connection, as a relay. */
int acceptor_accept(const struct conn_call *call, struct err *e) _must_check_;
