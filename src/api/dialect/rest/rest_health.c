/*
 * What a monitor, a client library or a load balancer asks first: health,
 * readiness, metrics, capabilities, and the definition of the API itself.
 */
#include "rest_health.h"

#include <stdio.h>
#include <unistd.h>

#include "box.h"
#include "clock.h"
#include "image.h"
#include "num.h"
#include "openapi_json.h"
#include "rest_impl.h"
#include "serve.h"
#include "served.h"
#include "poison.h"

/* ---- health ---- */

#define STAMP_DIGITS 13
#define HEALTH_HEAD  "{\"status\":\"ok\",\"timestamp\":"
#define HEALTH_TAIL  ",\"version\":\"" PADDOCK_VERSION "\"}\n"

bool rest_health_fast(struct http_exchange *x, const struct box *b)
{
	/* One thread, and http_reply copies: the text can be written in place. */
	static char text[] = HEALTH_HEAD "0000000000000" HEALTH_TAIL;
	static int64_t shown;

	if (!view_is(x->path, "/health") || !view_is(x->method, "GET") || x->query.n ||
	    x->content_length != 0)
		return false;
	int64_t now = clock_wall_ms();
	if (now != shown) {
		shown = now;
		char *p = text + sizeof(HEALTH_HEAD) - 1 + STAMP_DIGITS;
		for (int i = 0; i < STAMP_DIGITS; i++, now /= 10)
			*--p = (char)('0' + now % 10);
	}
	http_reply(x, 200, "application/json", (struct view){ text, sizeof(text) - 1 }, NULL, 0);
	return true;
}

static void reply_status(struct request *r, int status, const char *word, const char *reason)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kz(o, "status", word);
	json_out_ki64(o, "timestamp", clock_wall_ms());
	json_out_kz(o, "version", PADDOCK_VERSION);
	if (reason) {
		json_out_key(o, "reasons");
		json_out_array(o);
		json_out_str(o, view_of(reason));
		json_out_end(o, ']');
	}
	json_out_end(o, '}');
	answer_send(r, status);
}

static void health(struct request *r)
{
	reply_status(r, 200, "ok", NULL);
}

static void ready(struct request *r)
{
	const char *why = core_not_ready(r->core);
	reply_status(r, why ? 503 : 200, why ? "unavailable" : "ok", why);
}

static void openapi(struct request *r)
{
	http_reply_shared(r->x, 200, "application/json", (struct view){ openapi_json, openapi_json_size },
			  NULL, 0);
	request_done(r);
}

/* ---- metrics, in the text format of Prometheus ---- */

static void metric(struct buf *b, const char *name, const char *type, const char *help, uint64_t value)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, type, name,
		   (unsigned long long)value);
}

