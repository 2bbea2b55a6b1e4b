/*
 * Feeds a byte stream to the HTTP/1.1 parsers as a connection would, in pieces of
 * a given size, and says what came of it.
 */
#pragma once

#include <assert.h>
#include <stdlib.h>

#include "http1.h"

#define HTTP1_FEED_HEAD_BYTES (32 * 1024)
#define HTTP1_FEED_HEADERS    100

struct http1_feed {
	char outcome[256]; /* "ok" for each request, then "wait" (incomplete) or a status */
	struct buf bodies; /* of all requests, one after the other */
};

static inline void http1_feed_note(struct http1_feed *f, const char *word)
{
	size_t at = strlen(f->outcome), n = strlen(word);
	if (at + n + 2 > sizeof(f->outcome))
		return;
	if (at)
		f->outcome[at++] = ' ';
	memcpy(f->outcome + at, word, n + 1);
}

static inline void http1_feed_status(struct http1_feed *f, int status)
{
	char text[4] = { (char)('0' + status / 100), (char)('0' + status / 10 % 10),
			 (char)('0' + status % 10) };
	http1_feed_note(f, text);
}

/* One request from `*used` on, of which `n` bytes are there. 1: whole, 0: more is needed, -1: refused. */
static inline int http1_feed_one(struct http1_feed *f, char *p, size_t step, size_t n, size_t *used)
{
	struct http_header headers[HTTP1_FEED_HEADERS];
	struct http1_request r;
	struct http1_body b;
	size_t have = 0, total = n - *used;
	int head = 0;
	p += *used;
	http1_request_init(&r, headers, HTTP1_FEED_HEADERS, HTTP1_FEED_HEAD_BYTES);
	while (head == 0 && have < total) {
		have = step < total - have ? have + step : total;
		head = http1_request_parse(&r, p, have);
	}
	if (head <= 0) {
		if (head < 0)
			http1_feed_status(f, -head);
		assert(head == 0 || r.why);
		return head < 0 ? -1 : 0;
	}
	size_t at = (size_t)head;
	http1_body_init(&b, r.content_length);
	for (;;) {
		struct view in = { p + at, have - at }, data;
		size_t before = in.n;
		int rc = http1_body_next(&b, &in, &data);
		at += before - in.n;
		if (rc == HTTP1_DATA) {
			buf_add(&f->bodies, data);
		} else if (rc == HTTP1_END) {
			http1_feed_note(f, "ok");
			*used += at;
			return 1;
		} else if (rc == HTTP1_MORE) {
			if (have == total)
				return 0;
			have = step < total - have ? have + step : total;
		} else {
			http1_feed_status(f, -rc);
			assert(b.why);
			return -1;
		}
	}
}

/* `step` bytes at a time. The bytes are copied first, as header names are changed in place. */
static inline void http1_feed(struct http1_feed *f, struct view stream, size_t step)
{
	char *p = malloc(stream.n ? stream.n : 1); /* of the exact size, so that ASan sees reads behind it */
	size_t used = 0;
	int rc = 1;
	*f = (struct http1_feed){ .bodies = BUF_INIT(1 << 20) };
	if (!p)
		abort();
	if (stream.n)
		memcpy(p, stream.p, stream.n);
	while (rc == 1 && used < stream.n)
		rc = http1_feed_one(f, p, step, stream.n, &used);
	if (rc == 0)
		http1_feed_note(f, "wait");
	free(p);
}
