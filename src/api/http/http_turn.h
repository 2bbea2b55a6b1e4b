/*
 * Inside src/api/http: whose turn it is.
 *
 * What happens on a connection only puts it into the line of its party. The parties with a line take turns,
 * one connection each, for ROUND_NS of a turn of the loop; then whatever else the program does comes first.
 * So a party with a thousand busy connections delays another's request by one of its turns, not by a
 * thousand.
 */
#pragma once

#include "http_place.h"

void http_turn_init(struct http_server *s);
void http_turn_done(struct http_server *s);
/* Turns, and then http_server_accept, at the end of the batch. */
void http_turn_soon(struct http_server *s);
/* Its turn comes: http_conn_turn. */
void http_turn_wait(struct http_conn *c);
/* It waits no more; whether it did. */
bool http_turn_leave(struct http_conn *c);
