/*
 * File work inside the box, with the rights of a user of the box. Paths are
 * absolute or relative to that user's home, and are resolved here and only here.
 */
#pragma once

#include <limits.h>
#include <sys/stat.h>

#include "conn.h"
#include "user.h"

/* The operations; each in a file of its own name but the small ones (file.c, file_tree.c). */
int file_read(const struct call *call, struct err *e) _must_check_;
int file_write(const struct call *call, struct err *e) _must_check_;
int file_list(const struct call *call, struct err *e) _must_check_;
int file_stat(const struct call *call, struct err *e) _must_check_;
int file_mkdir(const struct call *call, struct err *e) _must_check_;
int file_remove(const struct call *call, struct err *e) _must_check_;

struct file_target {
	struct user user;
	char path[PATH_MAX]; /* absolute */
};

/* Checks both and enters the user's rights: user_leave must follow success. */
int file_enter(struct file_target *t, struct view path, struct view user, struct err *e) _must_check_;
/* Cuts trailing slashes and splits at the last one. -EINVAL when the last part is not a name. */
int file_split(char *path, const char **ret_dir, const char **ret_name) _must_check_;
enum err_code file_code(int error);
/* An errno of a file operation as an error with the path in it; returns -1. */
int file_error(struct err *e, int error, const char *path);

struct view file_name(const char *path); /* the last part, without slashes */
struct wire_file_info;
void file_info(const struct stat *st, struct view name, struct wire_file_info *ret);
/* Makes the directories that lead to `path`, as the user. -errno. */
int file_make_parents(char *path);
