/*
 * Scripts in the sandbox: see aio_inside.h. Their answers are the sandbox's words: parsed, and written anew.
 */
#include "aio_inside.h"

#include "aio_inside_scripts.h"
#include "poison.h"

#define INSIDE_MS        90000
#define ANSWER_MAX_BYTES (64u * 1024 * 1024)

static const struct {
	const char *text;
	const size_t *size;
} scripts[AIO_SCRIPTS] = {
	[AIO_SCRIPT_SKILLS] = { aio_inside_skills, &aio_inside_skills_size },
	[AIO_SCRIPT_MARKDOWN] = { aio_inside_markdown, &aio_inside_markdown_size },
	[AIO_SCRIPT_OBSERVE] = { aio_inside_observe, &aio_inside_observe_size },
	[AIO_SCRIPT_PROXY] = { aio_inside_proxy, &aio_inside_proxy_size },
	[AIO_SCRIPT_HOOKS] = { aio_inside_hooks, &aio_inside_hooks_size },
};

/* {"success", "message", "data"} */
static void forward(struct aio_inside *in, struct view said)
{
	struct request *r = in->r;
	struct err e = { 0 };
	struct json *doc = NULL;
	const struct json *ok, *message, *data;

	arena_done(&r->arena); /* the body's, whose views are used up */
	arena_init(&r->arena, ANSWER_MAX_BYTES);
	if (json_parse(&r->arena, said, &doc, &e) < 0 || doc->type != JSON_OBJECT ||
	    !(ok = json_get(doc, "success")) || ok->type != JSON_BOOL || !(data = json_get(doc, "data")) ||
	    !(message = json_get(doc, "message")) || message->type != JSON_STRING) {
		aio_refuse(r, "the sandbox's python3 gave no answer that can be read");
		return;
	}
	http_hold(r->x, r->arena.used + said.n);
	if (!ok->boolean && in->bytes) {
		struct buf text = BUF_INIT(512);
		buf_add(&text, view_head(message->text, 480));
		buf_putc(&text, 0);
		aio_refuse_bytes(r, 404, text.p ? text.p : "");
		buf_done(&text);
		return;
	}
	if (!ok->boolean) {
		aio_refuse(r, "%.*s", (int)MIN(message->text.n, 480u), message->text.p);
		return;
	}
	if (in->then) {
		in->then(in, data);
		return;
	}
	json_out_value(aio_data(r, NULL), data);
	aio_send(r);
}

/* The last line of what it wrote to stderr: that of an exception. */
static struct view last_line(struct view text)
{
	struct view line = VIEW("");

	while (text.p && text.n) {
		struct view one = view_trim(view_split(text, '\n', &text));
		if (one.n)
			line = one;
	}
	return line;
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct aio_inside *in = CONTAINER(x, struct aio_inside, exec);
	struct request *r = in->r;
	struct view line;

	if (e && e->code == ERR_COMMAND) {
		aio_refuse(r, "this needs python3, which this sandbox does not have");
	} else if (e) {
		struct err copy = *e;
		answer_fail(r, &copy);
	} else if (res->timed_out) {
		aio_refuse(r, "the sandbox was not ready within %d s", INSIDE_MS / 1000);
	} else if (res->truncated) {
		aio_refuse(r, "the answer is too large");
	} else if (res->exit_code || !res->out.n) {
		line = last_line(res->err);
		aio_refuse(r, "the sandbox's python3 failed: %.*s", (int)MIN(line.n, 300u),
			   line.p ? line.p : "");
	} else {
		forward(in, res->out);
	}
}

void aio_inside_start(struct aio_inside *in, struct request *r, enum aio_script script,
		      const struct view *words, size_t n)
{
	struct view argv[4 + AIO_INSIDE_WORDS] = {
		VIEW("python3"), VIEW("-I"), VIEW("-c"), { scripts[script].text, *scripts[script].size }
	};
	struct exec_wish w = { .argv = { argv, 4 + n },
			       .timeout_ms = aio_limit_ms(r->core, INSIDE_MS / 1000) };
	struct err e = { 0 };

	assert(n <= AIO_INSIDE_WORDS);
	for (size_t i = 0; i < n; i++)
		argv[4 + i] = words[i].p ? words[i] : VIEW("");
	in->r = r;
	in->exec.done = on_done;
	if (exec_start(r->core, &r->actor, view_of(r->box), &w, &in->exec, &e) < 0)
		answer_fail(r, &e);
}

void aio_inside_cancel(struct aio_inside *in)
{
	exec_cancel(&in->exec);
}

static void release(struct request *r)
{
	aio_inside_cancel(r->own);
}

void aio_inside_run(struct request *r, enum aio_script script, const struct view *words, size_t n)
{
	struct aio_inside *in = aio_own(r, sizeof(*in), release);

	if (in)
		aio_inside_start(in, r, script, words, n);
}
