/*
 * See rest_tied.h. The empty lines let the kernel notice a client whose machine is
 * gone; between them the box may have been removed by somebody else.
 */
#include "rest_tied.h"

#include "box.h"
#include "record.h"
#include "rest_boxes.h"
#include "rest_impl.h"
#include "poison.h"

#define ALIVE_MS       5000
#define LINE_MAX_BYTES (4u << 20)

struct tied {
	struct request *r;
	struct loop_timer alive;
	struct buf line;
	char id[BOX_ID + 1];
};

static void let_go(struct tied *t)
{
	loop_timer_stop(&t->alive);
	buf_done(&t->line);
	tied_gone(t->r->core, view_of(t->id));
}

static void on_gone(struct request *r)
{
	let_go(r->own);
}

/* The daemon goes down: the next start removes the box. */
static void on_drain(struct request *r)
{
	let_go(r->own);
	http_end(r->x);
	request_done(r);
}

static void on_abort(struct http_exchange *x)
{
	struct request *r = x->ctx;

	let_go(r->own);
	request_done(r);
}

static void on_body(struct http_exchange *x, struct view data, bool last)
{
}

static void on_writable(struct http_exchange *x)
{
}

static const struct http_ops tied_ops = { .on_body = on_body,
					  .on_abort = on_abort,
					  .on_writable = on_writable };

static void on_alive(struct loop_timer *timer)
{
	struct tied *t = CONTAINER(timer, struct tied, alive);
	struct request *r = t->r;

	if (tied_is_there(r->core, view_of(t->id))) {
		(void)http_write(r->x, VIEW("\n"));
		loop_timer_start(r->x->loop, timer, ALIVE_MS, on_alive);
		return;
	}
	http_end(r->x);
	request_done(r);
}

static void begin(struct request *r)
{
	static const struct http_header headers[] = { { VIEW("cache-control"), VIEW("no-store") },
						      { VIEW("x-accel-buffering"), VIEW("no") } };
	struct tied *t = r->own;

	r->on_gone = on_gone;
	r->on_drain = on_drain;
	r->x->ops = &tied_ops;
	r->x->eof_aborts = true;
	http_begin(r->x, 201, "application/x-ndjson", -1, headers, ELEMS(headers));
	(void)http_write(r->x, buf_view(&t->line));
	buf_done(&t->line);
	loop_timer_start(r->x->loop, &t->alive, ALIVE_MS, on_alive);
}

void rest_tied_answer(struct request *r, const struct box *b)
{
	struct tied *t = request_own(r, sizeof(*t));
	struct json_out o;

	if (!t) { /* nobody will hold it */
		tied_gone(r->core, view_of(b->id));
		return;
	}
	t->r = r;
	memcpy(t->id, b->id, sizeof(t->id));
	buf_init(&t->line, LINE_MAX_BYTES);
	json_out_init(&o, &t->line);
	rest_boxes_put(&o, b);
	buf_putc(&t->line, '\n');
	if (record_close(r, NULL, begin))
		r->on_gone = on_gone; /* it is removed with the client also while the answer waits */
	else
		begin(r);
}
