/*
 * What a client types into a process, kept until the process has taken it.
 */
#pragma once

#include "request.h"
#include "run.h"

/* Embedded, zeroed. */
struct typed {
	struct proc_op op;
	const struct request *r;
	struct view box;     /* its id or name; borrowed */
	const char *process; /* its pid; borrowed */
	struct buf text;
	size_t sent;
	bool busy;
};

/* most: bytes that may wait. */
void typed_init(struct typed *t, const struct request *r, struct view box, const char *process, size_t most);
/* -1: so much waits already that this does not fit. */
int typed_add(struct typed *t, struct view text) _must_check_;
void typed_done(struct typed *t);

/* The wish for a login shell in a terminal, which ends with its client. */
struct exec_wish typed_login_shell(void);
