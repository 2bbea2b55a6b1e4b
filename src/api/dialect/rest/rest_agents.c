/*
 * /v1/agents: agents that are installed from manifests.
 */
#include "agent.h"

#include "num.h"
#include "rest_impl.h"
#include "stream.h"
#include "poison.h"

#define PAGE_MOST 1000

/* ---- what is shown ---- */

static void put_asks(struct json_out *o, const struct manifest *m)
{
	json_out_key(o, "manifest");
	manifest_put(o, m);
}

static void put(struct json_out *o, const struct agent *a)
{
	struct agent_view v;

	agents_show(a, &v);
	json_out_object(o);
	json_out_kz(o, "id", v.id);
	json_out_kz(o, "name", v.name);
	json_out_kz(o, "tenant", v.tenant->name);
	json_out_kz(o, "status", agents_status_name(v.status));
	json_out_kz(o, "reason", v.reason[0] ? v.reason : NULL);
	json_out_kz(o, "sandbox", v.box[0] ? v.box : NULL);
	json_out_kz(o, "consented_by", v.consented);
	json_out_ku64(o, "crashes", v.crashes);
	answer_put_time(o, "created_at", v.created_ms);
	answer_put_time(o, "started_at", v.status == AGENT_RUNNING ? v.started_ms : 0);
	answer_put_time(o, "next_start_at", v.next_start_ms);
	json_out_key(o, "upgrade");
	if (v.next_step == AGENT_NEXT_NONE) {
		json_out_null(o);
	} else {
		json_out_object(o);
		json_out_kstr(o, "version", v.next->version);
		json_out_kz(o, "status", agents_next_name(v.next_step));
		json_out_kz(o, "reason", v.next_reason[0] ? v.next_reason : NULL);
		json_out_end(o, '}');
	}
	put_asks(o, v.manifest);
	json_out_end(o, '}');
}

static void put_each(void *arg, const struct agent *a)
{
	put(arg, a);
}

static void on_agent(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	put(o, result);
	answer_send(r, 200);
}

/* ---- install ---- */

struct create_body {
	bool unused; /* the schema puts nothing at offset 0 */
	const struct json *manifest;
	struct view name;
	bool consent;
};

#define AT(f) .offset = offsetof(struct create_body, f)
static const struct json_field create_fields[] = {
	{ "manifest", JSON_F_ANY, AT(manifest), .required = true },
	{ "name", JSON_F_STRING, AT(name), .min = 1, .max = 63, .nullable = true },
	{ "consent", JSON_F_BOOL, AT(consent), .required = true },
};
#undef AT
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields) };

static void on_created(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	put(o, result);
	answer_send(r, 201);
}

