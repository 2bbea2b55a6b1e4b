/*
 * POST /v1/code/execute and GET /v1/code/info: code in Python or JavaScript.
 */
#include "aio_node.h"
#include "aio_probe.h"
#include "aio_run.h"
#include "answer_long.h"
#include "poison.h"

struct code_body {
	struct view language, code, cwd, session;
	uint64_t timeout;
	bool stateful;
};

#define AT(f) .offset = offsetof(struct code_body, f)
static const struct json_field code_fields[] = {
	{ "language", JSON_F_STRING, AT(language), .required = true },
	{ "code", JSON_F_STRING, AT(code), .required = true },
	{ "timeout", JSON_F_U64, AT(timeout), .min = 1, .max = AIO_CODE_SECONDS_MAX, .nullable = true },
	{ "cwd", JSON_F_STRING, AT(cwd), .nullable = true },
	{ "stateful", JSON_F_BOOL, AT(stateful), .nullable = true },
	{ "session_id", JSON_F_STRING, AT(session), .nullable = true },
};
#undef AT
static const struct json_schema code_schema = { code_fields, ELEMS(code_fields), .open = true };

static void put(struct json_out *o, const struct aio_run *x)
{
	json_out_object(o);
	json_out_kstr(o, "language", x->wish.language);
	json_out_kz(o, "status", x->status);
	aio_run_put_outputs(o, x);
	answer_put_long(x->r, "code", ANSWER_STRING, x->wish.code);
	aio_run_put_output(o, x);
	aio_run_put_traceback(o, x);
	json_out_kz(o, "session_id", x->wish.once ? NULL : x->name);
	json_out_end(o, '}');
}

static void execute(struct request *r)
{
	struct code_body b = { .timeout = AIO_CODE_SECONDS };

	if (aio_read(r, &code_schema, &b) < 0)
		return;
	if (!view_is(b.language, "python") && !view_is(b.language, "javascript")) {
		aio_unprocessable(r, "language", "language must be python or javascript");
		return;
	}
	if (view_is(b.language, "javascript") && !b.stateful) {
		struct aio_node_wish w = {
			.code = b.code, .cwd = b.cwd, .timeout_s = b.timeout, .unified = true
		};
		aio_node_start(r, &w);
		return;
	}
	struct aio_code w = { .language = b.language,
			      .code = b.code,
			      .cwd = b.cwd,
			      .session = b.session,
			      .timeout_s = b.timeout,
			      .once = !b.stateful,
			      .put = put };
	aio_run_start(r, &w);
}

/* ---- what there is ---- */

static void put_language(struct json_out *o, const char *language, const char *description,
			 struct view version)
{
	if (!version.n)
		return;
	json_out_object(o);
	json_out_kz(o, "language", language);
	json_out_kz(o, "description", description);
	json_out_kstr(o, "runtime_version", version);
	json_out_ku64(o, "default_timeout", AIO_CODE_SECONDS);
	json_out_ku64(o, "max_timeout", AIO_CODE_SECONDS_MAX);
	json_out_key(o, "details");
	json_out_object(o);
	json_out_end(o, '}');
	json_out_end(o, '}');
}

static void put_info(struct request *r, struct view said)
{
	struct json_out *o = aio_data(r, NULL);

	json_out_object(o);
	json_out_key(o, "languages");
	json_out_array(o);
	put_language(o, "python", "Python, with the results of expressions and displays",
		     aio_probe_fact(said, "python"));
	put_language(o, "javascript", "Node.js; state between calls with stateful",
		     aio_probe_fact(said, "node"));
	json_out_end(o, ']');
	json_out_end(o, '}');
	aio_send(r);
}

static void info(struct request *r)
{
	aio_probe(
		r,
		"echo python $(python3 -c 'import platform; print(platform.python_version())' 2>/dev/null)\n"
		"echo node $(node -v 2>/dev/null | tr -d v)\n",
		put_info);
}

const struct route aio_code_routes[] = {
	{ "POST", "/v1/code/execute", execute, .body = ROUTE_JSON, .schema = &code_schema,
	  .query = "api_key" },
	{ "GET", "/v1/code/info", info, .query = "api_key" },
	{ 0 },
};
