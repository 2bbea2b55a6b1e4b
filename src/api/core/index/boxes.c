/*
 * The index of boxes: see boxes.h.
 */
#include "boxes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ailog.h"
#include "allowances.h"
#include "bridges.h"
#include "clock.h"
#include "contexts.h"
#include "core_base.h"
#include "events.h"
#include "keys.h"
#include "life.h"
#include "log.h"
#include "mounts.h"
#include "num.h"
#include "pool.h"
#include "shells.h"
#include "spec_make.h"
#include "who.h"
#include "workspaces.h"
#include "poison.h"

static const char *const status_names[BOX_STATUSES] = {
	[BOX_NONE] = "none",     [BOX_CREATING] = "creating", [BOX_RUNNING] = "running",
	[BOX_PAUSED] = "paused", [BOX_STOPPED] = "stopped",   [BOX_DELETING] = "deleting",
};

const char *boxes_status_name(enum box_status s)
{
	return s < BOX_STATUSES ? status_names[s] : "none";
}

enum box_status boxes_status(struct view name)
{
	for (enum box_status s = BOX_CREATING; s < BOX_STATUSES; s++)
		if (view_is(name, status_names[s]))
			return s;
	return BOX_NONE;
}

int boxes_unknown(struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, "no such sandbox");
}

/* ---- one box in and out of memory ---- */

struct box *boxes_new(struct core *c, const struct tenant *t)
{
	struct box_whole *whole = calloc(1, sizeof(*whole));
	if (!whole)
		return NULL;
	struct box *b = &whole->box;

	b->in = &whole->in;
	b->in->core = c;
	b->tenant = t;
	b->state.disk_used = -1;
	arena_init(&b->in->arena, SPEC_ARENA_MAX * 4);
	arena_init(&b->in->labels, SPEC_ARENA_MAX);
	list_init(&b->in->life.waiters);
	guest_init(&b->in->guest, c, b->id, b->spec.backend, &b->spec.timezone);
	list_init(&b->in->order);
	list_init(&b->in->pool);
	list_init(&b->in->history.queue);
	list_init(&b->in->waiters);
	list_init(&b->in->shells);
	list_init(&b->in->bridges);
	list_init(&b->in->egress.unsent);
	return b;
}

static void run_free(struct loop_task *t)
{
	struct box *b = BOX_OF(t, freeing);
	arena_done(&b->in->arena);
	arena_done(&b->in->labels);
	free(b);
}

void boxes_free_later(struct box *b)
{
	struct err e = { 0 };
	err_set(&e, ERR_STATE, "the sandbox was removed");
	boxes_unindex(b);
	workspaces_forget(b);
	pool_forget(b);
	history_forget(b);
	policies_forget(b);
	allowances_forget(b);
	ailog_forget_box(b->in->core, view_of(b->id));
	loop_timer_stop(&b->in->expiry);
	mux_cancel(&b->in->destroy);
	life_end(b, &e);
	mounts_stop(b);
	trust_reset(b);
	guest_stop(&b->in->guest, &e);
	shells_drop_all(b, &e);
	contexts_drop_all(b, &e);
	bridges_forget(b);
	loop_defer(b->in->core->loop, &b->in->freeing, run_free);
}

/* "tenant\0name" */
static struct view name_key(struct arena *a, const struct tenant *t, struct view name)
{
	size_t n = strlen(t->id);
	char *p = arena_alloc(a, n + 1 + name.n);
	if (!p)
		return VIEW_NONE;
	memcpy(p, t->id, n);
	if (name.n) /* an empty name may have no bytes to point to */
		memcpy(p + n + 1, name.p, name.n);
	return (struct view){ p, n + 1 + name.n };
}

static bool before(const struct box *a, int64_t created_ms, const char *id)
{
	return a->state.created_ms != created_ms ? a->state.created_ms < created_ms : strcmp(a->id, id) < 0;
}

