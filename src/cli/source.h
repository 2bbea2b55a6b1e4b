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
	uint64_t sockets; /* of a directory that source_open opened: an archive cannot hold them */
};

#define SOURCE_INIT ((struct source){ .fd = -1 })

/* How the entries of an archive are to look. */
struct source_wish {
	bool owned; /* by uid and gid, not by those that the files have */
	uint64_t uid, gid;
	bool readonly; /* nobody may write; with owned: root's */
	bool quiet;    /* about what an archive cannot hold */
	bool project;  /* without what git ignores, and what is installed or secret anyway */
};

/* A directory: what is in it, or with `name` the entry of that name in it. */
int source_open_dir(struct source *s, const char *dir, const char *name, const struct source_wish *wish,
		    struct err *e) _must_check_;
/* An archive that is open, which is taken; its name tells whether it is compressed. */
int source_open_fd(struct source *s, int fd, const char *name, struct err *e) _must_check_;
/* A directory, an archive, or "-" for standard input. */
int source_open(struct source *s, const char *path, struct err *e) _must_check_;
/* At the fd's end: whether the program wrote all of it. For client_request.at_end. */
int source_check(void *source, struct err *e);
void source_done(struct source *s);
