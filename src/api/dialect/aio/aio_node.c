/*
 * JavaScript without state: a directory that is made for it and removed behind it, in which node runs the
 * code. All of it is one script on bash's stdin, so that its size has no limit of the kernel's.
 *
 * Code is CommonJS where that can be parsed, else a module: `import` and await at the top need one. `require`
 * is there in both.
 */
#include "aio_node.h"

#include <errno.h>

#include "aio_run.h"
#include "answer_long.h"
#include "run.h"
#include "text.h"
#include "poison.h"

#define SCRIPT_MAX (64u * 1024 * 1024)
#define REFUSED    125 /* the script's own exit code: the reason is on stderr */
#define MODULE_HEAD                                                                                          \
	"import{createRequire as __require}from\"module\";globalThis.require||=__require(import.meta.url);"

struct node {
	struct exec exec;
	struct request *r;
	struct view code;
	struct buf script;
	bool unified;
};

static void release(struct request *r)
{
	struct node *n = r->own;

	exec_cancel(&n->exec);
	buf_done(&n->script);
}

/* ---- the script ---- */

static void put_file(struct buf *b, const char *dir, struct view name, struct view text)
{
	buf_puts(b, "f=");
	buf_puts(b, dir);
	if (name.n)
		text_quote_word(b, name);
	buf_puts(b, "\nmkdir -p -- \"${f%/*}\" && printf %s ");
	text_quote_word(b, text);
	buf_puts(b, " > \"$f\" || exit 125\n");
}

/* "node20", "20": the version that has to be there. */
static void put_version(struct buf *b, struct view version)
{
	if (view_starts(version, "node"))
		version = view_skip(version, 4);
	if (!version.n)
		return;
	buf_puts(b, "case $(node -v) in v");
	text_quote_word(b, version);
	buf_puts(b, "|v");
	text_quote_word(b, version);
	buf_puts(
		b,
		".*) ;; *) echo \"this sandbox has Node.js $(node -v) and no other\" >&2; exit 125;; esac\n");
}

static void put_script(struct buf *b, const struct aio_node_wish *w)
{
	buf_puts(b, "command -v node >/dev/null || { echo 'this sandbox has no Node.js' >&2; exit 125; }\n");
	put_version(b, w->version);
	buf_puts(b, "d=$(mktemp -d) || exit 125\ntrap 'rm -rf \"$d\" \"$m\".cjs \"$m\".mjs' EXIT\nc=");
	if (w->cwd.n)
		text_quote_word(b, w->cwd);
	else
		buf_puts(b, "$d");
	buf_puts(b, "\ncd -- \"$c\" || exit 125\nm=$c/.main-$$\n");
	put_file(b, "$c/.main-$$.cjs", VIEW_NONE, w->code); /* in it: require('./x') is beside it */
	if (w->input.p)
		put_file(b, "$d/.stdin", VIEW_NONE, w->input);
	for (size_t i = 0; i < w->files.n; i++)
		put_file(b, "$c/", w->files.keys[i], w->files.values[i]);
	buf_puts(b, "k=cjs\nif ! node --check \"$m.cjs\" 2>/dev/null; then\n"
		    "{ printf %s '" MODULE_HEAD "'; cat \"$m.cjs\"; } > \"$m.mjs\" || exit 125\n"
		    "node --check \"$m.mjs\" 2>/dev/null && k=mjs\nfi\n"
		    "node \"$m.$k\" < ");
	buf_puts(b, w->input.p ? "\"$d/.stdin\"\n" : "/dev/null\n");
}

/* A name of a file below the directory. */
static bool is_inside(struct view name)
{
	if (!name.n || name.p[0] == '/')
		return false;
	while (name.p && name.n)
		if (view_is(view_split(name, '/', &name), ".."))
			return false;
	return true;
}

/* ---- the answer ---- */

static void put_stream(struct request *r, const char *name, struct view text)
{
	struct json_out *o = &r->json;

	if (!text.n)
		return;
	json_out_object(o);
	json_out_kz(o, "output_type", "stream");
	json_out_kz(o, "name", name);
	answer_put_long(r, "text", ANSWER_STRING, text);
	json_out_end(o, '}');
}

