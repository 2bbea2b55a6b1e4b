/*
 * The index of templates, their builds and tags: see templates.h.
 */
#include "spec_make.h"
#include "templates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "core_base.h"
#include "image.h"
#include "images.h"
#include "ledger.h"
#include "log.h"
#include "policies.h"
#include "remove.h"
#include "rnd.h"
#include "snapshots.h"
#include "store_events.h"
#include "templates_kept.h"
#include "text.h"
#include "who.h"
#include "poison.h"

#define BUILDS_MAX  50 /* of a template */
#define LOGS_MAX    10000
#define LOG_BYTES   (1024u * 1024)      /* of a build */
#define LOGS_BYTES  (64u * 1024 * 1024) /* of all */
#define DEFAULT_TAG "default"

static const char what[] = "template";

/* ---- memory ---- */

static void count_log(struct template_build *b, int64_t bytes)
{
	b->of->core->templates->log_bytes += (size_t)bytes;
	ledger_count(b->of->core, b->of->tenant, LEDGER_LOGS, bytes);
}

static void forget_logs(struct template_build *b)
{
	for (size_t i = 0; i < b->n_logs; i++) {
		count_log(b, -(int64_t)(strlen(b->logs[i].text) + sizeof(b->logs[i])));
		free(b->logs[i].text);
	}
	free(b->logs);
	b->logs = NULL;
	b->n_logs = 0;
}

static void build_free(struct template_build *b)
{
	templates_run_free(b->run);
	forget_logs(b);
	list_del(&b->order);
	arena_done(&b->arena);
	free(b);
}

static void template_free(struct template *t)
{
	LIST_EACH (it, &t->builds)
		build_free(CONTAINER(it, struct template_build, order));
	list_del(&t->order);
	free(t);
}

struct template *templates_new(struct core *c, const struct tenant *tenant, struct view id, struct view name)
{
	struct template *t = calloc(1, sizeof(*t));

	if (!t || view_to_str(id, t->id, sizeof(t->id)) < 0 ||
	    view_to_str(name, t->name, sizeof(t->name)) < 0) {
		free(t);
		return NULL;
	}
	t->core = c;
	t->tenant = tenant;
	t->created_ms = clock_wall_ms();
	list_init(&t->builds);
	list_append(&c->templates->all, &t->order);
	return t;
}

static void put_uuid(char ret[TEMPLATES_BUILD_ID + 1])
{
	uint8_t raw[16];
	char hex[2 * sizeof(raw) + 1];

	rnd_bytes(raw, sizeof(raw));
	raw[6] = (uint8_t)((raw[6] & 0x0f) | 0x40);
	raw[8] = (uint8_t)((raw[8] & 0x3f) | 0x80);
	text_hex(raw, sizeof(raw), hex);
	snprintf(ret, TEMPLATES_BUILD_ID + 1, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
		 hex + 20);
}

struct template_build *templates_build_new(struct template *t)
{
	struct template_build *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->of = t;
	b->arena = ARENA_INIT(SPEC_ARENA_MAX);
	b->created_ms = b->updated_ms = clock_wall_ms();
	b->user = b->workdir = b->start = b->ready = b->record = VIEW("");
	put_uuid(b->id);
	list_append(&t->builds, &b->order);
	return b;
}

void templates_done(struct core *c)
{
	templates_start_done(c);
	LIST_EACH (it, &c->templates->all)
		template_free(CONTAINER(it, struct template, order));
	templates_layer_done(c);
	templates_kept_done(c);
}

/* Of the tenant that has the most, the longest finished build forgets its logs; or, where all of its builds
 * run, the one that was begun first. */
static bool make_room(struct core *c)
{
	const struct tenant *most = ledger_largest(c, LEDGER_LOGS);
	struct template_build *oldest = NULL;

	LIST_EACH (it, &c->templates->all) {
		const struct template *t = CONTAINER(it, struct template, order);
		TEMPLATES_EACH_BUILD(b, t)
		if (t->tenant == most && b->n_logs &&
		    (!oldest || (!!b->run == !!oldest->run ? b->updated_ms < oldest->updated_ms : !b->run)))
			oldest = b;
	}
	if (oldest)
		forget_logs(oldest);
	return oldest != NULL;
}

