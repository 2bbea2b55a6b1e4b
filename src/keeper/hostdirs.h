/*
 * Directories of the machine that are mounted into boxes (mounts.allow of the configuration). The keeper
 * believes nobody: it judges and opens the path itself, and follows no link on the way.
 */
#pragma once

#include "arena.h"
#include "config.h"
#include "spec.h"

struct wire_box_spec;

struct hostdirs {
	int fds[SPEC_MOUNTS];
	unsigned n;
};

#define HOSTDIRS_INIT ((struct hostdirs){ .n = 0 })

/* What was asked for, in the arena; NULL with e set. */
const struct spec_mounts *hostdirs_read(const struct wire_box_spec *w, struct arena *a, struct err *e);
/* Opens each of them. On failure all are closed. */
int hostdirs_open(const struct config *c, const struct spec_mounts *m, struct hostdirs *ret,
		  struct err *e) _must_check_;
void hostdirs_close(struct hostdirs *h);
