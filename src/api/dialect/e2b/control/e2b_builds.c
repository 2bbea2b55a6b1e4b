/*
 * E2B: building templates, from the request for a build to its end.
 */
#include <stdio.h>

#include "e2b_impl.h"
#include "num.h"
#include "poison.h"

/* ---- a build that waits ---- */

struct request_body {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view name, alias, team;
	struct json_strlist tags;
	uint64_t cpu, memory_mb, free_disk_mb;
};

#define AT(f) .offset = offsetof(struct request_body, f)
static const struct json_field request_fields[] = {
	{ "name", JSON_F_STRING, AT(name), .min = 1, .max = 200, .nullable = true },
	{ "alias", JSON_F_STRING, AT(alias), .min = 1, .max = 200,
	  .nullable = true }, /* what it was called at first */
	{ "tags", JSON_F_STRLIST, AT(tags), .max = TEMPLATES_TAGS_MAX, .nullable = true },
	{ "teamID", JSON_F_STRING, AT(team), .nullable = true },
	{ "cpuCount", JSON_F_U64, AT(cpu), .max = 1024, .nullable = true },
	{ "memoryMB", JSON_F_U64, AT(memory_mb), .max = UINT32_MAX, .nullable = true },
	{ "minFreeDiskMb", JSON_F_U64, AT(free_disk_mb), .max = UINT32_MAX, .nullable = true },
};
#undef AT
static const struct json_schema request_schema = { request_fields, ELEMS(request_fields) };

static void reply_requested(struct request *r, const struct template_build *b)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kz(o, "templateID", b->of->id);
	json_out_kz(o, "buildID", b->id);
	json_out_kbool(o, "public", false);
	json_out_key(o, "names");
	json_out_array(o);
	json_out_str(o, view_of(b->of->name));
	json_out_end(o, ']');
	json_out_key(o, "aliases");
	json_out_array(o);
	json_out_str(o, view_of(b->of->name));
	json_out_end(o, ']');
	json_out_key(o, "tags");
	json_out_array(o);
	for (size_t i = 0; i < b->n_tags; i++)
		json_out_str(o, view_of(b->tags[i]));
	json_out_end(o, ']');
	json_out_end(o, '}');
	answer_send(r, 202);
}

static void on_requested(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (answer_ended(r, e))
		reply_requested(r, result);
}

static void request(struct request *r)
{
	struct request_body body = { 0 };
	struct view bare, rest;
	struct err e = { 0 };

	if (request_read(r, &request_schema, &body) < 0)
		return;
	struct template_wish w = { body.name.n ? body.name : body.alias, body.tags, body.cpu,
				   body.memory_mb };
	bare = view_split(w.name, ':', &rest);
	if (!w.name.n)
		err_set(&e, ERR_INVALID, "name is missing");
	else if (e2b_is_default(bare))
		err_set(&e, ERR_CONFLICT, "'%.*s' is the installation's own template", VIEW_ARG(bare));
	else if (body.free_disk_mb)
		err_set(&e, ERR_UNSUPPORTED, "minFreeDiskMb is not supported");
	else
		r->job = templates_request(r->core, &r->actor, &w, on_requested, r, &e);
	if (!r->job)
		answer_fail(r, &e);
}

/* ---- files ---- */