void templates_log(struct template_build *b, enum template_level level, struct view text)
{
	templates_log_at(b, clock_wall_ms(), level, text);
}

void templates_log_at(struct template_build *b, int64_t at_ms, enum template_level level, struct view text)
{
	struct core *c = b->of->core;
	bool last = b->n_logs + 1 == LOGS_MAX || b->log_bytes + text.n > LOG_BYTES;

	if (b->n_logs == LOGS_MAX || b->log_bytes > LOG_BYTES)
		return;
	if (last) {
		text = VIEW("(what follows is not kept)");
		b->log_bytes = LOG_BYTES + 1;
	}
	while (c->templates->log_bytes > LOGS_BYTES)
		if (!make_room(c))
			return;
	text.n = strnlen(text.p, text.n);
	if (b->n_logs % 64 == 0) {
		struct template_log *more = reallocarray(b->logs, b->n_logs + 64, sizeof(*more));
		if (!more)
			return;
		b->logs = more;
	}
	char *copy = strndup(text.p, text.n);
	if (!copy)
		return;
	b->log_bytes += text.n;
	count_log(b, (int64_t)(text.n + sizeof(b->logs[0])));
	b->logs[b->n_logs++] = (struct template_log){ at_ms, level, copy };
}

/* ---- finding ---- */

static struct template *by_name(const struct core *c, const struct tenant *tenant, struct view name)
{
	LIST_EACH (it, &c->templates->all) {
		struct template *t = CONTAINER(it, struct template, order);
		if (t->tenant == tenant && view_is(name, t->name))
			return t;
	}
	return NULL;
}

static struct template *by_id(const struct core *c, struct view id)
{
	LIST_EACH (it, &c->templates->all) {
		struct template *t = CONTAINER(it, struct template, order);
		if (view_is(id, t->id))
			return t;
	}
	return NULL;
}

static int unknown(struct view ref, struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, "template '%.*s' not found", (int)MIN(ref.n, (size_t)100), ref.p);
}

struct template *templates_find(struct core *c, const struct actor *a, int act, struct view ref,
				struct err *e)
{
	struct template *t = by_id(c, ref);

	if (!t || auth_permit_on(a, (enum act)act, t->tenant, what, NULL) < 0)
		t = by_name(c, a->tenant, ref);
	if (!t || t->removing) {
		unknown(ref, e);
		return NULL;
	}
	return auth_permit_on(a, (enum act)act, t->tenant, what, e) < 0 ? NULL : t;
}

static bool has_tag(const struct template_build *b, struct view tag)
{
	for (size_t i = 0; i < b->n_tags; i++)
		if (view_is(tag, b->tags[i]))
			return true;
	return false;
}

static struct template_build *by_tag(const struct template *t, struct view tag)
{
	TEMPLATES_EACH_BUILD(b, t)
	if (b->status == TEMPLATE_READY && has_tag(b, tag))
		return b;
	return NULL;
}

const struct template_build *templates_resolve(struct core *c, const struct actor *a, struct view ref,
					       struct err *e)
{
	struct view tag, bare = view_split(ref, ':', &tag);
	const struct template *t = templates_find(c, a, ACT_SNAPSHOT_READ, bare, e);
	const struct template_build *b = t ? by_tag(t, tag.p ? tag : VIEW(DEFAULT_TAG)) : NULL;

	if (t && !b)
		err_set(e, ERR_NOT_FOUND, "tag '%.*s' does not exist for template '%.*s'",
			(int)MIN(tag.p ? tag.n : 7, (size_t)63), tag.p ? tag.p : DEFAULT_TAG,
			(int)MIN(bare.n, (size_t)63), bare.p);
	return b;
}

