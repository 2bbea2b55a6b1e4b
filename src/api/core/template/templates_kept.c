/*
 * States of builds between their steps: see templates_kept.h. As with snapshots the keeper acts first: what
 * it has and the store has not is removed at the next start.
 */
#include "templates_kept.h"

#include <errno.h>
#include <stdlib.h>

#include "common.h"
#include "core_base.h"
#include "keeper.h"
#include "keys.h"
#include "log.h"
#include "rnd.h"
#include "snapshots.h"
#include "wire_gen.h"
#include "poison.h"

#define PREFIX    "build.step/" /* of the settings' names; then the snapshot */
#define KEEPER_MS 600000
#define MOST      64           /* of a tenant */
#define ROW_MAX   (64u * 1024) /* with more variables than this a state is not kept */

/* ---- memory ---- */

static struct kept_step *kept_new(struct core *c, const struct tenant *t)
{
	struct kept_step *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->core = c;
	k->tenant = t;
	k->arena = ARENA_INIT(4 * ROW_MAX);
	list_init(&k->order);
	return k;
}

static void kept_free(struct kept_step *k)
{
	list_del(&k->order);
	arena_done(&k->arena);
	free(k);
}

struct kept_step *templates_kept_find(const struct core *c, const struct tenant *t, const char *key)
{
	LIST_EACH (it, &c->templates->kept_steps) {
		struct kept_step *k = CONTAINER(it, struct kept_step, order);
		if (k->tenant == t && strcmp(k->key, key) == 0)
			return k;
	}
	return NULL;
}

bool templates_kept_has(const struct core *c, struct view snapshot)
{
	LIST_EACH (it, &c->templates->kept_steps)
		if (view_is(snapshot, CONTAINER(it, struct kept_step, order)->snapshot))
			return true;
	return false;
}

void templates_kept_hold(struct kept_step *k)
{
	k->holders++;
	list_del(&k->order);
	list_append(&k->core->templates->kept_steps, &k->order);
}

void templates_kept_release(struct kept_step *k)
{
	if (k)
		k->holders--;
}

/* ---- how much there is ---- */

/* What it has besides its parent's files. */
static uint64_t own_bytes(const struct kept_step *k)
{
	const struct kept_step *p = k->parent[0] ? templates_kept_find(k->core, k->tenant, k->parent) : NULL;

	return p ? k->bytes - MIN(k->bytes, p->bytes) : k->bytes;
}

static uint64_t total(const struct core *c, const struct tenant *t, unsigned *ret_n)
{
	uint64_t bytes = 0;
	unsigned n = 0;

	LIST_EACH (it, &c->templates->kept_steps) {
		const struct kept_step *k = CONTAINER(it, struct kept_step, order);
		if (k->tenant != t)
			continue;
		bytes += own_bytes(k);
		n++;
	}
	if (ret_n)
		*ret_n = n;
	return bytes;
}

static uint64_t kept_mb(const struct core *c, const struct tenant *t)
{
	return (total(c, t, NULL) + (1u << 20) - 1) >> 20;
}

/* ---- dropping ---- */

static void row_name(const struct kept_step *k, char dst[sizeof(PREFIX) + BOX_ID])
{
	memcpy(dst, PREFIX, sizeof(PREFIX) - 1);
	memcpy(dst + sizeof(PREFIX) - 1, k->snapshot, BOX_ID + 1);
}

static void drop(struct kept_step *k)
{
	struct core *c = k->core;
	char name[sizeof(PREFIX) + BOX_ID];

	/* Those that were made from it hold its files from now on. */
	LIST_EACH (it, &c->templates->kept_steps) {
		struct kept_step *child = CONTAINER(it, struct kept_step, order);
		if (child->tenant == k->tenant && strcmp(child->parent, k->key) == 0)
			memcpy(child->parent, k->parent, sizeof(child->parent));
	}
	row_name(k, name);
	if (!c->stopping) {
		snapshots_drop(c, view_of(k->backend), view_of(k->snapshot));
		store_setting_delete(c->store, view_of(name), core_store_done, c);
	}
	kept_free(k);
}

static bool drop_oldest(struct core *c, const struct tenant *t)
{
	LIST_EACH (it, &c->templates->kept_steps) {
		struct kept_step *k = CONTAINER(it, struct kept_step, order);
		if (k->tenant == t && !k->holders) {
			drop(k);
			return true;
		}
	}
	return false;
}

static void trim(struct core *c, const struct tenant *t)
{
	uint64_t most = c->config->max.build_cache_mb << 20;
	unsigned n;

	while ((total(c, t, &n) > most || n > MOST) && drop_oldest(c, t))
		;
}

void templates_kept_shrink(struct core *c, const struct tenant *t, uint64_t mb)
{
	uint64_t before = kept_mb(c, t), after = before > mb ? before - mb : 0;

	while (kept_mb(c, t) > after && drop_oldest(c, t))
		;
}

