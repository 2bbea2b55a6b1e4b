/*
 * Heads to and from providers, and answers of our own in the providers' words. Pure.
 */
#pragma once

#include "ask.h"
#include "http1_response.h"

struct ai_head {
	struct view method, authority, base, path, query; /* base: of the configuration's URL */
	enum ask_provider provider;
	const struct http_header *headers;
	size_t n_headers;
	int64_t body; /* bytes; -1: none */
};

/* All of it but the header with the key and the empty line, which paddock-ai adds. */
int ai_head_request(struct buf *out, const struct ai_head *h) _must_check_;
struct http_header ai_head_key(enum ask_provider p); /* its value is what stands before the key */
/* The headers for the client; room for all of them is in `out`. */
size_t ai_head_response(const struct http1_response *r, struct http_header *out);

/* Whose words an error is told in. */
enum ai_style { AI_STYLE_OPENAI, AI_STYLE_ANTHROPIC, AI_STYLE_ASSEGAI };
void ai_head_error(struct buf *out, enum ai_style style, int status, const char *code, const char *message);
