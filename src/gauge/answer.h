/*
 * The kernel's requests about one file (FUSE), without I/O: a request in, a reply out. The
 * file is the root of its file system, so that there is nothing to look up.
 */
#pragma once

#include "buf.h"

/* The buffer of a request: what the kernel wants at least, since nothing is ever written. */
#define ANSWER_REQUEST 16384

/* The text of the file for the caller with this uid of the host; or -errno. */
typedef int answer_text(void *arg, uint32_t uid, struct buf *out);

/* Puts the reply into `out`; nothing where none is wanted. -EBADMSG: not a request. */
int answer_make(const void *request, size_t n, answer_text *text, void *arg, struct buf *out) _must_check_;