/* The list is kept sorted, so that a cursor means the same after a restart. */
static void insert_sorted(struct core *c, struct box *b)
{
	struct list *at = c->boxes->all.prev;
	while (at != &c->boxes->all && !before(BOX_OF(at, order), b->state.created_ms, b->id))
		at = at->prev;
	list_append(at->next, &b->in->order);
}

int boxes_index(struct box *b, struct err *e)
{
	struct core *c = b->in->core;

	if (map_put(&c->boxes->by_id, &b->in->by_id, view_of(b->id)) < 0)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "sandbox");
	b->in->indexed = true;
	if (b->in->hidden) {
		c->boxes->n_hidden++;
		quotas_account(b);
		return 0;
	}
	c->boxes->n++;
	insert_sorted(c, b);
	quotas_account(b);
	if (b->spec.name.n == 0)
		return 0;
	struct view key = name_key(&b->in->arena, b->tenant, b->spec.name);
	int r = key.p ? map_put(&c->boxes->by_name, &b->in->by_name, key) : -ENOMEM;
	b->in->named = r >= 0;
	if (r >= 0)
		return 0;
	boxes_unindex(b);
	if (r == -EEXIST)
		return err_set(e, ERR_CONFLICT, "there is a sandbox named \"%.*s\" already",
			       VIEW_ARG(b->spec.name));
	return err_sys(e, ERR_INTERNAL, r, "sandbox");
}

void boxes_unindex(struct box *b)
{
	if (!b->in->indexed)
		return;
	map_del(&b->in->core->boxes->by_id, &b->in->by_id);
	if (b->in->named)
		map_del(&b->in->core->boxes->by_name, &b->in->by_name);
	list_del(&b->in->order);
	*(b->in->hidden ? &b->in->core->boxes->n_hidden : &b->in->core->boxes->n) -= 1;
	b->in->indexed = b->in->named = false;
	quotas_account(b);
}

struct box *boxes_by_id(struct core *c, struct view id)
{
	struct map_node *n = map_get(&c->boxes->by_id, id);
	return n ? BOX_OF(n, by_id) : NULL;
}

void boxes_set_status(struct box *b, enum box_status s, bool store)
{
	b->state.status = s;
	quotas_account(b);
	if (s == BOX_RUNNING) {
		history_follow(b);
		bridges_box_runs(b);
	}
	if (store)
		(void)boxes_store_status(b, core_store_done, b->in->core);
}

bool boxes_store_status(const struct box *b, store_done *done, void *arg)
{
	if (b->in->hidden || b->in->pooled || b->in->core->stopping)
		return false;
	store_box_set_status(b->in->core->store, view_of(b->id), view_of(status_names[b->state.status]), done,
			     arg);
	return true;
}

/* What of a spec the store has in JSON. */
static int spec_columns(const struct box *b, struct buf *spec, struct buf *meta, struct err *e)
{
	int r = spec_to_json(&b->spec, spec);

	if (r >= 0)
		r = spec_metadata_to_json(&b->spec, meta);
	return r < 0 ? err_sys(e, ERR_INTERNAL, r, "the sandbox's row") : 0;
}

int boxes_write_row(struct box *b, const char *status, boxes_write *write, store_done *done, void *arg,
		    struct err *e)
{
	struct buf spec = BUF_INIT(SPEC_ARENA_MAX), meta = BUF_INIT(SPEC_ARENA_MAX);
	int r = spec_columns(b, &spec, &meta, e);

	if (r >= 0) {
		struct store_box row = {
			.id = view_of(b->id),
			.tenant = view_of(b->tenant->id),
			.name = b->spec.name,
			.status = view_of(status),
			.image = b->spec.image,
			.digest = b->spec.digest,
			.backend = view_of(b->spec.backend),
			.spec = buf_view(&spec),
			.metadata = buf_view(&meta),
			.created_ms = b->state.created_ms,
			.expires_ms = b->state.expires_ms,
			.used_ms = b->state.used_ms,
		};
		write(b->in->core->store, &row, done, arg);
	}
	buf_done(&spec);
	buf_done(&meta);
	return r;
}

