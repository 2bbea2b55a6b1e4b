/*
 * E2B: templates, their names and tags.
 */
#include "disk.h"
#include "e2b_impl.h"
#include "poison.h"

/* ---- showing ---- */

static const char *status_name(const struct template_build *b)
{
	static const char *const names[] = { "waiting", "building", "ready", "error" };
	return b ? names[templates_status(b)] : "error";
}

static void put_names(struct json_out *o, const struct template *t)
{
	static const char *const keys[] = { "aliases", "names" };

	for (size_t i = 0; i < ELEMS(keys); i++) {
		json_out_key(o, keys[i]);
		json_out_array(o);
		json_out_str(o, view_of(t->name));
		json_out_end(o, ']');
	}
}

static void put_size(struct json_out *o, const struct request *r, const struct template_build *b)
{
	const struct config *c = core_config(r->core);

	json_out_ku64(o, "cpuCount", b && b->cpu ? b->cpu : (uint64_t)(c->defaults.limits.cpu + 0.999));
	json_out_ku64(o, "memoryMB", b && b->memory_mb ? b->memory_mb : c->defaults.limits.memory_mb);
	json_out_ku64(o, "diskSizeMB", 0);
	json_out_kz(o, "envdVersion", E2B_ENVD_VERSION);
}

static void put_common(struct json_out *o, const struct template *t)
{
	const struct template_build *b = templates_newest(t);

	json_out_kz(o, "templateID", t->id);
	json_out_kbool(o, "public", false);
	put_names(o, t);
	answer_put_time(o, "createdAt", t->created_ms);
	answer_put_time(o, "updatedAt", b ? b->updated_ms : t->created_ms);
	json_out_kz(o, "lastSpawnedAt", NULL);
	json_out_ku64(o, "spawnCount", 0);
}

struct listing {
	struct json_out o;
	struct request *r;
};

static void put_each(void *arg, const struct template *t)
{
	struct listing *l = arg;
	const struct template_build *newest = templates_newest(t);
	uint64_t n = 0;

	TEMPLATES_EACH_BUILD(b, t)
	n++;
	json_out_object(&l->o);
	put_common(&l->o, t);
	json_out_kz(&l->o, "buildID", newest ? newest->id : "");
	json_out_kz(&l->o, "buildStatus", status_name(newest));
	json_out_ku64(&l->o, "buildCount", n);
	json_out_kz(&l->o, "createdBy", NULL);
	put_size(&l->o, l->r, newest);
	json_out_end(&l->o, '}');
}

static void list(struct request *r)
{
	struct buf out = BUF_INIT(ANSWER_MAX);
	struct listing l = { .r = r };
	struct err e = { 0 };

	json_out_init(&l.o, &out);
	json_out_array(&l.o);
	if (templates_each(r->core, &r->actor, put_each, &l, &e) < 0) {
		buf_done(&out);
		answer_fail(r, &e);
		return;
	}
	json_out_end(&l.o, ']');
	answer_reply(r, 200, &out);
}

static void put_build(struct json_out *o, const struct request *r, const struct template_build *b)
{
	json_out_object(o);
	json_out_kz(o, "buildID", b->id);
	json_out_kz(o, "status", status_name(b));
	answer_put_time(o, "createdAt", b->created_ms);
	answer_put_time(o, "updatedAt", b->updated_ms);
	if (templates_status(b) >= TEMPLATE_READY)
		answer_put_time(o, "finishedAt", b->updated_ms);
	put_size(o, r, b);
	json_out_end(o, '}');
}

