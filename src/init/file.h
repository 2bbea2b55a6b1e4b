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
int file_read(const struct conn_call *call, struct err *e) _must_check_;
int file_write(const struct conn_call *call, struct err *e) _must_check_;
int file_list(const struct conn_call *call, struct err *e) _must_check_;
int file_stat(const struct conn_call *call, struct err *e) _must_check_;
int file_mkdir(const struct conn_call *call, struct err *e) _must_check_;
int file_remove(const struct conn_call *call, struct err *e) _must_check_;
int file_move(const struct conn_call *call, struct err *e) _must_check_; /* file_copy.c */
int file_copy(const struct conn_call *call, struct err *e) _must_check_;
int file_chmod(const struct conn_call *call, struct err *e) _must_check_;
int file_find(const struct conn_call *call, struct err *e) _must_check_;
int file_grep(const struct conn_call *call, struct err *e) _must_check_;
int file_watch(const struct conn_call *call, struct err *e) _must_check_;
int file_pack(const struct conn_call *call, struct err *e) _must_check_;   /* TreeRead */
int file_unpack(const struct conn_call *call, struct err *e) _must_check_; /* TreeWrite */
/* The two other ways of file_list, in an open directory, which they take: everything down to a depth
 * (0: any) in no order, and a page in the order of names. */
int file_find_in(const struct conn_call *call, const struct user *u, int dir, struct view pattern,
		 int32_t type, size_t depth, uint64_t limit, bool detail, struct err *e) _must_check_;
int file_page(const struct conn_call *call, const struct user *u, int dir, struct err *e) _must_check_;

#define FILE_STEP_NS 4000000u /* of work in one round of the loop */

struct file_target {
	struct user user;
	char path[PATH_MAX]; /* absolute */
};

/* Checks both and enters the user's rights: user_leave must follow success. `as_root`: root's rights, in a
 * box whose users may become root; the path is still relative to the user's home, and what is made is the
 * user's. */
int file_enter(struct file_target *t, const struct conn_call *call, struct view path, struct view user,
	       bool as_root, struct err *e) _must_check_;
/* As the user: whether the path leads into one of the directories when links are followed, as far as it
 * exists; without directories it may lead anywhere. A link that changes meanwhile is not noticed: who can
 * change it can reach what is behind it anyway. */
int file_within(const char *path, const struct view *dirs, size_t n, struct err *e) _must_check_;
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
/* The entry `name` of `dir`, encoded as a FileEntries of its own under the name `path`. 1: it is gone. */
struct buf;
int file_put_entry(struct buf *out, int dir, const char *name, uint8_t type, struct view path,
		   const struct user_names *names) _must_check_;
#define FILE_ENTRY_MAX (2 * PATH_MAX + 128) /* of what that adds */

/* file_detail.c: what `detail` adds to an info. `names` of the other functions: NULL for none of it. */
#define FILE_METADATA_MAX 4096 /* bytes of names and values together */
#define FILE_METADATA_N   64
#define FILE_DETAIL_MAX   (PATH_MAX + 2 * FILE_METADATA_MAX + 1024)
struct wire_env_var;
struct file_detail {
	char owner[16], group[16], resolved[PATH_MAX];
	char bytes[2 * FILE_METADATA_MAX];
	size_t n_metadata;
	struct wire_env_var *metadata; /* FILE_METADATA_N of them, the caller's */
};
/* As the user; the info borrows from `room` and `names`. */
void file_detail(int dir, const char *name, const struct user_names *names, struct file_detail *room,
		 struct wire_file_info *info);
/* Gives an open file this metadata; it has none yet. -errno. */
int file_set_metadata(int fd, const struct wire_env_var *vars, size_t n) _must_check_;

struct stream;
/* Ends a stream with an errno, and by a cancellation that has nothing to undo. */
void file_fail(struct stream *s, int error, const char *path);
void file_on_cancel(struct stream *s, bool lost);

/* Opens `path` below `dir`, never through a link and never out of it. "": the directory again. */
int file_open_beneath(int dir, const char *path, int flags) _must_check_;
/* As for *at(2): no link is followed. -errno. */
int file_rename(int from_dir, const char *from, int to_dir, const char *to, bool overwrite) _must_check_;
