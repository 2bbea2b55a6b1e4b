/*
 * /v1/sandboxes: the boxes themselves.
 */
#include "boxes.h"
#include "num.h"
#include "rest_boxes.h"
#include "rest_impl.h"
#include "stats.h"
#include "poison.h"

#define PAGE_DEFAULT 100

void rest_boxes_put(struct json_out *o, const struct box *b)
{
	const struct box_spec *s = &b->spec;

	json_out_object(o);
	json_out_kz(o, "id", b->id);
	json_out_key(o, "name");
	if (s->name.n)
		json_out_str(o, s->name);
	else
		json_out_null(o);
	json_out_kz(o, "status", boxes_status_name(b->state.status));
	json_out_kstr(o, "image", s->image);
	json_out_kstr(o, "image_digest", s->digest);
	json_out_kz(o, "backend", "native");
	json_out_kz(o, "tenant", b->tenant->name);
	json_out_kstr(o, "user", s->user);
	json_out_kstr(o, "workdir", s->workdir);
	rest_put_time(o, "created_at", b->state.created_ms);
	rest_put_time(o, "expires_at", b->state.expires_ms);
	json_out_key(o, "limits");
	json_out_object(o);
	json_out_key(o, "cpu");
	json_out_double(o, s->limits.cpu_milli / 1000.0);
	json_out_ku64(o, "memory_mb", s->limits.memory_mb);
	json_out_ku64(o, "pids", s->limits.pids);
	json_out_ku64(o, "nofile", s->limits.nofile);
	json_out_end(o, '}');
	json_out_kbool(o, "readonly_root", s->readonly_root);
	json_out_key(o, "metadata");
	json_out_object(o);
	for (size_t i = 0; i < s->metadata.n; i++) {
		json_out_key_view(o, s->metadata.keys[i]);
		json_out_str(o, s->metadata.values[i]);
	}
	json_out_end(o, '}');
	json_out_end(o, '}');
}

static void reply_box(struct req *r, int status, const struct box *b)
{
	struct buf out = BUF_INIT(REST_ANSWER_MAX);
	struct json_out o;
	json_out_init(&o, &out);
	rest_boxes_put(&o, b);
	rest_reply(r, status, &out);
}

/* ---- create ---- */

#define AT(f) .offset = offsetof(struct box_wish_limits, f), .has = offsetof(struct box_wish_limits, has_##f)
static const struct json_field limits_fields[] = {
	{ "cpu", JSON_F_DOUBLE, AT(cpu), .nullable = true },
	{ "memory_mb", JSON_F_U64, AT(memory_mb), .nullable = true },
	{ "pids", JSON_F_U64, AT(pids), .nullable = true },
	{ "nofile", JSON_F_U64, AT(nofile), .nullable = true },
};
#undef AT
static const struct json_schema limits_schema = { limits_fields, ELEMS(limits_fields) };

#define AT(f) .offset = offsetof(struct box_wish, f)
static const struct json_field create_fields[] = {
	{ "name", JSON_F_STRING, AT(name), .min = 1, .nullable = true },
	{ "image", JSON_F_STRING, AT(image), .min = 1, .max = 200, .nullable = true },
	{ "user", JSON_F_STRING, AT(user), .min = 1, .nullable = true },
	{ "workdir", JSON_F_STRING, AT(workdir), .min = 1, .nullable = true },
	{ "env", JSON_F_STRMAP, AT(env), .nullable = true },
	{ "metadata", JSON_F_STRMAP, AT(metadata), .nullable = true },
	{ "limits", JSON_F_OBJECT, AT(limits), .sub = &limits_schema, .nullable = true },
	{ "ttl_seconds", JSON_F_U64, AT(ttl_seconds), .has = offsetof(struct box_wish, has_ttl),
	  .nullable = true },
	{ "readonly_root", JSON_F_BOOL, AT(readonly_root), .nullable = true },
};
#undef AT
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields) };

static void on_created(void *arg, const void *result, const struct err *e)
{
	struct req *r = arg;
	r->job = NULL;
	if (e)
		rest_fail(r, e);
	else
		reply_box(r, 201, result);
}

static void create(struct req *r)
{
	struct box_wish w = { 0 };
	struct err e = { 0 };

	if (rest_read(r, &create_schema, &w) < 0)
		return;
	r->job = create_box(r->core, &r->actor, &w, on_created, r, &e);
	if (!r->job)
		rest_fail(r, &e);
}

