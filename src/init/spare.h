/*
 * A login shell made ahead (Start.ready). Starting one takes most of the time of
 * a short command: so after each such Start the next shell is started, runs the
 * user's profile and waits for its command. It is used once.
 *
 * It serves a Start that is the same but for its command, and only while what a
 * login reads is as it was when it was started. What is different from a shell
 * that is started for the command: the command is run by `eval`, and is never
 * executed in the shell's place.
 */
#pragma once

#include "err.h"

struct init;
struct proc;
struct wire_start;

/* A process that runs this command from now on: in no table yet, nobody attached. NULL: start one. */
struct proc *spare_take(struct init *in, const struct wire_start *msg);
/* Soon there is one for the next Start like this: when a command has ended, whose processor a new shell would
 * take, or after a while. */
void spare_plan(struct init *in, const struct wire_start *msg);
void spare_ended(struct init *in); /* a command has, and its end was told */
/* There is one now, for so long. */
void spare_ahead(struct init *in, const struct wire_start *msg, uint32_t seconds);
void spare_reaped(struct init *in, int pid); /* a child has exited, perhaps this */
void spare_stop(struct init *in);
