/*
 * Workspaces: see workspaces.h. As with snapshots, the keeper acts first: workspaces that it has and
 * the store has not are removed at the next start.
 */
#include "spec_make.h"
#include "workspaces.h"

#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "keeper.h"
#include "keys.h"
#include "ledger.h"
#include "log.h"
#include "rnd.h"
#include "quotas.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define KEEPER_MS  600000 /* where files are copied one by one */
#define LIST_BYTES (16u * 1024 * 1024)

static const char what[] = "workspace";

/* ---- the index ---- */

static struct workspace *workspace_new(struct core *c, const struct tenant *t, struct view id,
				       struct view name, struct err *e)
{
	struct workspace *w = calloc(1, sizeof(*w));

	if (!w || view_to_str(id, w->id, sizeof(w->id)) < 0 ||
	    view_to_str(name, w->name, sizeof(w->name)) < 0 ||
	    map_put(&c->workspaces->by_id, &w->by_id, view_of(w->id)) < 0) {
		err_set(e, ERR_INTERNAL, "workspace %.*s cannot be kept in memory", VIEW_ARG(id));
		free(w);
		return NULL;
	}
	w->tenant = t;
	list_init(&w->order);
	list_init(&w->waiters);
	list_append(&c->workspaces->all, &w->order);
	return w;
}

static void forget(struct core *c, struct workspace *w)
{
	map_del(&c->workspaces->by_id, &w->by_id);
	list_del(&w->order);
	if (w->helper)
		w->helper->in->workspaces[0] = NULL;
	free(w);
}

static struct workspace *by_name(const struct core *c, const struct tenant *t, struct view name)
{
	LIST_EACH (it, &c->workspaces->all) {
		struct workspace *w = CONTAINER(it, struct workspace, order);
		if (w->tenant == t && view_is(name, w->name))
			return w;
	}
	return NULL;
}

/* Those of a new box. */
static int make(struct box *b, struct err *e)
{
	for (size_t i = 0; i < b->spec.workspaces.n; i++) {
		struct view name = b->spec.workspaces.items[i].name;
		struct workspace *w = by_name(b->in->core, b->tenant, name);
		if (!w || !w->ready)
			return err_set(e, ERR_NOT_FOUND, "workspace: no such workspace: \"%.*s\"",
				       (int)MIN(name.n, (size_t)SPEC_NAME_MAX), name.p);
		b->in->workspaces[i] = w;
	}
	return 0;
}

static void loaded(struct box *b)
{
	for (size_t i = 0; i < b->spec.workspaces.n; i++) {
		b->in->workspaces[i] = by_name(b->in->core, b->tenant, b->spec.workspaces.items[i].name);
		if (!b->in->workspaces[i])
			log_warn("sandbox %s: its workspace is not there any more", b->id);
	}
}

struct workspace *workspaces_by_id(const struct core *c, struct view id)
{
	struct map_node *n = map_get(&c->workspaces->by_id, id);
	return n ? CONTAINER(n, struct workspace, by_id) : NULL;
}

struct workspace *workspaces_find(struct core *c, const struct actor *a, int act, struct view ref,
				  struct err *e)
{
	struct workspace *w = by_name(c, a->tenant, ref);

	if (!w)
		w = workspaces_by_id(c, ref);
	if (!w || !w->ready) {
		err_set(e, ERR_NOT_FOUND, "no such %s", what);
		return NULL;
	}
	return auth_permit_on(a, (enum act)act, w->tenant, what, e) < 0 ? NULL : w;
}

int workspaces_load(struct core *c, const struct store_workspace *row, struct err *e)
{
	const struct tenant *t = keys_tenant(c, row->tenant);
	struct workspace *w = t ? workspace_new(c, t, row->id, row->name, e) : NULL;

	if (!t)
		return err_set(e, ERR_INTERNAL, "workspace %.*s: no such tenant", VIEW_ARG(row->id));
	if (!w)
		return -1;
	w->disk_mb = (uint64_t)row->disk_mb;
	w->created_ms = row->created_ms;
	w->readonly = row->readonly;
	w->ready = true;
	return 0;
}

