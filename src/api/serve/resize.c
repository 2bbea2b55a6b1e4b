/*
 * Sizes of terminals: see resize.h.
 */
#include "resize.h"

#include "poison.h"

static void go(struct resize *s);

static void on_done(struct proc_op *op, const struct proc_info *list, size_t n, const struct err *e)
{
	struct resize *s = CONTAINER(op, struct resize, op);

	s->busy = false;
	if (s->again)
		go(s);
}

static void go(struct resize *s)
{
	struct err e = { 0 };

	s->again = s->busy;
	if (s->busy)
		return;
	s->op.done = on_done;
	s->busy = procs_resize(s->r->core, &s->r->actor, s->r->params[0], view_of(s->process), s->cols,
			       s->rows, &s->op, &e) >= 0;
}

void resize_to(struct resize *s, const struct request *r, const char *process, uint64_t cols, uint64_t rows)
{
	s->r = r;
	s->process = process;
	s->cols = cols;
	s->rows = rows;
	go(s);
}

void resize_cancel(struct resize *s)
{
	procs_cancel(&s->op);
}
