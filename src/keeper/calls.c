/*
 * The calls of paddock-api: see calls.h.
 */
#include "calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boxes.h"
#include "calls_image.h"
#include "child.h"
#include "copying.h"
#include "hostdirs.h"
#include "fd.h"
#include "gate.h"
#include "life.h"
#include "log.h"
#include "serve.h"
#include "signer.h"
#include "survey.h"
#include "sweep.h"
#include "vault.h"
#include "wire_gen.h"
#include "workdirs.h"
#include "poison.h"

void calls_reply(struct keeper_call *c, const struct pb_msg *m, const void *msg)
{
	if (!c->stream)
		return; /* who asked is gone */
	(void)!link_send_msg(&c->k->api, c->type, FRAME_REPLY, FRAME_LAST, c->stream, 0, m, msg);
}

void calls_fail(struct keeper_call *c, const struct err *e)
{
	if (c->stream)
		(void)!link_fail(&c->k->api, c->type, c->stream, e);
}

static int read_spec(const struct keeper *k, const struct wire_box_spec *w, struct arena *a, struct spec *s,
		     struct err *e)
{
	if (!w || !w->limits)
		return err_set(e, ERR_INVALID, "a sandbox needs a spec with limits");
	*s = (struct spec){ 0 };
	box_table_fields(w, s);
	if (box_limits_from_wire(w->limits, w->disk_bytes, &s->limits) < 0)
		return err_set(e, ERR_INVALID, "a limit in bytes must be a whole number of MiB");
	s->existing = w->existing;
	s->require = w->require;
	if (view_to_str(w->id, s->id, sizeof(s->id)) < 0 ||
	    view_to_str(w->hostname, s->hostname, sizeof(s->hostname)) < 0 ||
	    view_to_str(w->snapshot, s->snapshot, sizeof(s->snapshot)) < 0)
		return err_set(e, ERR_INVALID, "an id or the host name is too long");
	if (w->workspaces.n) {
		struct spec_workspaces *named = arena_array(a, 1, sizeof(*named));
		if (!named)
			return err_sys(e, ERR_INTERNAL, ENOMEM, "workspaces");
		if (workdirs_read(w, named, e) < 0)
			return -1;
		s->workspaces = named;
	}
	if (w->mounts.n && !(s->mounts = hostdirs_read(w, a, e)))
		return -1;
	const struct walls *walls = walls_find(&k->walls, w->backend, e);
	if (!walls)
		return -1;
	snprintf(s->backend, sizeof(s->backend), "%s", walls->ops->name);
	return 0;
}

int calls_start_box(struct keeper_call *c, const struct spec *s, struct view image, struct err *e)
{
	struct keeper_box *b;
	int fd;
	if (boxes_start(c->k, s, image, &b, &fd, e) < 0)
		return -1;
	struct wire_box_state state;
	struct box_table_parts parts;
	box_table_state(b, &state, &parts);
	struct wire_box_created out = { .state = &state };
	(void)!link_send_msg_fd(&c->k->api, c->type, FRAME_REPLY, FRAME_LAST | FRAME_FD, c->stream,
				&wire_box_created_msg, &out, fd);
	/* Not before: each of its sockets wakes the gate, on this processor perhaps. Until the gate has them,
	 * connections of the box wait in their queues. */
	gate_box(c->k, b, &b->gate);
	return 0;
}

/* The files that a new box begins with, where they must be copied one by one; or -ENOENT. */
static int files_to_copy(struct keeper *k, const struct spec *s, struct view image)
{
	const struct image *i = images_find(&k->images, image);
	if (k->storage.disk.btrfs || s->existing)
		return -ENOENT;
	return s->snapshot[0] ? storage_open_snapshot(&k->storage, s->snapshot)
	       : i            ? images_unit(&k->images, i)
			      : -ENOENT;
}