struct template_build *templates_build(struct core *c, const struct actor *a, struct view ref,
				       struct view build, struct err *e)
{
	struct template *t = templates_find(c, a, ACT_SNAPSHOT_READ, ref, e);

	if (!t)
		return NULL;
	TEMPLATES_EACH_BUILD(b, t)
	if (view_is(build, b->id))
		return b;
	err_set(e, ERR_NOT_FOUND, "the template has no such build");
	return NULL;
}

int templates_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct template *t),
		   void *arg, struct err *e)
{
	if (auth_permit(a, ACT_SNAPSHOT_LIST, NULL, e) < 0)
		return -1;
	LIST_EACH (it, &c->templates->all) {
		const struct template *t = CONTAINER(it, struct template, order);
		if (!t->removing && auth_permit_on(a, ACT_SNAPSHOT_READ, t->tenant, what, NULL) >= 0)
			each(arg, t);
	}
	return 0;
}

enum template_status templates_status(const struct template_build *b)
{
	return b->run ? TEMPLATE_BUILDING : b->status; /* ready is what the store knows */
}

const struct template_build *templates_newest(const struct template *t)
{
	return list_empty(&t->builds) ? NULL : CONTAINER(t->builds.prev, struct template_build, order);
}

static const struct template_build *of_snapshot(const struct core *c, struct view snapshot)
{
	if (!snapshot.n)
		return NULL;
	LIST_EACH (it, &c->templates->all) {
		const struct template *t = CONTAINER(it, struct template, order);
		TEMPLATES_EACH_BUILD(b, t)
		if (view_is(snapshot, b->snapshot))
			return b;
	}
	return NULL;
}

const struct config_sets *templates_sets_of(const struct core *c, struct view snapshot)
{
	const struct template_build *b = of_snapshot(c, snapshot);

	return b && b->sets.sets ? &b->sets : NULL;
}

const struct template_build *templates_of_box(const struct core *c, const struct box *b)
{
	return of_snapshot(c, b->spec.snapshot);
}

bool templates_own_snapshot(const struct core *c, const struct snapshot *s)
{
	return of_snapshot(c, view_of(s->id)) != NULL;
}

void templates_take_record(struct template_build *b, struct view record)
{
	struct core *c = b->of->core;
	struct err e = { 0 };

	b->sets = (struct config_sets){ 0 };
	b->record = arena_view(&b->arena, record);
	if (!b->record.p)
		b->record = VIEW("");
	if (c->config->egress.detect && b->record.n &&
	    config_sets_merge(&b->arena, &c->images->standard, b->record, &b->env, "template", &b->sets, &e) <
		    0)
		log_warn("template %s: its sets of hosts are its image's: %s", b->of->id, e.msg);
}

/* ---- tags ---- */

static bool is_used(const struct core *c, const char *snapshot)
{
	LIST_EACH (it, &c->boxes->all) {
		const struct box_spec *s = &BOX_OF(it, order)->spec;

		if (view_is(s->snapshot, snapshot) || view_is(s->origin, snapshot))
			return true;
	}
	return false;
}

static void drop_snapshot(struct core *c, const struct tenant *t, const char *id)
{
	const struct actor us = { .tenant = t, .role = STORE_ROLE_USER };
	struct err e = { 0 };

	if (id[0] && snapshots_by_id(c, view_of(id)) &&
	    !snapshots_remove(c, &us, view_of(id), NULL, NULL, &e))
		log_warn("snapshot %s: not removed: %s", id, e.msg);
}

/* Builds that no tag leads to go, and those beyond what a template may have; boxes keep what they were made
 * from. */
static size_t sweep(struct template *t)
{
	size_t n = 0;

	TEMPLATES_EACH_BUILD(b, t)
	n++;
	LIST_EACH (it, &t->builds) {
		struct template_build *b = CONTAINER(it, struct template_build, order);
		bool stale = b->status == TEMPLATE_READY ? !b->n_tags && !is_used(t->core, b->snapshot)
							 : !b->run && n >= BUILDS_MAX;
		if (!stale)
			continue;
		drop_snapshot(t->core, t->tenant, b->snapshot);
		build_free(b);
		n--;
	}
	return n;
}

