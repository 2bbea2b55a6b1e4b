/*
 * What the files of the code interpreter share. A request lives from its head to
 * its answer (interpreter_reply_*, interpreter_fail, interpreter_done) or its
 * abort; a handler must not touch it after any of these.
 */
#pragma once

#include "interpreter.h"
#include "list.h"
#include "session.h"

#define INTERPRETER_VARS 3

struct interpreter {
	struct core *core;
	struct list requests;
	void (*on_idle)(void *arg);
	void *idle_arg;
};

struct interpreter_req {
	struct interpreter *home;
	struct http_exchange *x;
	struct list link;
	struct actor actor;
	char box[BOX_ID + 1];
	struct view id; /* of the context in the path */
	void (*handle)(struct interpreter_req *r);
	struct buf body;
	struct arena arena; /* of the parsed body, and of what is made from it */
	struct json_strmap env;
	struct view cwd;                            /* where contexts are made, when nobody says */
	void (*on_gone)(struct interpreter_req *r); /* the client went away, or the answer is there: let go */
	void *own;
};

/* The body against a schema, without what the schema does not know; no body is an empty object. On failure
 * the answer is sent. */
int interpreter_read(struct interpreter_req *r, const struct json_schema *s, void *out) _must_check_;
/* Short names, and no case. */
struct view interpreter_language(struct view name);
/* How contexts are made for E2B's clients: in the home, with E2B's variables. */
struct context_wish interpreter_wish(const struct interpreter_req *r);

void interpreter_reply_json(struct interpreter_req *r, int status, struct buf *json);
void interpreter_reply_text(struct interpreter_req *r, int status, struct view text);
void interpreter_no_content(struct interpreter_req *r);
void interpreter_fail(struct interpreter_req *r, const struct err *e);
/* After http_end or http_break. */
void interpreter_done(struct interpreter_req *r);
/* Zeroed memory of the request; on failure the answer is sent. */
void *interpreter_own(struct interpreter_req *r, size_t size, void (*on_gone)(struct interpreter_req *r));

void interpreter_run(struct interpreter_req *r); /* POST /execute */
