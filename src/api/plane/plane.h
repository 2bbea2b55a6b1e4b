/*
 * The sandbox plane: requests for a port of a box instead of the API. A request names a box and a port
 * by its host (PORT-ID.domain), by E2B's headers, or by a path of the API. A server in the box serves
 * the port through the proxy, or a dialect in this process does (dialect_port).
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
