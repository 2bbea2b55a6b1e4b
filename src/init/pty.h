/*
 * Terminals: a pair of pseudo-terminal ends from the box's own /dev/ptmx.
 */
#pragma once

#include <sys/types.h>

#include "err.h"

/* The terminal belongs to `uid`. *ret_master does not block, *ret_slave does; both are O_CLOEXEC. */
int pty_open(uint32_t cols, uint32_t rows, uid_t uid, int *ret_master, int *ret_slave,
	     struct err *e) _must_check_;
int pty_resize(int master, uint32_t cols, uint32_t rows, struct err *e) _must_check_;
