/*
 * GET /v1/sandbox: what the sandbox is and has. One command in it finds that out.
 */
#include <string.h>

#include "aio_impl.h"
#include "run.h"
#include "poison.h"

#define VERSION "1.9.4" /* of the API */

/* A line for each fact: "key value". */
static const char LOOK[] = "echo user $(id -un); echo home $(cd ~ && pwd); echo arch $(uname -m)\n"
			   ". /etc/os-release 2>/dev/null; echo os ${NAME:-Linux}; echo version $VERSION_ID\n"
			   "echo zone $(cat /etc/timezone 2>/dev/null || echo UTC)\n"
			   "p=$(command -v python3) && echo python $(python3 -c 'import platform; "
			   "print(platform.python_version())') $p\n"
			   "n=$(command -v node) && echo node $(node -v | tr -d v) $n\n"
			   "for t in git curl jq bash python3 node npm pip tar; do command -v $t >/dev/null "
			   "&& echo tool $t; done; true\n";

struct look {
	struct exec exec;
	struct request *r;
};

static void release(struct request *r)
{
	exec_cancel(&((struct look *)r->own)->exec);
}

/* The value of the first line that begins with this word; "" where there is none. */
static struct view fact(struct view text, const char *key)
{
	size_t n = strlen(key);

	while (text.p && text.n) {
		struct view line = view_split(text, '\n', &text);
		if (view_starts(line, key) && line.n > n && line.p[n] == ' ')
			return view_skip(line, n + 1);
	}
	return VIEW("");
}

static void put_runtime(struct json_out *o, const char *key, struct view said)
{
	struct view bin, version = view_split(said, ' ', &bin);

	json_out_key(o, key);
	json_out_array(o);
	if (said.n) {
		json_out_object(o);
		json_out_kstr(o, "ver", version);
		json_out_kstr(o, "bin", bin.p ? bin : VIEW(""));
		json_out_key(o, "alias");
		json_out_array(o);
		json_out_end(o, ']');
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

static void put_tools(struct json_out *o, struct view text)
{
	json_out_key(o, "utils");
	json_out_array(o);
	json_out_object(o);
	json_out_kz(o, "category", "tools");
	json_out_key(o, "tools");
	json_out_array(o);
	while (text.p && text.n) {
		struct view line = view_split(text, '\n', &text);
		if (!view_starts(line, "tool "))
			continue;
		json_out_object(o);
		json_out_kstr(o, "name", view_skip(line, 5));
		json_out_kz(o, "description", "");
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	json_out_end(o, '}');
	json_out_end(o, ']');
}

static void on_looked(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct request *r = CONTAINER(x, struct look, exec)->r;
	const struct box *b;

	if (e) {
		answer_fail(r, e);
		return;
	}
	b = aio_box(r);
	if (!b)
		return;
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_kbool(o, "success", true);
	json_out_kz(o, "message", "Operation successful");
	json_out_kstr(o, "home_dir", fact(res->out, "home"));
	json_out_kstr(o, "workspace", b->spec.workdir);
	json_out_kz(o, "version", VERSION);
	json_out_key(o, "detail");
	json_out_object(o);
	json_out_key(o, "system");
	json_out_object(o);
	json_out_kstr(o, "os", fact(res->out, "os"));
	json_out_kstr(o, "os_version", fact(res->out, "version"));
	json_out_kstr(o, "arch", fact(res->out, "arch"));
	json_out_kstr(o, "user", fact(res->out, "user"));
	json_out_kstr(o, "home_dir", fact(res->out, "home"));
	json_out_kstr(o, "workspace", b->spec.workdir);
	json_out_kstr(o, "timezone", fact(res->out, "zone"));
	json_out_key(o, "occupied_ports");
	json_out_array(o);
	json_out_end(o, ']');
	json_out_end(o, '}');
	json_out_key(o, "runtime");
	json_out_object(o);
	put_runtime(o, "python", fact(res->out, "python"));
	put_runtime(o, "nodejs", fact(res->out, "node"));
	json_out_end(o, '}');
	put_tools(o, res->out);
	json_out_end(o, '}');
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void context(struct request *r)
{
	struct look *l = aio_own(r, sizeof(*l), release);
	struct exec_wish w = { .command = view_of(LOOK), .timeout_ms = 30000 };
	struct err e = { 0 };

	if (!l)
		return;
	l->r = r;
	l->exec.done = on_looked;
	if (exec_start(r->core, &r->actor, view_of(r->box), &w, &l->exec, &e) < 0)
		answer_fail(r, &e);
}

const struct route aio_context_routes[] = {
	{ "GET", "/v1/sandbox", context, .query = "api_key" },
	{ 0 },
};
