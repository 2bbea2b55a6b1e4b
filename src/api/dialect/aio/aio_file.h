/*
 * What the handlers of /v1/file share: one piece of work on files for one request.
 */
#pragma once

#include "aio_impl.h"
#include "answer_long.h"
#include "whole_file.h"

#define AIO_FILE_MAX (16u * 1024 * 1024) /* bytes of a file that is read or changed as text */

/* Stands at the beginning of a handler's own memory. */
struct aio_file {
	struct file_op op;
	struct request *r;
	const char *operation; /* as an error names it */
	struct file_place place;
	struct whole_file whole; /* what was read is whole.bytes */
	void (*on_end)(struct aio_file *f, const struct file_info *info, const struct err *e);
	void (*also_release)(struct aio_file *f); /* may be NULL */
};

/* Memory that begins with a struct aio_file; NULL: the answer is sent. */
void *aio_file_new(struct request *r, size_t size, const char *operation);
/* The same, with the path (relative to the workspace, unless it is absolute) and the user. On failure the
 * answer is sent. */
int aio_file_at(struct aio_file *f, struct view path, bool sudo) _must_check_;
/* An absolute path in the request's memory. */
int aio_file_path(struct request *r, struct view given, struct view *ret, struct err *e) _must_check_;

/* The whole file into f->whole.bytes, at most `most` bytes. Ends with on_end. */
void aio_file_read(struct aio_file *f, size_t most,
		   void (*on_end)(struct aio_file *f, const struct file_info *info, const struct err *e));
/* Writes bytes that live until on_end. */
void aio_file_write(struct aio_file *f, struct view bytes, bool append,
		    void (*on_end)(struct aio_file *f, const struct file_info *info, const struct err *e));
/* success false with FileOperationError; what is wrong with the caller or with us keeps its status. */
void aio_file_fail(struct aio_file *f, const struct err *e);
/* ERR_INVALID with these words. */
void aio_file_refuse(struct aio_file *f, const char *fmt, ...) _printf_(2, 3);

/* DIR/NAME into b, which is emptied first; an empty name: DIR. */
struct view aio_file_join(struct buf *b, struct view dir, struct view name);
/* Whether the path, or a directory that it lies in, fits one of the patterns. */
bool aio_file_is_among(const struct json_strlist *patterns, struct view path);