static void files(struct request *r)
{
	struct buf url = BUF_INIT(4096);
	char signature[65];
	int64_t expires;
	struct err e = { 0 };

	const struct template *t = templates_find(r->core, &r->actor, ACT_SNAPSHOT_READ, r->params[0], &e);
	if (!t || templates_layer_sign(r->core, &r->actor, r->params[0], r->params[1], signature, &expires,
				       &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	buf_printf(&url, "%s://%.*s/templates/%s/files/%.*s?expires=%lld&signature=%s",
		   r->x->tls ? "https" : "http", VIEW_ARG(r->x->host), t->id, VIEW_ARG(r->params[1]),
		   (long long)expires, signature);
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_kbool(o, "present", templates_layer_present(r->core, t, r->params[1]));
	json_out_kstr(o, "url", buf_view(&url));
	json_out_end(o, '}');
	buf_done(&url);
	answer_send(r, 201);
}

struct upload {
	struct template_layer *layer;
};

static void on_gone(struct request *r)
{
	struct upload *u = r->own;
	if (u->layer)
		templates_layer_abort(TAKE_PTR(u->layer));
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct request *r = x->ctx;
	struct upload *u = r->own;
	struct buf out = BUF_INIT(64);
	struct err e = { 0 };

	if (templates_layer_write(u->layer, data, &e) < 0) {
		on_gone(r);
		answer_fail(r, &e);
	} else if (last) {
		templates_layer_commit(TAKE_PTR(u->layer));
		buf_puts(&out, "{}");
		answer_reply(r, 200, &out);
	}
}

static void on_abort(struct http_exchange *x)
{
	struct request *r = x->ctx;
	on_gone(r);
	request_done(r);
}

static const struct http_ops upload_ops = { .on_body = on_body, .on_abort = on_abort };

static void upload(struct request *r)
{
	struct upload *u = request_own(r, sizeof(*u));
	struct view signature = request_query(r, "signature");
	struct err e = { 0 };

	if (!u)
		return;
	u->layer = templates_layer_open(r->core, r->params[0], r->params[1], request_query(r, "expires"),
					signature.p ? signature : VIEW(""), &e);
	if (!u->layer) {
		answer_fail(r, &e);
		return;
	}
	r->on_gone = on_gone;
	r->x->ops = &upload_ops;
}

/* ---- its steps ---- */

struct step_body {
	bool force_upload, symlinks, gzip; /* the client's own business */
	struct template_step step;
};

#define AT(f) .offset = offsetof(struct step_body, f)
static const struct json_field step_fields[] = {
	{ "type", JSON_F_STRING, AT(step.type), .required = true },
	{ "args", JSON_F_STRLIST, AT(step.args), .nullable = true },
	{ "filesHash", JSON_F_STRING, AT(step.hash), .nullable = true },
	{ "force", JSON_F_BOOL, AT(step.force), .nullable = true },
	{ "forceUpload", JSON_F_BOOL, AT(force_upload), .nullable = true },
	{ "resolveSymlinks", JSON_F_BOOL, AT(symlinks), .nullable = true },
	{ "gzip", JSON_F_BOOL, AT(gzip), .nullable = true },
};
#undef AT
static const struct json_schema step_schema = { step_fields, ELEMS(step_fields) };

struct begin_body {
	bool unused, force; /* the schema puts nothing at offset 0 */
	struct view image, template, start, ready;
	const struct json *steps, *registry;
};

#define COMMAND_MAX (64u * 1024)
#define AT(f)       .offset = offsetof(struct begin_body, f)
static const struct json_field begin_fields[] = {
	{ "fromImage", JSON_F_STRING, AT(image), .max = 300, .nullable = true },
	{ "fromTemplate", JSON_F_STRING, AT(template), .max = 200, .nullable = true },
	{ "fromImageRegistry", JSON_F_ANY, AT(registry), .nullable = true },
	{ "steps", JSON_F_ANY, AT(steps), .nullable = true },
	{ "startCmd", JSON_F_STRING, AT(start), .max = COMMAND_MAX, .nullable = true },
	{ "readyCmd", JSON_F_STRING, AT(ready), .max = COMMAND_MAX, .nullable = true },
	{ "force", JSON_F_BOOL, AT(force), .nullable = true },
};
#undef AT
static const struct json_schema begin_schema = { begin_fields, ELEMS(begin_fields) };

static bool is_default_image(struct view name)
{
	struct view tag, bare = view_split(name, ':', &tag);
	return view_is(bare, "e2bdev/base") || view_is(bare, "e2bdev/code-interpreter") ||
	       e2b_is_default(bare);
}

/* "ubuntu:22.04", though it may be written with where registries keep it. */
static struct view local_name(struct view image)
{
	static const char *const places[] = { "docker.io/", "index.docker.io/", "library/" };

	for (size_t i = 0; i < ELEMS(places); i++)
		if (view_starts(image, places[i]))
			image = view_skip(image, strlen(places[i]));
	return image;
}

/* There is no registry: what a build can start from is here. */
static int find_base(struct request *r, const struct begin_body *body, struct template_plan *p, struct err *e)
{
	struct e2b_template t;

	if (body->registry && body->registry->type != JSON_NULL)
		return err_set(e, ERR_UNSUPPORTED,
			       "images of registries are not supported: import the image first");
	if (body->image.n && body->template.n)
		return err_set(e, ERR_INVALID, "fromImage and fromTemplate exclude each other");
	if (is_default_image(body->image) || (!body->image.n && !body->template.n))
		return 0;
	if (e2b_find_template(r, body->image.n ? local_name(body->image) : body->template, &t, e) < 0) {
		if (!body->image.n)
			return -1;
		return err_set(e, ERR_NOT_FOUND,
			       "there is no image '%.*s' here, and nothing is fetched from a registry: "
			       "import it first",
			       (int)MIN(body->image.n, 80), body->image.p);
	}
	p->image = t.image;
	p->snapshot = t.snapshot;
	p->base = t.build;
	return 0;
}

static int read_steps(struct request *r, const struct json *list, struct template_plan *p, struct err *e)
{
	if (!list || list->type == JSON_NULL)
		return 0;
	if (list->type != JSON_ARRAY || list->n > TEMPLATES_STEPS_MAX)
		return err_set(e, ERR_INVALID, "steps must be an array of at most %d", TEMPLATES_STEPS_MAX);
	p->steps = arena_array(&r->arena, list->n, sizeof(*p->steps));
	if (!p->steps)
		return err_set(e, ERR_TOO_LARGE, "the steps are too large");
	for (p->n = 0; p->n < list->n; p->n++) {
		struct step_body one = { 0 };
		if (json_read(&r->arena, &list->items[p->n], &step_schema, &one, false, e) < 0)
			return err_wrap(e, "steps[%zu]", p->n);
		p->steps[p->n] = one.step;
	}
	return 0;
}

static void begin(struct request *r)
{
	struct begin_body body = { .start = VIEW(""), .ready = VIEW("") };
	struct template_plan p = { .image = VIEW_NONE };
	struct err e = { 0 };

	if (request_read(r, &begin_schema, &body) < 0)
		return;
	struct template_build *b = templates_build(r->core, &r->actor, r->params[0], r->params[1], &e);
	p.start = body.start;
	p.ready = body.ready;
	p.force = body.force;
	if (!b || find_base(r, &body, &p, &e) < 0 || read_steps(r, body.steps, &p, &e) < 0 ||
	    templates_begin(r->core, &r->actor, b, &p, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	struct buf out = BUF_INIT(64);
	buf_puts(&out, "{}");
	answer_reply(r, 202, &out);
}

/* ---- how it goes ---- */

static const char *const levels[] = { "debug", "info", "warn", "error" };

static void put_entry(struct json_out *o, const struct template_log *l)
{
	json_out_object(o);
	answer_put_time(o, "timestamp", l->at_ms);
	json_out_kz(o, "level", levels[l->level]);
	json_out_kz(o, "message", l->text);
	json_out_end(o, '}');
}

static void put_logs(struct json_out *o, const struct template_build *b, size_t first, size_t limit,
		     size_t least)
{
	static const char *const keys[] = { "logs", "logEntries" };

	for (size_t k = 0; k < ELEMS(keys); k++) {
		size_t skipped = 0, n = 0;
		json_out_key(o, keys[k]);
		json_out_array(o);
		for (size_t i = 0; i < b->n_logs && n < limit; i++) {
			if (b->logs[i].level < least || skipped++ < first)
				continue;
			n++;
			if (k == 1)
				put_entry(o, &b->logs[i]);
			else
				json_out_str(o, view_of(b->logs[i].text));
		}
		json_out_end(o, ']');
	}
}

static int read_place(const struct request *r, uint32_t *first, uint32_t *limit, size_t *least, struct err *e)
{
	struct view offset = request_query(r, "logsOffset"), max = request_query(r, "limit"),
		    level = request_query(r, "level");

	if (offset.p && num_u32(offset, first) < 0)
		return err_set(e, ERR_INVALID, "logsOffset must be a number");
	if (max.p && (num_u32(max, limit) < 0 || *limit > TEMPLATES_PAGE))
		return err_set(e, ERR_INVALID, "limit must be between 0 and %d", TEMPLATES_PAGE);
	while (level.p && *least < ELEMS(levels) && !view_is(level, levels[*least]))
		++*least;
	return *least < ELEMS(levels) ? 0
				      : err_set(e, ERR_INVALID, "level must be debug, info, warn or error");
}

static void status(struct request *r)
{
	static const char *const names[] = { "waiting", "building", "ready", "error" };
	struct err e = { 0 };
	uint32_t first = 0, limit = TEMPLATES_PAGE;
	size_t least = 0;
	const struct template_build *b = templates_build(r->core, &r->actor, r->params[0], r->params[1], &e);

	if (!b || read_place(r, &first, &limit, &least, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_kz(o, "templateID", b->of->id);
	json_out_kz(o, "buildID", b->id);
	json_out_kz(o, "status", names[templates_status(b)]);
	put_logs(o, b, first, limit, least);
	if (templates_status(b) == TEMPLATE_ERROR) {
		json_out_key(o, "reason");
		json_out_object(o);
		json_out_kz(o, "message", b->reason);
		json_out_kz(o, "step", b->step);
		json_out_end(o, '}');
	}
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* All of it that is kept, by time. */
static int read_span(const struct request *r, int64_t *from_ms, bool *backward, struct err *e)
{
	struct view cursor = request_query(r, "cursor"), direction = request_query(r, "direction");

	if (cursor.p && num_i64(cursor, from_ms) < 0)
		return err_set(e, ERR_INVALID, "cursor must be milliseconds since 1970");
	*backward = view_is(direction, "backward");
	return !direction.p || *backward || view_is(direction, "forward")
		       ? 0
		       : err_set(e, ERR_INVALID, "direction must be forward or backward");
}

static void logs(struct request *r)
{
	struct err e = { 0 };
	uint32_t first = 0, limit = TEMPLATES_PAGE, n = 0;
	size_t least = 0;
	int64_t from_ms = 0;
	bool backward = false;
	const struct template_build *b = templates_build(r->core, &r->actor, r->params[0], r->params[1], &e);

	if (!b || read_place(r, &first, &limit, &least, &e) < 0 ||
	    read_span(r, &from_ms, &backward, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_key(o, "logs");
	json_out_array(o);
	for (size_t i = 0; i < b->n_logs && n < limit; i++) {
		const struct template_log *l = &b->logs[backward ? b->n_logs - 1 - i : i];
		if (l->level < least || (from_ms && (backward ? l->at_ms > from_ms : l->at_ms < from_ms)))
			continue;
		put_entry(o, l);
		n++;
	}
	json_out_end(o, ']');
	json_out_end(o, '}');
	answer_send(r, 200);
}

const struct route e2b_builds_routes[] = {
	{ "POST", "/v3/templates", request, .body = ROUTE_JSON, .audit = "template.create" },
	{ "GET", "/templates/{id}/files/{hash}", files },
	{ "PUT", "/templates/{id}/files/{hash}", upload, .auth = ROUTE_SIGNED, .body = ROUTE_STREAM,
	  .query = "expires signature" },
	{ "POST", "/v2/templates/{id}/builds/{build}", begin, .body = ROUTE_JSON, .audit = "template.build" },
	{ "GET", "/templates/{id}/builds/{build}/status", status, .query = "logsOffset limit level" },
	{ "GET", "/templates/{id}/builds/{build}/logs", logs,
	  .query = "cursor limit direction level source" },
	{ 0 },
};
