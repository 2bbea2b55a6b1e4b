/*
 * tar archives, without I/O: headers in ustar, with pax records for what does
 * not fit; and a reader of headers that also knows GNU's long names, base-256
 * numbers and the old ustar without magic. The bytes of the files are the
 * caller's business on both sides.
 */
#pragma once

#include <limits.h>

#include "buf.h"

#define TAR_BLOCK    512
#define TAR_META_MAX (64u * 1024) /* of a pax header or a long name */

enum tar_type {
	TAR_FILE = '0',
	TAR_LINK = '1',
	TAR_SYMLINK = '2',
	TAR_CHAR = '3',
	TAR_BLOCK_DEVICE = '4',
	TAR_DIRECTORY = '5',
	TAR_FIFO = '6',
	TAR_OTHER = '?', /* what is to be skipped, with its bytes */
};

struct tar_entry {
	enum tar_type type;
	struct view path;   /* as it is in the archive; a directory's without the slash at its end */
	struct view target; /* of links */
	uint64_t size;      /* bytes that follow */
	uint32_t mode, uid, gid;
	int64_t mtime; /* seconds */
};

static inline uint64_t tar_padding(uint64_t size)
{
	return (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
}

/* Appends the header, with a pax header before it where one is needed. */
int tar_put(struct buf *out, const struct tar_entry *en);
int tar_put_end(struct buf *out); /* two blocks of zeros */

struct tar_reader {
	char block[TAR_BLOCK];
	size_t have;        /* bytes of block */
	uint64_t meta_left; /* bytes of a pax header or long name that are still to come */
	uint64_t pad_left;
	char meta_type;
	struct buf meta;         /* such bytes, gathered */
	struct buf path, target; /* overrides for the next entry */
	bool has_path, has_target, has_size, has_mtime, sparse;
	uint64_t size;
	int64_t mtime;
	unsigned zeros; /* blocks of zeros in a row */
	bool ended;     /* two of them: all that follows is padding */
	const char *why;
	char name[260], link[104]; /* of the entry that was given last */
};

void tar_reader_init(struct tar_reader *t);
void tar_reader_done(struct tar_reader *t);
/*
 * Takes bytes from *in. 1: *ret is the next entry (its views last until the next
 * call), and its `size` bytes and their padding are next in the stream, for the
 * caller to take; 0: all of *in is taken; -EBADMSG: this is no archive (t->why).
 */
int tar_read(struct tar_reader *t, struct view *in, struct tar_entry *ret) _must_check_;
/* Whether the archive may end here. */
bool tar_may_end(const struct tar_reader *t);
