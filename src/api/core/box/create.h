/*
 * Making boxes, for the core itself: see box.h.
 */
#pragma once

#include "box.h"
#include "boxes.h"
#include "mux.h"

/* An internal box for an import: in no list. The caller removes it. */
struct job *create_hidden(struct core *c, const struct actor *a, const struct box_wish *w, job_done *done,
			  void *arg, struct err *e) _must_check_;
/* The same, to reach the files of a workspace; who asks has been judged. */
struct job *create_helper(struct core *c, const struct tenant *t, const struct box_wish *w, job_done *done,
			  void *arg, struct err *e) _must_check_;
/* The same, for the pool: it is nobody's. */
struct job *create_for_pool(struct core *c, const struct tenant *t, const struct box_wish *w, job_done *done,
			    void *arg, struct err *e) _must_check_;
/* A box with the files of another: `snapshot` is the keeper's. */
struct create_twin {
	const char *snapshot;
	struct view image, digest, origin;
};
struct job *create_fork(struct core *c, const struct actor *a, const struct box_wish *w,
			const struct create_twin *twin, job_done *done, void *arg,
			struct err *e) _must_check_;
/* A client's create begins or ends. Many at once, or one upon another, are a rush (core.rush): whatever is
 * not needed for them can wait. */
void create_rush(struct core *c, bool begins);
/* A creation is over: for the metrics. */
void create_count(struct core *c, uint64_t began_ns, bool failed);
/* BoxCreate for this box: new, or with the files that it has. */
int create_ask_keeper(struct box *b, struct call *call, const char *snapshot, bool existing) _must_check_;
/* create_mounts.c. Whether the actor may have these directories of the machine: ERR_FORBIDDEN names the
 * directory. */
int create_mounts_permit(const struct config *c, const struct actor *a, const struct spec_mount_list *m,
			 struct err *e) _must_check_;
