/*
 * A terminal in JSON: see json_terminal.h.
 */
#include "json_terminal.h"

#include <stdio.h>

#include "poison.h"

#define INPUT_HIGH  (64u * 1024)
#define MESSAGE_MAX (8u * 1024 * 1024)

static struct json_terminal *of(struct ws *w)
{
	return CONTAINER(w, struct json_terminal, w);
}

static void on_gone(struct ws *w)
{
	struct json_terminal *t = of(w);

	exec_cancel(&t->exec);
	resize_cancel(&t->size);
	loop_timer_stop(&t->timer);
	typed_done(&t->typed);
}

void json_terminal_say(struct json_terminal *t, const char *type, const char *key, struct view value)
{
	struct buf json = BUF_INIT(MESSAGE_MAX);
	struct json_out o;

	json_out_init(&o, &json);
	json_out_object(&o);
	json_out_kz(&o, "type", type);
	if (key)
		json_out_kstr(&o, key, value);
	json_out_end(&o, '}');
	ws_text(&t->w, buf_view(&json));
	buf_done(&json);
}

bool json_terminal_input(struct json_terminal *t, struct view text, struct err *e)
{
	if (typed_add(&t->typed, text) >= 0)
		return true;
	err_set(e, ERR_TOO_LARGE, "the shell does not read its input");
	return false;
}

void json_terminal_resize(struct json_terminal *t, uint64_t cols, uint64_t rows)
{
	resize_to(&t->size, t->w.r, t->process, cols, rows);
}

static void on_begun(struct exec *x, const struct exec_begun *b)
{
	struct json_terminal *t = CONTAINER(x, struct json_terminal, exec);

	snprintf(t->process, sizeof(t->process), "%u", b->pid);
	ws_open(&t->w);
	t->ops->begun(t);
}

static void put_piece(void *arg, struct view piece)
{
	json_terminal_say(arg, "output", "data", piece);
}

static void on_output(struct exec *x, unsigned channel, struct view data)
{
	struct json_terminal *t = CONTAINER(x, struct json_terminal, exec);

	text_pieces_add(&t->pieces, data, put_piece, t);
	/* What the client has not taken holds the rest back. */
	exec_consumed(x, ws_hold(&t->w, data.n));
}

static void on_sent(struct ws *w, size_t n)
{
	exec_consumed(&of(w)->exec, n);
}

static void on_done(struct exec *x, const struct exec_result *res, const struct err *e)
{
	struct json_terminal *t = CONTAINER(x, struct json_terminal, exec);
	struct err early = { 0 };

	if (!t->w.open) {
		err_set(&early, ERR_INTERNAL, "the shell ended before it began");
		ws_fail(&t->w, e ? e : &early);
		return;
	}
	text_pieces_end(&t->pieces, put_piece, t);
	t->ops->ended(t, res, e);
	ws_leave(&t->w, WEBSOCKET_NORMAL, VIEW_NONE);
}

static bool on_text(struct ws *w, struct view text, struct err *e)
{
	struct arena a = ARENA_INIT(4 * WS_MESSAGE);
	struct json *doc;
	bool ok = json_parse(&a, text, &doc, e) >= 0 && of(w)->ops->message(of(w), doc, &a, e);

	arena_done(&a);
	return ok;
}

static const struct ws_ops ops = {
	.on_input = ws_drop_input, .on_text = on_text, .on_sent = on_sent, .on_gone = on_gone
};

void json_terminal_start(struct request *r, size_t size, struct view box,
			 const struct json_terminal_ops *wanted)
{
	struct exec_wish w = typed_login_shell();
	struct json_terminal *t = ws_own(r, size, &ops, INPUT_HIGH);
	struct err e = { 0 };

	if (!t)
		return;
	t->ops = wanted;
	r->params[0] = box; /* where resize.c looks for it */
	typed_init(&t->typed, r, box, t->process, 2 * WS_MESSAGE);
	t->exec.on_begun = on_begun;
	t->exec.on_output = on_output;
	t->exec.done = on_done;
	if (!request_same_origin(r->x))
		err_set(&e, ERR_FORBIDDEN, "a page of another origin may not open a terminal");
	if (e.code || ws_check(&t->w, &e) < 0 || exec_start(r->core, &r->actor, box, &w, &t->exec, &e) < 0)
		ws_fail(&t->w, &e);
}
