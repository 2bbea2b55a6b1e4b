/*
 * For the tests of PID 1: a pid and mount namespace with a fresh /proc and an
 * /etc/passwd of its own, in which the real program runs (or, with
 * INIT_IN_PROCESS, the same code as part of the test, under its sanitizers),
 * and a blocking client.
 */
#pragma once

#include <sys/types.h>

#include "frame.h"
#include "pb.h"
#include "err.h"
#include "wire_gen.h"

struct box {
	char dir[32]; /* a scratch directory, mode 0777, the same inside and outside */
	pid_t helper, pid;
};

void box_start(struct box *b);
void box_stop(struct box *b);
size_t box_rss_kb(const struct box *b); /* of PID 1 */

struct client {
	int fd;
	uint32_t last;
	struct buf in, out;
	size_t shown; /* bytes of the frame that was handed out last */
};

void client_open(struct client *c, const struct box *b);
void client_close(struct client *c);
uint32_t client_call(struct client *c, uint16_t type, uint32_t deadline_ms, const struct pb_msg *m,
		     const void *msg);
void client_send(struct client *c, struct frame f);
void client_credit(struct client *c, uint32_t stream, uint32_t n);
/* The next frame, good until the next call; false when the connection is closed. Fails the test after 10 s.
 */
bool client_next(struct client *c, struct frame *f);

/* A call answered to its end, with credit given as DATA comes. */
struct answer {
	struct buf data[4]; /* by channel */
	bool failed;
	struct err error;
	uint16_t type;
	struct buf first, last; /* bodies of the first reply that is not the last, and of the last */
};
void client_finish(struct client *c, uint32_t stream, struct answer *a);
void answer_done(struct answer *a);
/* Decodes the body of the last reply (or of the first); memory is the arena's. */
void answer_decode(struct answer *a, const struct buf *body, const struct pb_msg *m, struct arena *arena,
		   void *out);

struct run {
	const char *user, *cwd;
	const char *const *argv, *const *env; /* env: name, value, …, NULL */
	uint32_t deadline_ms;
	uint64_t limit; /* of each channel; 0: 1 GiB */
	bool open_stdin;
	struct view input; /* sent, then END, when open_stdin */
	/* Kept processes; their stdin is left open. */
	bool keep, wait_reader, control;
	const char *tag;
	uint32_t ring;
	struct wire_pty *pty;
};
uint32_t client_start(struct client *c, const struct run *r);
/* Runs to the end; *ret_exited is filled unless a->failed. */
void client_run(struct client *c, const struct run *r, struct answer *a, struct wire_exited *ret_exited);
#define ARGV(...)                                                                                            \
	(const char *const[])                                                                                \
	{                                                                                                    \
		__VA_ARGS__, NULL                                                                            \
	}
