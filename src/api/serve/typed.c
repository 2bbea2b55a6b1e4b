/*
 * Typed text: see typed.h.
 */
#include "typed.h"

#include "poison.h"

#define COLS 80
#define ROWS 24

static void feed(struct typed *t);

/* That the process takes no more is no error of the client's: its end will be told. */
static void on_fed(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct typed *t = CONTAINER(op, struct typed, op);

	t->busy = false;
	buf_consume(&t->text, t->sent);
	feed(t);
}

static void feed(struct typed *t)
{
	struct view piece = view_head(buf_view(&t->text), PROCS_INPUT_MAX);
	struct err e = { 0 };

	if (t->busy || !piece.n)
		return;
	t->sent = piece.n;
	t->op.done = on_fed;
	t->busy = procs_input(t->r->core, &t->r->actor, t->box, view_of(t->process), piece, false, &t->op,
			      &e) >= 0;
	if (!t->busy)
		buf_clear(&t->text);
}

void typed_init(struct typed *t, const struct request *r, struct view box, const char *process, size_t most)
{
	*t = (struct typed){ .r = r, .box = box, .process = process, .text = BUF_INIT(most) };
}

int typed_add(struct typed *t, struct view text)
{
	if (buf_add(&t->text, text) < 0)
		return -1;
	feed(t);
	return 0;
}

void typed_done(struct typed *t)
{
	procs_cancel(&t->op);
	buf_done(&t->text);
}

struct exec_wish typed_login_shell(void)
{
	static struct view argv[] = { VIEW("/bin/sh"), VIEW("-c"),
				      VIEW("command -v bash >/dev/null 2>&1 && exec bash -l; exec sh -l") };

	return (struct exec_wish){ .argv = { argv, ELEMS(argv) },
				   .keep = true,
				   .pty = true,
				   .kill = true,
				   .cols = COLS,
				   .rows = ROWS };
}
