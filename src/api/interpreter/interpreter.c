/*
 * From a request for port 49999 to its handler, who may ask, and contexts: see
 * interpreter.h.
 *
 * Who asks was permitted to reach the box's ports (plane.h). To execute code takes
 * the box's access token, too; the client sends it nowhere else.
 */
#include "interpreter.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "interpreter_impl.h"
#include "who.h"
#include "poison.h"

/* ---- life ---- */

struct interpreter *interpreter_new(struct core *c, struct err *e)
{
	struct interpreter *v = calloc(1, sizeof(*v));
	if (!v) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "interpreter");
		return NULL;
	}
	v->core = c;
	list_init(&v->requests);
	return v;
}

void interpreter_free(struct interpreter *v)
{
	free(v);
}

void interpreter_when_idle(struct interpreter *v, void (*on_idle)(void *arg), void *arg)
{
	v->on_idle = on_idle;
	v->idle_arg = arg;
	if (list_empty(&v->requests))
		on_idle(arg);
}

void interpreter_done(struct interpreter_req *r)
{
	struct interpreter *v = r->home;

	if (r->on_gone)
		r->on_gone(r);
	list_del(&r->link);
	buf_done(&r->body);
	arena_done(&r->arena);
	free(r->own);
	free(r);
	if (v->on_idle && list_empty(&v->requests))
		v->on_idle(v->idle_arg);
}

void *interpreter_own(struct interpreter_req *r, size_t size, void (*on_gone)(struct interpreter_req *r))
{
	struct err e = { 0 };

	r->own = calloc(1, size);
	if (!r->own) {
		err_sys(&e, ERR_INTERNAL, ENOMEM, "request");
		interpreter_fail(r, &e);
		return NULL;
	}
	r->on_gone = on_gone;
	return r->own;
}

/* ---- answers ---- */

void interpreter_reply_json(struct interpreter_req *r, int status, struct buf *json)
{
	http_reply(r->x, json->bad ? 500 : status, "application/json", buf_view(json), NULL, 0);
	buf_done(json);
	interpreter_done(r);
}

void interpreter_reply_text(struct interpreter_req *r, int status, struct view text)
{
	http_reply(r->x, status, "text/plain; charset=utf-8", text, NULL, 0);
	interpreter_done(r);
}

void interpreter_no_content(struct interpreter_req *r)
{
	http_reply(r->x, 204, NULL, VIEW_NONE, NULL, 0);
	interpreter_done(r);
}

/* Text: clients show it as it is. A box that does not run is none to them, which is a 502. */
void interpreter_fail(struct interpreter_req *r, const struct err *e)
{
	struct err copy = *e; /* may live in what is freed now */

	interpreter_reply_text(r, copy.code == ERR_STATE ? 502 : err_http(copy.code), view_of(copy.msg));
}

/* ---- what is asked for ---- */

/* Later clients may say more than we know. */
static void forget_unknown(struct json *doc, const struct json_schema *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < doc->n; i++)
		for (size_t j = 0; j < s->n; j++)
			if (view_is(doc->members[i].key, s->fields[j].name)) {
				doc->members[kept++] = doc->members[i];
				break;
			}
	doc->n = kept;
}

int interpreter_read(struct interpreter_req *r, const struct json_schema *s, void *out)
{
	struct err e = { 0 };
	struct json *doc;

	if (buf_len(&r->body) == 0)
		return 0;
	if (json_parse(&r->arena, buf_view(&r->body), &doc, &e) < 0) {
		e.code = e.code == ERR_BAD_REQUEST ? ERR_INVALID : e.code;
	} else {
		if (doc->type == JSON_OBJECT)
			forget_unknown(doc, s);
		if (json_read(&r->arena, doc, s, out, false, &e) >= 0)
			return 0;
	}
	interpreter_fail(r, &e);
	return -1;
}

struct view interpreter_language(struct view name)
{
	static const struct {
		const char *said, *meant;
	} names[] = { { "py", "python" },     { "python3", "python" },        { "python", "python" },
		      { "js", "javascript" }, { "javascript", "javascript" }, { "bash", "bash" },
		      { "sh", "bash" } };

	for (size_t i = 0; i < ELEMS(names); i++)
		if (view_eq_nocase(name, view_of(names[i].said)))
			return view_of(names[i].meant);
	return name;
}

struct context_wish interpreter_wish(const struct interpreter_req *r)
{
	return (struct context_wish){ .cwd = r->cwd, .env = r->env };
}

/* Where the box was made with another directory than the usual one, that; else the home of its user. */
static struct view home_of(struct interpreter_req *r, const struct box *b)
{
	struct buf path = BUF_INIT(PATH_MAX);

	if (!view_eq(b->spec.workdir, core_config(r->home->core)->defaults.workdir))
		return arena_view(&r->arena, b->spec.workdir);
	if (view_is(b->spec.user, "root"))
		return VIEW("/root");
	buf_puts(&path, "/home/");
	buf_add(&path, b->spec.user);
	struct view v = path.bad ? VIEW_NONE : arena_view(&r->arena, buf_view(&path));
	buf_done(&path);
	return v;
}

