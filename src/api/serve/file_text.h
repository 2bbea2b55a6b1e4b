/*
 * A file of a sandbox as text in an answer. Whether it is text, and how much of it there is, must be known
 * before the answer begins, so a file above FILE_TEXT_KEEP is read twice: once for this, keeping nothing, and
 * again while the answer is sent, with the window of the client. If the second time gives less than the
 * first, the client sees a broken answer.
 */
#pragma once

#include "answer_long.h"
#include "file.h"
#include "text_pieces.h"

#define FILE_TEXT_KEEP (256u * 1024)

/* Which of a file's bytes. */
struct file_text_lines {
	bool given;          /* else all of it */
	uint64_t first, end; /* lines from 0; `end` is behind the last */
};

/* Embedded, zeroed, with `done`. */
struct file_text {
	struct request *r;
	struct file_place place;
	struct file_text_lines lines;
	uint64_t most;
	bool measure; /* the caller's: how long is it in JSON? */
	/* Ends the request, or begins an answer with a hole for `source`. */
	void (*done)(struct file_text *f, const struct err *e);

	/* What was found. */
	uint64_t n, escaped;
	bool is_text;   /* UTF-8 */
	bool too_large; /* more than `most`: `done` gets ERR_TOO_LARGE */
	struct answer_source source;

	/* Its own. */
	struct file_op first, again;
	struct text_pieces pieces;
	uint64_t line, left;
	bool kept, is_over;
	char last;
};

/* What `place` names lives as long as the request. */
int file_text_read(struct file_text *f, struct request *r, const struct file_place *place, uint64_t most,
		   struct err *e) _must_check_;
void file_text_release(struct file_text *f); /* accepts a zeroed one */
