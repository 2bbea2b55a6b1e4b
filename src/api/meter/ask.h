/*
 * A request to a provider, judged by its method, path and body alone. Pure.
 */
#pragma once

#include "buf.h"
#include "err.h"
#include "meter.h"

enum ask_provider { ASK_NONE, ASK_OPENAI, ASK_ANTHROPIC, ASK_PROVIDERS };

const char *ask_provider_name(enum ask_provider p); /* "openai" */
enum ask_provider ask_provider(struct view name);

/* Where a request goes, from its path below /api/PROVIDER. */
struct ask_endpoint {
	const char *method, *path; /* "/v1/models": also what is below it */
	const char *name;          /* of the allow lists: "chat/completions" */
	enum meter_api api;
	bool free; /* costs nothing: no body is looked at for its price */
};
/* NULL: not an endpoint that can be metered. Paths that could be read in two ways are none. */
const struct ask_endpoint *ask_endpoint(enum ask_provider p, struct view method, struct view path);

struct ask {
	struct view model; /* decoded; in the arena */
	bool stream;
	bool usage_asked;      /* by the client itself */
	bool options;          /* it has stream_options */
	uint64_t max_output;   /* tokens, of one choice; 0: not said */
	uint64_t choices;      /* at least 1 */
	uint64_t input_tokens; /* an estimate */
};

/* Reads the body; ERR_BAD_REQUEST, ERR_INVALID, ERR_FORBIDDEN. */
int ask_read(struct arena *a, const struct ask_endpoint *ep, struct view body, struct ask *ret,
	     struct err *e) _must_check_;
/* The body as it is sent on: the same bytes, with include_usage put into a chat that streams. */
int ask_body(const struct ask_endpoint *ep, const struct ask *k, struct view body, struct buf *out,
	     struct err *e) _must_check_;

/* "gpt-4o*" fits; '*' stands for anything, in any place. */
bool ask_fits(struct view pattern, struct view text);