static int call_create(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_box_create *m = msg;
	struct spec s;
	if (read_spec(c->k, m->spec, &c->arena, &s, e) < 0)
		return -1;
	_cleanup_(closep) int from = files_to_copy(c->k, &s, m->spec->image);
	if (from >= 0)
		return copying_box(c, &s, m->spec->image, from, e);
	return calls_start_box(c, &s, m->spec->image, e);
}

struct keeper_box *calls_find_box(struct keeper_call *c, struct view id, struct err *e)
{
	struct keeper_box *b = box_table_get(&c->k->boxes, id);
	if (b && !b->dying)
		return b;
	err_set(e, ERR_NOT_FOUND, "no such sandbox is running");
	return NULL;
}

static int call_open(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_box_open *m = msg;
	struct keeper_box *b = calls_find_box(c, m->id, e);
	if (!b)
		return -1;
	int fd = boxes_connect(c->k, b, e);
	if (fd < 0)
		return -1;
	struct wire_box_state state;
	struct box_table_parts parts;
	box_table_state(b, &state, &parts);
	struct wire_box_opened out = { .state = &state };
	(void)!link_send_msg_fd(&c->k->api, c->type, FRAME_REPLY, FRAME_LAST | FRAME_FD, c->stream,
				&wire_box_opened_msg, &out, fd);
	return 0;
}

static void destroyed(struct keeper *k, uint32_t stream, const char *id)
{
	struct keeper_call c = { .k = k, .type = WIRE_TYPE_BOX_DESTROY, .stream = stream };
	struct err e = { 0 };
	int r = boxes_discard(k, id);
	if (r < 0) {
		err_sys(&e, ERR_STORAGE, r, "cannot remove the sandbox's files");
		calls_fail(&c, &e);
		return;
	}
	calls_reply(&c, &wire_box_destroyed_msg, &(struct wire_box_destroyed){ 0 });
}

static void on_destroyed(struct keeper *k, struct keeper_box *b)
{
	destroyed(k, b->stream, b->spec.id);
}

static int call_destroy(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_box_destroy *m = msg;
	char id[SPEC_ID + 1];
	if (!spec_id_ok(m->id) || view_to_str(m->id, id, sizeof(id)) < 0)
		return err_set(e, ERR_INVALID, "not an id");
	struct keeper_box *b = box_table_get(&c->k->boxes, m->id);
	if (!b) {
		(void)copying_cancel(c->k, m->id);
		destroyed(c->k, c->stream, id);
		return 0;
	}
	if (b->dying)
		return err_set(e, ERR_STATE, "the sandbox is ending already");
	b->stream = c->stream;
	boxes_end(c->k, b, on_destroyed);
	return 0;
}

static int call_list(struct keeper_call *c, const void *msg, struct err *e)
{
	(void)msg;
	size_t n = c->k->boxes.by_id.n, i = 0;
	struct wire_box_state *states = arena_array(&c->arena, n, sizeof(*states));
	struct box_table_parts *parts = arena_array(&c->arena, n, sizeof(*parts));
	if (!states || !parts)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "list of sandboxes");
	for (struct map_node *node = map_first(&c->k->boxes.by_id); node;
	     node = map_next(&c->k->boxes.by_id, node)) {
		const struct keeper_box *b = CONTAINER(node, struct keeper_box, node);
		if (b->dying)
			continue;
		box_table_state(b, &states[i], &parts[i]);
		states[i].paused = walls_frozen(&b->in);
		i++;
	}
	struct wire_box_list_reply out = { .boxes = { states, i } };
	calls_reply(c, &wire_box_list_reply_msg, &out);
	return 0;
}

static int call_reconcile(struct keeper_call *c, const void *msg, struct err *e)
{
	(void)e;
	const struct wire_reconcile *m = msg;
	struct wire_reconcile_reply out = { .removed = boxes_keep_only(c->k, m->keep.items, m->keep.n) };
	if (out.removed)
		log_info("cleared away %u sandboxes that nobody knows", out.removed);
	calls_reply(c, &wire_reconcile_reply_msg, &out);
	return 0;
}

