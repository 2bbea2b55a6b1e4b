/*
 * Secrets that a person types: from the terminal, without showing them, or from a file. Never from the
 * command line, which everybody on the machine can see.
 */
#pragma once

#include "buf.h"
#include "err.h"

/* `file` NULL: asks at the terminal, and with `twice` once more. A newline at the end is not part of it. */
int password_read(const char *file, const char *prompt, bool twice, struct buf *ret,
		  struct err *e) _must_check_;
/* The content of a file; "-": standard input. */
int password_slurp(const char *file, struct buf *ret, struct err *e) _must_check_;
