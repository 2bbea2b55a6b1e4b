/*
 * The REST dialect's frame: from a request's head to its handler.
 * Answers are in rest_answer.c; the tables of routes stand with their handlers.
 */
#include "rest.h"

#include <errno.h>
#include <stdlib.h>

#include "e2b_impl.h"
#include "rest_health.h"
#include "rest_impl.h"
#include "text.h"
#include "poison.h"

#define METHODS_MAX 128
#define ARENA_MIN   (1024u * 1024)

static const struct route *const tables[] = {
	rest_boxes_routes,    rest_life_routes,     rest_snapshots_routes, rest_workspaces_routes,
	rest_exec_routes,     rest_procs_routes,    rest_procs_io_routes,  rest_shells_routes,
	rest_contexts_routes, rest_terminal_routes, rest_files_routes,     rest_fs_routes,
	rest_search_routes,   rest_replace_routes,  rest_watch_routes,     rest_form_routes,
	rest_admin_routes,    rest_health_routes,   rest_events_routes,    rest_secrets_routes,
	rest_webhooks_routes, rest_tenants_routes,  rest_stats_routes,     rest_ports_routes,
	rest_tunnel_routes,   rest_egress_routes,   rest_links_routes,     rest_ai_routes,
	rest_usage_routes,
};

/* E2B's: other paths and other words, the same frame. api/e2b/openapi.yaml says what it is. */
static const struct route *const e2b_tables[] = {
	e2b_boxes_routes,   e2b_life_routes,      e2b_observe_routes, e2b_copies_routes,
	e2b_network_routes, e2b_templates_routes, e2b_builds_routes,  e2b_volumes_routes,
	e2b_content_routes, e2b_secrets_routes,   e2b_absent_routes,
};

/* ---- life ---- */

struct rest *rest_new(struct core *c, int statm, struct err *e)
{
	struct rest *r = calloc(1, sizeof(*r));
	if (!r) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "rest");
		return NULL;
	}
	r->core = c;
	r->statm = statm;
	list_init(&r->requests);
	return r;
}

void rest_free(struct rest *r)
{
	free(r);
}

void rest_set_server(struct rest *r, const struct http_server *s)
{
	r->server = s;
}

void rest_when_idle(struct rest *r, void (*on_idle)(void *arg), void *arg)
{
	r->on_idle = on_idle;
	r->idle_arg = arg;
	LIST_EACH (it, &r->requests) {
		struct req *q = CONTAINER(it, struct req, link);
		if (q->on_drain)
			q->on_drain(q);
	}
	if (list_empty(&r->requests))
		on_idle(arg);
}

static void print_tables(FILE *out, const struct route *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (const struct route *t = list[i]; t->method; t++)
			fprintf(out, "%s %s\n", t->method, t->pattern);
}

void rest_print_routes(FILE *out)
{
	print_tables(out, tables, ELEMS(tables));
	fprintf(out, "\n# e2b\n");
	print_tables(out, e2b_tables, ELEMS(e2b_tables));
}

void rest_done(struct req *r)
{
	struct rest *rest = r->rest;

	list_del(&r->link);
	buf_done(&r->body);
	buf_done(&r->out);
	arena_done(&r->arena);
	free(r->own);
	free(r);
	if (rest->on_idle && list_empty(&rest->requests))
		rest->on_idle(rest->idle_arg);
}

bool rest_goes_on(struct rest *rest, const struct req *r)
{
	LIST_EACH (it, &rest->requests)
		if (CONTAINER(it, struct req, link) == r)
			return true;
	return false;
}

static void on_abort(struct http_exchange *x)
{
	struct req *r = x->ctx;
	job_abandon(r->job);
	if (r->on_gone)
		r->on_gone(r);
	rest_done(r);
}

void *rest_own(struct req *r, size_t size)
{
	struct err e = { 0 };
	r->own = calloc(1, size);
	if (!r->own) {
		err_sys(&e, ERR_INTERNAL, ENOMEM, "request");
		rest_fail(r, &e);
		return NULL;
	}
	return r->own;
}

