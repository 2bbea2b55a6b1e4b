/*
 * A box's life between start and end: see life.h.
 */
#include "life.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "boxes.h"
#include "copying.h"
#include "fd.h"
#include "flush.h"
#include "sweep.h"
#include "wire_gen.h"
#include "poison.h"

int life_freeze(struct keeper_call *c, struct view id, bool on, struct err *e)
{
	struct keeper_box *b = calls_find_box(c, id, e);
	if (!b)
		return -1;
	int r = walls_freeze(&b->in, on, LIFE_FREEZE_MS);
	if (r == -EOPNOTSUPP)
		return err_set(e, ERR_UNSUPPORTED,
			       "this machine has no cgroup v2 tree to freeze a sandbox with");
	if (r == -ETIMEDOUT)
		return err_set(e, ERR_UNAVAILABLE, "the sandbox did not come to rest in %d ms",
			       LIFE_FREEZE_MS);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "cannot %s the sandbox", on ? "pause" : "resume") : 0;
}

/* While its files are copied a box stands still anyway: what is asked for holds from the end of that on. */
static int ask_freeze(struct keeper_call *c, struct view id, bool on, struct err *e)
{
	struct keeper_box *b = box_table_get(&c->k->boxes, id);
	if (!b || !b->copying)
		return life_freeze(c, id, on, e);
	b->keep_frozen = on;
	return 0;
}

int life_pause(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_box_pause *m = msg;
	if (ask_freeze(c, m->id, true, e) < 0)
		return -1;
	calls_reply(c, &wire_box_paused_msg, &(struct wire_box_paused){ 0 });
	return 0;
}

int life_resume(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_box_resume *m = msg;
	if (ask_freeze(c, m->id, false, e) < 0)
		return -1;
	calls_reply(c, &wire_box_resumed_msg, &(struct wire_box_resumed){ 0 });
	return 0;
}

static void on_stopped(struct keeper *k, struct keeper_box *b)
{
	struct keeper_call c = { .k = k, .type = WIRE_TYPE_BOX_STOP, .stream = b->stream };
	calls_reply(&c, &wire_box_stopped_msg, &(struct wire_box_stopped){ 0 });
}

int life_update(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_box_update *m = msg;
	struct keeper_box *b = calls_find_box(c, m->id, e);
	if (!b)
		return -1;
	if (!m->limits)
		return err_set(e, ERR_INVALID, "an update needs limits");
	struct spec s = b->spec;
	if (box_limits_from_wire(m->limits, m->disk_bytes, &s.limits) < 0)
		return err_set(e, ERR_INVALID, "a limit in bytes must be a whole number of MiB");
	s.limits.nofile = b->spec.limits.nofile; /* its processes have that from their start */
	if (spec_check(&s, &c->k->ceiling, e) < 0)
		return -1;
	if (s.limits.disk_mb != b->spec.limits.disk_mb) {
		_cleanup_(closep) int unit = openat(c->k->storage.boxes, b->spec.id,
						    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		int r = unit < 0 ? -errno : disk_limit(&c->k->storage.disk, unit, s.limits.disk_mb << 20);
		if (r < 0)
			return err_sys(e, r == -EOPNOTSUPP ? ERR_UNSUPPORTED : ERR_STORAGE, r,
				       "the disk limit cannot be changed");
	}
	int r = walls_limit(&b->in, &s.limits);
	if (r == -EOPNOTSUPP)
		return err_set(e, ERR_UNSUPPORTED,
			       "the limits of such a sandbox cannot be changed while it lives");
	if (r == -EBUSY)
		return err_set(e, ERR_STATE, "the sandbox uses more memory than that");
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot change the limits");
	b->spec = s;
	calls_reply(c, &wire_box_updated_msg, &(struct wire_box_updated){ 0 });
	return 0;
}

int life_stop(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_box_stop *m = msg;
	struct keeper_box *b = calls_find_box(c, m->id, e);
	if (!b)
		return -1;
	b->stream = c->stream;
	boxes_end(c->k, b, on_stopped);
	return 0;
}

static int read_id(struct view id, char dst[SPEC_ID + 1], const char *what, struct err *e)
{
	if (!spec_id_ok(id) || view_to_str(id, dst, SPEC_ID + 1) < 0)
		return err_set(e, ERR_INVALID, "not the id of a %s", what);
	return 0;
}

static void on_flushed(struct keeper *k, const struct flush_wish *w)
{
	struct keeper_call c = { .k = k, .type = WIRE_TYPE_SNAPSHOT_CREATE, .stream = w->stream };
	struct err e = { 0 };
	if (copying_snapshot(&c, w, &e) < 0)
		calls_fail(&c, &e);
}

int life_snapshot_create(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_snapshot_create *m = msg;
	struct flush_wish w = { .stream = c->stream };
	if (read_id(m->id, w.id, "snapshot", e) < 0 || read_id(m->box, w.box, "box", e) < 0)
		return -1;
	const struct keeper_box *b = box_table_get(&c->k->boxes, m->box);
	if (room_admit(c->k, e) < 0)
		return -1;
	if (b && !(b->in.walls->can & WALLS_SNAPSHOTS))
		return err_set(e, ERR_UNSUPPORTED, "the backend %s takes no snapshots", b->spec.backend);
	if (!flush_worthwhile())
		return copying_snapshot(c, &w, e);
	int r = flush_start(c->k, c->k->storage.boxes, &w, on_flushed);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "cannot start the flusher") : 0;
}