void templates_kept_forget(struct core *c, const struct template *t)
{
	LIST_EACH (it, &c->templates->kept_steps) {
		struct kept_step *k = CONTAINER(it, struct kept_step, order);
		if (!k->holders && k->tenant == t->tenant && strcmp(k->template, t->id) == 0)
			drop(k);
	}
}

void templates_kept_forget_image(struct core *c, struct view digest)
{
	LIST_EACH (it, &c->templates->kept_steps) {
		struct kept_step *k = CONTAINER(it, struct kept_step, order);
		if (!k->holders && view_eq(k->digest, digest))
			drop(k);
	}
}

void templates_kept_done(struct core *c)
{
	LIST_EACH (it, &c->templates->kept_steps)
		kept_free(CONTAINER(it, struct kept_step, order));
}

/* ---- rows ---- */

static int write_row(const struct kept_step *k, struct buf *out)
{
	struct json_out o;

	json_out_init(&o, out);
	json_out_object(&o);
	json_out_kz(&o, "tenant", k->tenant->id);
	json_out_kz(&o, "key", k->key);
	json_out_kz(&o, "parent", k->parent);
	json_out_kz(&o, "template", k->template);
	json_out_kz(&o, "backend", k->backend);
	json_out_kstr(&o, "image", k->image);
	json_out_kstr(&o, "digest", k->digest);
	json_out_kstr(&o, "user", k->user);
	json_out_kstr(&o, "workdir", k->workdir);
	json_out_ku64(&o, "bytes", k->bytes);
	json_out_kmap(&o, "env", &k->env);
	json_out_end(&o, '}');
	return out->bad;
}

struct row {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view tenant, key, parent, template, backend, image, digest, user, workdir;
	uint64_t bytes;
	struct json_strmap env;
};

#define AT(f) .offset = offsetof(struct row, f), .required = true
static const struct json_field row_fields[] = {
	{ "tenant", JSON_F_STRING, AT(tenant) },   { "key", JSON_F_STRING, AT(key) },
	{ "parent", JSON_F_STRING, AT(parent) },   { "template", JSON_F_STRING, AT(template) },
	{ "backend", JSON_F_STRING, AT(backend) }, { "image", JSON_F_STRING, AT(image) },
	{ "digest", JSON_F_STRING, AT(digest) },   { "user", JSON_F_STRING, AT(user) },
	{ "workdir", JSON_F_STRING, AT(workdir) }, { "bytes", JSON_F_U64, AT(bytes), .max = INT64_MAX },
	{ "env", JSON_F_STRMAP, AT(env) },
};
#undef AT
static const struct json_schema row_schema = { row_fields, ELEMS(row_fields) };

static bool take_row(struct kept_step *k, const struct row *r, struct view snapshot)
{
	k->image = r->image;
	k->digest = r->digest;
	k->user = r->user;
	k->workdir = r->workdir;
	k->env = r->env;
	k->bytes = r->bytes;
	return view_to_str(r->key, k->key, sizeof(k->key)) >= 0 &&
	       view_to_str(r->parent, k->parent, sizeof(k->parent)) >= 0 &&
	       view_to_str(r->template, k->template, sizeof(k->template)) >= 0 &&
	       view_to_str(r->backend, k->backend, sizeof(k->backend)) >= 0 &&
	       view_to_str(snapshot, k->snapshot, sizeof(k->snapshot)) >= 0;
}

/* A row that makes no sense is none: the files go with it. */
int templates_kept_load(struct core *c, const struct store_setting *s)
{
	struct row row = { 0 };
	struct json *j;
	struct err e = { 0 };

	if (!view_starts(s->name, PREFIX))
		return 0;
	struct kept_step *k = kept_new(c, NULL);
	struct view text = k ? arena_view(&k->arena, s->value) : VIEW_NONE;
	if (!text.p) {
		free(k);
		return -ENOMEM;
	}
	if (json_parse(&k->arena, text, &j, &e) < 0 ||
	    json_read(&k->arena, j, &row_schema, &row, false, &e) < 0 ||
	    !(k->tenant = keys_tenant(c, row.tenant)) ||
	    !take_row(k, &row, view_skip(s->name, sizeof(PREFIX) - 1)))
		kept_free(k);
	else
		list_append(&c->templates->kept_steps, &k->order);
	return 0;
}

void templates_kept_verify(struct core *c, const struct view *snapshots, size_t n)
{
	LIST_EACH (it, &c->templates->kept_steps) {
		struct kept_step *k = CONTAINER(it, struct kept_step, order);
		bool there = false;
		for (size_t i = 0; !there && i < n; i++)
			there = view_is(snapshots[i], k->snapshot);
		if (!there)
			drop(k);
	}
}

/* ---- keeping ---- */

