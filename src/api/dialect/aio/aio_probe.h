/*
 * One command in the sandbox whose output says what an answer needs.
 */
#pragma once

#include "aio_impl.h"

/* Runs a script; `then` answers, with what it wrote to stdout, whatever its exit code is. */
void aio_probe(struct request *r, const char *script, void (*then)(struct request *r, struct view said));
/* The same with words as $1 …, a text as its stdin (p == NULL: none), and the exit code and stderr to see. */
struct aio_probe_end {
	struct view out, err;
	uint32_t exit_code;
};
void aio_probe_with(struct request *r, const char *script, const struct view *words, size_t n,
		    struct view input, void (*then)(struct request *r, const struct aio_probe_end *end));
/* The rest of the first line that begins with this word; "" where there is none. */
struct view aio_probe_fact(struct view text, const char *key);