void workspaces_done(struct core *c)
{
	LIST_EACH (it, &c->workspaces->all)
		forget(c, CONTAINER(it, struct workspace, order));
	map_done(&c->workspaces->by_id);
}

/* ---- who uses it ---- */

void workspaces_each_user(struct core *c, const struct workspace *w,
			  void (*each)(void *arg, const struct box *b, const struct spec_workspace *at),
			  void *arg)
{
	LIST_EACH (it, &c->boxes->all) {
		const struct box *b = BOX_OF(it, order);
		for (size_t i = 0; i < b->spec.workspaces.n; i++)
			if (b->in->workspaces[i] == w)
				each(arg, b, &b->spec.workspaces.items[i]);
	}
}

static bool refers(const struct box *b, const struct workspace *w, bool writable_only)
{
	for (size_t i = 0; i < b->spec.workspaces.n; i++)
		if (b->in->workspaces[i] == w && !(writable_only && b->spec.workspaces.items[i].readonly))
			return true;
	return false;
}

static bool has_it_mounted(const struct box *b)
{
	return b->state.status != BOX_STOPPED || b->in->step == LIFE_START;
}

static int check_writer(const struct box *b, const struct workspace *w, struct err *e)
{
	if (w->readonly)
		return err_set(e, ERR_STATE, "the workspace \"%s\" is read-only: mount it with mode ro",
			       w->name);
	LIST_EACH (it, &b->in->core->boxes->all) {
		const struct box *other = BOX_OF(it, order);
		if (other != b && refers(other, w, true) && has_it_mounted(other))
			return err_set(e, ERR_CONFLICT, "sandbox %s has the workspace \"%s\" for itself",
				       other->id, w->name);
	}
	return 0;
}

static int check_start(struct box *b, struct err *e)
{
	for (size_t i = 0; i < b->spec.workspaces.n; i++) {
		const struct spec_workspace *at = &b->spec.workspaces.items[i];
		if (!b->in->workspaces[i])
			return err_set(e, ERR_STATE, "the workspace \"%.*s\" is not there any more",
				       VIEW_ARG(at->name));
		if (!at->readonly && check_writer(b, b->in->workspaces[i], e) < 0)
			return -1;
	}
	return 0;
}

static void forget_box(struct box *b, const struct err *why)
{
	struct workspace *w = b->in->workspaces[0]; /* a helper has one */

	if (w && w->helper == b)
		w->helper = NULL;
	memset(b->in->workspaces, 0, sizeof(b->in->workspaces));
}

const struct box_part workspaces_part = {
	.make = make,
	.loaded = loaded,
	.start = check_start,
	.forget = forget_box,
};

static const struct box *first_user(struct core *c, const struct workspace *w)
{
	LIST_EACH (it, &c->boxes->all) {
		const struct box *b = BOX_OF(it, order);
		if (refers(b, w, false))
			return b;
	}
	return NULL;
}

/* ---- calls to the keeper ---- */

struct workspace_job {
	struct job job;
	struct core *core;
	struct actor actor;
	struct workspace *w;
	struct call call;
	char id[BOX_ID + 1];
};

static void finish(struct workspace_job *j, const void *result, const struct err *e)
{
	job_finish(&j->job, result, e);
	free(j);
}

static struct workspace_job *new_job(struct core *c, const struct actor *a, struct workspace *w,
				     job_done *done, void *arg, struct err *e)
{
	struct workspace_job *j = calloc(1, sizeof(*j));

	if (!j) {
		err_sys(e, ERR_INTERNAL, ENOMEM, what);
		return NULL;
	}
	j->job = (struct job){ .done = done, .arg = arg };
	j->core = c;
	j->actor = *a;
	j->w = w;
	return j;
}

