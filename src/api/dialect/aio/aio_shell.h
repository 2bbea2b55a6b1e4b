/*
 * Sessions of /v1/shell: each is a shell of the core with a terminal, named "aio.ID". What is remembered here
 * is the command that runs in it and the output of the last one; the shell itself is the core's, and goes on
 * when this process is started again.
 */
#pragma once

#include "aio_impl.h"
#include "session.h"
#include "stream.h"

#define AIO_SHELL_MAX   48 /* sessions of one box; of the core's SHELLS_MAX */
#define AIO_SHELL_NAME  64
#define AIO_SHELL_QUIET 120000 /* ms without output after which an answer is given */
#define AIO_SHELL_CHARS 30000  /* of output in an answer */

struct aio_shell {
	struct list link; /* of aio_state->shells */
	struct core *core;
	struct loop *loop;
	char box[BOX_ID + 1];
	char name[AIO_SHELL_NAME]; /* of the shell */
	bool automatic;            /* nobody gave it an id: it may be forgotten when others need its place */
	bool leaving;              /* it is being removed to make place */
	int64_t created_ms, used_ms;
	uint64_t quiet_ms;

	struct exec exec;
	bool running, has_code;
	const char *status; /* of the last command, when none runs */
	uint32_t code;
	struct buf command;   /* the last one */
	struct output output; /* of it, cut; empty while it runs */
	struct list waits;    /* struct aio_wait: who wants to know how it goes on */
	struct shells_op removal;
};

static inline const char *aio_shell_id(const struct aio_shell *s)
{
	return s->name + strlen("aio.");
}

/* One answer about a session's command. */
enum aio_wait_kind { AIO_WAIT_EXEC, AIO_WAIT_VIEW, AIO_WAIT_STATUS, AIO_WAIT_CREATED };
struct aio_wait {
	struct list link;
	struct request *r;
	struct aio_shell *shell;
	enum aio_wait_kind kind;
	bool whole, streams; /* whole: the output is not cut */
	struct view command;
	uint64_t quiet_ms;
	struct loop_timer soft, quiet;
	struct stream stream;
	size_t sent; /* bytes of the output, of a stream */
};

/* "aio.ID" for an id, or for a new one where it is empty; false: it can be none, and the answer is sent. */
bool aio_shell_name(struct request *r, struct view id, char ret[AIO_SHELL_NAME]);
/* The box's session; NULL: there is none that is remembered. */
struct aio_shell *aio_shell_find(const struct aio_state *st, const char *box, const char *name);
/* The session of an id, for somebody who may run commands; NULL: the answer is sent. */
struct aio_shell *aio_shell_get(struct request *r, struct view id);
/* A new one; NULL: the answer is sent. */
struct aio_shell *aio_shell_new(struct request *r, const char *name, bool automatic);
/* The same without making place; NULL: no memory. */
struct aio_shell *aio_shell_add(struct request *r, const char *name, bool automatic);
void aio_shell_free(struct aio_shell *s);

/* ---- aio_shell_adopt.c ---- */

/* The box's sessions from before this process was started are asked for once, so that the most that it may
 * have counts them. */
struct aio_adopt {
	struct shells_op op;
	struct request *r;
	void (*then)(struct request *r);
	bool known;
};
/* Whether all are in the table. If not, they are asked for, and `then` is called when they are, or the answer
 * is sent; shells_cancel(&a->op) ends that. */
bool aio_shell_adopt(struct request *r, struct aio_adopt *a, void (*then)(struct request *r)) _must_check_;
/* Of boxes that are gone, or of all. */
void aio_shell_forget(struct aio_state *st, bool all);

/* Runs a command that nobody waits for yet. On failure the answer is sent. */
int aio_shell_run(struct request *r, struct aio_shell *s, struct view text, struct view shown,
		  uint64_t limit_ms) _must_check_;
/* What it has written so far, or has written. */
struct view aio_shell_output(const struct aio_shell *s);

/* ---- aio_wait.c ---- */

struct aio_wait_end {
	const char *status;
	bool has_code;
	uint32_t code;
	struct view output;
};
/* Waits for the running command; answers at once where none runs. soft_ms 0: as long as it takes. */
void aio_wait_begin(struct aio_wait *w, struct request *r, struct aio_shell *s, uint64_t soft_ms);
/* Of a request, as its own. NULL: the answer is sent. */
struct aio_wait *aio_wait_new(struct request *r, enum aio_wait_kind kind);
void aio_wait_release(struct aio_wait *w);
void aio_wait_news(struct aio_wait *w);                                 /* more output */
void aio_wait_over(struct aio_wait *w, const struct aio_wait_end *end); /* answers */
void aio_wait_fail(struct aio_wait *w, const struct err *e);