/* Without consent nothing is installed, and the answer is what would be asked for. */
static void preview(struct request *r, const struct json *manifest)
{
	struct manifest m;
	struct err e = { 0 };

	if (agents_preview(r->core, &r->actor, manifest, &r->arena, &m, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	put_asks(o, &m);
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void create(struct request *r)
{
	struct create_body body = { 0 };
	struct err e = { 0 };

	if (request_read(r, &create_schema, &body) < 0)
		return;
	if (!body.consent) {
		preview(r, body.manifest);
		return;
	}
	const struct agent_wish w = { .manifest = body.manifest, .name = body.name };
	answer_await(r, agents_create(r->core, &r->actor, &w, on_created, r, &e), &e);
}

/* ---- upgrade ---- */

struct upgrade_body {
	bool unused; /* the schema puts nothing at offset 0 */
	const struct json *manifest;
	bool consent;
};

#define AT(f) .offset = offsetof(struct upgrade_body, f)
static const struct json_field upgrade_fields[] = {
	{ "manifest", JSON_F_ANY, AT(manifest), .required = true },
	{ "consent", JSON_F_BOOL, AT(consent), .required = true },
};
#undef AT
static const struct json_schema upgrade_schema = { upgrade_fields, ELEMS(upgrade_fields) };

/* What it would ask for, and what of that is new. */
static void preview_upgrade(struct request *r, const struct json *manifest)
{
	struct err e = { 0 };
	const struct agent *a = agents_find(r->core, &r->actor, ACT_AGENT_READ, r->params[0], &e);
	struct agent_view v;
	struct manifest m;

	if (!a || agents_preview(r->core, &r->actor, manifest, &r->arena, &m, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	agents_show(a, &v);
	struct json_out *o = answer_json(r);
	json_out_object(o);
	put_asks(o, &m);
	json_out_key(o, "asks_more");
	json_out_array(o);
	agents_upgrade_asks(v.manifest, &m, o);
	json_out_end(o, ']');
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void upgrade(struct request *r)
{
	struct upgrade_body body = { 0 };
	struct err e = { 0 };

	if (request_read(r, &upgrade_schema, &body) < 0)
		return;
	if (body.consent)
		answer_await(
			r, agents_upgrade(r->core, &r->actor, r->params[0], body.manifest, on_created, r, &e),
			&e);
	else
		preview_upgrade(r, body.manifest);
}

/* ---- files ---- */

struct code_upload {
	struct agent_upload *upload;
};

static void release_upload(struct request *r)
{
	struct code_upload *u = r->own;
	agents_upload_abort(TAKE_PTR(u->upload));
}

static void on_building(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	struct json_out *o = answer_result(r, e);

	if (!o)
		return;
	put(o, result);
	answer_send(r, 202);
}

static void on_code(struct http_exchange *x, struct view data, bool last)
{
	struct request *r = x->ctx;
	struct code_upload *u = r->own;
	struct err e = { 0 };

	if (data.n && agents_upload_write(u->upload, data, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	if (last)
		answer_await(r, agents_upload_commit(TAKE_PTR(u->upload), on_building, r, &e), &e);
}

static const struct http_ops code_ops = { .on_body = on_code, .on_abort = request_abort };

static void code(struct request *r)
{
	struct code_upload *u = request_own(r, sizeof(*u));
	struct err e = { 0 };

	if (!u)
		return;
	r->release = release_upload;
	u->upload = agents_upload_open(r->core, &r->actor, r->params[0], &e);
	if (u->upload)
		r->x->ops = &code_ops;
	else
		answer_fail(r, &e);
}

/* ---- list, show, change ---- */

static void list(struct request *r)
{
	struct err e = { 0 };
	struct json_out *o = answer_json_list(r, "agents");

	if (agents_each(r->core, &r->actor, put_each, o, &e) < 0)
		answer_fail(r, &e);
	else
		answer_send_list(r);
}

static void get(struct request *r)
{
	struct err e = { 0 };
	const struct agent *a = agents_find(r->core, &r->actor, ACT_AGENT_READ, r->params[0], &e);

	if (!a) {
		answer_fail(r, &e);
		return;
	}
	put(answer_json(r), a);
	answer_send(r, 200);
}

static void remove_one(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, agents_remove(r->core, &r->actor, r->params[0], answer_removed, r, &e), &e);
}

static void start(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, agents_start(r->core, &r->actor, r->params[0], on_agent, r, &e), &e);
}

static void stop(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, agents_stop(r->core, &r->actor, r->params[0], on_agent, r, &e), &e);
}

static void restart(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, agents_restart(r->core, &r->actor, r->params[0], on_agent, r, &e), &e);
}

/* ---- catalogues ---- */

/* The command line reads them itself: what it has checked is all that comes here. */
static void catalogues(struct request *r)
{
	const struct config *cfg = core_config(r->core);
	struct err e = { 0 };

	if (auth_permit(&r->actor, ACT_AGENT_CREATE, NULL, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json_list(r, "catalogues");
	for (size_t i = 0; i < cfg->agents.n_catalogues; i++) {
		const struct config_catalogue *one = &cfg->agents.catalogue_list[i];
		json_out_object(o);
		json_out_kstr(o, "name", one->name);
		json_out_kstr(o, one->url.p ? "url" : "path", one->url.p ? one->url : one->path);
		json_out_kstr(o, "key", one->key);
		json_out_end(o, '}');
	}
	answer_send_list(r);
}

/* ---- logs ---- */

struct feed {
	struct stream stream;
	struct agent_watch watch;
	const struct agent *agent;
	enum agent_level least;
	uint64_t after;
	bool gone;
};

static void put_entry(struct json_out *o, const struct agent_entry *n)
{
	json_out_ku64(o, "id", n->id);
	answer_put_time(o, "at", n->at_ms);
	json_out_kz(o, "level", agents_level_name(n->level));
	json_out_kz(o, "source", agents_source_name(n->source));
	json_out_kstr(o, "message", n->message);
	json_out_key(o, "data");
	if (n->data.n)
		json_out_raw(o, n->data);
	else
		json_out_null(o);
}

static void stop_feed(struct feed *f)
{
	agents_log_unwatch(&f->watch);
	f->watch.link = (struct list){ 0 };
	stream_release(&f->stream);
}

static void release_feed(struct request *r)
{
	stop_feed(r->own);
}

static void pump(struct feed *f)
{
	const struct agent_entry *n;
	struct json_out o;

	while (!f->stream.full && !f->gone && (n = agents_log_next(f->agent, f->after))) {
		f->after = n->id;
		if (n->level < f->least)
			continue;
		stream_id(&f->stream, n->id);
		stream_open(&f->stream, &o, "log");
		put_entry(&o, n);
		stream_close(&f->stream, &o);
	}
}

static void on_more(struct agent_watch *w, bool gone)
{
	struct feed *f = CONTAINER(w, struct feed, watch);

	if (gone) {
		f->gone = true;
		w->link = (struct list){ 0 };
		stream_finish(&f->stream);
	} else {
		pump(f);
	}
}

static void on_writable(struct http_exchange *x)
{
	struct feed *f = ((struct request *)x->ctx)->own;
	f->stream.full = false;
	pump(f);
}

static void on_drain(struct request *r)
{
	struct feed *f = r->own;
	stream_finish(&f->stream);
}

static const struct http_ops feed_ops = { .on_body = request_drop_body,
					  .on_abort = request_abort,
					  .on_writable = on_writable };

static void follow(struct request *r, struct agent *a, enum stream_form form, enum agent_level least,
		   uint64_t after)
{
	struct feed *f = request_own(r, sizeof(*f));

	if (!f)
		return;
	f->agent = a;
	f->least = least;
	f->after = after;
	f->watch.on_more = on_more;
	stream_init(&f->stream, r, form, &feed_ops);
	r->release = release_feed;
	r->on_drain = on_drain;
	agents_log_watch(a, &f->watch);
	stream_begin(&f->stream, NULL, 0);
	pump(f);
}

static void page(struct request *r, const struct agent *a, enum agent_level least, uint64_t after,
		 uint32_t most, bool given)
{
	struct json_out *o = answer_json_list(r, "entries");
	const struct agent_entry *n;
	uint64_t last = after, from = after;
	uint32_t count = 0;

	/* Without a place to begin at: the newest ones. */
	for (n = agents_log_next(a, after); !given && n; n = agents_log_next(a, n->id))
		count += n->level >= least;
	for (n = agents_log_next(a, after); !given && n && count > most; n = agents_log_next(a, n->id)) {
		count -= n->level >= least;
		from = n->id;
	}
	for (n = agents_log_next(a, from), count = 0; n && count < most; n = agents_log_next(a, n->id)) {
		last = n->id;
		if (n->level < least)
			continue;
		json_out_object(o);
		put_entry(o, n);
		json_out_end(o, '}');
		count++;
	}
	json_out_end(o, ']');
	json_out_ku64(o, "next", MAX(last, after));
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void logs(struct request *r)
{
	struct err e = { 0 };
	struct agent *a = agents_find(r->core, &r->actor, ACT_AGENT_READ, r->params[0], &e);
	struct view level = request_query(r, "level"), after = request_query(r, "after"),
		    last = stream_last_id(r);
	enum stream_form form = stream_form(r);
	enum agent_level least = AGENT_DEBUG;
	uint64_t from = 0;
	uint32_t most = 100;

	if (a && level.p && !agents_level(level, &least)) {
		err_set(&e, ERR_INVALID, "level must be debug, info, success, warn or error");
		a = NULL;
	}
	if (a && form == STREAM_SSE && last.p)
		after = last;
	if (a && after.p && num_u64(after, &from) < 0) {
		err_set(&e, ERR_INVALID, "after must be the id of an entry");
		a = NULL;
	}
	if (!a || request_query_limit(r, PAGE_MOST, &most, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	if (form != STREAM_NONE)
		follow(r, a, form, least, from);
	else
		page(r, a, least, from, most, after.p != NULL);
}

const struct route rest_agents_routes[] = {
	{ "POST", "/v1/agents", create, .body = ROUTE_JSON, .body_max = MANIFEST_BYTES,
	  .audit = "agent.create" },
	{ "GET", "/v1/agents", list },
	{ "GET", "/v1/catalogues", catalogues },
	{ "GET", "/v1/agents/{id}", get },
	{ "DELETE", "/v1/agents/{id}", remove_one, .audit = "agent.delete" },
	{ "PUT", "/v1/agents/{id}/code", code, .body = ROUTE_STREAM, .audit = "agent.code" },
	{ "POST", "/v1/agents/{id}/upgrade", upgrade, .body = ROUTE_JSON, .body_max = MANIFEST_BYTES,
	  .audit = "agent.upgrade" },
	{ "POST", "/v1/agents/{id}/start", start, .audit = "agent.start" },
	{ "POST", "/v1/agents/{id}/stop", stop, .audit = "agent.stop" },
	{ "POST", "/v1/agents/{id}/restart", restart, .audit = "agent.restart" },
	{ "GET", "/v1/agents/{id}/logs", logs, .query = "level after limit" },
	{ 0 },
};
