/*
 * What opens one box and nothing else, without a key: derived from the
 * installation's secret and the box's id, so that nothing is stored and a restart
 * changes nothing. A box that is made anew has another id and so other tokens. The token
 * for models can be changed and may have an end (spec.ai_token).
 */
#pragma once

#include "view.h"

struct actor;
struct box;
struct core;
struct err;
struct workspace;

/* The box's id, 64 hex digits, NUL: whoever has a token need not say which box it opens. */
#define TOKENS_SIZE (20 + 64 + 1)

/* The zero value fits no token. */
enum token_kind {
	TOKEN_NONE,
	TOKEN_ENVD,    /* files and processes */
	TOKEN_TRAFFIC, /* its ports */
	TOKEN_AI,      /* models, in its name */
	TOKEN_KINDS
};

void tokens_of(const struct core *c, const struct box *b, enum token_kind kind, char ret[TOKENS_SIZE]);
/* In time that does not depend on what was given. */
bool tokens_fit(const struct core *c, const struct box *b, enum token_kind kind,
		struct view given) _must_check_;
/* The id of the box that it says it opens; p == NULL: it is no token. Proves nothing. */
struct view tokens_box(struct view token);

/* The same for the files of a workspace. */
void tokens_of_workspace(const struct core *c, const struct workspace *w, char ret[TOKENS_SIZE]);
/* The workspace with this id, and somebody of its tenant. ERR_UNAUTHORIZED, also where there is none. */
const struct workspace *tokens_workspace(const struct core *c, struct view id, struct view given,
					 struct actor *ret, struct err *e) _must_check_;
