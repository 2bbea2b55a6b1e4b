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

#include "interpreter_impl.h"
#include "who.h"
#include "poison.h"

#define VARS 3

void *interpreter_own(struct request *r, size_t size, void (*release)(struct request *r))
{
	void *own = request_own(r, size);

	if (own)
		r->release = release;
	return own;
}

/* Text: clients show it as it is. A box that does not run is none to them, which is a 502; a language that
 * the image does not have is as wrong as one that we do not know. */
static void fail(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	int status = e->code == ERR_STATE ? 502 : e->code == ERR_UNSUPPORTED ? 400 : err_http(e->code);

	http_reply(r->x, status, "text/plain; charset=utf-8", view_of(e->msg), extra, n_extra);
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

int interpreter_read(struct request *r, const struct json_schema *s, void *out)
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
	answer_fail(r, &e);
	return -1;
}

struct view interpreter_language(struct view name)
{
	static const struct {
		const char *said, *meant;
	} names[] = { { "py", "python" },
		      { "python3", "python" },
		      { "python", "python" },
		      { "js", "javascript" },
		      { "javascript", "javascript" },
		      { "ts", "typescript" },
		      { "tslab", "typescript" },
		      { "typescript", "typescript" },
		      { "r", "r" },
		      { "java", "java" },
		      { "bash", "bash" },
		      { "sh", "bash" } };

	for (size_t i = 0; i < ELEMS(names); i++)
		if (view_eq_nocase(name, view_of(names[i].said)))
			return view_of(names[i].meant);
	return name;
}

/* Where the box was made with another directory than the usual one, that; else the home of its user. */
static struct view home_of(struct request *r, const struct box *b)
{
	struct buf path = BUF_INIT(PATH_MAX);

	if (!view_eq(b->spec.workdir, core_config(r->core)->defaults.workdir))
		return arena_view(&r->arena, b->spec.workdir);
	if (view_is(b->spec.user, "root"))
		return VIEW("/root");
	buf_puts(&path, "/home/");
	buf_add(&path, b->spec.user);
	struct view v = path.bad ? VIEW_NONE : arena_view(&r->arena, buf_view(&path));
	buf_done(&path);
	return v;
}

static int describe(struct request *r, struct context_wish *ret, struct err *e)
{
	const struct box *b = boxes_by_id(r->core, view_of(r->box));
	struct json_strmap *env = &ret->env;

	if (!b)
		return err_set(e, ERR_NOT_FOUND, "no such sandbox");
	const struct view pairs[VARS][2] = { { VIEW("E2B_SANDBOX"), VIEW("true") },
					     { VIEW("E2B_SANDBOX_ID"), view_of(r->box) },
					     { VIEW("E2B_TEMPLATE_ID"), b->spec.image } };
	*ret = (struct context_wish){ .user = VIEW("root"), .cwd = home_of(r, b) };
	env->keys = arena_array(&r->arena, VARS, sizeof(struct view));
	env->values = arena_array(&r->arena, VARS, sizeof(struct view));
	if (!ret->cwd.p || !env->keys || !env->values)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "request");
	for (; env->n < VARS; env->n++) {
		env->keys[env->n] = pairs[env->n][0];
		env->values[env->n] = arena_view(&r->arena, pairs[env->n][1]);
		if (!env->values[env->n].p)
			return err_sys(e, ERR_INTERNAL, ENOMEM, "request");
	}
	return 0;
}

int interpreter_wish(struct request *r, struct context_wish *ret)
{
	struct err e = { 0 };

	if (describe(r, ret, &e) >= 0)
		return 0;
	answer_fail(r, &e);
	return -1;
}

/* ---- contexts ---- */

struct asking {
	struct context_op op;
	struct request *r;
	struct view cwd; /* where contexts are made, when nobody says */
};

static void let_go(struct request *r)
{
	struct asking *k = r->own;
	contexts_cancel(&k->op);
}

static struct asking *asking(struct request *r, void (*done)(struct context_op *, const struct context_info *,
							     size_t, const struct err *))
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
	struct request *r = CONTAINER(op, struct asking, op)->r;
	struct view cwd = CONTAINER(op, struct asking, op)->cwd;
	struct buf out = BUF_INIT(1u << 20);
	struct json_out o;

	if (e) {
		answer_fail(r, e);
		return;
	}
	json_out_init(&o, &out);
	json_out_array(&o);
	for (size_t i = 0; i < ELEMS(standing); i++)
		if (!has(list, n, view_of(standing[i])))
			put_context(&o, view_of(standing[i]), view_of(standing[i]), cwd);
	for (size_t i = 0; i < n; i++)
		put_context(&o, list[i].id, list[i].language, list[i].cwd);
	json_out_end(&o, ']');
	answer_reply(r, 200, &out);
}

