/*
 * Group commit. Calls that arrive together share one transaction of the database, each a step of its own that
 * succeeds or fails alone; their answers wait until the disk has all of them. So a single call is as slow as
 * the disk, and a hundred at once are hardly slower.
 *
 * Where the transaction is lost (a full disk), every one of its answers becomes the error, and what is in
 * memory is read anew.
 */
#include <stdlib.h>

#include "log.h"
#include "signer.h"

#include "poison.h"

/* More than this are not held back for one commit. */
#define ANSWERS_MAX 256
#define BYTES_MAX   (1024u * 1024)

struct answer {
	struct list node;
	struct link *link;
	struct frame frame;
	struct buf body;
};

static void drop(struct answer *a)
{
	list_del(&a->node);
	buf_done(&a->body);
	free(a);
}

static void send(struct answer *a, const struct err *lost)
{
	if (lost) {
		(void)!link_fail(a->link, a->frame.type, a->frame.stream, lost);
	} else {
		a->frame.body = buf_view(&a->body);
		(void)!link_send(a->link, &a->frame);
	}
	drop(a);
}

void batch_commit(struct signer *s)
{
	struct err e = { 0 };
	const bool lost = db_flush(&s->db, &e) < 0;

	if (lost) {
		struct err again = { 0 };
		log_error("nothing of %u calls was kept: %s", s->batch.n, e.msg);
		holds_done(s);
		if ((holds_load(s, &again) < 0 || items_load_paused(s, &again) < 0) && !s->locked.code)
			s->locked = again;
	}
	loop_cancel(s->loop, &s->batch.task);
	s->batch.n = 0;
	s->batch.bytes = 0;
	while (!list_empty(&s->batch.answers))
		send(CONTAINER(s->batch.answers.next, struct answer, node), lost ? &e : NULL);
}

static void run(struct loop_task *t)
{
	batch_commit(CONTAINER(t, struct signer, batch.task));
}

void batch_answer(struct signer *s, struct link *l, const struct frame *f, const struct pb_msg *m,
		  const void *msg)
{
	struct answer *a = calloc(1, sizeof(*a));

	if (a) {
		*a = (struct answer){ .link = l,
				      .frame = *f,
				      .body = { .max = FRAME_BODY_MAX, .secret = true } };
		list_append(&s->batch.answers, &a->node);
	}
	if (!a || pb_encode(m, msg, &a->body) < 0) { /* whoever asked does not wait for ever */
		struct err e = { 0 };
		if (a) /* half an answer is none */
			drop(a);
		batch_commit(s);
		err_set(&e, ERR_TOO_LARGE, "the answer is too large");
		(void)!link_fail(l, f->type, f->stream, &e);
		return;
	}
	if (s->batch.n++ == 0)
		loop_defer(s->loop, &s->batch.task, run);
	s->batch.bytes += buf_len(&a->body);
}

/* After a call: the rest of the batch must not build on what was lost. */
void batch_next(struct signer *s)
{
	if (db_lost(&s->db) || s->batch.n >= ANSWERS_MAX || s->batch.bytes >= BYTES_MAX)
		batch_commit(s);
}
