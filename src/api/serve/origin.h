/*
 * Who may send requests from within a browser.
 *
 * A page of another site can make a browser send requests to this machine, and by DNS rebinding even read the
 * answers. It cannot choose the headers Host and Origin.
 */
#pragma once

#include "http.h"

/* Whether a page of this server, or no page, sent it, to a name that can be this server's. `listen` is the
 * daemon's address. ERR_FORBIDDEN. */
int origin_check(const struct http_exchange *x, struct view listen, struct err *e) _must_check_;
