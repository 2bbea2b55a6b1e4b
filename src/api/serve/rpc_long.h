/*
 * Replies of calls whose long strings are holes: see answer_long.h. In protobuf they stand behind the other
 * fields, which no reader minds, with a length that is known; in JSON they are the last members.
 */
#pragma once

#include "answer_long.h"
#include "pb.h"

/* Content of a reply that is read while it is sent, of a field that the message has not set. */
struct rpc_content {
	const char *field;
	struct answer_source *source;
	uint64_t n, escaped; /* its bytes; those of it as a string in JSON, without quotes */
};

/* Whether a message has such strings. */
bool rpc_long_is(const struct pb_msg *m, const void *msg);
/* The message into r->out, which is empty, with its envelope or (a unary call of Connect) without one. */
int rpc_long_encode(struct request *r, const struct pb_msg *m, const void *msg, const struct rpc_content *c,
		    bool json, bool enveloped) _must_check_;
