/*
 * E2B's code interpreter, as its clients see it on port 49999 of a box: code
 * contexts (core/contexts.h) in other words. In the box there is no server, only
 * the interpreters themselves. Owns no state but the requests that are under way.
 */
#pragma once

#include <stdio.h>

#include "plane.h"

struct interpreter;

struct interpreter *interpreter_new(struct core *c, struct err *e) _must_check_;
void interpreter_free(struct interpreter *v); /* after the server, which aborts what is under way */
/* plane_own.serve; arg is the struct interpreter. The port is a guarded one. */
void interpreter_serve(struct http_exchange *x, const struct plane_target *t, void *arg);
/* Called once no request is under way; perhaps at once. */
void interpreter_when_idle(struct interpreter *v, void (*on_idle)(void *arg), void *arg);
/* "METHOD /path/{id}" lines under their heading, for the check of api/e2b/interpreter.yaml. */
void interpreter_print_routes(FILE *out);
