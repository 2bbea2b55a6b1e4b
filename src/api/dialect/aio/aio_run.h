/*
 * Code in a code context, for the routes of code, jupyter and nodejs: what comes of it is collected as
 * Jupyter's outputs.
 */
#pragma once

#include "aio_impl.h"
#include "session.h"

#define AIO_CODE_SECONDS     30
#define AIO_CODE_SECONDS_MAX 300

struct aio_run;

struct aio_code {
	struct view language, code, cwd;
	struct view session; /* "": a new one, whose name the answer tells */
	uint64_t timeout_s;
	bool once; /* the interpreter ends with the code */
	/* Writes the value of `data`. */
	void (*put)(struct json_out *o, const struct aio_run *x);
};

/* Embedded in nothing: request_own gives it. */
struct aio_run {
	struct context_run run;
	struct context_op removal;
	struct request *r;
	struct aio_code wish;
	char name[CONTEXT_NAME + 1]; /* of the context */
	struct buf outputs;          /* JSON, an array */
	struct json_out list;
	struct output wrote;
	unsigned channel;     /* that was written to last; 0: none */
	size_t from[2];       /* of stdout and stderr: not in `outputs` yet */
	struct buf slices;    /* the long texts among the outputs */
	struct buf traceback; /* JSON, an array of lines; empty: nothing was raised */
	uint64_t count;
	const char *status; /* ok, error or timeout */
	bool exists;        /* the context may be there */
	bool crowded;       /* there was no memory for all of it */
};

/* Answers. The views of `w` live as long as the request. */
void aio_run_start(struct request *r, const struct aio_code *w);
/* Members that several answers have: how many executions there were, what it gave and the code; what it
 * wrote. */
void aio_run_put_results(struct json_out *o, const struct aio_run *x);
void aio_run_put_outputs(struct json_out *o, const struct aio_run *x);
void aio_run_put_output(struct json_out *o, const struct aio_run *x);
void aio_run_put_traceback(struct json_out *o, const struct aio_run *x);
