/*
 * /v1/jupyter: Python that remembers. A session is a code context; its id is the context's. A call that names
 * no session gets a new one, whose id it is told; of those a few are kept.
 */
#include "aio_sessions.h"
#include "clock.h"
#include "poison.h"

#define KERNEL "python3"

struct jupyter_body {
	struct view code, kernel, session, cwd;
	uint64_t timeout;
};

#define AT(f) .offset = offsetof(struct jupyter_body, f)
static const struct json_field execute_fields[] = {
	{ "kernel_name", JSON_F_STRING, AT(kernel), .nullable = true },
	{ "session_id", JSON_F_STRING, AT(session), .nullable = true },
	{ "cwd", JSON_F_STRING, AT(cwd), .nullable = true },
	{ "timeout", JSON_F_U64, AT(timeout), .min = 1, .max = AIO_CODE_SECONDS_MAX, .nullable = true },
	{ "code", JSON_F_STRING, AT(code), .required = true },
};
#undef AT
static const struct json_schema execute_schema = { execute_fields, ELEMS(execute_fields), .open = true };
static const struct json_schema create_schema = { execute_fields, 3, .open = true };

/* The sandbox has one Python; another version is not taken for it. */
static bool has_kernel(struct request *r, struct view name)
{
	if (!name.n || view_is(name, KERNEL) || view_is(name, "python"))
		return true;
	aio_refuse(r, "there is no kernel %.*s; this sandbox has " KERNEL, (int)MIN(name.n, 64u), name.p);
	return false;
}

static void put(struct json_out *o, const struct aio_run *x)
{
	json_out_object(o);
	json_out_kz(o, "kernel_name", KERNEL);
	json_out_kz(o, "session_id", x->name);
	json_out_kz(o, "status", x->status);
	aio_run_put_results(o, x);
	json_out_kz(o, "msg_id", NULL);
	json_out_end(o, '}');
}

static void execute(struct request *r)
{
	struct jupyter_body b = { .timeout = AIO_CODE_SECONDS };

	if (aio_read(r, &execute_schema, &b) < 0 || !has_kernel(r, b.kernel))
		return;
	struct aio_code w = { .language = VIEW("python"),
			      .code = b.code,
			      .cwd = b.cwd,
			      .session = b.session,
			      .timeout_s = b.timeout,
			      .put = put };
	aio_run_start(r, &w);
}

/* ---- sessions ---- */

static void on_made(struct request *r, const struct context_info *c, bool created)
{
	struct json_out *o = aio_data(r, NULL);

	json_out_object(o);
	json_out_kstr(o, "session_id", c->id);
	json_out_kz(o, "kernel_name", KERNEL);
	json_out_kz(o, "message", created ? "Session created" : "The session exists already");
	json_out_end(o, '}');
	aio_send(r);
}

static void create(struct request *r)
{
	struct jupyter_body b = { 0 };

	if (aio_read(r, &create_schema, &b) >= 0 && has_kernel(r, b.kernel))
		aio_sessions_make(r, "python", b.session, b.cwd, on_made);
}

static void put_session(struct json_out *o, const struct context_info *c)
{
	json_out_object(o);
	json_out_kz(o, "kernel_name", KERNEL);
	json_out_key(o, "last_used");
	json_out_double(o, (double)c->used_ms / 1000);
	json_out_ki64(o, "age_seconds", aio_sessions_age(c));
	json_out_end(o, '}');
}

static void put_sessions(struct request *r, const struct context_info *list, size_t n)
{
	aio_sessions_put(r, list, n, "python", put_session);
}

static void sessions(struct request *r)
{
	aio_sessions_list(r, put_sessions);
}

static void put_info(struct request *r, const struct context_info *list, size_t n)
{
	struct json_out *o = aio_data(r, NULL);
	uint64_t active = 0;

	for (size_t i = 0; i < n; i++)
		active += view_is(list[i].language, "python");
	json_out_object(o);
	json_out_kz(o, "default_kernel", KERNEL);
	json_out_key(o, "available_kernels");
	json_out_array(o);
	json_out_str(o, VIEW(KERNEL));
	json_out_end(o, ']');
	json_out_ku64(o, "active_sessions", active);
	json_out_ku64(o, "session_timeout_seconds", 0);
	json_out_ku64(o, "max_sessions", CONTEXTS_MAX);
	json_out_kz(o, "description",
		    "Python in code contexts. A session stays until it is deleted; of sessions that a call "
		    "without session_id made, the last few stay.");
	json_out_kz(o, "kernel_detection", "the image's python3");
	json_out_end(o, '}');
	aio_send(r);
}

static void info(struct request *r)
{
	aio_sessions_list(r, put_info);
}

static void on_removed(struct request *r, size_t n)
{
	json_out_null(aio_data(r, n == 1 ? "Session removed" : "Sessions removed"));
	aio_send(r);
}

static void remove_one(struct request *r)
{
	aio_sessions_remove(r, "python", r->params[0], on_removed);
}

static void remove_all(struct request *r)
{
	aio_sessions_remove(r, "python", VIEW_NONE, on_removed);
}

const struct route aio_jupyter_routes[] = {
	{ "POST", "/v1/jupyter/execute", execute, .body = ROUTE_JSON, .schema = &execute_schema,
	  .query = "api_key" },
	{ "GET", "/v1/jupyter/info", info, .query = "api_key" },
	{ "POST", "/v1/jupyter/sessions/create", create, .body = ROUTE_JSON, .schema = &create_schema,
	  .query = "api_key" },
	{ "GET", "/v1/jupyter/sessions", sessions, .query = "api_key" },
	{ "DELETE", "/v1/jupyter/sessions", remove_all, .query = "api_key" },
	{ "DELETE", "/v1/jupyter/sessions/{id}", remove_one, .query = "api_key" },
	{ 0 },
};