/* What a box was started with: it stays so, whatever the next start of the keeper finds. */
static void box_posture(const struct keeper *k, const struct keeper_box *b, struct posture *ret)
{
	uint32_t required = b->spec.require | k->config->posture.required;
	*ret = (struct posture){ .ok = true };
	for (unsigned f = 0; f < FEATURES; f++) {
		posture_feature(ret, (enum feature)f, b->features & FEATURE_BIT(f), 0, NULL);
		ret->parts[f].required = required & FEATURE_BIT(f);
		ret->ok = ret->ok && (ret->parts[f].ok || !ret->parts[f].required);
	}
}

static int backend_message(struct keeper_call *c, const struct walls *w, const struct posture *p,
			   struct wire_backend *out)
{
	/* Files are limited where the disk can limit them. */
	unsigned can = w->can & ~(c->k->storage.disk.btrfs ? 0u : (unsigned)WALLS_DISK_QUOTA);
	struct wire_posture_part *parts = arena_array(&c->arena, p->n, sizeof(*parts));
	struct view *names = arena_array(&c->arena, WALLS_CANS, sizeof(*names));
	if (!parts || !names)
		return -ENOMEM;
	for (unsigned i = 0; i < p->n; i++)
		parts[i] = (struct wire_posture_part){ .name = view_of(p->parts[i].name),
						       .ok = p->parts[i].ok,
						       .required = p->parts[i].required,
						       .detail = view_of(p->parts[i].detail) };
	*out = (struct wire_backend){
		.name = view_of(w->ops->name), .ok = p->ok, .parts = { parts, p->n }, .can = { names, 0 }
	};
	for (unsigned i = 0; i < WALLS_CANS; i++)
		if (can & 1u << i)
			names[out->can.n++] = view_of(walls_can_name(i));
	return 0;
}

static int call_posture(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_posture *m = msg;
	const struct walls_table *t = &c->k->walls;
	struct wire_backend backends[WALLS_KINDS];
	struct posture of_box;
	unsigned n = 0;
	int r = 0;
	if (m->id.n) {
		const struct keeper_box *b = calls_find_box(c, m->id, e);
		if (!b)
			return -1;
		box_posture(c->k, b, &of_box);
		r = backend_message(c, b->in.walls, &of_box, &backends[n++]);
	}
	for (unsigned i = 0; !m->id.n && r == 0 && i < t->n; i++)
		r = backend_message(c, t->all[i], &t->all[i]->posture, &backends[n++]);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "posture");
	calls_reply(c, &wire_posture_reply_msg, &(struct wire_posture_reply){ .backends = { backends, n } });
	return 0;
}

static int call_stats(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_stats *m = msg;
	struct keeper_box *b = box_table_get(&c->k->boxes, m->id);
	struct walls_usage u = { 0 };
	uint64_t disk = 0;
	char id[SPEC_ID + 1];
	if (!spec_id_ok(m->id) || view_to_str(m->id, id, sizeof(id)) < 0)
		return err_set(e, ERR_INVALID, "not an id");
	int r = b ? walls_usage(&b->in, &u) : 0;
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "usage of the sandbox");
	if (storage_usage(&c->k->storage, id, &disk) == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, "no such sandbox");
	calls_reply(c, &wire_stats_reply_msg,
		    &(struct wire_stats_reply){ .memory_bytes = u.memory_bytes,
						.cpu_usec = u.cpu_usec,
						.pids = u.pids,
						.oom_kills = u.oom_kills,
						.disk_bytes = disk,
						.net_rx_bytes = u.net_rx_bytes,
						.net_tx_bytes = u.net_tx_bytes });
	return 0;
}

static int call_hook_open(struct keeper_call *c, const void *msg, struct err *e)
{
	(void)msg;
	int fd, r = child_start_hook(c->k, &fd);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot start paddock-hook");
	(void)!link_send_msg_fd(&c->k->api, c->type, FRAME_REPLY, FRAME_LAST | FRAME_FD, c->stream,
				&wire_hook_opened_msg, &(struct wire_hook_opened){ 0 }, fd);
	return 0;
}

