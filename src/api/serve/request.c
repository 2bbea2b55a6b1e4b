/*
 * Takes a request from its head to its handler: see request.h. The order is the same for every
 * dialect: route, caller, parts of the path, permission for the route, query, body.
 */
#include "request.h"

#include <errno.h>
#include <stdlib.h>

#include "answer.h"
#include "answer_long.h"
#include "num.h"
#include "record.h"
#include "serve.h"
#include "text.h"
#include "poison.h"

#define METHODS_MAX 128
#define ARENA_MIN   (1024u * 1024)
#define BODY_SMALL  (64u * 1024) /* is taken whatever others hold */

/* ---- life ---- */

void request_done(struct request *r)
{
	struct serve *s = r->serve;

	if (r->release)
		r->release(r);
	if (r->fail)
		rpc_release(r);
	record_done(r);
	list_del(&r->link);
	answer_long_free(r);
	outputs_done(&r->kept);
	buf_done(&r->body);
	buf_done(&r->out);
	arena_done(&r->arena);
	free(r->own);
	free(r);
	serve_let_go(s);
}

void request_break(struct request *r)
{
	http_break(r->x);
	request_done(r);
}

bool request_goes_on(const struct serve *s, const struct request *r)
{
	LIST_EACH (it, &s->requests)
		if (CONTAINER(it, struct request, link) == r)
			return true;
	return false;
}

void request_abort(struct http_exchange *x)
{
	struct request *r = x->ctx;

	job_abandon(r->job);
	if (r->on_gone)
		r->on_gone(r);
	request_done(r);
}

void *request_own(struct request *r, size_t size)
{
	struct err e = { 0 };

	r->own = calloc(1, size);
	if (!r->own) {
		err_sys(&e, ERR_INTERNAL, ENOMEM, "request");
		answer_fail(r, &e);
		return NULL;
	}
	return r->own;
}

int request_may_hold(const struct request *r, struct err *e)
{
	if (!http_is_pressed(r->x))
		return 0;
	return err_set(e, ERR_QUOTA,
		       "the requests, answers and output of this tenant's commands hold too much memory");
}

/* ---- bodies ---- */

int request_read_doc(struct request *r, struct json **ret, struct err *e)
{
	if (buf_len(&r->body) == 0)
		return err_set(e, ERR_INVALID, "the body must be a JSON object, and is empty");
	int parsed = json_parse(&r->arena, buf_view(&r->body), ret, e);
	http_hold(r->x, r->body.cap + r->arena.used);
	if (parsed >= 0)
		return 0;
	e->code = e->code == ERR_BAD_REQUEST ? ERR_INVALID : e->code; /* its syntax is our argument's */
	return -1;
}

int request_read(struct request *r, const struct json_schema *s, void *out)
{
	struct err e = { 0 };
	struct json *doc;

	if (request_read_doc(r, &doc, &e) >= 0 && json_read(&r->arena, doc, s, out, false, &e) >= 0)
		return 0;
	answer_fail(r, &e);
	return -1;
}

static uint64_t body_max(const struct request *r)
{
	return r->route->body_max ? r->route->body_max : core_config(r->core)->max.body_bytes;
}

static bool is_collected(const struct route *t)
{
	return t->body == ROUTE_JSON || t->body == ROUTE_WHOLE;
}

static int too_large(const struct request *r, struct err *e)
{
	return err_set(e, ERR_TOO_LARGE, "the body is larger than %llu bytes",
		       (unsigned long long)body_max(r));
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct request *r = x->ctx;
	struct err e = { 0 };

	int added = buf_add(&r->body, data);
	http_hold(x, r->body.cap);
	if (r->route->secret && data.n)
		explicit_bzero((void *)data.p, data.n); /* it lies in a connection's buffer, which lives on */
	if (added < 0)
		too_large(r, &e);
	else if (buf_len(&r->body) > BODY_SMALL)
		(void)!request_may_hold(r, &e);
	if (e.code)
		answer_fail(r, &e);
	else if (last)
		r->route->handle(r);
}

/* Some clients send "{}" with a DELETE; it means nothing. */
void request_drop_body(struct http_exchange *x, struct view data, bool last)
{
}

static const struct http_ops collect_ops = { .on_body = on_body, .on_abort = request_abort };
static const struct http_ops no_body_ops = { .on_body = request_drop_body, .on_abort = request_abort };

static int check_body(struct request *r, struct err *e)
{
	struct view type, rest;

	if (!is_collected(r->route))
		return 0;
	if (r->route->body == ROUTE_JSON) {
		type = view_trim(view_split(http_get_header(r->x, "content-type"), ';', &rest));
		if (type.n && !view_eq_nocase(type, VIEW("application/json")) && r->x->content_length != 0)
			return err_set(e, ERR_MEDIA_TYPE, "the body must be application/json");
	}
	if (r->x->content_length > 0 && (uint64_t)r->x->content_length > body_max(r))
		return too_large(r, e);
	return r->x->content_length != 0 ? request_may_hold(r, e) : 0;
}