static uint64_t resident_bytes(int statm)
{
	char text[256];
	struct view rest;
	uint64_t pages = 0;
	ssize_t n = pread(statm, text, sizeof(text), 0);

	if (n > 0) {
		view_split((struct view){ text, (size_t)n }, ' ', &rest);
		if (num_u64(view_split(rest, ' ', &rest), &pages) < 0)
			pages = 0;
	}
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void put_boxes(struct buf *b, const struct core_stats *s)
{
	buf_puts(b, "# HELP paddock_sandboxes Sandboxes by status.\n# TYPE paddock_sandboxes gauge\n");
	for (int i = BOX_CREATING; i < BOX_STATUSES; i++)
		buf_printf(b, "paddock_sandboxes{status=\"%s\"} %llu\n",
			   boxes_status_name((enum box_status)i), (unsigned long long)s->boxes[i]);
	metric(b, "paddock_sandbox_creates_total", "counter", "Creations that came to an end.", s->creates);
	metric(b, "paddock_sandbox_create_failures_total", "counter", "Creations that failed.",
	       s->create_failures);
	buf_puts(b, "# HELP paddock_sandbox_create_seconds Time from request to running.\n"
		    "# TYPE paddock_sandbox_create_seconds histogram\n");
	for (size_t i = 0; i < ELEMS(create_bounds_us); i++)
		buf_printf(b, "paddock_sandbox_create_seconds_bucket{le=\"%g\"} %llu\n",
			   create_bounds_us[i] / 1e6, (unsigned long long)s->create_buckets[i]);
	uint64_t n = s->creates - s->create_failures;
	buf_printf(b, "paddock_sandbox_create_seconds_bucket{le=\"+Inf\"} %llu\n", (unsigned long long)n);
	buf_printf(b, "paddock_sandbox_create_seconds_sum %g\n", (double)s->create_us_sum / 1e6);
	buf_printf(b, "paddock_sandbox_create_seconds_count %llu\n", (unsigned long long)n);
}

static void put_storage(struct buf *b, const struct core_stats *s)
{
	metric(b, "paddock_storage_size_bytes", "gauge", "Size of the storage of sandboxes.",
	       s->storage_size);
	metric(b, "paddock_storage_used_bytes", "gauge", "Used of the storage, or set apart by it.",
	       s->storage_size - MIN(s->storage_free, s->storage_size));
	metric(b, "paddock_storage_free_bytes", "gauge", "What sandboxes can still write.", s->storage_free);
	metric(b, "paddock_storage_beneath_free_bytes", "gauge",
	       "Free on the disk that holds the data directory.", s->storage_beneath);
	metric(b, "paddock_storage_ok", "gauge", "0 if the storage is nearly full, full or read-only.",
	       !s->storage_wrong);
}

static void metrics(struct request *r)
{
	struct buf b = BUF_INIT(256 * 1024);
	struct http_stats h = http_server_stats(r->serve->server);
	struct store_stats st = core_store_stats(r->core);
	struct core_stats s;
	struct err e = { 0 };

	if (auth_permit(&r->actor, ACT_METRICS, NULL, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	core_stats(r->core, &s);
	put_boxes(&b, &s);
	metric(&b, "paddock_egress_allowed_total", "counter", "Ways out that the gate let pass.",
	       s.egress_allowed);
	metric(&b, "paddock_egress_denied_total", "counter", "Ways out that the gate refused.",
	       s.egress_denied);
	metric(&b, "paddock_execs_total", "counter", "Commands that were started.", s.execs);
	metric(&b, "paddock_exec_failures_total", "counter", "Commands that did not come to an end.",
	       s.exec_failures);
	metric(&b, "paddock_file_calls_total", "counter", "Operations on files.", s.file_calls);
	metric(&b, "paddock_keeper_calls_total", "counter", "Round trips to the keeper.", s.keeper_calls);
	metric(&b, "paddock_ai_calls_total", "counter", "Calls to models.", s.ai_calls);
	metric(&b, "paddock_ai_refused_total", "counter",
	       "Calls to models for which limits or budgets did not suffice.", s.ai_refused);
	metric(&b, "paddock_ai_input_tokens_total", "counter", "Tokens that models read.", s.ai_input);
	metric(&b, "paddock_ai_output_tokens_total", "counter", "Tokens that models wrote.", s.ai_output);
	buf_printf(&b,
		   "# HELP paddock_ai_cost_dollars_total What calls to models cost.\n# TYPE "
		   "paddock_ai_cost_dollars_total counter\n"
		   "paddock_ai_cost_dollars_total %.9f\n",
		   (double)s.ai_nano / 1e9);
	metric(&b, "paddock_http_requests_total", "counter", "Requests.", h.requests);
	metric(&b, "paddock_http_bad_requests_total", "counter", "Requests that were none.", h.bad_requests);
	metric(&b, "paddock_http_connections_total", "counter", "Connections.", h.connections_total);
	metric(&b, "paddock_http_connections_refused_total", "counter",
	       "Connections refused because there were too many.", h.connections_refused);
	metric(&b, "paddock_http_connections", "gauge", "Open connections.", h.connections_open);
	metric(&b, "paddock_store_writes_total", "counter", "Rows written.", st.writes);
	metric(&b, "paddock_store_commits_total", "counter", "Transactions.", st.commits);
	metric(&b, "paddock_store_failures_total", "counter", "Writes that failed.", st.failures);
	put_storage(&b, &s);
	metric(&b, "process_resident_memory_bytes", "gauge", "Resident memory of paddock-api.",
	       resident_bytes(r->serve->statm));
	http_reply(r->x, 200, "text/plain; version=0.0.4; charset=utf-8", buf_view(&b), NULL, 0);
	buf_done(&b);
	request_done(r);
}

/* ---- capabilities ---- */

static void put_backend(struct json_out *o, const struct backend *b)
{
	json_out_object(o);
	json_out_kstr(o, "name", b->name);
	json_out_kbool(o, "available", b->ok);
	json_out_key(o, "missing");
	json_out_array(o);
	for (size_t i = 0; i < b->n; i++)
		if (!b->parts[i].ok)
			json_out_str(o, b->parts[i].name);
	json_out_end(o, ']');
	json_out_key(o, "can");
	json_out_array(o);
	for (size_t i = 0; i < b->n_can; i++)
		json_out_str(o, b->can[i]);
	json_out_end(o, ']');
	json_out_end(o, '}');
}

static void put_backends(struct json_out *o, const struct core_posture *p)
{
	json_out_key(o, "backends");
	json_out_array(o);
	for (size_t i = 0; i < p->n; i++)
		put_backend(o, &p->backends[i]);
	json_out_end(o, ']');
}

static void put_image(void *arg, const struct image *i)
{
	for (size_t k = 0; k < i->n_names; k++)
		json_out_str(arg, i->names[k]);
}

static void capabilities(struct request *r)
{
	static const char *const features[] = { "disk",     "exec",          "files",         "files.range",
						"fork",     "images.import", "idle",          "keys",
						"metadata", "pause",         "readonly_root", "snapshots",
						"stats",    "stop",          "ttl",           "workspaces" };
	const struct config *c = core_config(r->core);
	struct err e = { 0 };

	if (auth_permit(&r->actor, ACT_CAPABILITIES, NULL, &e) < 0)
		goto bad;
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_kz(o, "version", PADDOCK_VERSION);
	json_out_kz(o, "api", "v1");
	put_backends(o, core_posture(r->core));
	json_out_key(o, "defaults");
	json_out_object(o);
	json_out_kstr(o, "backend", core_backend(r->core, VIEW(""), NULL)->name);
	json_out_kstr(o, "image", c->defaults.image);
	json_out_kstr(o, "user", c->defaults.user);
	json_out_kstr(o, "workdir", c->defaults.workdir);
	json_out_ku64(o, "ttl_seconds", c->defaults.ttl_seconds);
	json_out_kwrite(o, "limits", &box_limits_set_schema, &c->defaults.limits);
	json_out_end(o, '}');
	json_out_key(o, "max");
	json_out_object(o);
	json_out_kwrite(o, "limits", &box_limits_set_schema, &c->max.limits);
	json_out_ku64(o, "sandboxes", c->max.boxes);
	json_out_ku64(o, "ttl_seconds", c->max.ttl_seconds);
	json_out_ku64(o, "exec_timeout_ms", c->max.exec_timeout_ms);
	json_out_ku64(o, "exec_output_bytes", c->max.exec_output_bytes);
	json_out_ku64(o, "body_bytes", c->max.body_bytes);
	json_out_end(o, '}');
	json_out_key(o, "images");
	json_out_array(o);
	if (images_each(r->core, &r->actor, put_image, o, &e) < 0)
		goto bad;
	json_out_end(o, ']');
	json_out_key(o, "features");
	json_out_array(o);
	for (size_t i = 0; i < ELEMS(features); i++)
		json_out_str(o, view_of(features[i]));
	answer_send_list(r);
	return;
bad:
	answer_fail(r, &e);
}

/* ---- what is served where ---- */

static void dialects(struct request *r)
{
	struct err e = { 0 };

	if (auth_permit(&r->actor, ACT_POSTURE, NULL, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	struct json_out *o = answer_json(r);
	json_out_object(o);
	served_put(r->serve, o);
	json_out_end(o, '}');
	answer_send(r, 200);
}

const struct route rest_health_routes[] = {
	{ "GET", "/health", health, .auth = ROUTE_OPEN },
	{ "GET", "/healthz", health, .auth = ROUTE_OPEN },
	{ "GET", "/readyz", ready, .auth = ROUTE_OPEN },
	{ "GET", "/openapi.json", openapi, .auth = ROUTE_OPEN },
	{ "GET", "/metrics", metrics },
	{ "GET", "/v1/capabilities", capabilities },
	{ "GET", "/v1/dialects", dialects },
	{ 0 },
};
