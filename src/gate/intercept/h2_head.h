/*
 * The field lists of HTTP/2, as they are judged and as they are sent on: requests with
 * their secrets, answers masked, trailers. Pure: libnghttp2 is elsewhere (intercept_h2.c),
 * and what it checks itself is checked again here, where it matters to the gate.
 */
#pragma once

#include "inject.h"

#define H2_HEAD_FIELDS (INJECT_HEADERS + 32) /* with pseudo-headers and what is put in */

struct h2_field {
	uint32_t name_at, name_n, value_at, value_n;
	bool hidden; /* holds a secret: no table of the peer's is to keep it */
};

/* A list that grows field by field; one that is too large stays so. */
struct h2_head {
	struct buf text; /* names and values; secret */
	struct h2_field *fields;
	size_t n, room, most; /* most: bytes, each field counts 32 more */
	size_t size;
	bool bad;
};

void h2_head_init(struct h2_head *h, size_t most);
void h2_head_done(struct h2_head *h);
void h2_head_add(struct h2_head *h, struct view name, struct view value, bool hidden);
struct http_header h2_head_get(const struct h2_head *h, size_t i);

struct h2_request {
	struct view method, path, query, authority; /* query.p NULL: there is none */
	struct http_header headers[INJECT_HEADERS];
	size_t n_headers;
	int64_t content_length; /* -1: not told */
	bool expect_continue;
	const char *why; /* after an error: a sentence for the client */
};

/* A list that has come; views point into it. 0, or minus an HTTP status: 403 when Host and :authority do not
 * agree. */
int h2_request_parse(const struct h2_head *h, struct view scheme, struct h2_request *ret) _must_check_;
/* What is sent on. `length` of a body that was rewritten, -1: it is not told; `same`: as the client told it.
 * -ENOENT with j->trouble, -EINVAL, -ENOBUFS. */
int h2_request_write(const struct h2_request *r, struct view scheme, struct inject *j, bool same,
		     int64_t length, struct h2_head *out) _must_check_;

struct h2_answer {
	int status;
	bool coded; /* compressed */
};
/* An answer's list, masked. -EBADMSG, -ENOBUFS. */
int h2_answer_write(const struct h2_head *in, const struct mask *m, struct h2_head *out,
		    struct h2_answer *ret) _must_check_;
/* Trailers: of a request without what a secret stands in for (j), of an answer masked (m). */
int h2_trailers_write(const struct h2_head *in, const struct inject *j, const struct mask *m,
		      struct h2_head *out) _must_check_;
