/*
 * Signals to us while a command runs in a sandbox: the command gets them. After the
 * first one it has a few seconds to end, then it is killed; a second Ctrl-C kills it
 * at once. A client that dies without a word leaves that to PID 1 (SIGHUP, time,
 * SIGKILL), or for a command in a shell to the daemon (SIGINT, time, SIGKILL).
 */
#pragma once

#include <errno.h>

#include "session.h"

struct interrupt {
	int fd;    /* a signalfd; -EBADF: none */
	int signo; /* the last signal that came, or 0 */
	bool killed;
	uint64_t since_ms; /* when it came */
	/* The command that runs; pid 0: none yet, then a signal breaks the request off. */
	struct session *s;
	const char *box;
	uint64_t pid;
	bool shell; /* it runs in one that is to stay: only SIGINT goes there, and we kill by leaving */
};

#define INTERRUPT_INIT ((struct interrupt){ .fd = -EBADF })

/* SIGINT, SIGTERM and SIGHUP come as interrupt.fd from now on; those that are ignored (nohup) stay ignored.
 */
int interrupt_catch(struct interrupt *in, struct err *e) _must_check_;
void interrupt_done(struct interrupt *in);
/* From here to interrupt_leave, the session's waits pass signals on to the command in `box`. */
void interrupt_watch(struct interrupt *in, struct session *s, const char *box);
void interrupt_leave(struct interrupt *in);
/* 128 and the number of a signal that came, also of one that nobody has read yet; 0: none. */
int interrupt_code(struct interrupt *in);