/* ---- list ---- */

static void put_each(void *arg, const struct box *b)
{
	rest_boxes_put(arg, b);
}

static int read_filter(struct req *r, struct box_filter *ret, struct err *e)
{
	struct view status = rest_query(r, "status"), limit = rest_query(r, "limit");
	size_t n = strlen("metadata.");
	uint32_t v = PAGE_DEFAULT;

	ret->status = status.p ? boxes_status(status) : BOX_NONE;
	if (status.p && (ret->status == BOX_NONE || ret->status == BOX_DELETING))
		return err_set(e, ERR_INVALID, "status must be creating, running or stopped");
	if (limit.p && (num_u32(limit, &v) < 0 || v < 1 || v > BOXES_PAGE_MAX))
		return err_set(e, ERR_INVALID, "limit must be between 1 and %d", BOXES_PAGE_MAX);
	ret->limit = v;
	ret->cursor = rest_query(r, "cursor");
	if (ret->cursor.p && !ret->cursor.n)
		return err_set(e, ERR_INVALID, "cursor must not be empty");
	ret->metadata.keys = arena_array(r->x->arena, r->n_query, sizeof(struct view));
	ret->metadata.values = arena_array(r->x->arena, r->n_query, sizeof(struct view));
	if (!ret->metadata.keys || !ret->metadata.values)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < r->n_query; i++) {
		if (!view_starts(r->query[i].name, "metadata."))
			continue;
		ret->metadata.keys[ret->metadata.n] = view_skip(r->query[i].name, n);
		ret->metadata.values[ret->metadata.n++] = r->query[i].value;
	}
	return 0;
}

static void list(struct req *r)
{
	struct buf out = BUF_INIT(REST_ANSWER_MAX);
	struct box_filter f = { 0 };
	struct json_out o;
	struct err e = { 0 };
	char next[BOXES_CURSOR_SIZE];

	json_out_init(&o, &out);
	json_out_object(&o);
	json_out_key(&o, "sandboxes");
	json_out_array(&o);
	if (read_filter(r, &f, &e) < 0 || boxes_list(r->core, &r->actor, &f, put_each, &o, next, &e) < 0) {
		buf_done(&out);
		rest_fail(r, &e);
		return;
	}
	json_out_end(&o, ']');
	json_out_kz(&o, "next", next[0] ? next : NULL);
	json_out_end(&o, '}');
	rest_reply(r, 200, &out);
}

/* ---- one of them ---- */

static void get(struct req *r)
{
	struct err e = { 0 };
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, r->params[0], &e);
	if (b)
		reply_box(r, 200, b);
	else
		rest_fail(r, &e);
}

static void on_removed(void *arg, const void *result, const struct err *e)
{
	struct req *r = arg;
	r->job = NULL;
	if (e)
		rest_fail(r, e);
	else
		rest_no_content(r);
}

static void remove_one(struct req *r)
{
	struct err e = { 0 };
	r->job = remove_box(r->core, &r->actor, r->params[0], on_removed, r, &e);
	if (!r->job)
		rest_fail(r, &e);
}

static void on_stats(void *arg, const void *result, const struct err *e)
{
	struct req *r = arg;
	const struct box_stats *s = result;
	struct buf out = BUF_INIT(4096);
	struct json_out o;

	r->job = NULL;
	if (e) {
		rest_fail(r, e);
		return;
	}
	json_out_init(&o, &out);
	json_out_object(&o);
	json_out_ku64(&o, "memory_bytes", s->memory_bytes);
	json_out_ku64(&o, "cpu_usec", s->cpu_usec);
	json_out_ku64(&o, "pids", s->pids);
	json_out_ku64(&o, "oom_kills", s->oom_kills);
	json_out_end(&o, '}');
	rest_reply(r, 200, &out);
}

static void stats(struct req *r)
{
	struct err e = { 0 };
	r->job = stats_box(r->core, &r->actor, r->params[0], on_stats, r, &e);
	if (!r->job)
		rest_fail(r, &e);
}

const struct route rest_boxes_routes[] = {
	{ "POST", "/v1/sandboxes", create, .body = REST_JSON },
	{ "GET", "/v1/sandboxes", list, .query = "status limit cursor metadata.*" },
	{ "GET", "/v1/sandboxes/{id}", get },
	{ "DELETE", "/v1/sandboxes/{id}", remove_one },
	{ "GET", "/v1/sandboxes/{id}/stats", stats },
	{ 0 },
};