/* Takes the job where it fails. */
static struct job *ask(struct workspace_job *j, const struct call_ops *ops, uint16_t type,
		       const struct pb_msg *pm, const void *msg, struct err *e)
{
	j->call.ops = ops;
	int r = keeper_call(j->core, &j->call, type, KEEPER_MS, pm, msg);
	if (r >= 0)
		return &j->job;
	err_sys(e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
	free(j);
	return NULL;
}

/* ---- dropping, which nobody waits for ---- */

static int on_dropped(struct call *c, const struct frame *f, int fd)
{
	free(CONTAINER(c, struct workspace_job, call));
	return 0;
}

static void on_drop_fail(struct call *c, const struct err *e)
{
	struct workspace_job *j = CONTAINER(c, struct workspace_job, call);
	/* The next start tries again. */
	log_warn("workspace %s: not removed: %s", j->id, e->msg);
	free(j);
}

static const struct call_ops drop_ops = { .on_reply = on_dropped, .on_fail = on_drop_fail };

void workspaces_drop(struct core *c, struct view id)
{
	struct wire_workspace_remove msg = { .id = id };
	struct workspace_job *j = calloc(1, sizeof(*j));
	struct err e = { 0 };

	if (!j || view_to_str(id, j->id, sizeof(j->id)) < 0) {
		free(j);
		return;
	}
	j->core = c;
	(void)!ask(j, &drop_ops, WIRE_TYPE_WORKSPACE_REMOVE, &wire_workspace_remove_msg, &msg, &e);
}

/* ---- making ---- */

static void on_stored(void *arg, const struct err *e)
{
	struct workspace_job *j = arg;
	struct workspace *w = j->w;
	struct core *c = j->core;

	core_store_result(c, e);
	if (e) {
		struct err copy = *e;
		if (!c->stopping)
			workspaces_drop(c, view_of(w->id));
		forget(c, w);
		finish(j, NULL, &copy);
		return;
	}
	struct workspace_info info = { .workspace = w };
	w->ready = true;
	finish(j, &info, NULL);
}

static int on_created(struct call *c, const struct frame *f, int fd)
{
	struct workspace_job *j = CONTAINER(c, struct workspace_job, call);
	struct workspace *w = j->w;

	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	struct store_workspace row = { .id = view_of(w->id),
				       .tenant = view_of(w->tenant->id),
				       .name = view_of(w->name),
				       .disk_mb = (int64_t)w->disk_mb,
				       .created_ms = w->created_ms,
				       .readonly = w->readonly };
	store_workspace_put(j->core->store, &row, on_stored, j);
	return 0;
}

static void on_create_fail(struct call *c, const struct err *e)
{
	struct workspace_job *j = CONTAINER(c, struct workspace_job, call);
	struct err copy = *e;
	forget(j->core, j->w);
	finish(j, NULL, &copy);
}

static const struct call_ops create_ops = { .on_reply = on_created, .on_fail = on_create_fail };

static int check_wish(struct core *c, const struct actor *a, const struct workspace_wish *w,
		      const struct workspace **ret_from, uint64_t *ret_disk, struct err *e)
{
	if (auth_permit(a, ACT_WORKSPACE_CREATE, NULL, e) < 0)
		return -1;
	if (!spec_is_name(w->name))
		return err_set(e, ERR_INVALID,
			       "name must be 1 to %d of [A-Za-z0-9._-] and begin with a letter or digit",
			       SPEC_NAME_MAX);
	if (by_name(c, a->tenant, w->name))
		return err_set(e, ERR_CONFLICT, "there is a workspace named \"%.*s\" already",
			       VIEW_ARG(w->name));
	if (spec_take_disk(w->has_disk_mb, w->disk_mb, c->config, "disk_mb", ret_disk, e) < 0)
		return -1;
	if (!w->has_disk_mb)
		*ret_disk = quotas_standard_disk(c, a->tenant, *ret_disk);
	*ret_from = NULL;
	if (w->readonly && !w->clone_of.n)
		return err_set(e, ERR_INVALID, "readonly: a workspace that never changes needs clone_of");
	if (w->clone_of.n && !(*ret_from = workspaces_find(c, a, ACT_WORKSPACE_READ, w->clone_of, e)))
		return err_wrap(e, "clone_of");
	if (*ret_from && !w->has_disk_mb)
		*ret_disk = (*ret_from)->disk_mb;
	const struct quota_use more = { { [LEDGER_WORKSPACES] = 1, [LEDGER_DISK] = *ret_disk } };
	return ledger_admit(c, a->tenant, &more, e);
}

struct job *workspaces_create(struct core *c, const struct actor *a, const struct workspace_wish *wish,
			      job_done *done, void *arg, struct err *e)
{
	const struct workspace *from = NULL;
	uint64_t disk_mb;
	char id[BOX_ID + 1];

	if (check_wish(c, a, wish, &from, &disk_mb, e) < 0)
		return NULL;
	rnd_name(id, BOX_ID);
	struct workspace *w = workspace_new(c, a->tenant, view_of(id), wish->name, e);
	struct workspace_job *j = w ? new_job(c, a, w, done, arg, e) : NULL;
	if (j) {
		struct wire_workspace_create msg = { .id = view_of(w->id),
						     .disk_bytes = disk_mb << 20,
						     .from = from ? view_of(from->id) : VIEW("") };
		w->disk_mb = disk_mb;
		w->readonly = wish->readonly;
		w->created_ms = clock_wall_ms();
		struct job *job =
			ask(j, &create_ops, WIRE_TYPE_WORKSPACE_CREATE, &wire_workspace_create_msg, &msg, e);
		if (job)
			return job;
	}
	if (w)
		forget(c, w);
	return NULL;
}

/* ---- asking ---- */

static uint64_t used_by(const struct wire_workspace_list_reply *have, const struct workspace *w)
{
	for (size_t i = 0; i < have->workspaces.n; i++)
		if (view_is(have->workspaces.items[i].id, w->id))
			return have->workspaces.items[i].bytes;
	return 0;
}

static void reply_one(struct workspace_job *j, const struct wire_workspace_list_reply *have)
{
	struct workspace_info info = { .workspace = workspaces_by_id(j->core, view_of(j->id)) };
	struct err e = { 0 };

	if (!info.workspace || !info.workspace->ready) {
		err_set(&e, ERR_NOT_FOUND, "no such %s", what);
		finish(j, NULL, &e);
		return;
	}
	info.used_bytes = used_by(have, info.workspace);
	finish(j, &info, NULL);
}

static void reply_all(struct workspace_job *j, const struct wire_workspace_list_reply *have)
{
	struct core *c = j->core;
	struct workspace_info *items = calloc(c->workspaces->by_id.n + 1, sizeof(*items));
	struct workspace_list list = { .items = items };
	struct err e = { 0 };

	LIST_EACH (it, &c->workspaces->all) {
		const struct workspace *w = CONTAINER(it, struct workspace, order);
		if (items && w->ready &&
		    auth_permit_on(&j->actor, ACT_WORKSPACE_READ, w->tenant, what, NULL) >= 0)
			items[list.n++] =
				(struct workspace_info){ .workspace = w, .used_bytes = used_by(have, w) };
	}
	if (!items)
		err_sys(&e, ERR_INTERNAL, ENOMEM, "list of workspaces");
	finish(j, &list, items ? NULL : &e);
	free(items);
}

static int on_list(struct call *c, const struct frame *f, int fd)
{
	struct workspace_job *j = CONTAINER(c, struct workspace_job, call);
	struct arena a = ARENA_INIT(LIST_BYTES);
	struct wire_workspace_list_reply reply;
	int r = mux_reply(c, f, &wire_workspace_list_reply_msg, &a, &reply);

	if (r >= 0)
		(j->id[0] ? reply_one : reply_all)(j, &reply);
	arena_done(&a);
	return r;
}

static void on_fail(struct call *c, const struct err *e)
{
	finish(CONTAINER(c, struct workspace_job, call), NULL, e);
}

static const struct call_ops list_ops = { .on_reply = on_list, .on_fail = on_fail };

struct job *workspaces_show(struct core *c, const struct actor *a, struct view ref, job_done *done, void *arg,
			    struct err *e)
{
	struct wire_workspace_list msg = { 0 };
	struct workspace *w = workspaces_find(c, a, ACT_WORKSPACE_READ, ref, e);
	struct workspace_job *j = w ? new_job(c, a, w, done, arg, e) : NULL;

	if (!j)
		return NULL;
	memcpy(j->id, w->id, sizeof(j->id));
	return ask(j, &list_ops, WIRE_TYPE_WORKSPACE_LIST, &wire_workspace_list_msg, &msg, e);
}

struct job *workspaces_list(struct core *c, const struct actor *a, job_done *done, void *arg, struct err *e)
{
	struct wire_workspace_list msg = { 0 };

	if (auth_permit(a, ACT_WORKSPACE_LIST, NULL, e) < 0)
		return NULL;
	struct workspace_job *j = new_job(c, a, NULL, done, arg, e);
	return j ? ask(j, &list_ops, WIRE_TYPE_WORKSPACE_LIST, &wire_workspace_list_msg, &msg, e) : NULL;
}

/* ---- removing ---- */

static void remove_failed(struct workspace_job *j, const struct err *e)
{
	struct err copy = *e;
	j->w->ready = true;
	finish(j, NULL, &copy);
}

static void on_row_deleted(void *arg, const struct err *e)
{
	struct workspace_job *j = arg;

	core_store_result(j->core, e);
	if (e) { /* without its files; it can be removed once more */
		remove_failed(j, e);
		return;
	}
	forget(j->core, j->w);
	finish(j, NULL, NULL);
}

static int on_removed(struct call *c, const struct frame *f, int fd)
{
	struct workspace_job *j = CONTAINER(c, struct workspace_job, call);

	if (!(f->flags & FRAME_LAST))
		return -EBADMSG;
	store_workspace_delete(j->core->store, view_of(j->w->id), on_row_deleted, j);
	return 0;
}

static void on_remove_fail(struct call *c, const struct err *e)
{
	remove_failed(CONTAINER(c, struct workspace_job, call), e);
}

static const struct call_ops remove_ops = { .on_reply = on_removed, .on_fail = on_remove_fail };

static void remove_now(struct workspace_job *j)
{
	struct wire_workspace_remove msg = { .id = view_of(j->w->id) };
	struct err e = { 0 };

	j->call.ops = &remove_ops;
	int r = keeper_call(j->core, &j->call, WIRE_TYPE_WORKSPACE_REMOVE, KEEPER_MS,
			    &wire_workspace_remove_msg, &msg);
	if (r < 0) {
		err_sys(&e, ERR_UNAVAILABLE, r, "the keeper cannot be reached");
		remove_failed(j, &e);
	}
}

static void on_helper_gone(void *arg, const void *result, const struct err *e)
{
	struct workspace_job *j = arg;
	if (e)
		remove_failed(j, e);
	else
		remove_now(j);
}

struct job *workspaces_remove(struct core *c, const struct actor *a, struct view ref, job_done *done,
			      void *arg, struct err *e)
{
	struct workspace *w = workspaces_find(c, a, ACT_WORKSPACE_DELETE, ref, e);
	const struct box *user = w ? first_user(c, w) : NULL;

	if (!w)
		return NULL;
	if (user || w->making) {
		err_set(e, ERR_STATE, "the workspace is used by %s%s", user ? "sandbox " : "another request",
			user ? user->id : "");
		return NULL;
	}
	struct workspace_job *j = new_job(c, a, w, done, arg, e);
	if (!j)
		return NULL;
	w->ready = false; /* from now on nobody finds it */
	if (w->helper) {
		struct box *helper = TAKE_PTR(w->helper);
		helper->in->workspaces[0] = NULL;
		if (c->workspaces->remove_helper(helper, on_helper_gone, j))
			return &j->job;
		err_sys(e, ERR_INTERNAL, ENOMEM, what);
		w->ready = true;
		free(j);
		return NULL;
	}
	struct wire_workspace_remove msg = { .id = view_of(w->id) };
	struct job *job =
		ask(j, &remove_ops, WIRE_TYPE_WORKSPACE_REMOVE, &wire_workspace_remove_msg, &msg, e);
	if (!job)
		w->ready = true;
	return job;
}

uint64_t workspaces_held(const struct core *c, const struct tenant *t, enum ledger_item i)
{
	uint64_t n = 0;

	if (i != LEDGER_DISK && i != LEDGER_WORKSPACES)
		return 0;
	LIST_EACH (it, &c->workspaces->all) {
		const struct workspace *w = CONTAINER(it, struct workspace, order);
		if (w->tenant == t)
			n += i == LEDGER_DISK ? w->disk_mb : 1;
	}
	return n;
}
