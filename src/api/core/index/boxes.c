/*
 * The index of boxes: see boxes.h.
 */
#include "boxes.h"

#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "core_base.h"
#include "keys.h"
#include "num.h"
#include "spec_make.h"
#include "who.h"
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
	return auth_unknown(e, "sandbox");
}

/* ---- one box in and out of memory ---- */

#define EACH_PART(p, c) for (const struct box_part *const *p = (c)->boxes->parts; *p; p++)

/* So that what follows is aligned for anything. */
static size_t room_for(size_t size)
{
	return (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
}

struct box *boxes_new(struct core *c, const struct tenant *t)
{
	size_t size = room_for(sizeof(struct box_whole));
	EACH_PART (p, c)
		size += room_for((*p)->size);
	struct box_whole *whole = calloc(1, size);
	if (!whole)
		return NULL;
	struct box *b = &whole->box;

	b->in = &whole->in;
	b->in->core = c;
	b->tenant = t;
	b->state.disk_used = -1;
	arena_init(&b->in->arena, SPEC_ARENA_MAX * 4);
	arena_init(&b->in->labels, SPEC_ARENA_MAX);
	list_init(&b->in->order);
	char *at = (char *)whole + room_for(sizeof(*whole));
	EACH_PART (p, c) {
		if ((*p)->size)
			memcpy((char *)b->in + (*p)->slot, &(void *){ at }, sizeof(void *));
		at += room_for((*p)->size);
		if ((*p)->init)
			(*p)->init(b);
	}
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
	EACH_PART (p, b->in->core)
		if ((*p)->forget)
			(*p)->forget(b, &e);
	loop_defer(b->in->core->loop, &b->in->freeing, run_free);
}

int boxes_make(struct box *b, struct err *e)
{
	EACH_PART (p, b->in->core)
		if ((*p)->make && (*p)->make(b, e) < 0)
			return -1;
	return 0;
}

int boxes_start(struct box *b, struct err *e)
{
	EACH_PART (p, b->in->core)
		if ((*p)->start && (*p)->start(b, e) < 0)
			return -1;
	return 0;
}

int boxes_take(struct box *b, struct err *e)
{
	EACH_PART (p, b->in->core)
		if ((*p)->take && (*p)->take(b, e) < 0)
			return -1;
	return 0;
}

void boxes_changed(struct box *b)
{
	EACH_PART (p, b->in->core)
		if ((*p)->changed)
			(*p)->changed(b);
}

void boxes_row_goes(struct box *b)
{
	EACH_PART (p, b->in->core)
		if ((*p)->row_goes)
			(*p)->row_goes(b);
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
		boxes_changed(b);
		return 0;
	}
	c->boxes->n++;
	insert_sorted(c, b);
	boxes_changed(b);
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
	boxes_changed(b);
}

struct box *boxes_by_id(struct core *c, struct view id)
{
	struct map_node *n = map_get(&c->boxes->by_id, id);
	return n ? BOX_OF(n, by_id) : NULL;
}

void boxes_set_status(struct box *b, enum box_status s, bool store)
{
	b->state.status = s;
	boxes_changed(b);
	EACH_PART (p, b->in->core)
		if ((*p)->runs && s == BOX_RUNNING)
			(*p)->runs(b);
	if (store)
		(void)boxes_store_status(b, core_store_done, b->in->core);
}

/* ---- asking ---- */

static struct box *find(struct core *c, const struct actor *a, int act, struct view ref, struct err *e)
{
	struct box *b = boxes_by_id(c, ref);

	/* Of those that nobody sees only the files are reached, by workspace_helper. */
	if (b && b->in->hidden && act != ACT_FILE_READ && act != ACT_FILE_WRITE)
		b = NULL;
	if (b && !b->in->pooled && b->state.status != BOX_DELETING &&
	    auth_permit(a, (enum act)act, b->tenant, NULL) >= 0)
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
	return auth_permit(a, (enum act)act, b->tenant, e) < 0 ? NULL : b;
}

struct box *boxes_find(struct core *c, const struct actor *a, int act, struct view ref, struct err *e)
{
	struct box *b = find(c, a, act, ref, e);

	if (!b || !auth_is_use((enum act)act))
		return b;
	EACH_PART (p, c)
		if ((*p)->use && (*p)->use(b, e) < 0)
			return NULL;
	return b;
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
	    auth_permit(a, ACT_BOX_READ, b->tenant, NULL) < 0)
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

void boxes_init(struct core *c, const struct box_part *const *parts)
{
	c->boxes->parts = parts;
	map_init(&c->boxes->by_id);
	map_init(&c->boxes->by_name);
	list_init(&c->boxes->all);
}

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
	if (boxes_take(b, e) < 0)
		goto bad;
	if (view_to_str(row->backend, s->backend, sizeof(s->backend)) < 0) {
		err_set(e, ERR_INTERNAL, "its backend's name is too long");
		goto bad;
	}
	s->name = arena_view(&b->in->arena, row->name);
	s->image = arena_view(&b->in->arena, row->image);
	s->digest = arena_view(&b->in->arena, row->digest);
	b->in->pooled = view_is(row->status, BOXES_POOL_STATUS);
	b->state.status = b->in->pooled ? BOX_RUNNING : boxes_status(row->status);
	b->state.created_ms = row->created_ms;
	b->state.expires_ms = row->expires_ms;
	b->in->used_stored_ms = row->used_ms;
	/* The store may be behind by as much; rather a second too late than in the middle of something. */
	b->state.used_ms = row->used_ms ? row->used_ms + BOXES_USED_LAG_MS : row->created_ms;
	if (!s->name.p || !s->image.p || !s->digest.p || b->state.status == BOX_NONE) {
		err_set(e, ERR_INTERNAL, "its row makes no sense");
		goto bad;
	}
	EACH_PART (p, c)
		if ((*p)->loaded)
			(*p)->loaded(b);
	if (boxes_index(b, e) < 0)
		goto bad;
	return 0;
bad:
	err_wrap(e, "sandbox %.*s", VIEW_ARG(row->id));
	boxes_free_later(b);
	return -1;
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