static int call_ai_open(struct keeper_call *c, const void *msg, struct err *e)
{
	(void)msg;
	int fd, r = child_start_ai(c->k, &fd);
	if (r < 0)
		return err_sys(e, ERR_INTERNAL, r, "cannot start paddock-ai");
	(void)!link_send_msg_fd(&c->k->api, c->type, FRAME_REPLY, FRAME_LAST | FRAME_FD, c->stream,
				&wire_ai_opened_msg, &(struct wire_ai_opened){ 0 }, fd);
	return 0;
}

static int call_gate_open(struct keeper_call *c, const void *msg, struct err *e)
{
	(void)msg;
	int fd;
	if (gate_open(c->k, &fd, e) < 0)
		return -1;
	(void)!link_send_msg_fd(&c->k->api, c->type, FRAME_REPLY, FRAME_LAST | FRAME_FD, c->stream,
				&wire_gate_opened_msg, &(struct wire_gate_opened){ 0 }, fd);
	return 0;
}

static int call_vault_open(struct keeper_call *c, const void *msg, struct err *e)
{
	(void)msg;
	int fd, r = vault_connect(c->k, WIRE_VAULT_ROLE_API, &fd);
	if (r < 0)
		return err_sys(e, ERR_UNAVAILABLE, r, "paddock-vault cannot be reached");
	(void)!link_send_msg_fd(&c->k->api, c->type, FRAME_REPLY, FRAME_LAST | FRAME_FD, c->stream,
				&wire_vault_opened_msg, &(struct wire_vault_opened){ 0 }, fd);
	return 0;
}

static int call_signer_open(struct keeper_call *c, const void *msg, struct err *e)
{
	const struct wire_signer_open *m = msg;
	int fd;
	if (signer_open(c->k, m->start, &fd, e) < 0)
		return -1;
	(void)!link_send_msg_fd(&c->k->api, c->type, FRAME_REPLY, FRAME_LAST | FRAME_FD, c->stream,
				&wire_signer_opened_msg, &(struct wire_signer_opened){ 0 }, fd);
	return 0;
}

static const struct {
	const struct pb_msg *request;
	int (*fn)(struct keeper_call *c, const void *msg, struct err *e);
} calls[] = {
	[WIRE_TYPE_BOX_CREATE] = { &wire_box_create_msg, call_create },
	[WIRE_TYPE_BOX_OPEN] = { &wire_box_open_msg, call_open },
	[WIRE_TYPE_BOX_DESTROY] = { &wire_box_destroy_msg, call_destroy },
	[WIRE_TYPE_BOX_LIST] = { &wire_box_list_msg, call_list },
	[WIRE_TYPE_RECONCILE] = { &wire_reconcile_msg, call_reconcile },
	[WIRE_TYPE_IMAGE_LIST] = { &wire_image_list_msg, calls_image_list },
	[WIRE_TYPE_IMAGE_COMMIT] = { &wire_image_commit_msg, calls_image_commit },
	[WIRE_TYPE_IMAGE_REMOVE] = { &wire_image_remove_msg, calls_image_remove },
	[WIRE_TYPE_POSTURE] = { &wire_posture_msg, call_posture },
	[WIRE_TYPE_STATS] = { &wire_stats_msg, call_stats },
	[WIRE_TYPE_BOX_PAUSE] = { &wire_box_pause_msg, life_pause },
	[WIRE_TYPE_BOX_RESUME] = { &wire_box_resume_msg, life_resume },
	[WIRE_TYPE_BOX_STOP] = { &wire_box_stop_msg, life_stop },
	[WIRE_TYPE_BOX_UPDATE] = { &wire_box_update_msg, life_update },
	[WIRE_TYPE_SNAPSHOT_CREATE] = { &wire_snapshot_create_msg, life_snapshot_create },
	[WIRE_TYPE_SNAPSHOT_REMOVE] = { &wire_snapshot_remove_msg, life_snapshot_remove },
	[WIRE_TYPE_SNAPSHOT_LIST] = { &wire_snapshot_list_msg, life_snapshot_list },
	[WIRE_TYPE_WORKSPACE_CREATE] = { &wire_workspace_create_msg, life_workspace_create },
	[WIRE_TYPE_WORKSPACE_REMOVE] = { &wire_workspace_remove_msg, life_workspace_remove },
	[WIRE_TYPE_WORKSPACE_LIST] = { &wire_workspace_list_msg, life_workspace_list },
	[WIRE_TYPE_SURVEY] = { &wire_survey_msg, survey_call },
	[WIRE_TYPE_GATE_OPEN] = { &wire_gate_open_msg, call_gate_open },
	[WIRE_TYPE_HOOK_OPEN] = { &wire_hook_open_msg, call_hook_open },
	[WIRE_TYPE_AI_OPEN] = { &wire_ai_open_msg, call_ai_open },
	[WIRE_TYPE_VAULT_OPEN] = { &wire_vault_open_msg, call_vault_open },
	[WIRE_TYPE_SIGNER_OPEN] = { &wire_signer_open_msg, call_signer_open },
};

