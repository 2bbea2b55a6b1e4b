/*
 * The sandbox plane: what is meant for a box and not for us. A request names a
 * box and a port by its host (PORT-ID.domain), by E2B's headers, or by a path of
 * ours; a port is served by a server in the box, through the proxy, or by a dialect
 * in this process (dialect_port).
 */
#pragma once

#include <stdio.h>

#include "serve.h"

struct plane;

struct plane *plane_new(struct serve *s, struct err *e) _must_check_;
void plane_free(struct plane *p); /* after the server */
/* "METHOD /path/{x}" lines, for the check of api/openapi.yaml. */
void plane_print_routes(FILE *out);
/* False: it is for no box. */
bool plane_request(struct plane *p, struct http_exchange *x) _must_check_;
