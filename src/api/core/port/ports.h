/*
 * Ports for the core itself: see port.h.
 */
#pragma once

#include "guest.h"
#include "port.h"
#include "sign.h"

struct box;
struct port_stream;

/* The next connection to what `listener`'s box listens on; opened like any other. */
int ports_accept(struct box *b, uint16_t port, struct port_stream *s, struct err *e) _must_check_;