int boxes_store_change(struct box *b, store_done *done, void *arg, struct err *e)
{
	struct buf spec = BUF_INIT(SPEC_ARENA_MAX), meta = BUF_INIT(SPEC_ARENA_MAX);
	int r = spec_columns(b, &spec, &meta, e);

	if (r >= 0) {
		struct store_box_change change = { .id = view_of(b->id),
						   .spec = buf_view(&spec),
						   .metadata = buf_view(&meta),
						   .expires_ms = b->state.expires_ms,
						   .used_ms = b->state.used_ms };
		store_box_update(b->in->core->store, &change, done, arg);
		b->in->used_stored_ms = b->state.used_ms;
	}
	buf_done(&spec);
	buf_done(&meta);
	return r;
}

struct change {
	struct job job;
	struct box *box; /* its row goes after this write: it is still there when that is done */
};

static void on_change_stored(void *arg, const struct err *e)
{
	struct change *ch = arg;

	core_store_result(ch->box->in->core, e);
	job_finish(&ch->job, ch->box, e);
	free(ch);
}

struct job *boxes_keep_change(struct box *b, job_done *done, void *arg, struct err *e)
{
	struct change *ch = calloc(1, sizeof(*ch));

	if (!ch) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "sandbox");
		return NULL;
	}
	ch->job = (struct job){ .done = done, .arg = arg };
	ch->box = b;
	if (boxes_store_change(b, on_change_stored, ch, e) < 0) {
		free(ch);
		return NULL;
	}
	return &ch->job;
}

void boxes_exited(struct core *c, struct view id, unsigned signo, bool oom)
{
	struct box *b = boxes_by_id(c, id);
	struct err e = { 0 };

	if (!b)
		return;
	if (b->state.status == BOX_DELETING) {
		b->in->before = BOX_STOPPED;
		return;
	}
	if (b->in->pooled) {
		pool_exited(b);
		return;
	}
	err_set(&e, ERR_STATE, "the sandbox has stopped%s", oom ? " (out of memory)" : "");
	log_info("sandbox %s: its first process has ended (signal %u%s)", b->id, signo,
		 oom ? ", out of memory" : "");
	guest_stop(&b->in->guest, &e);
	/* A creation that is under way fails by its guest and cleans up itself. */
	if (b->state.status == BOX_RUNNING || b->state.status == BOX_PAUSED) {
		events_exited(c, b, 0, signo, oom);
		boxes_set_status(b, BOX_STOPPED, true);
	}
}

/* ---- asking ---- */

static struct box *find(struct core *c, const struct actor *a, int act, struct view ref, struct err *e)
{
	struct box *b = boxes_by_id(c, ref);

	/* Of those that nobody sees only the files are reached, by workspace_helper. */
	if (b && b->in->hidden && act != ACT_FILE_READ && act != ACT_FILE_WRITE)
		b = NULL;
	if (b && !b->in->pooled && b->state.status != BOX_DELETING &&
	    auth_permit(a, (enum act)act, b, NULL) >= 0)
		return b;
	/* A name may look like another tenant's id, so a refusal above does not end the search. */
	struct arena tmp = ARENA_INIT(1024);
	struct view key = a->tenant && ref.n <= SPEC_NAME_MAX ? name_key(&tmp, a->tenant, ref) : VIEW_NONE;
	struct map_node *n = key.p ? map_get(&c->boxes->by_name, key) : NULL;
	arena_done(&tmp);
	b = n ? BOX_OF(n, by_name) : NULL;
	if (!b || b->state.status == BOX_DELETING) {
		boxes_unknown(e);
		return NULL;
	}
	return auth_permit(a, (enum act)act, b, e) < 0 ? NULL : b;
}

