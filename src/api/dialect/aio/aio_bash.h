/*
 * Sessions of /v1/bash: a directory, and commands that are processes kept in the box, with the tag
 * "cmd-KEY-NUMBER", which is also the command's id. Their output, input and end are the box's; here is only
 * which session they belong to.
 */
#pragma once

#include "aio_impl.h"
#include "run.h"

#define AIO_BASH_MAX 64 /* sessions of one box */
#define AIO_BASH_ID  64
#define AIO_BASH_KEY 12
#define AIO_BASH_TAG 40

struct aio_bash {
	struct list link; /* of aio_state->bashes */
	char box[BOX_ID + 1];
	char id[AIO_BASH_ID];
	char key[AIO_BASH_KEY + 1];
	bool closed;
	int64_t created_ms, used_ms;
	unsigned count;          /* of commands */
	struct buf cwd, profile; /* profile: a script that each command sources first; either may be empty */
};

/* "cmd-KEY-N" of its last command; "" where there was none. */
void aio_bash_last(const struct aio_bash *s, char ret[AIO_BASH_TAG]);
bool aio_bash_owns(const struct aio_bash *s, struct view tag);
/* The session of an id; NULL: the answer is sent. Also one that is closed, where the caller takes those. */
struct aio_bash *aio_bash_get(struct request *r, struct view id, bool closed_too);
/* The same without an answer. */
struct aio_bash *aio_bash_find(const struct request *r, struct view id);
/* A new one, with an id where that is not empty; NULL: the answer is sent. */
struct aio_bash *aio_bash_new(struct request *r, struct view id, struct view dir);
void aio_bash_free(struct aio_bash *s);
