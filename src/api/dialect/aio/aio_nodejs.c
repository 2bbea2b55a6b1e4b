/*
 * /v1/nodejs: JavaScript. Without state it is a process of its own (aio_node.c), with state a code context,
 * whose id is the session's.
 */
#include "aio_node.h"
#include "aio_probe.h"
#include "aio_sessions.h"
#include "poison.h"

#define IDLE_SECONDS 86400 /* what is told of every session: it stays until it is deleted */

struct node_body {
	struct view code, session, cwd, version, input;
	struct json_strmap files;
	uint64_t timeout, idle;
	bool stateful;
};

#define AT(f) .offset = offsetof(struct node_body, f)
static const struct json_field execute_fields[] = {
	{ "code", JSON_F_STRING, AT(code), .required = true },
	{ "timeout", JSON_F_U64, AT(timeout), .min = 1, .max = AIO_CODE_SECONDS_MAX, .nullable = true },
	{ "stdin", JSON_F_STRING, AT(input), .nullable = true },
	{ "files", JSON_F_STRMAP, AT(files), .nullable = true },
	{ "stateful", JSON_F_BOOL, AT(stateful), .nullable = true },
	{ "session_id", JSON_F_STRING, AT(session), .nullable = true },
	{ "cwd", JSON_F_STRING, AT(cwd), .nullable = true },
	{ "version", JSON_F_STRING, AT(version), .nullable = true },
};
static const struct json_field session_fields[] = {
	{ "session_id", JSON_F_STRING, AT(session), .nullable = true },
	{ "cwd", JSON_F_STRING, AT(cwd), .nullable = true },
	{ "max_idle_time", JSON_F_U64, AT(idle), .min = 60, .max = IDLE_SECONDS, .nullable = true },
};
#undef AT
static const struct json_schema execute_schema = { execute_fields, ELEMS(execute_fields), .open = true };
static const struct json_schema session_schema = { session_fields, ELEMS(session_fields), .open = true };

static void put(struct json_out *o, const struct aio_run *x)
{
	json_out_object(o);
	json_out_kz(o, "language", "javascript");
	json_out_kz(o, "status", x->status);
	aio_run_put_results(o, x);
	aio_run_put_output(o, x);
	json_out_kz(o, "session_id", x->name);
	json_out_end(o, '}');
}

static void execute(struct request *r)
{
	struct node_body b = { .timeout = AIO_CODE_SECONDS };

	if (aio_read(r, &execute_schema, &b) < 0)
		return;
	if (!b.stateful && !b.session.n) {
		struct aio_node_wish w = { .code = b.code,
					   .cwd = b.cwd,
					   .version = b.version,
					   .input = b.input,
					   .files = b.files,
					   .timeout_s = b.timeout };
		aio_node_start(r, &w);
		return;
	}
	if (b.input.p || b.files.n || b.version.n) {
		aio_refuse(r, "stdin, files and version are for code without a session");
		return;
	}
	struct aio_code w = { .language = VIEW("javascript"),
			      .code = b.code,
			      .cwd = b.cwd,
			      .session = b.session,
			      .timeout_s = b.timeout,
			      .put = put };
	aio_run_start(r, &w);
}

/* ---- sessions ---- */

static void put_session(struct json_out *o, const struct context_info *c)
{
	json_out_object(o);
	json_out_kstr(o, "session_id", c->id);
	json_out_kstr(o, "cwd", c->cwd);
	json_out_key(o, "created_at");
	json_out_double(o, (double)c->created_ms / 1000);
	json_out_key(o, "last_used");
	json_out_double(o, (double)c->used_ms / 1000);
	json_out_ku64(o, "max_idle_time", IDLE_SECONDS);
	json_out_ki64(o, "age_seconds", aio_sessions_age(c));
	json_out_kz(o, "state", c->busy ? "busy" : "idle");
	json_out_end(o, '}');
}

static void on_made(struct request *r, const struct context_info *c, bool created)
{
	struct json_out *o = aio_data(r, NULL);

	json_out_object(o);
	json_out_kstr(o, "session_id", c->id);
	json_out_kbool(o, "created", created);
	json_out_kz(o, "message", created ? "Session created" : "The session exists already");
	json_out_key(o, "session");
	put_session(o, c);
	json_out_end(o, '}');
	aio_send(r);
}

/* A session has the sandbox's one Node.js. */
static bool no_version(struct request *r)
{
	if (!request_query(r, "version").n)
		return true;
	aio_refuse(r, "a session runs in the sandbox's own Node.js: leave version out");
	return false;
}

static void create(struct request *r)
{
	struct node_body b = { 0 };

	if (aio_read(r, &session_schema, &b) < 0 || !no_version(r))
		return;
	if (b.idle && b.idle != IDLE_SECONDS)
		aio_refuse(r, "max_idle_time cannot be chosen: a session stays until it is deleted");
	else
		aio_sessions_make(r, "javascript", b.session, b.cwd, on_made);
}

static void put_sessions(struct request *r, const struct context_info *list, size_t n)
{
	aio_sessions_put(r, list, n, "javascript", put_session);
}

static void sessions(struct request *r)
{
	if (no_version(r))
		aio_sessions_list(r, put_sessions);
}

static void on_got(struct request *r, const struct context_info *c, bool created)
{
	struct json_out *o = aio_data(r, NULL);

	json_out_object(o);
	json_out_key(o, "session");
	put_session(o, c);
	json_out_end(o, '}');
	aio_send(r);
}

static void get(struct request *r)
{
	if (no_version(r))
		aio_sessions_get(r, "javascript", r->params[0], on_got);
}

