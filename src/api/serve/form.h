/*
 * The files of a multipart/form-data body, each written to a box as it comes, one after the other. The body
 * is read only as fast as the box takes the files.
 */
#pragma once

#include "answer.h"
#include "file.h"
#include "multipart.h"

struct form;

struct form_ops {
	/* Where the part goes whose head is in f->parser: 1 and *ret, whose views live until the next part;
	 * 0: it is no file; -1. */
	int (*place)(struct form *f, struct file_place *ret, struct err *e);
	void (*written)(struct form *f, const struct file_info *info); /* may be NULL */
	void (*field)(struct form *f, struct view data);   /* bytes of a part that is no file; may be NULL */
	void (*fail)(struct form *f, const struct err *e); /* sends the answer; NULL: answer_fail */
	/* All of them are written: sends the answer. */
	void (*finish)(struct form *f);
};

struct form {
	struct file_op op;
	struct request *r;
	const struct form_ops *ops;
	struct multipart parser;
	unsigned n;    /* files so far */
	uint64_t most; /* bytes of the body; 0: any */
	bool has_parser;
	bool writing; /* a file is open in the box */
	bool ending;  /* all of it is sent, and it is not answered yet */
	bool last;    /* the body is complete */
	uint64_t bytes;
	struct buf pending; /* for the box, which had no room */
	struct buf in;      /* of the body, behind that */
};

/* Takes the request's body. `f` is the first member of what request_own gave; form_done is for r->release. On
 * failure the answer is sent. */
void form_start(struct form *f, struct request *r, const struct form_ops *ops);
void form_done(struct form *f);
/* The last part of a file name; p == NULL: it has none that can be used. */
struct view form_base_name(struct view filename);
