/*
 * Sends a file, or a range of it, as fast as the client reads.
 */
#pragma once

#include "answer.h"
#include "file.h"

struct file_info;

/* What the head of an answer says about a file. */
struct answer_file_head {
	char modified[40], mode[8];
	struct http_header h[6];
	size_t n;
};
void answer_file_fill(struct answer_file_head *f, const struct file_info *info);
void answer_file_add(struct answer_file_head *f, const char *name, const char *value);

/* Takes the request: its own memory and what is called when the client goes. The place is borrowed until the
 * end. */
void answer_file(struct request *r, const struct file_place *p);
void answer_file_as(struct request *r, const struct file_place *p, const char *type); /* a media type */