/* ---- bodies ---- */

int rest_read_doc(struct req *r, struct json **ret, struct err *e)
{
	if (buf_len(&r->body) == 0)
		return err_set(e, ERR_INVALID, "the body must be a JSON object, and is empty");
	if (json_parse(&r->arena, buf_view(&r->body), ret, e) >= 0)
		return 0;
	e->code = e->code == ERR_BAD_REQUEST ? ERR_INVALID : e->code; /* its syntax is our argument's */
	return -1;
}

int rest_read(struct req *r, const struct json_schema *s, void *out)
{
	struct err e = { 0 };
	struct json *doc;

	if (rest_read_doc(r, &doc, &e) >= 0 && json_read(&r->arena, doc, s, out, false, &e) >= 0)
		return 0;
	rest_fail(r, &e);
	return -1;
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct req *r = x->ctx;
	struct err e = { 0 };

	int added = buf_add(&r->body, data);
	if (r->route->secret && data.n)
		explicit_bzero((void *)data.p, data.n); /* it lies in a connection's buffer, which lives on */
	if (added < 0) {
		err_set(&e, ERR_TOO_LARGE, "the body is larger than %llu bytes",
			(unsigned long long)core_config(r->core)->max.body_bytes);
		rest_fail(r, &e);
		return;
	}
	if (last)
		r->route->handle(r);
}

/* Some clients send "{}" with a DELETE; it means nothing. */
static void drop_body(struct http_exchange *x, struct view data, bool last)
{
}

static const struct http_ops collect_ops = { .on_body = on_body, .on_abort = on_abort };
static const struct http_ops no_body_ops = { .on_body = drop_body, .on_abort = on_abort };

/* JSON is the only kind of body that is not streamed. */
static int check_body(struct req *r, struct err *e)
{
	struct view type = http_get_header(r->x, "content-type"), rest;
	uint64_t max = core_config(r->core)->max.body_bytes;

	if (r->route->body != REST_JSON)
		return 0;
	type = view_trim(view_split(type, ';', &rest));
	if (type.n && !view_eq_nocase(type, VIEW("application/json")) && r->x->content_length != 0)
		return err_set(e, ERR_MEDIA_TYPE, "the body must be application/json");
	if (r->x->content_length > 0 && (uint64_t)r->x->content_length > max)
		return err_set(e, ERR_TOO_LARGE, "the body is larger than %llu bytes",
			       (unsigned long long)max);
	return 0;
}

static void take_body(struct req *r)
{
	uint64_t max = core_config(r->core)->max.body_bytes;

	r->x->ctx = r;
	r->x->ops = r->route->body == REST_JSON ? &collect_ops : &no_body_ops;
	buf_init(&r->body, max);
	r->body.secret = r->route->secret;
	/* For long strings and some structure: what is all structure ("[1,1,…") takes fifty times its text.
	 */
	arena_init(&r->arena, 4 * max + ARENA_MIN);
	r->arena.secret = r->route->secret;
	if (r->route->body != REST_JSON)
		r->route->handle(r); /* else with the last of the body, which comes even when there is none */
}

/* ---- the query ---- */

static struct view decode(struct req *r, struct view raw, bool plus)
{
	struct buf b = BUF_INIT(raw.n + 1);
	struct view v = VIEW_NONE;
	if (text_unpercent(&b, raw, plus) >= 0)
		v = arena_view(r->x->arena, buf_view(&b));
	buf_done(&b);
	return v;
}

static bool allowed(const char *list, struct view name, bool *ret_repeats)
{
	struct view rest = view_of(list ? list : "");
	while (rest.p && rest.n) {
		struct view one = view_split(rest, ' ', &rest);
		*ret_repeats = one.n > 1 && one.p[one.n - 1] == '+';
		one.n -= *ret_repeats;
		if (one.n > 2 && one.p[one.n - 1] == '*'
			    ? name.n >= one.n && memcmp(name.p, one.p, one.n - 1) == 0
			    : view_eq(one, name))
			return true;
	}
	return false;
}

