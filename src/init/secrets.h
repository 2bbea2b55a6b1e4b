/*
 * What was mounted into the box from outside: files in /run/secrets (a tmpfs) and
 * variables that every new process gets. In PID 1's memory alone, and so in no snapshot.
 */
#pragma once

#include "conn.h"

struct wire_start;

int secrets_set(const struct conn_call *call, struct err *e) _must_check_;
/* The variables of a start with ours behind them, where it does not name them itself. -ENOMEM. */
int secrets_add_env(struct arena *a, struct wire_start *msg) _must_check_;
