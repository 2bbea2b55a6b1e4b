/*
 * A request's record in the audit log: opened when its route, method or tool has a name there, and closed
 * before its answer, which waits until the entry is on disk.
 */
#pragma once

#include "audit.h"
#include "request.h"

/* The way by which it came, and from where, for a record with this name. */
uint64_t record_open(const struct request *r, const char *action);
/* For a route or a method with a name in the log; `action` may be NULL. */
void record_begin(struct request *r, const char *action);
/* What the answer does not tell: it says in words of its own that the operation has failed. */
void record_failed(struct request *r, const struct err *e);
/* The verdict on an error; AUDIT_NONE where nothing has happened and nobody was refused. */
enum audit_verdict record_verdict(enum err_code code);
/* Before the answer. True: it has to wait; the handler is done with the request, and `then` is called when
 * the entry is on disk. False: there is nothing to wait for. e: NULL for a good end. */
bool record_close(struct request *r, const struct err *e, void (*then)(struct request *r));
/* The request ends. Without an answer, the client has gone away. */
void record_done(struct request *r);
