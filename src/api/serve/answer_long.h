/*
 * An answer in JSON whose long strings are escaped as they are sent: of control characters the JSON is
 * six times as long as the bytes, and is never in memory as a whole.
 */
#pragma once

#include "answer.h"

#define ANSWER_LONG_PARTS 6
#define ANSWER_LONG_FROM  (64u * 1024) /* bytes from which on it is worth it */

enum answer_long_form { ANSWER_LONG_TEXT, ANSWER_LONG_STRING, ANSWER_LONG_BASE64 };

struct answer_long {
	struct request *r;
	struct {
		enum answer_long_form form;
		struct view bytes; /* must live as long as the request */
	} parts[ANSWER_LONG_PARTS];
	size_t n, at;
	struct buf piece;
};

/* TEXT is sent as it is, of a string what stands between its quotes. */
void answer_long_add(struct answer_long *l, enum answer_long_form form, struct view bytes);
/* Sends it and ends the request, now or later. Part of what request_own gave, zeroed at first. */
void answer_long_send(struct answer_long *l, struct request *r, int status);
void answer_long_done(struct answer_long *l); /* for r->release */
