/*
 * Snapshots and what is made of them: see copying.h.
 */
#include "copying.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boxes.h"
#include "calls_image.h"
#include "clock.h"
#include "clone.h"
#include "fd.h"
#include "life.h"
#include "rnd.h"
#include "sweep.h"
#include "wire_gen.h"
#include "poison.h"

#define MARK "copying" /* in the run directory of a box that we have stopped for a moment */

static int open_unit(int dir, const char *name, const char *what, struct err *e)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? err_sys(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_STORAGE, errno, "%s", what) : fd;
}

/* ---- a box that stands still ---- */

static void set_mark(struct keeper *k, const char *id, bool on)
{
	char path[SPEC_ID + 16];
	snprintf(path, sizeof(path), "%s/" MARK, id);
	if (on)
		fd_close(openat(k->run_boxes, path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
	else
		(void)unlinkat(k->run_boxes, path, 0);
}

/* Only a box that runs has to. */
static int hold(struct keeper_call *c, const char *id, uint64_t *ret_began, struct err *e)
{
	struct keeper_box *b = box_table_get(&c->k->boxes, view_of(id));
	*ret_began = 0;
	if (!b || b->dying)
		return 0;
	if (b->copying)
		return err_set(e, ERR_STATE, "the files of sandbox %s are being copied", id);
	bool frozen = walls_frozen(&b->in);
	if (!frozen) {
		*ret_began = clock_mono_ns();
		set_mark(c->k, id, true);
		if (life_freeze(c, view_of(id), true, e) < 0) {
			set_mark(c->k, id, false);
			return -1;
		}
	}
	b->copying = true;
	b->keep_frozen = frozen;
	return 0;
}

/* Returns how long it stood still, in microseconds. What was asked for meanwhile counts. */
static uint64_t let_go(struct keeper *k, const char *id, uint64_t began)
{
	struct keeper_box *b = box_table_get(&k->boxes, view_of(id));
	if (b && b->copying) {
		b->copying = false;
		if (!b->keep_frozen && !b->dying)
			(void)!walls_freeze(&b->in, false, LIFE_FREEZE_MS);
		set_mark(k, id, false);
	}
	return began ? (clock_mono_ns() - began) / 1000 : 0;
}

/* What the walls add to a snapshot of a box that runs. */
static int add_state(struct keeper *k, const char *id, struct err *e)
{
	struct keeper_box *b = box_table_get(&k->boxes, view_of(id));
	if (!b || b->dying || !b->in.walls->ops->snapshot)
		return 0;
	_cleanup_(closep) int storage = open_unit(k->storage.boxes, id, "the sandbox's files", e);
	return storage < 0 ? -1 : walls_snapshot(&b->in, storage, e);
}

void copying_adopt(struct keeper *k, const struct keeper_box *b, int run_box)
{
	if (unlinkat(run_box, MARK, 0) == 0)
		(void)!walls_freeze(&b->in, false, LIFE_FREEZE_MS);
}

/* ---- snapshots ---- */

struct snapshot_copy {
	struct clone clone; /* its name is the snapshot's id */
	char box[SPEC_ID + 1];
	uint64_t began;
};

static void snapshot_made(struct keeper_call *c, const char *box, uint64_t stood)
{
	uint64_t bytes = 0;
	(void)!storage_usage(&c->k->storage, box, &bytes);
	calls_reply(c, &wire_snapshot_created_msg,
		    &(struct wire_snapshot_created){ .stopped_us = stood, .bytes = bytes });
}

static void on_snapshot(struct clone *cl, int error)
{
	struct snapshot_copy *s = CONTAINER(cl, struct snapshot_copy, clone);
	struct keeper_call c = { .k = cl->k, .type = WIRE_TYPE_SNAPSHOT_CREATE, .stream = cl->stream };
	struct err e = { 0 };
	uint64_t stood = let_go(cl->k, s->box, s->began);
	if (error) {
		err_sys(&e, ERR_STORAGE, error, "cannot copy the files of the sandbox");
		calls_fail(&c, &e);
	} else if (!cl->stream) {
		(void)!storage_drop_snapshot(&cl->k->storage, cl->name, &e); /* nobody knows of it */
	} else {
		snapshot_made(&c, s->box, stood);
	}
	free(s);
}

static int copy_snapshot(struct keeper_call *c, const struct flush_wish *w, uint64_t began, struct err *e)
{
	_cleanup_(closep) int from = open_unit(c->k->storage.boxes, w->box, "the sandbox's files", e);
	struct snapshot_copy *s = from < 0 ? NULL : calloc(1, sizeof(*s));
	if (!s)
		return from < 0 ? -1 : err_sys(e, ERR_INTERNAL, ENOMEM, "a snapshot");
	s->clone = (struct clone){ .done = on_snapshot, .stream = c->stream };
	memcpy(s->clone.name, w->id, sizeof(s->clone.name));
	memcpy(s->box, w->box, sizeof(s->box));
	s->began = began;
	int r = clone_start(c->k, from, c->k->storage.snapshots, &s->clone);
	if (r == 0)
		return 0;
	free(s);
	return err_sys(e, ERR_STORAGE, r, "cannot copy the files of the sandbox");
}

int copying_snapshot(struct keeper_call *c, const struct flush_wish *w, struct err *e)
{
	uint64_t began;
	if (hold(c, w->box, &began, e) < 0)
		return -1;
	if (add_state(c->k, w->box, e) < 0) {
		(void)let_go(c->k, w->box, began);
		return -1;
	}
	if (!c->k->storage.disk.btrfs) {
		if (copy_snapshot(c, w, began, e) == 0)
			return 0;
		(void)let_go(c->k, w->box, began);
		return -1;
	}
	int r = storage_snapshot(&c->k->storage, w->box, w->id, e);
	uint64_t stood = let_go(c->k, w->box, began);
	if (r == 0)
		snapshot_made(c, w->box, stood);
	return r;
}

/* ---- boxes ---- */

struct box_copy {
	struct clone clone;
	struct spec spec;
	struct spec_mounts mounts;
	struct spec_workspaces workspaces;
	char image[80];
	bool cancelled;
};

static void on_box(struct clone *cl, int error)
{
	struct box_copy *b = CONTAINER(cl, struct box_copy, clone);
	struct keeper_call c = { .k = cl->k, .type = WIRE_TYPE_BOX_CREATE, .stream = cl->stream };
	struct err e = { 0 };
	if (error)
		err_sys(&e, ERR_STORAGE, error, "cannot copy the files");
	else if (b->cancelled || !cl->stream)
		err_set(&e, ERR_CANCELLED, "the sandbox is not wanted any more");
	else if (calls_start_box(&c, &b->spec, view_of(b->image), &e) == 0)
		goto out;
	if (!error)
		(void)!boxes_discard(cl->k, b->spec.id);
	calls_fail(&c, &e);
out:
	free(b);
}

int copying_box(struct keeper_call *c, const struct spec *s, struct view image, int from, struct err *e)
{
	if (spec_check(s, &c->k->ceiling, e) < 0) /* before an id becomes a path */
		return -1;
	struct box_copy *b = calloc(1, sizeof(*b));
	if (!b || view_to_str(image, b->image, sizeof(b->image)) < 0) {
		free(b);
		return err_sys(e, ERR_INTERNAL, ENOMEM, "a new sandbox");
	}
	b->spec = *s;
	if (s->mounts) {
		b->mounts = *s->mounts;
		b->spec.mounts = &b->mounts;
	}
	if (s->workspaces) {
		b->workspaces = *s->workspaces;
		b->spec.workspaces = &b->workspaces;
	}
	b->spec.existing = true; /* by then */
	b->spec.snapshot[0] = 0;
	b->clone = (struct clone){ .done = on_box, .stream = c->stream };
	memcpy(b->clone.name, s->id, sizeof(b->clone.name));
	int r = clone_start(c->k, from, c->k->storage.boxes, &b->clone);
	if (r == 0)
		return 0;
	free(b);
	return err_sys(e, ERR_STORAGE, r, "cannot copy the files");
}

bool copying_cancel(struct keeper *k, struct view box)
{
	LIST_EACH (it, &k->clones) {
		struct clone *cl = CONTAINER(it, struct clone, node);
		if (cl->done == on_box && view_is(box, cl->name)) {
			CONTAINER(cl, struct box_copy, clone)->cancelled = true;
			return true;
		}
	}
	return false;
}

/* ---- workspaces ---- */

struct workspace_copy {
	struct clone clone;
	char user[SPEC_ID + 1]; /* the box that may write to the original, or "" */
	uint64_t bytes, began;
};

static void on_workspace(struct clone *cl, int error)
{
	struct workspace_copy *w = CONTAINER(cl, struct workspace_copy, clone);
	struct keeper_call c = { .k = cl->k, .type = WIRE_TYPE_WORKSPACE_CREATE, .stream = cl->stream };
	struct err e = { 0 };
	if (w->user[0])
		(void)let_go(cl->k, w->user, w->began);
	int r = error ? err_sys(&e, ERR_STORAGE, error, "cannot copy the workspace")
		      : storage_finish_workspace(&cl->k->storage, cl->name, w->bytes, &e);
	if (r < 0)
		calls_fail(&c, &e);
	else
		calls_reply(&c, &wire_workspace_created_msg, &(struct wire_workspace_created){ 0 });
	if (!error && (r < 0 || !cl->stream) && storage_drop_workspace(&cl->k->storage, cl->name, &e) == 0)
		sweep_start(cl->k);
	free(w);
}

static const struct keeper_box *writer_of(struct keeper *k, const char *workspace)
{
	for (struct map_node *n = map_first(&k->boxes.by_id); n; n = map_next(&k->boxes.by_id, n)) {
		const struct keeper_box *b = CONTAINER(n, struct keeper_box, node);
		if (spec_has_workspace(&b->spec, workspace, true) && !b->dying)
			return b;
	}
	return NULL;
}

int copying_workspace(struct keeper_call *c, const char *id, uint64_t bytes, const char *from, struct err *e)
{
	_cleanup_(closep) int source = storage_open_workspace(&c->k->storage, from, e);
	struct workspace_copy *w = source < 0 ? NULL : calloc(1, sizeof(*w));
	if (!w)
		return source < 0 ? -1 : err_sys(e, ERR_INTERNAL, ENOMEM, "a workspace");
	const struct keeper_box *b = writer_of(c->k, from);
	w->clone = (struct clone){ .done = on_workspace, .stream = c->stream };
	memcpy(w->clone.name, id, SPEC_ID + 1);
	w->bytes = bytes;
	if (b) {
		memcpy(w->user, b->spec.id, sizeof(w->user));
		if (hold(c, w->user, &w->began, e) < 0) {
			free(w);
			return -1;
		}
	}
	int r = clone_start(c->k, source, c->k->storage.workspaces, &w->clone);
	if (r == 0)
		return 0;
	if (b)
		(void)let_go(c->k, w->user, w->began);
	free(w);
	return err_sys(e, r == -EEXIST ? ERR_CONFLICT : ERR_STORAGE, r, "cannot copy the workspace");
}

/* ---- images ---- */

/* A snapshot is copied to one that nobody knows, which becomes the image. */
struct image_copy {
	struct clone clone;
	char base[IMAGES_DIGEST], digest[IMAGES_DIGEST], name[IMAGES_NAME];
};

static void on_image(struct clone *cl, int error)
{
	struct image_copy *i = CONTAINER(cl, struct image_copy, clone);
	struct keeper_call c = {
		.k = cl->k, .type = WIRE_TYPE_IMAGE_COMMIT, .stream = cl->stream, .arena = ARENA_INIT(65536)
	};
	const struct wire_image_commit m = { .name = view_of(i->name),
					     .digest = view_of(i->digest),
					     .base = view_of(i->base) };
	struct err e = { 0 };
	int r = error ? err_sys(&e, ERR_STORAGE, error, "cannot copy the snapshot")
		      : calls_image_seed(&c, cl->name, &m, &e);
	if (r < 0)
		calls_fail(&c, &e);
	if (!error && storage_drop_snapshot(&cl->k->storage, cl->name, &e) == 0)
		sweep_start(cl->k); /* what was not taken */
	arena_done(&c.arena);
	free(i);
}

int copying_image(struct keeper_call *c, const char *snapshot, const struct wire_image_commit *m,
		  struct err *e)
{
	_cleanup_(closep) int from = open_unit(c->k->storage.snapshots, snapshot, "the snapshot's files", e);
	struct image_copy *i = from < 0 ? NULL : calloc(1, sizeof(*i));
	if (!i)
		return from < 0 ? -1 : err_sys(e, ERR_INTERNAL, ENOMEM, "an image");
	int r = view_to_str(m->base, i->base, sizeof(i->base));
	if (r == 0)
		r = view_to_str(m->digest, i->digest, sizeof(i->digest));
	if (r == 0)
		r = view_to_str(m->name, i->name, sizeof(i->name));
	i->clone = (struct clone){ .done = on_image, .stream = c->stream };
	rnd_name(i->clone.name, SPEC_ID);
	if (r == 0)
		r = clone_start(c->k, from, c->k->storage.snapshots, &i->clone);
	if (r == 0)
		return 0;
	free(i);
	return err_sys(e, ERR_STORAGE, r, "cannot copy the snapshot");
}
