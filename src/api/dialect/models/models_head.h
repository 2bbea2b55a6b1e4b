/*
 * Heads to and from providers, and answers of our own in the providers' words. Pure.
 */
#pragma once

#include "ask.h"
#include "http1_response.h"

struct models_head {
	struct view method, authority, base, path, query; /* base: of the configuration's URL */
	enum ask_provider provider;
	const struct http_header *headers;
	size_t n_headers;
	int64_t body; /* bytes; -1: none */
};

/* All of it but the header with the key and the empty line, which paddock-ai adds. */
int models_head_request(struct buf *out, const struct models_head *h) _must_check_;
struct http_header models_head_key(enum ask_provider p); /* its value is what stands before the key */
/* The headers for the client; room for all of them is in `out`. */
size_t models_head_response(const struct http1_response *r, struct http_header *out);

/* Whose words an error is told in. */
enum models_style { MODELS_OPENAI, MODELS_ANTHROPIC, MODELS_ASSEGAI };
void models_head_error(struct buf *out, enum models_style style, int status, const char *code,
		       const char *message);
