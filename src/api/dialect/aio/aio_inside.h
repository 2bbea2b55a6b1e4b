/*
 * Routes whose work is done by a script in the sandbox (inside/): it runs as the sandbox's user, keeps what
 * it must keep in the sandbox's files, and prints the answer. So these routes have no state here, and nothing
 * that they do can be more than what the user could do by hand.
 */
#pragma once

#include "aio_impl.h"
#include "run.h"

enum aio_script {
	AIO_SCRIPT_SKILLS,
	AIO_SCRIPT_MARKDOWN,
	AIO_SCRIPT_OBSERVE,
	AIO_SCRIPT_PROXY,
	AIO_SCRIPT_HOOKS,
	AIO_SCRIPTS
};

#define AIO_INSIDE_WORDS 8

/* One run of a script; embedded, zeroed. */
struct aio_inside {
	struct exec exec;
	struct request *r;
	bool bytes; /* the answer would be bytes: a refusal has a status */
	/* What becomes of a good answer's data instead of being sent; may be NULL. It lives in r->arena. */
	void (*then)(struct aio_inside *in, const struct json *data);
};

/* Answers. The words live until then. */
void aio_inside_start(struct aio_inside *in, struct request *r, enum aio_script script,
		      const struct view *words, size_t n);
void aio_inside_cancel(struct aio_inside *in);
/* The same, in memory of the request's own. */
void aio_inside_run(struct request *r, enum aio_script script, const struct view *words, size_t n);