static void go_on(struct kept_step *k)
{
	if (k->run) {
		k->run->keeping = NULL;
		if (!k->core->stopping)
			templates_steps_run(k->run);
	}
	k->run = NULL;
}

static void on_fail(struct call *call, const struct err *e)
{
	struct kept_step *k = CONTAINER(call, struct kept_step, call);

	if (!k->core->stopping)
		log_warn("template %s: a step is not kept: %s", k->template, e->msg);
	go_on(k);
	kept_free(k);
}

static int on_taken(struct call *call, const struct frame *f, int fd)
{
	struct kept_step *k = CONTAINER(call, struct kept_step, call), *old;
	_cleanup_(buf_done) struct buf row = BUF_INIT(2 * ROW_MAX);
	struct arena a = ARENA_INIT(4096);
	struct wire_snapshot_created reply;
	char name[sizeof(PREFIX) + BOX_ID];
	int r = mux_reply(call, f, &wire_snapshot_created_msg, &a, &reply);

	arena_done(&a);
	if (r < 0)
		return r;
	k->bytes = reply.bytes;
	old = templates_kept_find(k->core, k->tenant,
				  k->key); /* it was run again because that was asked for */
	if (old && !old->holders)
		drop(old);
	list_append(&k->core->templates->kept_steps, &k->order);
	row_name(k, name);
	if (write_row(k, &row) == 0)
		store_setting_put(k->core->store, &(struct store_setting){ view_of(name), buf_view(&row) },
				  core_store_done, k->core);
	go_on(k);
	trim(k->core, k->tenant);
	return 0;
}

static const struct call_ops take_ops = { .on_reply = on_taken, .on_fail = on_fail };

static int copy_state(struct kept_step *k, const struct template_run *r, const struct box *b)
{
	const struct template_build *of = r->build;
	struct arena *a = &k->arena;

	k->image = arena_view(a, b->spec.image);
	k->digest = arena_view(a, b->spec.digest);
	k->user = arena_view(a, of->user);
	k->workdir = arena_view(a, of->workdir);
	k->env.keys = arena_array(a, of->env.n, sizeof(struct view));
	k->env.values = arena_array(a, of->env.n, sizeof(struct view));
	if (!k->image.p || !k->digest.p || !k->user.p || !k->workdir.p || !k->env.keys || !k->env.values)
		return -ENOMEM;
	for (; k->env.n < of->env.n; k->env.n++) {
		k->env.keys[k->env.n] = arena_view(a, of->env.keys[k->env.n]);
		k->env.values[k->env.n] = arena_view(a, of->env.values[k->env.n]);
		if (!k->env.keys[k->env.n].p || !k->env.values[k->env.n].p)
			return -ENOMEM;
	}
	memcpy(k->template, of->of->id, sizeof(k->template));
	memcpy(k->backend, b->spec.backend, sizeof(k->backend));
	_cleanup_(buf_done) struct buf row = BUF_INIT(ROW_MAX);
	return write_row(k, &row);
}

/* Only where a snapshot costs next to nothing: elsewhere every file would be copied. */
static bool can_keep(const struct core *c, const struct box *b)
{
	const struct backend *be = b ? core_backend(c, view_of(b->spec.backend), NULL) : NULL;

	return c->config->max.build_cache_mb && be && core_backend_can(be, "disk_quota");
}

static bool begin(struct template_run *r)
{
	const struct box *b = boxes_by_id(r->core, view_of(r->box));
	struct kept_step *k = can_keep(r->core, b) ? kept_new(r->core, r->build->of->tenant) : NULL;

	if (!k)
		return false;
	memcpy(k->key, r->keys[r->at - 1], sizeof(k->key));
	memcpy(k->parent, r->parent, sizeof(k->parent));
	rnd_name(k->snapshot, BOX_ID);
	k->call.ops = &take_ops;
	struct wire_snapshot_create msg = { .id = view_of(k->snapshot), .box = view_of(b->id) };
	if (copy_state(k, r, b) < 0 ||
	    keeper_call_for(r->core, view_of(k->backend), &k->call, WIRE_TYPE_SNAPSHOT_CREATE, KEEPER_MS,
			    &wire_snapshot_create_msg, &msg) < 0) {
		kept_free(k);
		return false;
	}
	memcpy(r->parent, k->key, sizeof(r->parent));
	k->run = r;
	r->keeping = k;
	return true;
}

void templates_kept_save(struct template_run *r)
{
	const struct template_step *s = &r->steps[r->at - 1];

	/* The others are quick. */
	if ((!view_is(s->type, "RUN") && !view_is(s->type, "COPY")) || !r->keys || !begin(r))
		templates_steps_run(r);
}

uint64_t templates_kept_held(const struct core *c, const struct tenant *t, enum ledger_item i)
{
	return i == LEDGER_DISK ? kept_mb(c, t) : 0;
}
