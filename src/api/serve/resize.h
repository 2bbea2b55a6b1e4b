/*
 * The size of a process's terminal, as a client changes it: while one change is under way only the last of
 * the others counts.
 */
#pragma once

#include "request.h"
#include "run.h"

/* Embedded, zeroed. */
struct resize {
	struct proc_op op;
	const struct request *r;
	const char *process; /* its pid; borrowed */
	uint64_t cols, rows;
	bool busy, again;
};

/* Of a process in the box that r->params[0] names. */
void resize_to(struct resize *s, const struct request *r, const char *process, uint64_t cols, uint64_t rows);
void resize_cancel(struct resize *s);