/* The line of stderr that says what was thrown: "TypeError: x is not a function". */
static struct view thrown(struct view text, struct view *ret_value)
{
	while (text.p && text.n) {
		struct view value, name = view_split(view_split(text, '\n', &text), ':', &value);
		bool is_name = value.p && name.n >= 5 && !memchr(name.p, ' ', name.n) &&
			       view_is(view_skip(name, name.n - 5), "Error");
		if (is_name) {
			*ret_value = value.n && value.p[0] == ' ' ? view_skip(value, 1) : value;
			return name;
		}
	}
	*ret_value = VIEW("the process ended with an error");
	return VIEW("Error");
}

static void put_outputs(struct request *r, const struct exec_result *res, bool failed)
{
	struct json_out *o = &r->json;

	json_out_array(o);
	put_stream(r, "stdout", res->out);
	put_stream(r, "stderr", res->err);
	if (failed) {
		struct view value, name = thrown(res->err, &value);
		json_out_object(o);
		json_out_kz(o, "output_type", "error");
		answer_put_long(r, "ename", ANSWER_STRING, name);
		answer_put_long(r, "evalue", ANSWER_STRING, value);
		answer_put_lines(r, "traceback", res->err);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
}

static void put(struct json_out *o, const struct node *n, const struct exec_result *res)
{
	bool failed = res->exit_code != 0 || res->signal || res->timed_out;

	json_out_object(o);
	json_out_kz(o, "language", "javascript");
	json_out_kz(o, "status", res->timed_out ? "timeout" : failed ? "error" : "ok");
	if (!n->unified)
		json_out_kz(o, "execution_count", NULL);
	json_out_key(o, "outputs");
	put_outputs(n->r, res, failed && !res->timed_out);
	answer_put_long(n->r, "code", ANSWER_STRING, n->code);
	answer_put_long(n->r, "stdout", ANSWER_STRING, res->out);
	answer_put_long(n->r, "stderr", ANSWER_STRING, res->err);
	json_out_ku64(o, "exit_code", res->signal ? 128 + exec_signal(view_of(res->signal)) : res->exit_code);
	if (n->unified && failed && res->err.n)
		answer_put_lines(n->r, "traceback", res->err);
	else if (n->unified)
		json_out_kz(o, "traceback", NULL);
	json_out_kz(o, "session_id", NULL);
	json_out_end(o, '}');
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct node *n = CONTAINER(x, struct node, exec);
	struct request *r = n->r;

	if (e) {
		struct err copy = *e;
		answer_fail(r, &copy);
		return;
	}
	if (res->exit_code == REFUSED && !res->signal) {
		struct view rest, line = view_split(res->err, '\n', &rest);
		aio_refuse(r, "%.*s", (int)MIN(line.n, 300u), line.p ? line.p : "");
		return;
	}
	struct json_out *o = aio_data(r, NULL);
	answer_keep(r, res->kept);
	put(o, n, res);
	aio_send(r);
}

void aio_node_start(struct request *r, const struct aio_node_wish *w)
{
	struct view argv[] = { VIEW("bash"), VIEW("-s") };
	struct node *n = aio_own(r, sizeof(*n), release);
	struct err e = { 0 };

	if (!n)
		return;
	n->r = r;
	n->code = w->code;
	n->unified = w->unified;
	n->exec.done = on_done;
	n->script = BUF_INIT(SCRIPT_MAX);
	for (size_t i = 0; i < w->files.n; i++)
		if (!is_inside(w->files.keys[i])) {
			aio_refuse(r, "files: a name is relative and does not lead out of the directory");
			return;
		}
	put_script(&n->script, w);
	if (n->script.bad) {
		aio_refuse(r, "the code and its files are larger than %u MiB", SCRIPT_MAX >> 20);
		return;
	}
	struct exec_wish x = { .argv = { argv, ELEMS(argv) },
			       .input = buf_view(&n->script),
			       .timeout_ms = w->timeout_s * 1000 };
	if (exec_start(r->core, &r->actor, view_of(r->box), &x, &n->exec, &e) < 0)
		answer_fail(r, &e);
}
