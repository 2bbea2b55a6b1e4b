/*
 * What a request may say of who asks, and a server in a box must not see: keys of ours wherever they stand
 * and however they are spelled, and the members of the query in which a dialect takes credentials. Pure.
 */
#pragma once

#include "buf.h"

/* Whether a whole key of ours is in it: as it is, percent-encoded (also more than once), or in base64 behind
 * "Basic ". */
bool proxy_secrets_in(struct view v);
/* The query without them, behind a '?'; nothing if nothing is left. `names` are those that the dialect takes
 * credentials in, "api_key ticket"; NULL: none. */
void proxy_secrets_query(struct buf *out, struct view query, const char *names);