static void lose_tag(struct template_build *b, const char *tag)
{
	for (size_t i = 0; i < b->n_tags; i++)
		if (strcmp(b->tags[i], tag) == 0) {
			memmove(b->tags[i], b->tags[i + 1], (--b->n_tags - i) * sizeof(b->tags[0]));
			return;
		}
}

static void take_tag(struct template_build *to, const char *tag)
{
	TEMPLATES_EACH_BUILD(b, to->of)
	if (b != to && b->status == TEMPLATE_READY)
		lose_tag(b, tag);
}

void templates_save(struct template *t)
{
	if (!t->core->stopping && !t->removing)
		templates_put_row(t, core_store_done, t->core);
}

/* Whether the box was made for one of the tenant's builds. */
static bool was_builder(const struct core *c, const struct box *b)
{
	struct view template = spec_map_get(&b->spec.metadata, VIEW("template")),
		    build = spec_map_get(&b->spec.metadata, VIEW("build"));

	LIST_EACH (it, &c->templates->all) {
		struct template *t = CONTAINER(it, struct template, order);
		if (t->tenant != b->tenant || !view_is(template, t->id))
			continue;
		TEMPLATES_EACH_BUILD(one, t)
		if (view_is(build, one->id))
			return true;
	}
	return false;
}

void templates_recover(struct core *c)
{
	LIST_EACH (it, &c->boxes->all) {
		struct box *b = BOX_OF(it, order);
		if (b->state.status != BOX_DELETING && was_builder(c, b))
			remove_unwanted(b);
	}
	LIST_EACH (it, &c->templates->all) {
		struct template *t = CONTAINER(it, struct template, order);
		bool changed = false;
		TEMPLATES_EACH_BUILD(b, t)
		{
			changed |= b->interrupted;
			b->interrupted = false;
		}
		if (changed)
			templates_save(t);
	}
}

void templates_publish(struct template_build *b, store_done *done, void *arg)
{
	b->status = TEMPLATE_READY;
	b->updated_ms = clock_wall_ms();
	for (size_t i = 0; i < b->n_tags; i++)
		take_tag(b, b->tags[i]);
	sweep(b->of);
	templates_put_row(b->of, done, arg);
}

static int add_tag(struct template_build *b, struct view tag, struct err *e)
{
	if (!spec_is_name(tag))
		return err_set(e, ERR_INVALID,
			       "a tag is 1 to %d of [A-Za-z0-9._-] and begins with a letter or digit",
			       SPEC_NAME_MAX);
	if (has_tag(b, tag))
		return 0;
	if (b->n_tags == TEMPLATES_TAGS_MAX)
		return err_set(e, ERR_INVALID, "a build has at most %d tags", TEMPLATES_TAGS_MAX);
	(void)!view_to_str(tag, b->tags[b->n_tags++], sizeof(b->tags[0])); /* it fits, by the check */
	return 0;
}

struct change {
	struct job job;
	struct core *core;
	struct template *t;
	char build[TEMPLATES_BUILD_ID + 1];
};

static struct change *change_new(struct template *t, job_done *done, void *arg, struct err *e)
{
	struct change *ch = calloc(1, sizeof(*ch));

	if (!ch) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "template");
		return NULL;
	}
	*ch = (struct change){ .job = { .done = done, .arg = arg }, .core = t->core, .t = t };
	return ch;
}

static void on_changed(void *arg, const struct err *e)
{
	struct change *ch = arg;
	const struct template_build *found = NULL;
	struct err gone = { 0 };

	core_store_result(ch->core, e);
	TEMPLATES_EACH_BUILD(b, ch->t)
	if (strcmp(b->id, ch->build) == 0)
		found = b;
	if (!e && !found && ch->build[0]) {
		err_set(&gone, ERR_NOT_FOUND, "the build is gone");
		e = &gone;
	}
	job_finish(&ch->job, found, e);
	free(ch);
}

