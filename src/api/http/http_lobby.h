/*
 * Inside src/api/http: newcomers of an address that has too many connections already.
 *
 * They are accepted and wait, in order, without being read: were they closed, their clients would come back
 * at once, and all the time would go into that. A few of each address are let in every PERIOD_MS, in the
 * place of guests (http_yield.h), so that connections that stay do not shut them out. Who has waited as long
 * as a client may take to send a request is refused.
 */
#pragma once

#include "http_place.h"

void http_lobby_init(struct http_server *s);
void http_lobby_done(struct http_server *s);
/* Whether a newcomer of this party has to wait behind others. */
bool http_lobby_has_line(const struct http_party *p);
/* Takes the fd, or there is no room in it. */
bool http_lobby_enter(struct http_server *s, struct http_party *p, int fd,
		      const struct sockaddr_storage *peer, unsigned listener) _must_check_;
