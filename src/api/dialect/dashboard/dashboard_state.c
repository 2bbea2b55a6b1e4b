/*
 * What the pages show beyond the REST API: the load of all sandboxes at once, the last minutes of the
 * installation, who changed what, the pool, and every setting with its source.
 */
#include "audit.h"
#include "config_origins.h"
#include "dashboard_impl.h"
#include "login.h"
#include "num.h"
#include "poison.h"

#define SETTINGS_MAX (1024u * 1024)
#define NAME_LONGEST 256
#define AUDIT_PAGE   500

/* ---- load ---- */

static void put_load(void *arg, const struct box *b)
{
	struct json_out *o = arg;
	struct history_load l;

	if (!history_load(b, &l))
		return;
	json_out_object(o);
	json_out_kz(o, "id", b->id);
	json_out_key(o, "cpu");
	json_out_double(o, l.cpu);
	json_out_ku64(o, "memory_bytes", l.memory_bytes);
	json_out_end(o, '}');
}

static void load(struct request *r)
{
	struct err e = { 0 };
	struct json_out *o = answer_json_list(r, "sandboxes");

	if (boxes_each(r->core, &r->actor, put_load, o, &e) < 0)
		answer_fail(r, &e);
	else
		answer_send_list(r);
}

/* ---- the last minutes ---- */

static void put_sample(void *arg, const struct trend_sample *s)
{
	const struct core_stats *n = &s->stats;
	struct json_out *o = arg;

	json_out_object(o);
	json_out_ki64(o, "at_ms", s->at_ms);
	json_out_ku64(o, "running", n->boxes[BOX_RUNNING]);
	json_out_ku64(o, "paused", n->boxes[BOX_PAUSED]);
	json_out_ku64(o, "stopped", n->boxes[BOX_STOPPED]);
	json_out_ku64(o, "creates", n->creates);
	json_out_ku64(o, "failures", n->create_failures);
	json_out_ku64(o, "execs", n->execs);
	json_out_ku64(o, "allowed", n->egress_allowed);
	json_out_ku64(o, "denied", n->egress_denied);
	json_out_key(o, "buckets");
	json_out_array(o);
	for (size_t i = 0; i < ELEMS(n->create_buckets); i++)
		json_out_u64(o, n->create_buckets[i]);
	json_out_end(o, ']');
	json_out_key(o, "cpu");
	json_out_double(o, s->cpu);
	json_out_ku64(o, "memory_bytes", s->memory_bytes);
	json_out_end(o, '}');
}

static void trend(struct request *r)
{
	struct json_out *o = answer_json(r);
	struct err e = { 0 };

	json_out_object(o);
	json_out_key(o, "bounds");
	json_out_array(o);
	for (size_t i = 0; i < ELEMS(create_bounds_us); i++)
		json_out_double(o, create_bounds_us[i] / 1e6);
	json_out_end(o, ']');
	json_out_key(o, "samples");
	json_out_array(o);
	if (trend_each(r->core, &r->actor, put_sample, o, &e) < 0)
		answer_fail(r, &e);
	else
		answer_send_list(r);
}

/* ---- who changed what ---- */

static void put_audit(void *arg, const struct audit_entry *v)
{
	struct json_out *o = arg;

	json_out_object(o);
	json_out_ku64(o, "id", v->id);
	answer_put_time(o, "at", v->at_ms);
	json_out_kz(o, "tenant", v->tenant->name);
	json_out_kz(o, "key", v->key);
	json_out_kz(o, "role", keys_role_name(v->role));
	json_out_kz(o, "via", v->via);
	json_out_kz(o, "action", v->action);
	json_out_kz(o, "target", v->target);
	json_out_kz(o, "detail", v->detail);
	json_out_ku64(o, "status", v->status);
	json_out_end(o, '}');
}

