/*
 * Our own REST dialect, version 1: api/openapi.yaml says what it is. Owns no
 * state but the requests that are under way.
 */
#pragma once

#include <stdio.h>

#include "core.h"
#include "http.h"

struct rest;

/* statm: /proc/self/statm, opened before Landlock, or negative; for the metrics. */
struct rest *rest_new(struct core *c, int statm, struct err *e) _must_check_;
void rest_free(struct rest *r); /* after the server, which aborts what is under way */
/* For the metrics. */
void rest_set_server(struct rest *r, const struct http_server *s);
/* http_config.on_request; arg is the struct rest. */
void rest_request(struct http_exchange *x, void *arg);
/* Called once no request is under way; perhaps at once. */
void rest_when_idle(struct rest *r, void (*on_idle)(void *arg), void *arg);
/* "METHOD /path/{x}" lines, for the check of api/openapi.yaml. */
void rest_print_routes(FILE *out);
