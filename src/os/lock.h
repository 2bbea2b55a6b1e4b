/*
 * Memory that never reaches a swap device.
 */
#pragma once

#include "err.h"

/* All of it; where the machine's limit is less than the libraries alone take, all that can hold a secret: the
 * state at `p`, the stack, the heap, and whatever is mapped from here on. Fails when that cannot be had. */
int lock_memory(const void *p, size_t n, struct err *e) _must_check_;