static int describe_box(struct interpreter_req *r, const struct box *b)
{
	const struct view pairs[INTERPRETER_VARS][2] = { { VIEW("E2B_SANDBOX"), VIEW("true") },
							 { VIEW("E2B_SANDBOX_ID"), view_of(r->box) },
							 { VIEW("E2B_TEMPLATE_ID"), b->spec.image } };

	r->cwd = home_of(r, b);
	r->env.keys = arena_array(&r->arena, INTERPRETER_VARS, sizeof(struct view));
	r->env.values = arena_array(&r->arena, INTERPRETER_VARS, sizeof(struct view));
	if (!r->cwd.p || !r->env.keys || !r->env.values)
		return -ENOMEM;
	for (; r->env.n < INTERPRETER_VARS; r->env.n++) {
		r->env.keys[r->env.n] = pairs[r->env.n][0];
		r->env.values[r->env.n] = arena_view(&r->arena, pairs[r->env.n][1]);
		if (!r->env.values[r->env.n].p)
			return -ENOMEM;
	}
	return 0;
}

/* ---- contexts ---- */

struct asking {
	struct context_op op;
	struct interpreter_req *r;
};

static void let_go(struct interpreter_req *r)
{
	struct asking *k = r->own;
	contexts_cancel(&k->op);
}

static struct asking *asking(struct interpreter_req *r,
			     void (*done)(struct context_op *, const struct context_info *, size_t,
					  const struct err *))
{
	struct asking *k = interpreter_own(r, sizeof(*k), let_go);

	if (!k)
		return NULL;
	k->r = r;
	k->op.done = done;
	return k;
}

static void put_context(struct json_out *o, struct view id, struct view language, struct view cwd)
{
	json_out_object(o);
	json_out_kstr(o, "id", id);
	json_out_kstr(o, "language", language);
	json_out_kstr(o, "cwd", cwd);
	json_out_end(o, '}');
}

/* These are always there for a client; the first code makes them. */
static const char *const standing[] = { "python", "javascript" };

static bool is_standing(struct view id)
{
	return view_is(id, standing[0]) || view_is(id, standing[1]);
}

static bool has(const struct context_info *list, size_t n, struct view id)
{
	for (size_t i = 0; i < n; i++)
		if (view_eq(list[i].id, id))
			return true;
	return false;
}

static void on_list(struct context_op *op, const struct context_info *list, size_t n, const struct err *e)
{
	struct interpreter_req *r = CONTAINER(op, struct asking, op)->r;
	struct buf out = BUF_INIT(1u << 20);
	struct json_out o;

	if (e) {
		interpreter_fail(r, e);
		return;
	}
	json_out_init(&o, &out);
	json_out_array(&o);
	for (size_t i = 0; i < ELEMS(standing); i++)
		if (!has(list, n, view_of(standing[i])))
			put_context(&o, view_of(standing[i]), view_of(standing[i]), r->cwd);
	for (size_t i = 0; i < n; i++)
		put_context(&o, list[i].id, list[i].language, list[i].cwd);
	json_out_end(&o, ']');
	interpreter_reply_json(r, 200, &out);
}

static void on_made(struct context_op *op, const struct context_info *list, size_t n, const struct err *e)
{
	struct interpreter_req *r = CONTAINER(op, struct asking, op)->r;
	struct buf out = BUF_INIT(1u << 20);
	struct json_out o;

	if (e) {
		interpreter_fail(r, e);
		return;
	}
	json_out_init(&o, &out);
	put_context(&o, list->id, list->language, list->cwd);
	interpreter_reply_json(r, 200, &out);
}

static void on_ended(struct context_op *op, const struct context_info *list, size_t n, const struct err *e)
{
	struct interpreter_req *r = CONTAINER(op, struct asking, op)->r;

	if (!e || (e->code == ERR_NOT_FOUND && is_standing(r->id)))
		interpreter_no_content(r);
	else
		interpreter_fail(r, e);
}

static void list_contexts(struct interpreter_req *r)
{
	struct err e = { 0 };
	struct asking *k = asking(r, on_list);
	if (k && contexts_list(r->home->core, &r->actor, view_of(r->box), VIEW_NONE, &k->op, &e) < 0)
		interpreter_fail(r, &e);
}

#define AT(f) .offset = offsetof(struct context_wish, f)
static const struct json_field context_fields[] = {
	{ "language", JSON_F_STRING, AT(language), .nullable = true },
	{ "cwd", JSON_F_STRING, AT(cwd), .nullable = true },
};
#undef AT
static const struct json_schema context_schema = { context_fields, ELEMS(context_fields) };

