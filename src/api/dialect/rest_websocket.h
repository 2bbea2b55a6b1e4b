/*
 * The handshake of a WebSocket, for the routes that are one.
 */
#pragma once

#include "http.h"
#include "websocket.h"

/* Whether the exchange can become one, and what to answer. ERR_BAD_REQUEST. */
int rest_websocket_check(struct http_exchange *x, char ret_accept[WEBSOCKET_ACCEPT],
			 struct err *e) _must_check_;