static void audit(struct request *r)
{
	struct view before = request_query(r, "before");
	uint32_t limit = AUDIT_PAGE;
	uint64_t id = 0;
	struct err e = { 0 };

	if ((before.p && num_u64(before, &id) < 0 &&
	     err_set(&e, ERR_INVALID, "before must be the id of an entry") < 0) ||
	    request_query_limit(r, AUDIT_KEPT, &limit, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json_list(r, "entries");
	if (audit_each(r->core, &r->actor, id, limit, put_audit, o, &e) < 0)
		answer_fail(r, &e);
	else
		answer_send_list(r);
}

/* ---- the pool ---- */

static void put_pool(void *arg, const struct pool_state *s)
{
	struct json_out *o = arg;

	json_out_object(o);
	json_out_kstr(o, "image", s->image);
	json_out_ku64(o, "ready", s->ready);
	json_out_ku64(o, "wanted", s->wanted);
	json_out_end(o, '}');
}

static void pool(struct request *r)
{
	struct json_out *o = answer_json(r);
	struct pool_sum sum;
	struct err e = { 0 };

	json_out_object(o);
	json_out_key(o, "images");
	json_out_array(o);
	if (pool_each(r->core, &r->actor, put_pool, o, &sum, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	json_out_end(o, ']');
	json_out_ku64(o, "total", sum.ready);
	json_out_ku64(o, "claims", sum.claims);
	json_out_ku64(o, "parts", core_config(r->core)->parts);
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* ---- settings ---- */

/* Hashes of keys and keys of providers are nobody's to see; paths are no secrets. */
static bool is_secret(struct view name, const struct json *v)
{
	static const char *const words[] = { "key", "keys", "secret", "token", "sha256", "value" };
	const char *dot = memrchr(name.p, '.', name.n);
	struct view last = dot ? view_skip(name, (size_t)(dot - name.p) + 1) : name;

	if (v->type == JSON_NULL || (v->type == JSON_STRING && (!v->text.n || v->text.p[0] == '/')))
		return false;
	for (size_t i = 0; i < ELEMS(words); i++)
		if (view_is(last, words[i]))
			return true;
	return view_starts(name, "keys") || (view_starts(name, "ai.providers") && v->type == JSON_ARRAY);
}

static void put_setting(struct json_out *o, const struct json *origins, struct view name,
			const struct json *v)
{
	struct buf from = BUF_INIT(4096);

	config_origins_of(origins, name, &from);
	json_out_object(o);
	json_out_kstr(o, "name", name);
	json_out_key(o, "value");
	if (is_secret(name, v))
		json_out_str(o, VIEW("(set)"));
	else
		json_out_value(o, v);
	json_out_kstr(o, "source", buf_view(&from));
	json_out_end(o, '}');
	buf_done(&from);
}

static void put_settings(struct json_out *o, const struct json *origins, const struct json *doc,
			 struct view above)
{
	for (size_t i = 0; i < doc->n; i++) {
		const struct json_member *m = &doc->members[i];
		struct buf name = BUF_INIT(NAME_LONGEST);

		buf_add(&name, above);
		buf_puts(&name, above.n ? "." : "");
		buf_add(&name, m->key);
		if (name.bad || (!above.n && view_is(m->key, "origins")))
			;
		else if (m->value.type == JSON_OBJECT && m->value.n)
			put_settings(o, origins, &m->value, buf_view(&name));
		else
			put_setting(o, origins, buf_view(&name), &m->value);
		buf_done(&name);
	}
}

static void settings(struct request *r)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(SETTINGS_MAX);
	const struct config *c = core_config(r->core);
	struct json *doc;
	struct err e = { 0 };

	if (auth_permit(&r->actor, ACT_POSTURE, NULL, &e) < 0 ||
	    (config_to_json(c, &text) < 0 && err_set(&e, ERR_INTERNAL, "out of memory") < 0) ||
	    json_parse(&r->arena, buf_view(&text), &doc, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json_list(r, "settings");
	put_settings(o, c->origins, doc, VIEW(""));
	answer_send_list(r);
}

const struct route dashboard_state_routes[] = {
	{ "GET", "/dashboard/trend", trend },
	{ "GET", "/dashboard/audit", audit, .query = "before limit" },
	{ "GET", "/dashboard/load", load },
	{ "GET", "/dashboard/pool", pool },
	{ "GET", "/dashboard/settings", settings },
	{ 0 },
};