static void on_made(struct context_op *op, const struct context_info *list, size_t n, const struct err *e)
{
	struct request *r = CONTAINER(op, struct asking, op)->r;
	struct buf out = BUF_INIT(1u << 20);
	struct json_out o;

	if (e) {
		answer_fail(r, e);
		return;
	}
	json_out_init(&o, &out);
	put_context(&o, list->id, list->language, list->cwd);
	answer_reply(r, 200, &out);
}

static void on_ended(struct context_op *op, const struct context_info *list, size_t n, const struct err *e)
{
	struct request *r = CONTAINER(op, struct asking, op)->r;

	if (!e || (e->code == ERR_NOT_FOUND && is_standing(r->params[0])))
		answer_no_content(r);
	else
		answer_fail(r, e);
}

static void list_contexts(struct request *r)
{
	struct context_wish w;
	struct err e = { 0 };

	if (interpreter_wish(r, &w) < 0)
		return;
	struct asking *k = asking(r, on_list);
	if (k)
		k->cwd = w.cwd;
	if (k && contexts_list(r->core, &r->actor, view_of(r->box), VIEW_NONE, &k->op, &e) < 0)
		answer_fail(r, &e);
}

#define AT(f) .offset = offsetof(struct context_wish, f)
static const struct json_field context_fields[] = {
	{ "language", JSON_F_STRING, AT(language), .nullable = true },
	{ "cwd", JSON_F_STRING, AT(cwd), .nullable = true },
	{ "user", JSON_F_STRING, AT(user), .min = 1, .nullable = true },
};
#undef AT
static const struct json_schema context_schema = { context_fields, ELEMS(context_fields) };

static void create_context(struct request *r)
{
	struct context_wish w;
	struct err e = { 0 };

	if (interpreter_wish(r, &w) < 0)
		return;
	struct view home = w.cwd, root = w.user;
	if (interpreter_read(r, &context_schema, &w) < 0)
		return;
	w.language = w.language.n ? interpreter_language(w.language) : VIEW("python");
	w.cwd = w.cwd.n ? w.cwd : home;
	w.user = w.user.n ? w.user : root;
	struct asking *k = asking(r, on_made);
	if (k && contexts_create(r->core, &r->actor, view_of(r->box), &w, &k->op, &e) < 0)
		answer_fail(r, &e);
}

static void remove_context(struct request *r)
{
	struct err e = { 0 };
	struct asking *k = asking(r, on_ended);
	if (k && contexts_remove(r->core, &r->actor, view_of(r->box), r->params[0], &k->op, &e) < 0)
		answer_fail(r, &e);
}

static void restart_context(struct request *r)
{
	struct err e = { 0 };
	struct asking *k = asking(r, on_ended);
	if (k && contexts_restart(r->core, &r->actor, view_of(r->box), r->params[0], &k->op, &e) < 0)
		answer_fail(r, &e);
}

/* ---- routing ---- */

/* Of routes with a key: /execute alone. */
static int authenticate(struct request *r, struct err *e)
{
	struct view token = http_get_header(r->x, "x-access-token");
	const struct box *b = boxes_by_id(r->core, view_of(r->box));

	if (!r->route || (b && token.p && tokens_fit(r->core, b, TOKEN_ENVD, token)))
		return 0;
	return err_set(e, ERR_UNAUTHORIZED, "unauthorized: no or wrong access token");
}

static void health(struct request *r)
{
	answer_plain(r, 200, "application/json", VIEW("\"OK\""));
}

#define OPEN .auth = ROUTE_OPEN, .query = ROUTE_ANY_QUERY
static const struct route routes[] = {
	{ "GET", "/health", health, OPEN },
	{ "POST", "/execute", interpreter_run, .body = ROUTE_WHOLE, .query = ROUTE_ANY_QUERY },
	{ "GET", "/contexts", list_contexts, OPEN },
	{ "POST", "/contexts", create_context, OPEN, .body = ROUTE_WHOLE },
	{ "DELETE", "/contexts/{id}", remove_context, OPEN },
	{ "POST", "/contexts/{id}/restart", restart_context, OPEN },
	{ 0 },
};
#undef OPEN

static const struct route *const tables[] = { routes, NULL };

const struct surface interpreter_surface = {
	.heading = "interpreter",
	.routes = tables,
	.authenticate = authenticate,
	.fail = fail,
	.no_path = "Not Found",
	.no_method = "Method Not Allowed",
	.exact = true,
};
