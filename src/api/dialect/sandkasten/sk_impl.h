/*
 * What the files of the Sandkasten dialect share.
 */
#pragma once

#include "answer.h"
#include "box.h"
#include "whole_file.h"

#define SK_ROOT      "/workspace"
#define SK_BODY_MAX  (2u * 1024 * 1024) /* of JSON */
#define SK_PATH_ROOM 4096

/* Each ends with a NULL method. */
extern const struct route sk_sessions_routes[], sk_exec_routes[], sk_files_routes[], sk_upload_routes[],
	sk_workspaces_routes[];

/* An error with a code of Sandkasten's own; ends the request. */
void sk_refuse(struct request *r, int status, const char *code, const char *message);
/* {"ok":true} */
void sk_ok(struct request *r);

/* A path of a body or a query, absolute and in SK_ROOT; a relative one is below it. In the exchange's
 * arena. ERR_INVALID. */
int sk_path(struct request *r, struct view given, struct view *ret, struct err *e) _must_check_;

/* Where the files are: the session itself, or a hidden box that has the workspace of the path mounted. The
 * first member of what request_own gave. */
struct sk_place {
	struct view box, path;
	void (*go)(struct request *r);
};
/* Finds p->box, for which `act` asks where it is a workspace's, and calls `go`. */
void sk_with_files(struct request *r, struct sk_place *p, enum act act, void (*go)(struct request *r));
/* In its root only, also by links. */
struct file_place sk_file_place(const struct sk_place *p);
