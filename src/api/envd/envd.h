/*
 * E2B's in-sandbox daemon, as its clients see it on port 49983 of a box: the
 * services of api/e2b over Connect, /files and a few plain paths. All of it
 * happens here, in the api; in the box there is nothing but PID 1. Owns no state
 * but the requests that are under way.
 */
#pragma once

#include "plane.h"

struct envd;

struct envd *envd_new(struct core *c, struct err *e) _must_check_;
void envd_free(struct envd *v); /* after the server, which aborts what is under way */
/* plane_own.serve and .find; arg is the struct envd. */
void envd_serve(struct http_exchange *x, const struct plane_target *t, void *arg);
struct view envd_find(const struct http_exchange *x, struct core *c, void *arg);
/* Called once no request is under way; perhaps at once. Streams are ended. */
void envd_when_idle(struct envd *v, void (*on_idle)(void *arg), void *arg);
