/*
 * A command in the sandbox for an answer's sake: see aio_probe.h.
 */
#include "aio_probe.h"

#include <errno.h>

#include "run.h"
#include "poison.h"

#define PROBE_MS 30000
#define FIXED    4 /* bash -c SCRIPT aio */

struct probe {
	struct exec exec;
	struct request *r;
	void (*then)(struct request *r, struct view said);
	void (*then_all)(struct request *r, const struct aio_probe_end *end);
};

static void release(struct request *r)
{
	exec_cancel(&((struct probe *)r->own)->exec);
}

struct view aio_probe_fact(struct view text, const char *key)
{
	size_t n = strlen(key);

	while (text.p && text.n) {
		struct view line = view_split(text, '\n', &text);
		if (view_starts(line, key) && line.n > n && line.p[n] == ' ')
			return view_skip(line, n + 1);
	}
	return VIEW("");
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct probe *p = CONTAINER(x, struct probe, exec);
	struct err late = { 0 };

	if (!e && res->timed_out) {
		err_set(&late, ERR_TIMEOUT, "the sandbox did not answer within %d s", PROBE_MS / 1000);
		e = &late;
	}
	if (e) {
		struct err copy = *e;
		answer_fail(p->r, &copy);
		return;
	}
	struct aio_probe_end end = { .out = res->out, .err = res->err, .exit_code = res->exit_code };
	if (p->then)
		p->then(p->r, res->out);
	else
		p->then_all(p->r, &end);
}

static struct probe *new_probe(struct request *r)
{
	struct probe *p = aio_own(r, sizeof(*p), release);

	if (p) {
		p->r = r;
		p->exec.done = on_done;
	}
	return p;
}

static void start(struct request *r, struct probe *p, const struct exec_wish *w)
{
	struct err e = { 0 };

	if (exec_start(r->core, &r->actor, view_of(r->box), w, &p->exec, &e) < 0)
		answer_fail(r, &e);
}

void aio_probe(struct request *r, const char *script, void (*then)(struct request *r, struct view said))
{
	struct probe *p = new_probe(r);
	struct exec_wish w = { .command = view_of(script), .timeout_ms = PROBE_MS };

	if (!p)
		return;
	p->then = then;
	start(r, p, &w);
}

void aio_probe_with(struct request *r, const char *script, const struct view *words, size_t n,
		    struct view input, void (*then)(struct request *r, const struct aio_probe_end *end))
{
	struct probe *p = new_probe(r);
	struct exec_wish w = { .input = input, .timeout_ms = PROBE_MS };
	const struct view fixed[FIXED] = { VIEW("bash"), VIEW("-c"), view_of(script), VIEW("aio") };
	struct err e = { 0 };

	if (!p)
		return;
	p->then_all = then;
	w.argv.items = arena_array(&r->arena, FIXED + n, sizeof(struct view));
	if (!w.argv.items) {
		err_sys(&e, ERR_INTERNAL, ENOMEM, "request");
		answer_fail(r, &e);
		return;
	}
	for (; w.argv.n < FIXED + n; w.argv.n++)
		w.argv.items[w.argv.n] = w.argv.n < FIXED ? fixed[w.argv.n] : words[w.argv.n - FIXED];
	start(r, p, &w);
}