static void on_frame(struct link *l, const struct frame *f, int fd)
{
	struct keeper *k = CONTAINER(l, struct keeper, api);
	fd_close(fd); /* nothing is passed upward */
	if (f->kind == FRAME_EVENT && f->type == WIRE_TYPE_HELLO) {
		serve_ready(k);
		return;
	}
	if (f->kind != FRAME_CALL)
		return;
	struct keeper_call c = {
		.k = k, .type = f->type, .stream = f->stream, .arena = ARENA_INIT(16u << 20)
	};
	struct err e = { 0 };
	const struct pb_msg *m = f->type < ELEMS(calls) ? calls[f->type].request : NULL;
	void *msg = m ? arena_alloc(&c.arena, m->size) : NULL;
	int r;
	if (!m)
		r = err_set(&e, ERR_UNSUPPORTED, "the keeper does not know call %u", f->type);
	else if (!msg || pb_decode(m, f->body, 0, &c.arena, msg) < 0)
		r = err_set(&e, ERR_INVALID, "not a message of call %u", f->type);
	else
		r = calls[f->type].fn(&c, msg, &e);
	if (r < 0)
		calls_fail(&c, &e);
	arena_done(&c.arena);
}

static void on_closed(struct link *l, int error)
{
	struct keeper *k = CONTAINER(l, struct keeper, api);
	if (error && !k->stopping)
		log_warn("the channel to paddock-api broke: %s", strerror(-error));
	link_stop(l); /* its end is noticed by its pidfd; it exits when the channel closes */
}

const struct link_ops calls_ops = { .on_frame = on_frame, .on_closed = on_closed };

void calls_storage(struct keeper *k, const char *wrong, const struct disk_room *room)
{
	const struct wire_storage m = { .wrong = view_of(wrong),
					.size_bytes = room->size,
					.free_bytes = room->free,
					.beneath_bytes = room->beneath };

	if (link_open(&k->api))
		(void)!link_send_msg(&k->api, WIRE_TYPE_STORAGE, FRAME_EVENT, 0, 0, 0, &wire_storage_msg, &m);
}

void calls_box_exited(struct keeper *k, const struct keeper_box *b, uint32_t code, uint32_t signo, bool oom)
{
	if (!link_open(&k->api))
		return;
	struct wire_box_exited m = {
		.id = view_of(b->spec.id), .exit_code = code, .signal = signo, .oom = oom
	};
	(void)!link_send_msg(&k->api, WIRE_TYPE_BOX_EXITED, FRAME_EVENT, 0, 0, 0, &wire_box_exited_msg, &m);
}
