/*
 * Inside src/api/http: who gives way to a newcomer where there are too many connections.
 *
 * Each party has a limit, strangers have one together, and the server has one. A newcomer at the limit of its
 * own party takes the place of a connection that has been of no use for a while, or of a guest, never of one
 * that works: else many clients of one address would close each other's connections all the time. At the
 * server's limit the party with the most connections gives way, whatever they do. There all strangers count
 * as one party, so that those who show no key cannot take the places of those who have shown one, unless
 * these have more than all strangers. A newcomer to whom nobody gives way is refused.
 */
#pragma once

#include "http_place.h"

int http_yield_init(struct http_server *s) _must_check_;
void http_yield_done(struct http_server *s);
/* The number of its connections has changed. */
void http_yield_rank(struct http_party *p);
/* Whether there is place, now, for one more of this party, or of one without connections (NULL); `guests`:
 * also in the place of another guest of the same party. */
bool http_yield_make(struct http_server *s, struct http_party *p, bool guests) _must_check_;
/* Whether one that comes to this party may stay; else it is a guest. One that was of no use for a while may
 * be closed for it, at the end of the batch. */
bool http_yield_place(const struct http_party *p) _must_check_;
/* Who of a party that has too many gives way first, but not `but`. */
struct http_conn *http_yield_of(const struct http_party *p, const struct http_conn *but);
