/*
 * GET /v1/sandbox: what the sandbox is and has, and its packages. One command in it finds each of them out.
 */
#include "aio_probe.h"
#include "poison.h"

#define VERSION "1.9.4" /* of the API */

/* A line for each fact: "key value". */
static const char LOOK[] =
	"echo user $(id -un); echo home $(cd ~ && pwd); echo arch $(uname -m)\n"
	". /etc/os-release 2>/dev/null; echo os ${NAME:-Linux}; echo version $VERSION_ID\n"
	"echo zone $(cat /etc/timezone 2>/dev/null || echo UTC)\n"
	"p=$(command -v python3) && echo python $(python3 -c 'import platform; "
	"print(platform.python_version())') $p\n"
	"n=$(command -v node) && echo node $(node -v | tr -d v) $n\n"
	"cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -r _ at _ state _; do\n"
	"[ \"$state\" = 0A ] && echo $((16#${at##*:})); done | sort -un | sed 's/^/port /'\n"
	"for t in git curl jq bash python3 node npm pip tar; do command -v $t >/dev/null "
	"&& echo tool $t; done; true\n";

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

static void put_ports(struct json_out *o, struct view text)
{
	json_out_key(o, "occupied_ports");
	json_out_array(o);
	while (text.p && text.n) {
		struct view line = view_split(text, '\n', &text);
		if (view_starts(line, "port "))
			json_out_str(o, view_skip(line, 5));
	}
	json_out_end(o, ']');
}

static void put_context(struct request *r, struct view said)
{
	const struct box *b = aio_box(r);

	if (!b)
		return;
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_kbool(o, "success", true);
	json_out_kz(o, "message", "Operation successful");
	json_out_kstr(o, "home_dir", aio_probe_fact(said, "home"));
	json_out_kstr(o, "workspace", aio_workspace(b));
	json_out_kz(o, "version", VERSION);
	json_out_key(o, "detail");
	json_out_object(o);
	json_out_key(o, "system");
	json_out_object(o);
	json_out_kstr(o, "os", aio_probe_fact(said, "os"));
	json_out_kstr(o, "os_version", aio_probe_fact(said, "version"));
	json_out_kstr(o, "arch", aio_probe_fact(said, "arch"));
	json_out_kstr(o, "user", aio_probe_fact(said, "user"));
	json_out_kstr(o, "home_dir", aio_probe_fact(said, "home"));
	json_out_kstr(o, "workspace", aio_workspace(b));
	json_out_kstr(o, "timezone", aio_probe_fact(said, "zone"));
	put_ports(o, said);
	json_out_end(o, '}');
	json_out_key(o, "runtime");
	json_out_object(o);
	put_runtime(o, "python", aio_probe_fact(said, "python"));
	put_runtime(o, "nodejs", aio_probe_fact(said, "node"));
	json_out_end(o, '}');
	put_tools(o, said);
	json_out_end(o, '}');
	json_out_end(o, '}');
	answer_send(r, 200);
}

static void context(struct request *r)
{
	aio_probe(r, LOOK, put_context);
}

/* ---- packages ---- */

static const char PYTHON[] =
	"command -v python3 >/dev/null || { echo 'this sandbox has no Python' >&2; exit 1; }\n"
	"exec python3 -c '\n"
	"import importlib.metadata as m\n"
	"found = {(d.metadata[\"Name\"] or \"\", d.version) for d in m.distributions()}\n"
	"print(\"\\n\".join(f\"{n}=={v}\" for n, v in sorted(found, key=lambda p: p[0].lower()) if n))\n'\n";

static void put_list(struct request *r, const struct aio_probe_end *end)
{
	struct view why = view_trim(end->err);

	if (end->exit_code) {
		aio_refuse(r, "%.*s", (int)MIN(why.n, 400u), why.p ? why.p : "");
		return;
	}
	json_out_str(aio_data(r, NULL), view_trim(end->out));
	aio_send(r);
}

static void python_packages(struct request *r)
{
	aio_probe_with(r, PYTHON, NULL, 0, VIEW_NONE, put_list);
}

const struct route aio_context_routes[] = {
	{ "GET", "/v1/sandbox", context, .query = AIO_QUERY },
	{ "GET", "/v1/sandbox/packages/python", python_packages, .query = AIO_QUERY },
	{ 0 },
};
