/*
 * E2B: the files of a volume, without a sandbox. As in rest_workspaces.c the work is
 * done in the hidden box that has the workspace mounted. The volume's own token
 * (who.h) is what opens it, not a key. Files are read, removed and given away as
 * root, and made as the box's user, whose the volume's root is.
 *
 * e2b_content.c finds the volume and its box and tells what is there; what is done with a
 * path, a directory and a file stands in e2b_content_routes.c.
 */
#pragma once

#include "e2b_impl.h"
#include "upload.h"

#define E2B_CONTENT_MOUNT      "/workspace"
#define E2B_CONTENT_MOUNT_N    (sizeof(E2B_CONTENT_MOUNT) - 1)
#define E2B_CONTENT_LIST_BYTES (64u * 1024 * 1024) /* what a list may take in memory */
#define E2B_CONTENT_ID_MAX     (UINT32_MAX - 1)
#define E2B_CONTENT_MODE_MAX   07777u

struct e2b_entry {
	struct view path;
	struct file_info info; /* its views are ours */
};

struct e2b_content {
	struct file_op op;
	struct request *r;
	struct file_place place;
	const struct workspace *volume;       /* until the helper is asked for */
	void (*start)(struct e2b_content *c); /* when there is a box */
	int status;
	/* what is to be changed once it is there */
	bool pending, has_mode, has_uid, has_gid;
	uint32_t mode, uid, gid;
	bool parents;
	/* list */
	unsigned depth;
	struct arena arena;
	struct e2b_entry *entries;
	size_t n, cap;
	bool full;
	struct upload up;
};

static inline struct e2b_content *e2b_content_of(struct file_op *op)
{
	return CONTAINER(op, struct e2b_content, op);
}

static inline struct file_place e2b_content_as_root(const struct e2b_content *c)
{
	struct file_place p = c->place;
	p.user = VIEW("root");
	return p;
}

/* ---- a request ---- */
int e2b_content_permit(struct request *r, struct err *e);
/* `start` when there is a box. NULL: the answer is sent. */
struct e2b_content *e2b_content_begin(struct request *r, void (*start)(struct e2b_content *c), int status);
void e2b_content_go(struct e2b_content *c, enum act act);
int e2b_content_number(struct request *r, const char *name, uint32_t max, bool *has, uint32_t *ret,
		       struct err *e) _must_check_;
/* mode, uid and gid of the query. */
int e2b_content_read_change(struct e2b_content *c, struct err *e) _must_check_;
void e2b_content_release(struct e2b_content *c); /* before the answer */
void e2b_content_gone(struct request *r);        /* the client is */
void e2b_content_fail(struct e2b_content *c, const struct err *e);

/* ---- what there is ---- */
struct view e2b_content_in_volume(struct view path);
void e2b_content_put(struct json_out *o, struct view path, const struct file_info *info);
/* What is pending is done, and the answer is what is there then. */
void e2b_content_look(struct e2b_content *c);
/* The end of what changed something: the same. */
void e2b_content_changed(struct file_op *op, const struct file_info *info, bool created, const struct err *e);
