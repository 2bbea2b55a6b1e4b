/*
 * What the handlers of /v1/sandboxes/{id}/fs/… share: an operation on files that
 * was asked for in JSON. Each has its own table of what it takes.
 */
#pragma once

#include "rest_files.h"

struct rest_fs_wish {
	char unused; /* nothing at offset 0 */
	struct view path, from, to, user, mode, owner, pattern, type, include, old, new, method;
	bool overwrite, recursive, parents, regex, ignore_case;
	uint64_t limit, count, seconds;
};

#define REST_FS_AT(f) .offset = offsetof(struct rest_fs_wish, f)
#define REST_FS_PATH(f)                                                                                      \
	{                                                                                                    \
#f, JSON_F_STRING, REST_FS_AT(f), .min = 1, .max = 4095, .required = true                    \
	}
#define REST_FS_USER                                                                                         \
	{                                                                                                    \
		"user", JSON_F_STRING, REST_FS_AT(user), .min = 1, .nullable = true                          \
	}
#define REST_FS_FLAG(f)                                                                                      \
	{                                                                                                    \
#f, JSON_F_BOOL, REST_FS_AT(f), .nullable = true                                             \
	}

/* Stands at the beginning of a handler's own memory. */
struct rest_fs {
	struct file_op op;
	struct request *r;
	struct rest_fs_wish wish;
};

/* Memory that begins with a struct rest_fs, with the body read into its wish (schema NULL: it has none).
 * NULL: the answer is sent. */
void *rest_fs_begin(struct request *r, const struct json_schema *schema, const struct file_ops *ops,
		    size_t size);
struct rest_fs *rest_fs_of(struct file_op *op);
struct file_place rest_fs_place(const struct rest_fs *f, struct view path);