struct job *templates_tag(struct core *c, const struct actor *a, struct view target,
			  const struct json_strlist *tags, job_done *done, void *arg, struct err *e)
{
	struct template_build *b = (struct template_build *)templates_resolve(c, a, target, e);
	struct change *ch = b ? change_new(b->of, done, arg, e) : NULL;
	size_t before = b ? b->n_tags : 0;

	if (!ch)
		return NULL;
	for (size_t i = 0; i < tags->n; i++)
		if (add_tag(b, tags->items[i], e) < 0) {
			b->n_tags = before;
			free(ch);
			return NULL;
		}
	for (size_t i = before; i < b->n_tags; i++)
		take_tag(b, b->tags[i]);
	memcpy(ch->build, b->id, sizeof(ch->build));
	sweep(b->of);
	templates_put_row(b->of, on_changed, ch);
	return &ch->job;
}

struct job *templates_untag(struct core *c, const struct actor *a, struct view name,
			    const struct json_strlist *tags, job_done *done, void *arg, struct err *e)
{
	struct template *t = templates_find(c, a, ACT_SNAPSHOT_DELETE, name, e);
	char tag[SPEC_NAME_MAX + 1];

	if (!t)
		return NULL;
	for (size_t i = 0; i < tags->n; i++)
		if (!by_tag(t, tags->items[i])) {
			err_set(e, ERR_NOT_FOUND, "tag '%.*s' does not exist for template '%s'",
				(int)MIN(tags->items[i].n, (size_t)63), tags->items[i].p, t->name);
			return NULL;
		}
	struct change *ch = change_new(t, done, arg, e);
	if (!ch)
		return NULL;
	for (size_t i = 0; i < tags->n; i++)
		TEMPLATES_EACH_BUILD(b, t)
	if (b->status == TEMPLATE_READY && view_to_str(tags->items[i], tag, sizeof(tag)) >= 0)
		lose_tag(b, tag);
	sweep(t);
	templates_put_row(t, on_changed, ch);
	return &ch->job;
}

/* ---- removing ---- */

static void on_removed(void *arg, const struct err *e)
{
	struct change *ch = arg;
	struct template *t = ch->t;

	core_store_result(ch->core, e);
	t->removing = false;
	if (!e) {
		TEMPLATES_EACH_BUILD(b, t)
		if (!ch->core->stopping)
			drop_snapshot(ch->core, t->tenant, b->snapshot);
		templates_layer_forget(ch->core, t);
		if (!ch->core->stopping)
			templates_kept_forget(ch->core, t);
		template_free(t);
	}
	job_finish(&ch->job, NULL, e);
	free(ch);
}

struct job *templates_remove(struct core *c, const struct actor *a, struct view ref, job_done *done,
			     void *arg, struct err *e)
{
	struct template *t = templates_find(c, a, ACT_SNAPSHOT_DELETE, ref, e);

	if (!t)
		return NULL;
	TEMPLATES_EACH_BUILD(b, t)
	if (b->run) {
		err_set(e, ERR_STATE, "the template is being built");
		return NULL;
	}
	struct change *ch = change_new(t, done, arg, e);
	if (!ch)
		return NULL;
	t->removing = true; /* from now on nobody finds it */
	store_template_delete(c->store, view_of(t->id), on_removed, ch);
	return &ch->job;
}

/* ---- a new build ---- */

static struct template *take_template(struct core *c, const struct actor *a, struct view name, struct err *e)
{
	struct template *t = by_name(c, a->tenant, name);
	char id[BOX_ID + 1];

