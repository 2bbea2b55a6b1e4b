/*
 * A tar archive from a sandbox, unpacked into a directory of ours. The archive is the
 * sandbox's word: no name in it leads out of the directory, and no link in it, nor one
 * that is there already, is followed. Devices, fifos, hard links out of it and the like
 * are skipped and counted.
 */
#pragma once

#include "err.h"
#include "tar.h"

struct unpack {
	struct tar_reader tar;
	int root, fd;
	uint64_t left, padding;
	uint32_t mode;
	int64_t mtime;
	uint64_t files, skipped;
	bool reading; /* an entry's bytes are next */
};

/* Takes `root`, an open directory. */
void unpack_init(struct unpack *u, int root);
void unpack_done(struct unpack *u);
int unpack_take(struct unpack *u, struct view data, struct err *e) _must_check_;
/* All of it has come: whether it was whole. */
int unpack_end(struct unpack *u, struct err *e) _must_check_;