int life_snapshot_remove(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_snapshot_remove *m = msg;
	char id[SPEC_ID + 1];
	if (read_id(m->id, id, "snapshot", e) < 0 || storage_drop_snapshot(&c->k->storage, id, e) < 0)
		return -1;
	sweep_start(c->k);
	calls_reply(c, &wire_snapshot_removed_msg, &(struct wire_snapshot_removed){ 0 });
	return 0;
}

/* The ids below a directory, in the call's arena. */
static int list_ids(struct keeper_call *c, int dir, struct view **ret, size_t *ret_n)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	size_t n = 0, cap = 0;
	struct view *ids = NULL;
	if (!d) {
		int r = -errno;
		fd_close(fd);
		return r;
	}
	for (struct dirent *de; (de = readdir(d));) {
		if (!spec_id_ok(view_of(de->d_name)))
			continue;
		if (n == cap) {
			cap = cap ? cap * 2 : 64;
			struct view *more = arena_array(&c->arena, cap, sizeof(*more));
			if (!more)
				break;
			if (n)
				memcpy(more, ids, n * sizeof(*more));
			ids = more;
		}
		ids[n] = arena_view(&c->arena, view_of(de->d_name));
		n += ids[n].p != NULL;
	}
	closedir(d);
	*ret = ids;
	*ret_n = n;
	return 0;
}

int life_snapshot_list(struct keeper_call *c, const void *msg, struct err *e)
{
	(void)msg;
	struct wire_snapshot_list_reply out = { 0 };
	int r = list_ids(c, c->k->storage.snapshots, &out.ids.items, &out.ids.n);
	if (r < 0)
		return err_sys(e, ERR_STORAGE, r, "cannot list the snapshots");
	calls_reply(c, &wire_snapshot_list_reply_msg, &out);
	return 0;
}

int life_workspace_create(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_workspace_create *m = msg;
	char id[SPEC_ID + 1], from[SPEC_ID + 1] = "";
	if (read_id(m->id, id, "workspace", e) < 0 ||
	    (m->from.n && read_id(m->from, from, "workspace", e) < 0))
		return -1;
	if (room_admit(c->k, e) < 0)
		return -1;
	if (from[0] && !c->k->storage.disk.btrfs)
		return copying_workspace(c, id, m->disk_bytes, from, e);
	if (storage_make_workspace(&c->k->storage, id, m->disk_bytes, from, e) < 0)
		return -1;
	calls_reply(c, &wire_workspace_created_msg, &(struct wire_workspace_created){ 0 });
	return 0;
}

int life_workspace_remove(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_workspace_remove *m = msg;
	char id[SPEC_ID + 1];
	if (read_id(m->id, id, "workspace", e) < 0)
		return -1;
	for (struct map_node *n = map_first(&c->k->boxes.by_id); n; n = map_next(&c->k->boxes.by_id, n)) {
		const struct keeper_box *b = CONTAINER(n, struct keeper_box, node);
		if (spec_has_workspace(&b->spec, id, false))
			return err_set(e, ERR_STATE, "sandbox %s uses this workspace", b->spec.id);
	}
	if (storage_drop_workspace(&c->k->storage, id, e) < 0)
		return -1;
	sweep_start(c->k);
	calls_reply(c, &wire_workspace_removed_msg, &(struct wire_workspace_removed){ 0 });
	return 0;
}

int life_workspace_list(struct keeper_call *c, const void *msg, struct err *e)
{
	(void)msg;
	struct view *ids;
	size_t n;
	int r = list_ids(c, c->k->storage.workspaces, &ids, &n);
	struct wire_workspace_state *states = r < 0 ? NULL : arena_array(&c->arena, n, sizeof(*states));
	if (!states)
		return err_sys(e, ERR_STORAGE, r < 0 ? r : ENOMEM, "cannot list the workspaces");
	for (size_t i = 0; i < n; i++) {
		states[i].id = ids[i];
		_cleanup_(closep) int fd =
			openat(c->k->storage.workspaces, ids[i].p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			(void)!disk_usage(&c->k->storage.disk, fd, &states[i].bytes, &states[i].disk_bytes);
	}
	calls_reply(c, &wire_workspace_list_reply_msg,
		    &(struct wire_workspace_list_reply){ .workspaces = { states, n } });
	return 0;
}
