/*
 * Tokens of boxes: see index.h.
 */
#include <stdio.h>

#include "boxes.h"
#include "clock.h"
#include "sign.h"
#include "who.h"
#include "poison.h"

static_assert(TOKENS_SIZE == BOX_ID + SIGN_SIZE, "a token is an id and a signature");

static const char *const names[TOKEN_KINDS] = {
	[TOKEN_ENVD] = "envd", [TOKEN_TRAFFIC] = "traffic", [TOKEN_AI] = "ai", [TOKEN_AGENT] = "agent"
};

void tokens_of(const struct core *c, const struct box *b, enum token_kind kind, char ret[TOKENS_SIZE])
{
	char turn[24];
	snprintf(turn, sizeof(turn), "%llu", (unsigned long long)b->spec.ai_token);
	const struct view parts[] = { VIEW("paddock token 1"), view_of(names[kind]), view_of(b->id),
				      view_of(turn) };
	bool turned = kind == TOKEN_AI && b->spec.ai_token;
	memcpy(ret, b->id, BOX_ID);
	sign_parts(c, parts, ELEMS(parts) - !turned, ret + BOX_ID);
}

struct view tokens_box(struct view token)
{
	return token.n == TOKENS_SIZE - 1 ? view_head(token, BOX_ID) : VIEW_NONE;
}

bool tokens_fit(const struct core *c, const struct box *b, enum token_kind kind, struct view given)
{
	char want[TOKENS_SIZE];

	if (!names[kind])
		return false;
	if (kind == TOKEN_AI && b->spec.ai_token_ends_ms && clock_wall_ms() >= b->spec.ai_token_ends_ms)
		return false;
	tokens_of(c, b, kind, want);
	return view_eq_secret(given, view_of(want));
}

const struct box *tokens_opens(struct core *c, enum token_kind kind, struct view token)
{
	struct view id = tokens_box(token);
	const struct box *b = id.p ? boxes_by_id(c, id) : NULL;

	return b && !b->in->hidden && !b->in->pooled && tokens_fit(c, b, kind, token) ? b : NULL;
}
