/*
 * Users of the box, as its own /etc/passwd and /etc/group name them, and doing
 * file work with their rights.
 */
#pragma once

#include <sys/types.h>

#include "buf.h"
#include "err.h"
#include "view.h"

#define USER_GROUPS 32
#define USER_HOME   256

struct user {
	uid_t uid;
	gid_t gid;
	gid_t groups[USER_GROUPS];
	unsigned n_groups;
	char home[USER_HOME];
	bool as_root; /* user_enter leaves it root's rights; what it makes still belongs to the user */
};

/* By name, or by number when no name matches. ERR_INVALID for one that is not there. */
int user_find(struct view who, struct user *ret, struct err *e) _must_check_;

/* From here until user_leave paths are opened with the user's rights. */
int user_enter(const struct user *u) _must_check_; /* -errno: nothing changed */
void user_leave(void);

/* The names of ids, as the two files have them when it is loaded. */
struct user_names {
	struct buf passwd, group;
};
void user_names_load(struct user_names *n);
void user_names_done(struct user_names *n);
/* The name, or the number written into `room`. */
struct view user_name_of(const struct user_names *n, uid_t uid, char room[16]);
struct view user_group_of(const struct user_names *n, gid_t gid, char room[16]);
