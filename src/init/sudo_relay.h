/*
 * The client's side of a running command: signals, the terminal between the
 * user's and the command's own, and the end.
 */
#pragma once

#include "defs.h"

struct sudo_relay {
	int socket;
	int master; /* of the command's terminal, or -1: it has the caller's descriptors */
};

/* Before the command is asked for: signals wait from here on. */
int sudo_relay_prepare(void) _must_check_; /* the signalfd */
/* A terminal like the one on fd 0. */
int sudo_relay_terminal(int *ret_master, int *ret_slave) _must_check_;
/* Until the command has ended: its wait status, or -errno. */
int sudo_relay_run(struct sudo_relay *r, int signals) _must_check_;