static void get(struct request *r)
{
	struct err e = { 0 };
	const struct template *t = templates_find(r->core, &r->actor, ACT_SNAPSHOT_READ, r->params[0], &e);

	if (!t) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	put_common(o, t);
	json_out_key(o, "builds");
	json_out_array(o);
	TEMPLATES_EACH_BUILD(b, t)
	put_build(o, r, b);
	json_out_end(o, ']');
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* ---- changing ---- */

struct patch_body {
	bool unused; /* the schema puts nothing at offset 0 */
	bool public;
};

static const struct json_field patch_fields[] = {
	{ "public", JSON_F_BOOL, .offset = offsetof(struct patch_body, public), .nullable = true },
};
static const struct json_schema patch_schema = { patch_fields, ELEMS(patch_fields) };

static void patch(struct request *r)
{
	struct patch_body body = { 0 };
	struct err e = { 0 };

	if (request_read(r, &patch_schema, &body) < 0)
		return;
	const struct template *t = templates_find(r->core, &r->actor, ACT_SNAPSHOT_DELETE, r->params[0], &e);
	if (t && body.public)
		err_set(&e, ERR_UNSUPPORTED, "templates are their tenant's alone: public is not supported");
	if (e.code) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	put_names(o, t);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void remove_one(struct request *r)
{
	struct e2b_template t;
	struct err e = { 0 };

	if (templates_find(r->core, &r->actor, ACT_SNAPSHOT_READ, r->params[0], NULL))
		r->job = templates_remove(r->core, &r->actor, r->params[0], answer_removed, r, &e);
	else if (e2b_find_template(r, r->params[0], &t, &e) >= 0 && t.snapshot.n)
		r->job = snapshots_remove(r->core, &r->actor, t.snapshot, answer_removed, r, &e);
	else if (!e.code)
		err_set(&e, ERR_FORBIDDEN,
			"template '%.*s' is an image; those are removed by an admin (DELETE /v1/images)",
			(int)MIN(r->params[0].n, 60), r->params[0].p);
	if (!r->job)
		answer_fail(r, &e);
}

/* A template has its name as soon as it has a build, whatever becomes of that. */
static void alias(struct request *r)
{
	const struct template *own =
		templates_find(r->core, &r->actor, ACT_SNAPSHOT_READ, r->params[0], NULL);
	struct e2b_template t = { 0 };
	struct err e = { 0 };

	if (!own && e2b_find_template(r, r->params[0], &t, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	if (t.build)
		own = t.build->of;
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_kstr(o, "templateID",
		      own            ? view_of(own->id)
		      : t.snapshot.n ? t.snapshot
		      : t.image.n    ? t.image
				     : VIEW("base"));
	json_out_kbool(o, "public", !own && !t.snapshot.n);
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* ---- tags ---- */

struct tags_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view name;
	struct json_strlist tags;
};

#define AT(f) .offset = offsetof(struct tags_body, f)
static const struct json_field tag_fields[] = {
	{ "target", JSON_F_STRING, AT(name), .min = 1, .max = 200, .required = true },
	{ "tags", JSON_F_STRLIST, AT(tags), .min = 1, .max = TEMPLATES_TAGS_MAX, .required = true },
};
static const struct json_field untag_fields[] = {
	{ "name", JSON_F_STRING, AT(name), .min = 1, .max = 200, .required = true },
	{ "tags", JSON_F_STRLIST, AT(tags), .min = 1, .max = TEMPLATES_TAGS_MAX, .required = true },
};
#undef AT
static const struct json_schema tag_schema = { tag_fields, ELEMS(tag_fields) };
static const struct json_schema untag_schema = { untag_fields, ELEMS(untag_fields) };

static void on_tagged(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct template_build *b = result;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	json_out_object(o);
	json_out_kz(o, "buildID", b->id);
	json_out_key(o, "tags");
	json_out_array(o);
	for (size_t i = 0; i < b->n_tags; i++)
		json_out_str(o, view_of(b->tags[i]));
	json_out_end(o, ']');
	json_out_end(o, '}');
	answer_send(r, 201);
}

static void tag(struct request *r)
{
	struct tags_body body = { 0 };
	struct err e = { 0 };

	if (request_read(r, &tag_schema, &body) < 0)
		return;
	answer_await(r, templates_tag(r->core, &r->actor, body.name, &body.tags, on_tagged, r, &e), &e);
}

static void untag(struct request *r)
{
	struct tags_body body = { 0 };
	struct err e = { 0 };

	if (request_read(r, &untag_schema, &body) < 0)
		return;
	answer_await(r, templates_untag(r->core, &r->actor, body.name, &body.tags, answer_removed, r, &e),
		     &e);
}

static void tags(struct request *r)
{
	struct err e = { 0 };
	const struct template *t = templates_find(r->core, &r->actor, ACT_SNAPSHOT_READ, r->params[0], &e);

	if (!t) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_array(o);
	TEMPLATES_EACH_BUILD(b, t)
	for (size_t i = 0; templates_status(b) == TEMPLATE_READY && i < b->n_tags; i++) {
		json_out_object(o);
		json_out_kz(o, "tag", b->tags[i]);
		json_out_kz(o, "buildID", b->id);
		answer_put_time(o, "createdAt", b->updated_ms);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	answer_send(r, 200);
}

/* Of two that match, the later one counts. */
const struct route e2b_templates_routes[] = {
	{ "GET", "/templates", list, .query = "teamID" },
	{ "GET", "/templates/{id}", get },
	{ "PATCH", "/v2/templates/{id}", patch, .body = ROUTE_JSON },
	{ "DELETE", "/templates/{id}", remove_one, .audit = "template.delete" },
	{ "GET", "/templates/aliases/{alias}", alias },
	{ "GET", "/templates/{id}/tags", tags },
	{ "POST", "/templates/tags", tag, .body = ROUTE_JSON, .audit = "template.tag" },
	{ "DELETE", "/templates/tags", untag, .body = ROUTE_JSON, .audit = "template.untag" },
	{ 0 },
};