static int read_query(struct req *r, struct err *e)
{
	struct view rest = r->x->query;

	if (rest.n == 0)
		return 0;
	r->query = arena_array(r->x->arena, REST_QUERY_MAX, sizeof(*r->query));
	if (!r->query)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "request");
	while (rest.p && rest.n) {
		struct view value, pair = view_split(rest, '&', &rest);
		struct view name = decode(r, view_split(pair, '=', &value), true);
		value = decode(r, value.p ? value : VIEW(""), true);
		if (!name.p || !value.p)
			return err_set(e, ERR_BAD_REQUEST, "the query has a bad escape");
		bool repeats;
		if (!allowed(r->route->query, name, &repeats))
			return err_set(e, ERR_INVALID, "unknown query parameter \"%.*s\"",
				       (int)MIN(name.n, 64), name.p);
		if (r->n_query == REST_QUERY_MAX)
			return err_set(e, ERR_INVALID, "more than %d query parameters", REST_QUERY_MAX);
		for (size_t i = 0; i < r->n_query; i++)
			if (!repeats && view_eq(r->query[i].name, name))
				return err_set(e, ERR_INVALID, "the query parameter \"%.*s\" is given twice",
					       (int)MIN(name.n, 64), name.p);
		r->query[r->n_query++] = (struct rest_pair){ name, value };
	}
	return 0;
}

struct view rest_query(const struct req *r, const char *name)
{
	for (size_t i = 0; i < r->n_query; i++)
		if (view_is(r->query[i].name, name))
			return r->query[i].value;
	return VIEW_NONE;
}

int rest_query_flag(struct req *r, const char *name, bool *ret)
{
	struct view v = rest_query(r, name);
	struct err e = { 0 };

	*ret = view_is(v, "1") || view_is(v, "true");
	if (!v.p || *ret || view_is(v, "0") || view_is(v, "false"))
		return 0;
	err_set(&e, ERR_INVALID, "%s must be 1 or 0", name);
	rest_fail(r, &e);
	return -1;
}

/* ---- routing ---- */

/* Whether the path fits the pattern; the raw values of its {…} are stored. */
static bool matches(const char *pattern, struct view path, struct view params[REST_PARAMS])
{
	struct view want = view_skip(view_of(pattern), 1), have = view_skip(path, 1);
	size_t n = 0;

	while (want.p) {
		if (!have.p)
			return false;
		struct view w_rest, h_rest;
		struct view w = view_split(want, '/', &w_rest), h = view_split(have, '/', &h_rest);
		if (view_is(w, "{path}")) {
			params[n] = have;
			return true;
		}
		if (w.n && w.p[0] == '{') {
			if (h.n == 0)
				return false;
			params[n++] = h;
		} else if (!view_eq(w, h)) {
			return false;
		}
		want = w_rest;
		have = h_rest;
	}
	return !have.p;
}

/* HEAD is GET without its body wherever it is not a route of its own. */
static bool takes(const struct route *t, struct view method)
{
	return view_is(method, t->method) || (view_is(method, "HEAD") && view_is(view_of(t->method), "GET"));
}

/* Where there is GET there is HEAD. */
static void add_allowed(struct buf *allow, const char *method)
{
	if (view_is(view_of(method), "HEAD"))
		return;
	if (buf_len(allow))
		buf_puts(allow, ", ");
	buf_puts(allow, method);
	if (view_is(view_of(method), "GET"))
		buf_puts(allow, ", HEAD");
}

