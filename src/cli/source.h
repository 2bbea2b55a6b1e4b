/*
 * A tar stream from a directory, an archive (compressed or not) or standard
 * input: an fd to read, and perhaps a program that writes into it.
 */
#pragma once

#include <sys/types.h>

#include "err.h"

struct source {
	int fd;
	int64_t size; /* -1: not known */
	pid_t pid;    /* 0: no program */
	const char *program;
};

#define SOURCE_INIT ((struct source){ .fd = -1 })

int source_open(struct source *s, const char *path, struct err *e) _must_check_;
/* At the fd's end: whether the program wrote all of it. For client_request.at_end. */
int source_check(void *source, struct err *e);
void source_done(struct source *s);