static void on_to_update(struct request *r, const struct context_info *c, bool created)
{
	struct json_out *o = aio_data(r, NULL);

	json_out_object(o);
	json_out_kbool(o, "updated", true);
	json_out_key(o, "session");
	put_session(o, c);
	json_out_end(o, '}');
	aio_send(r);
}

static void update(struct request *r)
{
	struct node_body b = { 0 };

	if (aio_read(r, &session_schema, &b) < 0 || !no_version(r))
		return;
	if (b.cwd.n || (b.idle && b.idle != IDLE_SECONDS))
		aio_refuse(r, "a session's %s cannot be changed",
			   b.cwd.n ? "cwd (run process.chdir in it)" : "max_idle_time");
	else
		aio_sessions_get(r, "javascript", r->params[0], on_to_update);
}

static void on_removed(struct request *r, size_t n)
{
	struct json_out *o = aio_data(r, NULL);

	json_out_object(o);
	json_out_kbool(o, "deleted", n > 0);
	json_out_end(o, '}');
	aio_send(r);
}

static void remove_one(struct request *r)
{
	if (no_version(r))
		aio_sessions_remove(r, "javascript", r->params[0], on_removed);
}

/* ---- what there is ---- */

static const char LOOK[] =
	"command -v node >/dev/null || exit\n"
	"node -e '\n"
	"const fs = require(\"fs\"), path = require(\"path\");\n"
	"const read = d => JSON.parse(fs.readFileSync(path.join(d, \"package.json\")));\n"
	"console.log(\"node \" + process.versions.node);\n"
	"for (const dir of [path.join(path.dirname(process.execPath), \"../lib/node_modules\"),\n"
	"                   \"/usr/local/lib/node_modules\", \"/usr/share/nodejs\"])\n"
	"  try {\n"
	"    for (const name of fs.readdirSync(dir)) try {\n"
	"      const p = read(path.join(dir, name));\n"
	"      if (name == \"npm\") console.log(\"npm \" + p.version + \"\\ndir \" + dir);\n"
	"      console.log(\"package \" + p.name + \" \" + p.version);\n"
	"    } catch {}\n"
	"  } catch {}\n"
	"'\n";

static void put_packages(struct json_out *o, struct view said)
{
	json_out_key(o, "global_packages");
	json_out_array(o);
	while (said.p && said.n) {
		struct view version, line = view_split(said, '\n', &said);
		if (!view_starts(line, "package "))
			continue;
		struct view name = view_split(view_skip(line, 8), ' ', &version);
		json_out_object(o);
		json_out_kstr(o, "name", name);
		json_out_kstr(o, "version", version.p ? version : VIEW(""));
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

static void put_info(struct request *r, struct view said)
{
	struct view node = aio_probe_fact(said, "node"), dir = aio_probe_fact(said, "dir");

	if (!node.n) {
		aio_refuse(r, "this sandbox has no Node.js");
		return;
	}
	struct json_out *o = aio_data(r, NULL);
	json_out_object(o);
	json_out_kstr(o, "node_version", node);
	json_out_kstr(o, "npm_version", aio_probe_fact(said, "npm"));
	json_out_key(o, "supported_languages");
	json_out_array(o);
	json_out_str(o, VIEW("javascript"));
	json_out_end(o, ']');
	json_out_kz(o, "description", "The image's Node.js; with state in code contexts");
	json_out_kz(o, "runtime_directory", NULL);
	json_out_key(o, "global_npm_directory");
	if (dir.n)
		json_out_str(o, dir);
	else
		json_out_null(o);
	put_packages(o, said);
	json_out_key(o, "available_versions");
	json_out_array(o);
	json_out_str(o, node);
	json_out_end(o, ']');
	json_out_kstr(o, "current_version", node);
	json_out_end(o, '}');
	aio_send(r);
}

static void info(struct request *r)
{
	aio_probe(r, LOOK, put_info);
}

/* ---- /v1/sandbox/packages/nodejs ---- */

static void put_list(struct request *r, struct view said)
{
	struct buf text = BUF_INIT(1u << 20);

	if (!aio_probe_fact(said, "node").n) {
		aio_refuse(r, "this sandbox has no Node.js");
		return;
	}
	while (said.p && said.n) {
		struct view version, line = view_split(said, '\n', &said);
		if (!view_starts(line, "package "))
			continue;
		buf_puts(&text, buf_len(&text) ? "\n" : "");
		buf_add(&text, view_split(view_skip(line, 8), ' ', &version));
		buf_putc(&text, '@');
		buf_add(&text, version);
	}
	json_out_str(aio_data(r, NULL), buf_view(&text));
	buf_done(&text);
	aio_send(r);
}

static void packages(struct request *r)
{
	aio_probe(r, LOOK, put_list);
}

#define QUERY .query = "api_key version"
const struct route aio_nodejs_routes[] = {
	{ "POST", "/v1/nodejs/execute", execute, .body = ROUTE_JSON, .schema = &execute_schema, QUERY },
	{ "GET", "/v1/nodejs/info", info, QUERY },
	{ "GET", "/v1/sandbox/packages/nodejs", packages, QUERY },
	{ "POST", "/v1/nodejs/sessions", create, .body = ROUTE_JSON, .schema = &session_schema, QUERY },
	{ "GET", "/v1/nodejs/sessions", sessions, QUERY },
	{ "GET", "/v1/nodejs/sessions/{id}", get, QUERY },
	{ "PATCH", "/v1/nodejs/sessions/{id}", update, .body = ROUTE_JSON, .schema = &session_schema, QUERY },
	{ "DELETE", "/v1/nodejs/sessions/{id}", remove_one, QUERY },
	{ 0 },
};
#undef QUERY
