/*
 * E2B: create, list, show and delete sandboxes.
 */
#include <stdio.h>

#include "clock.h"
#include "e2b_network.h"
#include "e2b_volumes.h"
#include "envd.h"
#include "net.h"
#include "text.h"
#include "poison.h"

#define PAGE_DEFAULT 100
/* What a date without an end is to clients that want a date. */
#define NEVER "9999-12-31T23:59:59.000Z"

static void put_when(struct json_out *o, const char *key, int64_t ms)
{
	if (ms)
		answer_put_time(o, key, ms);
	else
		json_out_kz(o, key, NEVER);
}

/* What lists and details have in common, into an open object. */
static void put_common(struct json_out *o, struct request *r, const struct box *b)
{
	const struct box_spec *s = &b->spec;

	json_out_kz(o, "sandboxID", b->id);
	json_out_kstr(o, "templateID", e2b_template_of(r, b));
	json_out_kstr(o, "alias", e2b_alias_of(r, b));
	json_out_kz(o, "clientID", E2B_CLIENT);
	put_when(o, "startedAt", b->state.created_ms);
	put_when(o, "endAt", b->state.expires_ms);
	json_out_ku64(o, "cpuCount", (s->limits.cpu_milli + 999) / 1000);
	json_out_ku64(o, "memoryMB", s->limits.memory_mb);
	json_out_ku64(o, "diskSizeMB", s->limits.disk_mb);
	json_out_kz(o, "state", e2b_state(b));
	json_out_kz(o, "envdVersion", E2B_ENVD_VERSION);
	json_out_kmap(o, "metadata", &s->metadata);
	e2b_volumes_put(o, b);
}

