/*
 * What a call to a model used, read from the provider's answer while it passes: JSON
 * and server-sent events of the four APIs that are metered. No I/O, bounded memory.
 *
 * A JSON answer is scanned for its "usage" and not kept. Of a stream the last usage
 * counts (Anthropic's are cumulative), and the text that went by is counted for the
 * case that no usage comes.
 */
#pragma once

#include "arena.h"
#include "buf.h"

enum meter_api { METER_NONE, METER_CHAT, METER_RESPONSES, METER_EMBEDDINGS, METER_MESSAGES };

/* Tokens, each counted in one place only, as they are priced. */
struct meter_usage {
	uint64_t input, cache_read, cache_write, output;
};

struct meter {
	enum meter_api api;
	bool sse;
	bool swallow; /* the last chunk of a chat, which only tells the usage, is not for the client */
	bool known;   /* the provider has said what was used, be it nothing */
	struct meter_usage usage;
	uint64_t text;  /* bytes that the model wrote, as far as they were seen */
	uint64_t bytes; /* of the answer */

	/* server-sent events */
	struct buf line, data, held;
	bool skip_line, after_cr, unheld;
	bool begun, told; /* Anthropic: usage of message_start, of message_delta */
	/* JSON: where the scan stands */
	struct buf member;
	char key[8];
	unsigned depth, n_key;
	bool in_string, escaped, key_next, capturing, is_usage;
	struct arena arena;
};

void meter_init(struct meter *m, enum meter_api api, bool sse, bool swallow);
void meter_done(struct meter *m);
/* A piece of the answer. What the client gets is added to `out`, at once unless `swallow` has
 * to wait for the end of an event. */
void meter_feed(struct meter *m, struct view data, struct buf *out);
/* The answer is over: what was still held. */
void meter_end(struct meter *m, struct buf *out);
/* What to bill: as the provider said, else an estimate from the bytes of the request and of the
 * text. True: it is an estimate. */
bool meter_result(const struct meter *m, uint64_t request_tokens, struct meter_usage *ret);