struct box *boxes_find(struct core *c, const struct actor *a, int act, struct view ref, struct err *e)
{
	struct box *b = find(c, a, act, ref, e);

	return b && auth_is_use((enum act)act) && life_use(b, e) < 0 ? NULL : b;
}

struct view boxes_path(struct view path, struct view *ret_rest)
{
	if (!view_starts(path, "/sandbox/"))
		return VIEW_NONE;
	struct view rest = view_skip(path, strlen("/sandbox/")), name = rest;
	const char *slash = rest.n ? memchr(rest.p, '/', rest.n) : NULL;
	if (slash)
		name.n = (size_t)(slash - rest.p);
	if (!name.n)
		return VIEW_NONE;
	*ret_rest = view_skip(rest, name.n);
	return name;
}

struct box *boxes_find_made(struct core *c, const struct actor *a, struct view ref, struct err *e)
{
	struct box *b = boxes_find(c, a, ACT_BOX_CHANGE, ref, e);

	if (b && b->state.status == BOX_CREATING) {
		err_set(e, ERR_STATE, "the sandbox is still being made");
		return NULL;
	}
	return b;
}

/* A cursor is the creation time and the id of the last box of a page. */
static int read_cursor(struct view v, int64_t *ret_ms, char ret_id[BOX_ID + 1], struct err *e)
{
	struct view id;
	struct view ms = view_split(v, '-', &id);
	if (num_i64(ms, ret_ms) < 0 || id.n != BOX_ID || view_to_str(id, ret_id, BOX_ID + 1) < 0)
		return err_set(e, ERR_INVALID, "cursor is not one that this server gave");
	return 0;
}

static bool matches(const struct box *b, const struct actor *a, const struct box_filter *f)
{
	if (b->in->pooled || b->state.status == BOX_DELETING || (f->status && b->state.status != f->status) ||
	    auth_permit(a, ACT_BOX_READ, b, NULL) < 0)
		return false;
	for (size_t i = 0; i < f->metadata.n; i++) {
		struct view v = spec_map_get(&b->spec.metadata, f->metadata.keys[i]);
		if (!v.p || !view_eq(v, f->metadata.values[i]))
			return false;
	}
	return !f->fits || f->fits(b, f->fits_arg);
}

/* Whether the page before had it, or would have had it. */
static bool is_behind(const struct box *b, const struct box_filter *f, int64_t last_ms, const char *last_id)
{
	if (!f->cursor.n)
		return false;
	if (b->state.created_ms == last_ms && strcmp(b->id, last_id) == 0)
		return true;
	return before(b, last_ms, last_id) != f->newest_first;
}

const struct box *boxes_match(const struct core *c, bool (*fits)(void *arg, const struct box *b), void *arg)
{
	for (const struct list *it = c->boxes->all.next; it != &c->boxes->all; it = it->next) {
		const struct box *b = BOX_OF(it, order);
		if (!b->in->hidden && !b->in->pooled && fits(arg, b))
			return b;
	}
	return NULL;
}

int boxes_list(struct core *c, const struct actor *a, const struct box_filter *f,
	       void (*each)(void *arg, const struct box *b), void *arg, char ret_next[BOXES_CURSOR_SIZE],
	       struct err *e)
{
	int64_t last_ms = 0;
	char last_id[BOX_ID + 1] = "";
	const struct box *last = NULL;
	unsigned n = 0;

	if (auth_permit(a, ACT_BOX_LIST, NULL, e) < 0)
		return -1;
	if (f->cursor.n && read_cursor(f->cursor, &last_ms, last_id, e) < 0)
		return -1;
	ret_next[0] = 0;
	const struct list *head = &c->boxes->all;
	for (const struct list *it = f->newest_first ? head->prev : head->next; it != head;
	     it = f->newest_first ? it->prev : it->next) {
		const struct box *b = BOX_OF(it, order);
		if (is_behind(b, f, last_ms, last_id) || !matches(b, a, f))
			continue;
		if (n == f->limit) {
			snprintf(ret_next, BOXES_CURSOR_SIZE, "%lld-%s", (long long)last->state.created_ms,
				 last->id);
			break;
		}
		each(arg, b);
		last = b;
		n++;
	}
	return 0;
}