	if (t && t->removing) {
		err_set(e, ERR_STATE, "the template is being removed");
		return NULL;
	}
	if (t)
		return t;
	if (!spec_is_name(name) || snapshots_find(c, a, ACT_SNAPSHOT_READ, name, NULL) ||
	    images_find(c, name)) {
		err_set(e, spec_is_name(name) ? ERR_CONFLICT : ERR_INVALID,
			spec_is_name(name) ? "there is a snapshot or an image of this name"
					   : "a template's name is 1 to 63 of [A-Za-z0-9._-] and begins with "
					     "a letter or digit");
		return NULL;
	}
	if (ledger_admit(c, a->tenant, &(struct quota_use){ { [LEDGER_TEMPLATES] = 1 } }, e) < 0)
		return NULL;
	rnd_name(id, BOX_ID);
	t = templates_new(c, a->tenant, view_of(id), name);
	if (!t)
		err_sys(e, ERR_INTERNAL, ENOMEM, "template");
	return t;
}

static int take_tags(struct template_build *b, struct view first, const struct json_strlist *more,
		     struct err *e)
{
	if (first.p && add_tag(b, first, e) < 0)
		return -1;
	for (size_t i = 0; i < more->n; i++)
		if (add_tag(b, more->items[i], e) < 0)
			return -1;
	return b->n_tags ? 0 : add_tag(b, VIEW(DEFAULT_TAG), e);
}

struct job *templates_request(struct core *c, const struct actor *a, const struct template_wish *w,
			      job_done *done, void *arg, struct err *e)
{
	struct template_build scratch = { 0 };
	struct view tag, name = view_split(w->name, ':', &tag);

	if (auth_permit(a, ACT_BOX_CREATE, NULL, e) < 0 || take_tags(&scratch, tag, &w->tags, e) < 0)
		return NULL;
	struct template *t = take_template(c, a, name, e);
	if (!t)
		return NULL;
	if (sweep(t) >= BUILDS_MAX) {
		err_set(e, ERR_QUOTA, "the template has %d builds already", BUILDS_MAX);
		return NULL;
	}
	struct change *ch = change_new(t, done, arg, e);
	struct template_build *b = ch ? templates_build_new(t) : NULL;
	if (!b) {
		free(ch);
		err_sys(e, ERR_INTERNAL, ENOMEM, "template");
		return NULL;
	}
	memcpy(ch->build, b->id, sizeof(ch->build));
	memcpy(b->tags, scratch.tags, sizeof(b->tags));
	b->n_tags = scratch.n_tags;
	b->cpu = w->cpu;
	b->memory_mb = w->memory_mb;
	templates_put_row(t, on_changed, ch); /* a client that has the id finds it, whatever happens */
	return &ch->job;
}

/* ---- boxes of it ---- */

int templates_to_wish(const struct template_build *b, struct arena *a, struct box_wish *w, struct err *e)
{
	size_t n = b->env.n + w->env.n;
	struct json_strmap all = { arena_array(a, n, sizeof(struct view)),
				   arena_array(a, n, sizeof(struct view)), 0 };

	if (!all.keys || !all.values)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "template");
	for (size_t i = 0; i < b->env.n; i++)
		if (!spec_map_get(&w->env, b->env.keys[i]).p) {
			all.keys[all.n] = b->env.keys[i];
			all.values[all.n++] = b->env.values[i];
		}
	for (size_t i = 0; i < w->env.n; i++) {
		all.keys[all.n] = w->env.keys[i];
		all.values[all.n++] = w->env.values[i];
	}
	w->env = all;
	w->snapshot = view_of(b->snapshot);
	w->user = b->user;
	w->workdir = b->workdir;
	w->limits.has_cpu = b->cpu != 0;
	w->limits.cpu = (double)b->cpu;
	w->limits.has_memory_mb = b->memory_mb != 0;
	w->limits.memory_mb = b->memory_mb;
	return 0;
}

uint64_t templates_held(const struct core *c, const struct tenant *t, enum ledger_item i)
{
	uint64_t n = 0;

	if (i == LEDGER_TEMPLATES)
		LIST_EACH (it, &c->templates->all)
			n += CONTAINER(it, struct template, order)->tenant == t;
	return n;
}