static void take_body(struct request *r)
{
	uint64_t max = body_max(r);

	r->x->ctx = r;
	r->x->ops = is_collected(r->route) ? &collect_ops : &no_body_ops;
	buf_init(&r->body, max);
	r->body.secret = r->route->secret;
	/* For long strings and some structure: what is all structure ("[1,1,…") takes fifty times its text.
	 */
	arena_init(&r->arena, 4 * max + ARENA_MIN);
	r->arena.secret = r->route->secret;
	if (!is_collected(r->route))
		r->route->handle(r); /* else with the last of the body, which comes even when there is none */
}

/* ---- the path and the query ---- */

static struct view decode(struct request *r, struct view raw, bool plus)
{
	struct buf b = BUF_INIT(raw.n + 1);
	struct view v = VIEW_NONE;

	if (text_unpercent(&b, raw, plus) >= 0)
		v = arena_view(r->x->arena, buf_view(&b));
	buf_done(&b);
	return v;
}

static int decode_params(struct request *r, const struct view raw[ROUTE_PARAMS], struct err *e)
{
	for (size_t i = 0; i < ROUTE_PARAMS; i++) {
		if (!raw[i].p)
			continue;
		r->params[i] = decode(r, raw[i], false);
		if (!r->params[i].p)
			return err_set(e, ERR_BAD_REQUEST, "the path has a bad escape");
	}
	return 0;
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

static int add_pair(struct request *r, struct view name, struct view value, struct err *e)
{
	bool repeats;

	if (!name.p || !value.p)
		return err_set(e, ERR_BAD_REQUEST, "the query has a bad escape");
	if (!allowed(r->route->query, name, &repeats))
		return err_set(e, ERR_INVALID, "unknown query parameter \"%.*s\"", (int)MIN(name.n, 64),
			       name.p);
	if (r->n_query == REQUEST_QUERY_MAX)
		return err_set(e, ERR_INVALID, "more than %d query parameters", REQUEST_QUERY_MAX);
	for (size_t i = 0; i < r->n_query; i++)
		if (!repeats && view_eq(r->query[i].name, name))
			return err_set(e, ERR_INVALID, "the query parameter \"%.*s\" is given twice",
				       (int)MIN(name.n, 64), name.p);
	r->query[r->n_query++] = (struct request_pair){ name, value };
	return 0;
}

static int read_query(struct request *r, struct err *e)
{
	struct view rest = r->x->query;

	if (rest.n == 0 || view_is(view_of(r->route->query ? r->route->query : ""), ROUTE_ANY_QUERY))
		return 0;
	r->query = arena_array(r->x->arena, REQUEST_QUERY_MAX, sizeof(*r->query));
	if (!r->query)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "request");
	while (rest.p && rest.n) {
		struct view value, pair = view_split(rest, '&', &rest);
		struct view name = decode(r, view_split(pair, '=', &value), true);
		value = decode(r, value.p ? value : VIEW(""), true);
		if (add_pair(r, name, value, e) < 0)
			return -1;
	}
	return 0;
}

struct view request_query(const struct request *r, const char *name)
{
	for (size_t i = 0; i < r->n_query; i++)
		if (view_is(r->query[i].name, name))
			return r->query[i].value;
	return VIEW_NONE;
}

int request_query_limit(const struct request *r, uint32_t most, uint32_t *ret, struct err *e)
{
	struct view v = request_query(r, "limit");
	uint32_t n = 0;

	if (!v.p)
		return 0;
	if (num_u32(v, &n) < 0 || n < 1 || n > most)
		return err_set(e, ERR_INVALID, "limit must be between 1 and %u", most);
	*ret = n;
	return 0;
}

int request_query_flag(struct request *r, const char *name, bool *ret)
{
	struct view v = request_query(r, name);
	struct err e = { 0 };

	*ret = view_is(v, "1") || view_is(v, "true");
	if (!v.p || *ret || view_is(v, "0") || view_is(v, "false"))
		return 0;
	err_set(&e, ERR_INVALID, "%s must be 1 or 0", name);
	answer_fail(r, &e);
	return -1;
}

/* ---- who asks ---- */

struct view request_token(const struct http_exchange *x)
{
	struct view token = http_get_header(x, "authorization");

	if (token.n > 7 && view_eq_nocase(view_head(token, 7), VIEW("bearer ")))
		return view_trim(view_skip(token, 7));
	return http_get_header(x, "x-api-key");
}