/* ---- the start and the end ---- */

int boxes_load(struct core *c, const struct store_box *row, struct err *e)
{
	const struct tenant *t = keys_tenant(c, row->tenant);
	struct box *b = t ? boxes_new(c, t) : NULL;
	struct box_spec *s = b ? &b->spec : NULL;

	if (!b)
		return err_set(e, ERR_INTERNAL, "sandbox %.*s: no such tenant, or no memory",
			       VIEW_ARG(row->id));
	if (view_to_str(row->id, b->id, sizeof(b->id)) < 0 ||
	    spec_from_json(&b->in->arena, row->spec, row->metadata, s, e) < 0)
		goto bad;
	if (policies_take(b, e) < 0 || allowances_take(b, e) < 0)
		goto bad;
	if (view_to_str(row->backend, s->backend, sizeof(s->backend)) < 0) {
		err_set(e, ERR_INTERNAL, "its backend's name is too long");
		goto bad;
	}
	s->name = arena_view(&b->in->arena, row->name);
	s->image = arena_view(&b->in->arena, row->image);
	s->digest = arena_view(&b->in->arena, row->digest);
	b->in->pooled = view_is(row->status, POOL_STATUS);
	b->state.status = b->in->pooled ? BOX_RUNNING : boxes_status(row->status);
	b->state.created_ms = row->created_ms;
	b->state.expires_ms = row->expires_ms;
	b->in->used_stored_ms = row->used_ms;
	/* The store may be behind by as much; rather a second too late than in the middle of something. */
	b->state.used_ms = row->used_ms ? row->used_ms + LIFE_USED_LAG_MS : row->created_ms;
	if (!s->name.p || !s->image.p || !s->digest.p || b->state.status == BOX_NONE) {
		err_set(e, ERR_INTERNAL, "its row makes no sense");
		goto bad;
	}
	for (size_t i = 0; i < s->workspaces.n; i++) {
		b->in->workspaces[i] = workspaces_by_name(c, t, s->workspaces.items[i].name);
		if (!b->in->workspaces[i])
			log_warn("sandbox %s: its workspace is not there any more", b->id);
	}
	if (boxes_index(b, e) < 0)
		goto bad;
	return 0;
bad:
	err_wrap(e, "sandbox %.*s", VIEW_ARG(row->id));
	boxes_free_later(b);
	return -1;
}

void boxes_stop(struct core *c)
{
	struct err e = { 0 };
	err_set(&e, ERR_UNAVAILABLE, "the daemon is going down");
	for (struct map_node *n = map_first(&c->boxes->by_id), *next; n; n = next) {
		next = map_next(&c->boxes->by_id, n);
		guest_stop(&BOX_OF(n, by_id)->in->guest, &e);
	}
}

void boxes_done(struct core *c)
{
	for (struct map_node *n; (n = map_first(&c->boxes->by_id));)
		boxes_free_later(BOX_OF(n, by_id));
	map_done(&c->boxes->by_id);
	map_done(&c->boxes->by_name);
}

int boxes_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct box *b), void *arg,
	       struct err *e)
{
	struct box_filter f = { .limit = BOXES_PAGE_MAX };
	char next[BOXES_CURSOR_SIZE] = "", cursor[BOXES_CURSOR_SIZE];

	do {
		memcpy(cursor, next, sizeof(cursor));
		f.cursor = cursor[0] ? view_of(cursor) : VIEW_NONE;
		if (boxes_list(c, a, &f, each, arg, next, e) < 0)
			return -1;
	} while (next[0]);
	return 0;
}
