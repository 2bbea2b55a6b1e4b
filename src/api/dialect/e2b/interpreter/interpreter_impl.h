/*
 * What the files of the code interpreter share.
 */
#pragma once

#include "answer.h"
#include "interpreter.h"
#include "session.h"

/* The body against a schema, without what the schema does not know; no body is an empty object. On failure
 * the answer is sent. */
int interpreter_read(struct request *r, const struct json_schema *s, void *out) _must_check_;
/* Short names, and no case. */
struct view interpreter_language(struct view name);
/* How contexts are made for E2B's clients: as root, in the user's home, with E2B's variables. On failure the
 * answer is sent. */
int interpreter_wish(struct request *r, struct context_wish *ret) _must_check_;
/* As request_own; `release` is called however the request ends. */
void *interpreter_own(struct request *r, size_t size, void (*release)(struct request *r));

void interpreter_run(struct request *r); /* POST /execute */