static void get(struct request *r)
{
	struct err e = { 0 };
	const struct box *b = boxes_find(r->core, &r->actor, ACT_BOX_READ, r->params[0], &e);

	if (!b) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	put_common(o, r, b);
	e2b_put_access(o, r, b);
	e2b_network_put(o, b);
	json_out_key(o, "lifecycle");
	json_out_object(o);
	json_out_kz(o, "onTimeout", b->spec.on_end == SPEC_END_DELETE ? "kill" : "pause");
	json_out_kbool(o, "autoResume", b->spec.auto_resume);
	json_out_end(o, '}');
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void kill_one(struct request *r)
{
	struct err e = { 0 };
	answer_await(r, remove_box(r->core, &r->actor, r->params[0], answer_removed, r, &e), &e);
}

/* ---- create ---- */

struct auto_resume_body {
	bool unused; /* the schema puts nothing at offset 0 */
	bool enabled;
};

static const struct json_field auto_resume_fields[] = {
	{ "enabled", JSON_F_BOOL, .offset = offsetof(struct auto_resume_body, enabled), .required = true },
};
static const struct json_schema auto_resume_schema = { auto_resume_fields, ELEMS(auto_resume_fields) };

struct create_body {
	struct view template;
	uint64_t timeout;
	struct json_strmap metadata, env;
	bool auto_pause, auto_pause_memory, secure, internet, has_internet;
	struct auto_resume_body auto_resume;
	const struct json *network, *iam, *mcp, *volumes;
};

#define AT(f) .offset = offsetof(struct create_body, f)
static const struct json_field create_fields[] = {
	{ "templateID", JSON_F_STRING, AT(template), .min = 1, .max = 200, .required = true },
	{ "timeout", JSON_F_U64, AT(timeout), .nullable = true },
	{ "metadata", JSON_F_STRMAP, AT(metadata), .nullable = true },
	{ "envVars", JSON_F_STRMAP, AT(env), .nullable = true },
	{ "autoPause", JSON_F_BOOL, AT(auto_pause), .nullable = true },
	{ "autoPauseMemory", JSON_F_BOOL, AT(auto_pause_memory), .nullable = true },
	{ "autoResume", JSON_F_OBJECT, AT(auto_resume), .sub = &auto_resume_schema, .nullable = true },
	/* Everything needs the box's token here, whether that was asked for or not. */
	{ "secure", JSON_F_BOOL, AT(secure), .nullable = true },
	{ "allow_internet_access", JSON_F_BOOL, AT(internet),
	  .has = offsetof(struct create_body, has_internet), .nullable = true },
	{ "network", JSON_F_ANY, AT(network), .nullable = true },
	{ "iam", JSON_F_ANY, AT(iam), .nullable = true },
	/* Told to the API for its own use: the client itself starts the gateway. */
	{ "mcp", JSON_F_ANY, AT(mcp), .nullable = true },
	{ "volumeMounts", JSON_F_ANY, AT(volumes), .nullable = true },
};
#undef AT
static const struct json_schema create_schema = { create_fields, ELEMS(create_fields) };

struct network_body {
	struct e2b_network out;
	bool allow_public;
	struct view mask_host;
	const struct json *https;
};

#define AT(f) .offset = offsetof(struct network_body, f)
static const struct json_field network_fields[] = {
	{ "allowPublicTraffic", JSON_F_BOOL, AT(allow_public), .nullable = true },
	{ "maskRequestHost", JSON_F_STRING, AT(mask_host), .max = BOX_FIELD_HOST_MAX, .nullable = true },
	{ "allowOut", JSON_F_STRLIST, AT(out.allow_out), .nullable = true },
	{ "denyOut", JSON_F_STRLIST, AT(out.deny_out), .nullable = true },
	{ "rules", JSON_F_ANY, AT(out.rules), .nullable = true },
	{ "egressProxy", JSON_F_ANY, AT(out.proxy), .nullable = true },
	{ "httpsPorts", JSON_F_ANY, AT(https), .nullable = true },
};
#undef AT
static const struct json_schema network_schema = { network_fields, ELEMS(network_fields) };

static int read_network(struct request *r, const struct create_body *body, struct box_wish *w, struct err *e)
{
	struct network_body n = { .allow_public = true };
	const struct json *j = body->network;
	const struct egress_policy *policy;

	if (j && j->type != JSON_NULL && json_read(&r->arena, j, &network_schema, &n, false, e) < 0)
		return err_wrap(e, "network");
	if (e2b_network_says(n.https))
		return err_set(e, ERR_UNSUPPORTED, "network.httpsPorts is not supported");
	n.out.has_internet = body->has_internet;
	n.out.internet = body->internet;
	if (e2b_network_policy(r, &n.out, &policy, e) < 0 ||
	    (policy && policies_wish(r->core, &r->actor, w, policy, e) < 0))
		return -1;
	w->ports_public = n.allow_public;
	w->mask_host = n.mask_host;
	return 0;
}

static int to_wish(struct request *r, const struct create_body *body, struct box_wish *w, struct err *e)
{
	struct e2b_template t;

	if (e2b_network_says(body->iam))
		return err_set(e, ERR_UNSUPPORTED, "iam is not supported");
	if (e2b_volumes_mount(r, body->volumes, &w->workspaces, e) < 0)
		return -1;
	if (body->auto_resume.enabled && body->auto_pause && !body->auto_pause_memory)
		return err_set(e, ERR_INVALID, "autoResume and autoPauseMemory: false exclude each other");
	if (e2b_find_template(r, body->template, &t, e) < 0 ||
	    e2b_take_timeout(r, body->timeout, &w->ttl_seconds, e) < 0)
		return -1;
	w->has_ttl = true;
	w->image = t.image;
	w->snapshot = t.snapshot;
	w->env = body->env;
	w->metadata = body->metadata;
	w->on_end = !body->auto_pause         ? VIEW("delete")
		    : body->auto_pause_memory ? VIEW("pause")
					      : VIEW("stop");
	w->auto_resume = body->auto_resume.enabled;
	if (t.build && templates_to_wish(t.build, &r->arena, w, e) < 0)
		return -1;
	return read_network(r, body, w, e); /* what it may name depends on what it is made of */
}

static void on_started(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;

	if (!answer_ended(r, e))
		return;
	struct core *core = r->core;
	struct loop *loop = r->x->loop;
	e2b_reply_sandbox(r, 201, result);
	envd_ahead(core, loop, result);
}

/* What the template starts runs before anybody has the box. */
static void on_created(void *arg, const void *result, const struct err *e)
{
	struct request *r = arg;
	const struct box *b = result;
	const struct template_build *build = e ? NULL : templates_of_box(r->core, b);
	struct err failed = { 0 };

	if (!build || (!build->start.n && !build->ready.n)) {
		on_started(r, b, e);
		return;
	}
	r->job = templates_start(r->core, &r->actor, view_of(b->id), build, false, on_started, r, &failed);
	if (!r->job)
		answer_fail(r, &failed);
}

static void create_with(struct request *r, uint64_t timeout)
{
	struct create_body body = { .timeout = timeout, .auto_pause_memory = true };
	struct box_wish w = { 0 };
	struct err e = { 0 };

	if (request_read(r, &create_schema, &body) < 0)
		return;
	if (to_wish(r, &body, &w, &e) >= 0) {
		w.early = envd_early;
		r->job = create_box(r->core, &r->actor, &w, on_created, r, &e);
	}
	if (!r->job)
		answer_fail(r, &e);
}

static void create_old(struct request *r)
{
	create_with(r, E2B_TIMEOUT_OLD);
}

static void create(struct request *r)
{
	create_with(r, E2B_TIMEOUT);
}

/* ---- list ---- */

struct wanted {
	const struct request *r;
	bool running, paused;
	struct view template;
	int64_t started_after_ms;
};

static bool fits(const struct box *b, const void *arg)
{
	const struct wanted *w = arg;
	bool running = b->state.status == BOX_RUNNING;

	if (templates_is_builder(w->r->core, b) || b->state.status == BOX_CREATING ||
	    (running ? !w->running : !w->paused))
		return false;
	if (w->template.n && !view_eq(w->template, e2b_template_of(w->r, b)) &&
	    !view_eq(w->template, e2b_alias_of(w->r, b)))
		return false;
	return b->state.created_ms >= w->started_after_ms; /* equality counts */
}

static int read_states(const struct request *r, struct wanted *w, struct err *e)
{
	bool given = false;

	for (size_t i = 0; i < r->n_query; i++) {
		struct view rest = r->query[i].value;
		if (!view_is(r->query[i].name, "state"))
			continue;
		given = true;
		while (rest.p) {
			struct view one = view_split(rest, ',', &rest);
			if (view_is(one, "running"))
				w->running = true;
			else if (view_is(one, "paused"))
				w->paused = true;
			else
				return err_set(e, ERR_INVALID, "state must be running or paused");
		}
	}
	if (!given)
		w->running = w->paused = true;
	return 0;
}

static struct view unescape(struct request *r, struct view raw)
{
	struct buf b = BUF_INIT(raw.n + 1);
	struct view v = VIEW_NONE;

	if (text_unpercent(&b, raw, true) >= 0)
		v = arena_view(r->x->arena, buf_view(&b));
	buf_done(&b);
	return v;
}

/* "k=v&k=v". Clients escape the parts, then the whole, then (as of any parameter) the value. */
static int read_metadata(struct request *r, struct view text, struct json_strmap *ret, struct err *e)
{
	ret->keys = arena_array(r->x->arena, SPEC_METADATA_MAX, sizeof(struct view));
	ret->values = arena_array(r->x->arena, SPEC_METADATA_MAX, sizeof(struct view));
	text = unescape(r, text.p ? text : VIEW(""));
	if (!ret->keys || !ret->values || !text.p)
		return err_set(e, ERR_INVALID, "metadata has a bad escape");
	while (text.p && text.n) {
		struct view value, pair = view_split(text, '&', &text), key = view_split(pair, '=', &value);

		if (ret->n == SPEC_METADATA_MAX)
			return err_set(e, ERR_INVALID, "metadata has more than %d entries",
				       SPEC_METADATA_MAX);
		ret->keys[ret->n] = unescape(r, key);
		ret->values[ret->n] = unescape(r, value.p ? value : VIEW(""));
		if (!ret->keys[ret->n].p || !ret->values[ret->n].p)
			return err_set(e, ERR_INVALID, "metadata has a bad escape");
		ret->n++;
	}
	return 0;
}

static int read_filter(struct request *r, struct box_filter *f, struct wanted *w, struct err *e)
{
	struct view order = request_query(r, "order");
	uint32_t n = PAGE_DEFAULT;

	if (request_query_limit(r, BOXES_PAGE_MAX, &n, e) < 0)
		return -1;
	if (order.p && !view_is(order, "asc") && !view_is(order, "desc"))
		return err_set(e, ERR_INVALID, "order must be asc or desc");
	w->r = r;
	w->template = request_query(r, "template");
	if (e2b_is_default(w->template))
		w->template = VIEW("base");
	struct view after = request_query(r, "startedAfter");
	if (after.p && clock_from_rfc3339(after, &w->started_after_ms) < 0)
		return err_set(e, ERR_INVALID, "startedAfter must be a time like 2026-01-31T12:00:00Z");
	*f = (struct box_filter){ .limit = n,
				  .cursor = request_query(r, "nextToken"),
				  .newest_first = !view_is(order, "asc"),
				  .fits = fits,
				  .fits_arg = w };
	return read_states(r, w, e) < 0 ? -1
					: read_metadata(r, request_query(r, "metadata"), &f->metadata, e);
}

struct listing {
	struct request *r;
	struct json_out o;
	unsigned running;
};

static void put_each(void *arg, const struct box *b)
{
	struct listing *l = arg;
	json_out_object(&l->o);
	put_common(&l->o, l->r, b);
	json_out_end(&l->o, '}');
}

static void count_each(void *arg, const struct box *b)
{
	struct listing *l = arg;
	l->running += b->state.status == BOX_RUNNING;
}

/* All that the filter lets through, whatever the page. */
static int count_running(struct request *r, const struct box_filter *f, struct listing *l, struct err *e)
{
	struct box_filter all = *f;
	char next[BOXES_CURSOR_SIZE];

	all.cursor = VIEW_NONE;
	all.limit = UINT32_MAX;
	return boxes_list(r->core, &r->actor, &all, count_each, l, next, e);
}

static void reply_list(struct request *r, struct box_filter *f, bool paged)
{
	struct buf out = BUF_INIT(ANSWER_MAX);
	struct listing l = { .r = r };
	char next[BOXES_CURSOR_SIZE], running[16];
	struct err e = { 0 };

	json_out_init(&l.o, &out);
	json_out_array(&l.o);
	if (boxes_list(r->core, &r->actor, f, put_each, &l, next, &e) < 0 ||
	    count_running(r, f, &l, &e) < 0) {
		buf_done(&out);
		answer_fail(r, &e);
		return;
	}
	json_out_end(&l.o, ']');
	snprintf(running, sizeof(running), "%u", l.running);
	const struct http_header extra[] = { { VIEW("x-total-running"), view_of(running) },
					     { VIEW("x-next-token"), view_of(next) } };
	answer_reply_with(r, 200, &out, extra, !paged ? 0 : next[0] ? 2 : 1);
}

static void list(struct request *r)
{
	struct box_filter f;
	struct wanted w = { 0 };
	struct err e = { 0 };

	if (read_filter(r, &f, &w, &e) < 0)
		answer_fail(r, &e);
	else
		reply_list(r, &f, true);
}

/* The first generation knows no pages and only what runs. */
static void list_old(struct request *r)
{
	struct wanted w = { .r = r, .running = true };
	struct box_filter f = { .limit = BOXES_PAGE_MAX, .newest_first = true, .fits = fits, .fits_arg = &w };
	struct err e = { 0 };

	if (read_metadata(r, request_query(r, "metadata"), &f.metadata, &e) < 0)
		answer_fail(r, &e);
	else
		reply_list(r, &f, false);
}

const struct route e2b_boxes_routes[] = {
	{ "POST", "/sandboxes", create_old, .body = ROUTE_JSON, .audit = "sandbox.create" },
	{ "POST", "/v2/sandboxes", create, .body = ROUTE_JSON, .audit = "sandbox.create" },
	{ "GET", "/sandboxes", list_old, .query = "metadata" },
	{ "GET", "/v2/sandboxes", list,
	  .query = "metadata state+ startedAfter template order limit nextToken" },
	{ "GET", "/sandboxes/{id}", get },
	{ "DELETE", "/sandboxes/{id}", kill_one, .audit = "sandbox.delete" },
	{ 0 },
};