static void create_context(struct interpreter_req *r)
{
	struct context_wish w = interpreter_wish(r);
	struct err e = { 0 };

	if (interpreter_read(r, &context_schema, &w) < 0)
		return;
	w.language = w.language.n ? interpreter_language(w.language) : VIEW("python");
	w.cwd = w.cwd.n ? w.cwd : r->cwd;
	struct asking *k = asking(r, on_made);
	if (k && contexts_create(r->home->core, &r->actor, view_of(r->box), &w, &k->op, &e) < 0)
		interpreter_fail(r, &e);
}

static void remove_context(struct interpreter_req *r)
{
	struct err e = { 0 };
	struct asking *k = asking(r, on_ended);
	if (k && contexts_remove(r->home->core, &r->actor, view_of(r->box), r->id, &k->op, &e) < 0)
		interpreter_fail(r, &e);
}

static void restart_context(struct interpreter_req *r)
{
	struct err e = { 0 };
	struct asking *k = asking(r, on_ended);
	if (k && contexts_restart(r->home->core, &r->actor, view_of(r->box), r->id, &k->op, &e) < 0)
		interpreter_fail(r, &e);
}

/* ---- routing ---- */

static void health(struct interpreter_req *r)
{
	http_reply(r->x, 200, "application/json", VIEW("\"OK\""), NULL, 0);
	interpreter_done(r);
}

static const struct {
	const char *method, *path, *after; /* between path and after: a context's id */
	void (*handle)(struct interpreter_req *r);
	bool token;
} routes[] = {
	{ "GET", "/health", NULL, health },
	{ "POST", "/execute", NULL, interpreter_run, .token = true },
	{ "GET", "/contexts", NULL, list_contexts },
	{ "POST", "/contexts", NULL, create_context },
	{ "DELETE", "/contexts/", "", remove_context },
	{ "POST", "/contexts/", "/restart", restart_context },
};

void interpreter_print_routes(FILE *out)
{
	fprintf(out, "\n# interpreter\n");
	for (size_t i = 0; i < ELEMS(routes); i++)
		fprintf(out, "%s %s%s%s\n", routes[i].method, routes[i].path, routes[i].after ? "{id}" : "",
			routes[i].after ? routes[i].after : "");
}

static bool fits(struct view path, const char *start, const char *after, struct view *ret_id)
{
	size_t head = strlen(start), tail = after ? strlen(after) : 0;

	*ret_id = VIEW_NONE;
	if (!after)
		return view_is(path, start);
	if (path.n <= head + tail || memcmp(path.p, start, head) != 0 ||
	    memcmp(path.p + path.n - tail, after, tail) != 0)
		return false;
	*ret_id = view_head(view_skip(path, head), path.n - head - tail);
	return !memchr(ret_id->p, '/', ret_id->n);
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
	struct interpreter_req *r = x->ctx;
	struct err e = { 0 };

	if (buf_add(&r->body, data) < 0) {
		err_set(&e, ERR_TOO_LARGE, "the body is too large");
		interpreter_fail(r, &e);
	} else if (last) {
		r->handle(r);
	}
}

static void on_abort(struct http_exchange *x)
{
	interpreter_done(x->ctx);
}

static const struct http_ops ops = { .on_body = on_body, .on_abort = on_abort };

static void begin(struct interpreter *v, struct http_exchange *x, const struct plane_target *t,
		  struct view id, void (*handle)(struct interpreter_req *r))
{
	uint64_t max = core_config(v->core)->max.body_bytes;
	struct interpreter_req *r = calloc(1, sizeof(*r));

	if (!r) {
		http_reply(x, 500, NULL, VIEW_NONE, NULL, 0);
		return;
	}
	r->home = v;
	r->x = x;
	r->actor = t->actor;
	r->id = id;
	r->handle = handle;
	memcpy(r->box, t->box->id, sizeof(r->box));
	list_init(&r->link);
	list_append(&v->requests, &r->link);
	buf_init(&r->body, max);
	arena_init(&r->arena, 4 * max + (1u << 20)); /* of long strings and some structure */
	if (describe_box(r, t->box) < 0) {
		struct err e = { 0 };
		err_sys(&e, ERR_INTERNAL, ENOMEM, "request");
		interpreter_fail(r, &e);
		return;
	}
	x->ctx = r;
	x->ops = &ops;
}

void interpreter_serve(struct http_exchange *x, const struct plane_target *t, void *arg)
{
	struct view id, token = http_get_header(x, "x-access-token");
	bool path = false;

	for (size_t i = 0; i < ELEMS(routes); i++) {
		if (!fits(x->path, routes[i].path, routes[i].after, &id))
			continue;
		path = true;
		if (!view_is(x->method, routes[i].method))
			continue;
		if (routes[i].token && !(token.p && tokens_fit(t->core, t->box, TOKEN_ENVD, token)))
			http_reply(x, 401, "text/plain; charset=utf-8",
				   VIEW("unauthorized: no or wrong access token"), NULL, 0);
		else
			begin(arg, x, t, id, routes[i].handle);
		return;
	}
	http_reply(x, path ? 405 : 404, "text/plain; charset=utf-8",
		   path ? VIEW("Method Not Allowed") : VIEW("Not Found"), NULL, 0);
}