static const struct route *find_in(const struct route *t, struct view method, struct view path,
				   const struct route *found, struct view params[REST_PARAMS],
				   struct buf *allow)
{
	for (; t->method; t++) {
		struct view mine[REST_PARAMS] = { VIEW_NONE };
		if (!matches(t->pattern, path, mine))
			continue;
		add_allowed(allow, t->method);
		if (!takes(t, method) || (found && view_is(view_of(found->method), "HEAD")))
			continue;
		found = t;
		memcpy(params, mine, sizeof(mine));
	}
	return found;
}

static const struct route *find_route(struct view method, struct view path, struct view params[REST_PARAMS],
				      struct buf *allow)
{
	bool e2b = e2b_speaks(path);
	const struct route *const *list = e2b ? e2b_tables : tables, *found = NULL;
	size_t n = e2b ? ELEMS(e2b_tables) : ELEMS(tables);

	for (size_t i = 0; i < n; i++)
		found = find_in(list[i], method, path, found, params, allow);
	return found;
}

int rest_authenticate(struct core *c, const struct http_exchange *x, struct actor *ret, struct err *e)
{
	struct view token = http_get_header(x, "authorization");
	struct view key = http_get_header(x, "x-api-key");

	/* E2B's clients send a token of another kind there, too. */
	if (key.p && e2b_speaks(x->path))
		token = key;
	else if (token.n > 7 && view_eq_nocase(view_head(token, 7), VIEW("bearer ")))
		token = view_trim(view_skip(token, 7));
	else
		token = key;
	return auth_actor(c, token, ret, e);
}

static void no_route(struct rest *rest, struct http_exchange *x, struct view allow)
{
	struct http_header header = { VIEW("allow"), allow };
	struct err e = { 0 };
	struct actor actor;

	/* Without a key nothing of an API tells what is there and what is not. */
	if ((view_starts(x->path, "/v1/") || e2b_speaks(x->path)) &&
	    rest_authenticate(rest->core, x, &actor, &e) < 0) {
		rest_fail_exchange(x, &e, NULL, 0);
		return;
	}
	if (!allow.n) {
		err_set(&e, ERR_NOT_FOUND, "there is nothing at this path");
		rest_fail_exchange(x, &e, NULL, 0);
		return;
	}
	err_set(&e, ERR_METHOD, "this path takes %.*s", VIEW_ARG(allow));
	rest_fail_exchange(x, &e, &header, 1);
}

/* ---- a request ---- */

static int decode_params(struct req *r, const struct view raw[REST_PARAMS], struct err *e)
{
	for (size_t i = 0; i < REST_PARAMS; i++) {
		if (!raw[i].p)
			continue;
		r->params[i] = decode(r, raw[i], false);
		if (!r->params[i].p)
			return err_set(e, ERR_BAD_REQUEST, "the path has a bad escape");
	}
	return 0;
}

void rest_request(struct http_exchange *x, void *arg)
{
	struct rest *rest = arg;
	struct view raw[REST_PARAMS] = { VIEW_NONE };
	struct err e = { 0 };

	if (rest_health_fast(x))
		return;
	struct buf allow = BUF_INIT(METHODS_MAX);
	const struct route *route = find_route(x->method, x->path, raw, &allow);
	if (!route)
		no_route(rest, x, buf_view(&allow));
	buf_done(&allow);
	if (!route)
		return;
	struct req *r = calloc(1, sizeof(*r));
	if (!r) {
		err_sys(&e, ERR_INTERNAL, ENOMEM, "request");
		rest_fail_exchange(x, &e, NULL, 0);
		return;
	}
	r->rest = rest;
	r->core = rest->core;
	r->x = x;
	r->route = route;
	list_append(&rest->requests, &r->link);
	bool open =
		route->auth == REST_OPEN || (route->auth == REST_SIGNED && http_get_query(x, "signature").p);
	if ((!open && rest_authenticate(r->core, x, &r->actor, &e) < 0) || decode_params(r, raw, &e) < 0 ||
	    (route->permit && route->permit(r, &e) < 0) || read_query(r, &e) < 0 || check_body(r, &e) < 0)
		rest_fail(r, &e);
	else
		take_body(r);
}
