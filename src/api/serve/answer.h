/*
 * Answers: JSON, errors in the dialect's own format, and the result of a job. Each function that sends
 * an answer ends the request.
 */
#pragma once

#include "request.h"

#define ANSWER_MAX (1u << 30)

/* By the surface's `fail`, or as the call's protocol says it. */
void answer_fail(struct request *r, const struct err *e);
void answer_fail_with(struct request *r, const struct err *e, const struct http_header *extra);
/* An error in the form of our own API, for a surface's `fail`. */
void answer_error(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra);
void answer_reply(struct request *r, int status, struct buf *json); /* takes the buffer's bytes */
void answer_reply_with(struct request *r, int status, struct buf *json, const struct http_header *extra,
		       size_t n_extra);
/* Something else than JSON; type may be NULL for an empty body. */
void answer_plain(struct request *r, int status, const char *type, struct view body);
void answer_plain_with(struct request *r, int status, const char *type, struct view body,
		       const struct http_header *extra, size_t n_extra);
/* No body at all. */
void answer_empty(struct request *r, int status, const struct http_header *extra, size_t n_extra);
void answer_no_content(struct request *r);
/* The job that will answer, or the reason that there is none. */
void answer_await(struct request *r, struct job *job, const struct err *e);
/* What r->job was has ended: whether well; e is sent. */
bool answer_ended(struct request *r, const struct err *e);
/* The end of a job without a result: 204, or its error. */
void answer_removed(void *arg, const void *result, const struct err *e);
/* An answer in JSON: begun with one of these, written, and sent by answer_send. */
struct json_out *answer_json(struct request *r);
struct json_out *answer_json_list(struct request *r,
				  const char *key); /* {"key": [ … ]}, by answer_send_list */
/* The same, with the answer begun; NULL: by e, which is sent. */
struct json_out *answer_result(struct request *r, const struct err *e);
struct json_out *answer_result_list(struct request *r, const struct err *e, const char *key);
void answer_send(struct request *r, int status);
void answer_send_list(struct request *r);
/* key: time in RFC 3339, or null for 0 */
void answer_put_time(struct json_out *o, const char *key, int64_t ms);
