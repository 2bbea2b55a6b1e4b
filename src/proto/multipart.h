/*
 * multipart/form-data (RFC 7578), in pieces as they come, without I/O. A part's
 * bytes are views into the input (or, a few of them, into the parser); nothing
 * is collected but the headers of a part.
 */
#pragma once

#include "arena.h"
#include "buf.h"

#define MULTIPART_BOUNDARY_MAX 70 /* RFC 2046 */
#define MULTIPART_HEAD_MAX     8192

enum multipart_event {
	MULTIPART_MORE,     /* all of the input is taken */
	MULTIPART_PART,     /* the head of a part: name, filename */
	MULTIPART_DATA,     /* some of its bytes */
	MULTIPART_PART_END, /* there are no more */
	MULTIPART_END,      /* of all; what follows means nothing */
};

struct multipart {
	char delimiter[4 + MULTIPART_BOUNDARY_MAX]; /* CRLF, two dashes, the boundary */
	size_t delimiter_n, matched;                /* how much of it ended the last input */
	int state;
	bool in_part, made_up; /* made_up: the CRLF of what is matched was not in the input */
	struct buf head;
	struct arena arena;         /* of the part's names */
	struct view name, filename; /* of the last part; p == NULL: absent */
	struct view data;
	const char *why; /* of -EBADMSG */
};

/* -EINVAL: the content type is no multipart/form-data with a boundary. */
int multipart_init(struct multipart *m, struct view content_type) _must_check_;
void multipart_done(struct multipart *m);
/* The next event of *in, from which it takes; -EBADMSG, -ENOMEM. */
int multipart_next(struct multipart *m, struct view *in) _must_check_;
/* Whether the body may end here. */
bool multipart_is_over(const struct multipart *m);
