/*
 * Answers whose long parts are encoded as they are sent. A handler writes its answer as always
 * (answer_json … answer_send, rpc_reply) and leaves holes where content belongs: bytes that live as long as
 * the request, or a source that reads them meanwhile. What stands in a hole is escaped, coded or framed piece
 * by piece, as the client takes it, so no answer is in memory as a whole; of control characters JSON is six
 * times as long as the bytes.
 *
 * One piece is at most ANSWER_LONG_TURN bytes of content: then other connections have their turn.
 */
#pragma once

#include "request.h"

#define ANSWER_LONG_FROM (16u * 1024) /* bytes of a string from which on it is worth it */
#define ANSWER_LONG_TURN (64u * 1024)

/* RAW is sent as it is; of a string what stands between its quotes; of lines the same, each line a string. */
enum answer_form { ANSWER_RAW, ANSWER_STRING, ANSWER_BASE64, ANSWER_LINES };

/* Content that is read while it is sent. Embedded, zeroed but for the callbacks and the maximum of `there`.
 */
struct answer_source {
	struct request *r;
	struct buf there; /* has come, and was not sent */
	bool is_whole;    /* no more will come */
	/* The hole's turn has come: what follows is told by answer_source_more or answer_source_fail. */
	void (*begin)(struct answer_source *s);
	/* So many of the bytes that were there were sent. */
	void (*sent)(struct answer_source *s, size_t n);
};
void answer_source_more(struct answer_source *s); /* there is more, or it is whole */
/* The rest cannot be had: the client sees a broken answer. The request ends. */
void answer_source_fail(struct answer_source *s);

/* A hole at the end of r->out. Without memory r->out goes bad, which answer_send tells. */
void answer_hole(struct request *r, enum answer_form form, struct view bytes);
void answer_hole_from(struct request *r, struct answer_source *s, enum answer_form form);
/* A member of the object that is being written: a string in the form, where it is short at once. */
void answer_put_long(struct request *r, const char *key, enum answer_form form, struct view bytes);
void answer_put_from(struct request *r, const char *key, struct answer_source *s);
/* A value that is JSON already, from where it is. */
void answer_put_raw(struct request *r, const char *key, struct view json);
/* Text as an array of its lines. */
void answer_put_lines(struct request *r, const char *key, struct view text);
/* What a command wrote lives as long as the request from here on; `kept` is taken. */
void answer_keep(struct request *r, struct output *kept);
/* The same with a copy, to which `bytes` leads then. False: its tenant has too much of that. */
bool answer_copy(struct request *r, struct view *bytes) _must_check_;

/* ---- for answer.c, rpc.c and request.c ---- */

bool answer_long_is(const struct request *r);        /* r->out has holes, or is long itself */
int64_t answer_long_length(const struct request *r); /* -1: nobody knows before it is encoded */
/* The head is sent; sends r->out, now and later, and then calls `end`, which ends the request. */
void answer_long_send(struct request *r, void (*end)(struct request *r));
void answer_long_free(struct request *r);
