/*
 * Our terminal joined to one in a box, over a WebSocket: bytes both ways, the size
 * when it changes, and our own settings put back at the end.
 */
#pragma once

#include "json.h"
#include "session.h"

struct terminal_wish {
	const char *box;
	uint64_t process; /* 0: a new login shell */
	const char *user, *workdir;
	bool kill; /* the process goes with us, even when the connection is just lost */
};

/* Whether standard input and output are a terminal. */
int terminal_check(struct err *e) _must_check_;
/* key: {"cols", "rows"} of ours. */
void terminal_put_size(struct json_out *o, const char *key);
/* The exit code of what ran, or -1. */
int terminal_run(struct session *s, const struct terminal_wish *w, struct err *e) _must_check_;