bool request_same_origin(const struct http_exchange *x)
{
	struct view origin = http_get_header(x, "origin");
	size_t scheme = view_starts(origin, "https://") ? 8 : view_starts(origin, "http://") ? 7 : 0;

	return !origin.p || (scheme && view_eq_nocase(view_skip(origin, scheme), x->host));
}

static bool is_local(struct view host)
{
	struct view port,
		name = host.n && host.p[0] == '[' ? view_head(host, 5) : view_split(host, ':', &port);

	return view_eq_nocase(name, VIEW("localhost")) || view_is(name, "127.0.0.1") ||
	       view_is(name, "[::1]");
}

/* By a listener that asks for no key. A page of another site is not let in with what a browser can send, and
 * other servers of this machine are other sites: its requests have an Origin, say that they are for another
 * site (where a GET has no Origin), or (by a name that was made to lead here) have another Host. */
bool request_is_anonymous(const struct request *r)
{
	struct view site = http_get_header(r->x, "sec-fetch-site");

	if (r->x->listener >= SERVE_LISTENERS || !r->serve->anonymous[r->x->listener] || r->box[0] ||
	    request_token(r->x).p || !is_local(r->x->host))
		return false;
	return request_same_origin(r->x) &&
	       (!site.p || view_is(site, "same-origin") || view_is(site, "none"));
}

static int identify(struct request *r, struct err *e)
{
	if (!request_is_anonymous(r))
		return r->surface->authenticate(r, e);
	if (auth_anonymous(r->core, &r->actor, e) < 0)
		return -1;
	return r->surface->welcome ? r->surface->welcome(r, e) : 0;
}

static int admit(struct request *r, struct err *e)
{
	const struct route *t = r->route;
	bool open = !r->surface->authenticate ||
		    (t && (t->auth == ROUTE_OPEN ||
			   (t->auth == ROUTE_SIGNED && http_get_query(r->x, "signature").p)));

	if (r->x->crowded)
		return err_set(e, ERR_RATE, "too many connections at once: a sandbox has at most %d",
			       HTTP_ORIGIN_CONNS);
	if (!open && identify(r, e) < 0)
		return -1;
	if (!open && r->actor.tenant)
		http_vouch(r->x, (uintptr_t)r->actor.tenant);
	r->admitted = true;
	r->actor.record = 0;
	return 0;
}

/* ---- the beginning ---- */

static void no_route(struct request *r, struct view allow)
{
	const struct surface *f = r->surface;
	struct http_header header = { VIEW("allow"), allow };
	struct err e = { 0 };

	if (!allow.n) {
		err_set(&e, ERR_NOT_FOUND, "%s", f->no_path ? f->no_path : "there is nothing at this path");
		answer_fail(r, &e);
		return;
	}
	if (f->no_method)
		err_set(&e, ERR_METHOD, "%s", f->no_method);
	else
		err_set(&e, ERR_METHOD, "this path takes %.*s", VIEW_ARG(allow));
	answer_fail_with(r, &e, &header);
}

static void begin(struct request *r, const struct view raw[ROUTE_PARAMS], struct view allow)
{
	struct err e = { 0 };

	if (admit(r, &e) < 0)
		answer_fail(r, &e);
	else if (r->fail)
		rpc_take(r);
	else if (!r->route)
		no_route(r, allow);
	else if (decode_params(r, raw, &e) < 0 || (record_begin(r, r->route->audit), false) ||
		 (r->route->permit && r->route->permit(r, &e) < 0) || read_query(r, &e) < 0 ||
		 check_body(r, &e) < 0)
		answer_fail(r, &e);
	else
		take_body(r);
}

void request_begin(struct serve *s, struct http_exchange *x, const struct surface *f, void *state,
		   const struct box *b, const struct actor *a)
{
	struct view raw[ROUTE_PARAMS] = { VIEW_NONE };
	struct buf allow = BUF_INIT(METHODS_MAX);

	if (f->quick && f->quick(x, b))
		return;
	const struct rpc_method *method = f->methods ? rpc_find(f->methods, x->path) : NULL;
	const struct route *route =
		method ? NULL : router_find(f->routes, f->exact, x->method, x->path, raw, &allow);
	struct request *r = method ? rpc_new(method, x) : calloc(1, sizeof(*r));
	if (r) {
		list_init(&r->wait.link);
		r->serve = s;
		r->core = s->core;
		r->x = x;
		r->surface = f;
		r->state = state;
		r->route = route || method ? route : f->otherwise;
		if (b)
			memcpy(r->box, b->id, sizeof(r->box));
		if (a)
			r->actor = *a;
		list_append(&s->requests, &r->link);
		begin(r, raw, buf_view(&allow));
	} else {
		struct request none = { .x = x, .surface = f, .core = s->core };
		struct err e = { 0 };
		err_sys(&e, ERR_INTERNAL, ENOMEM, "request");
		f->fail(&none, &e, NULL, 0);
	}
	buf_done(&allow);
}
