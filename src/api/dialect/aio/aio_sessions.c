/*
 * Sessions: see aio_sessions.h.
 */
#include "aio_sessions.h"

#include "clock.h"
#include "poison.h"

struct asking {
	struct context_op op;
	struct request *r;
	const char *language;
	struct context_wish wish;
	struct view id;
	char ids[CONTEXTS_MAX][CONTEXT_NAME + 1]; /* that are to be removed */
	size_t n_ids, n_removed;
	void (*then)(struct request *r, const struct context_info *c, bool created);
	void (*then_list)(struct request *r, const struct context_info *list, size_t n);
	void (*then_removed)(struct request *r, size_t n);
};

static void release(struct request *r)
{
	contexts_cancel(&((struct asking *)r->own)->op);
}

static struct asking *asking(struct request *r, const char *language)
{
	struct asking *k = aio_own(r, sizeof(*k), release);

	if (k) {
		k->r = r;
		k->language = language;
	}
	return k;
}

int64_t aio_sessions_age(const struct context_info *c)
{
	return MAX(clock_wall_ms() - c->created_ms, (int64_t)0) / 1000;
}

static void fail(struct request *r, const struct err *e)
{
	struct err copy = *e;

	if (copy.code == ERR_NOT_FOUND)
		aio_refuse(r, "there is no such session");
	else
		answer_fail(r, &copy);
}

/* ---- one ---- */

static void on_made(struct context_op *op, const struct context_info *list, size_t n, const struct err *e)
{
	struct asking *k = CONTAINER(op, struct asking, op);

	if (e)
		fail(k->r, e);
	else
		k->then(k->r, list, true);
}

static void make(struct asking *k)
{
	struct request *r = k->r;
	struct err e = { 0 };

	k->op = (struct context_op){ .done = on_made };
	if (contexts_create(r->core, &r->actor, view_of(r->box), &k->wish, &k->op, &e) < 0)
		answer_fail(r, &e);
}

static void on_found(struct context_op *op, const struct context_info *list, size_t n, const struct err *e)
{
	struct asking *k = CONTAINER(op, struct asking, op);

	if (e && e->code == ERR_NOT_FOUND && k->wish.language.n)
		make(k);
	else if (e)
		fail(k->r, e);
	else if (!view_is(list->language, k->language))
		aio_refuse(k->r, "the session is one of %.*s", (int)list->language.n, list->language.p);
	else
		k->then(k->r, list, false);
}

static void find(struct asking *k, struct view id)
{
	struct request *r = k->r;
	struct err e = { 0 };

	k->op.done = on_found;
	if (contexts_list(r->core, &r->actor, view_of(r->box), id, &k->op, &e) < 0)
		answer_fail(r, &e);
}

void aio_sessions_make(struct request *r, const char *language, struct view id, struct view cwd,
		       void (*then)(struct request *r, const struct context_info *c, bool created))
{
	struct asking *k = asking(r, language);

	if (!k)
		return;
	k->then = then;
	k->wish = (struct context_wish){ .language = view_of(language), .id = id, .cwd = cwd };
	if (id.n)
		find(k, id);
	else
		make(k);
}

void aio_sessions_get(struct request *r, const char *language, struct view id,
		      void (*then)(struct request *r, const struct context_info *c, bool created))
{
	struct asking *k = asking(r, language);

	if (!k)
		return;
	k->then = then;
	find(k, id);
}

/* ---- all ---- */

static void on_list(struct context_op *op, const struct context_info *list, size_t n, const struct err *e)
{
	struct asking *k = CONTAINER(op, struct asking, op);

	if (e)
		fail(k->r, e);
	else
		k->then_list(k->r, list, n);
}

void aio_sessions_list(struct request *r,
		       void (*then)(struct request *r, const struct context_info *list, size_t n))
{
	struct asking *k = asking(r, NULL);
	struct err e = { 0 };

	if (!k)
		return;
	k->then_list = then;
	k->op.done = on_list;
	if (contexts_list(r->core, &r->actor, view_of(r->box), VIEW_NONE, &k->op, &e) < 0)
		answer_fail(r, &e);
}

void aio_sessions_put(struct request *r, const struct context_info *list, size_t n, const char *language,
		      void (*put)(struct json_out *o, const struct context_info *c))
{
	struct json_out *o = aio_data(r, NULL);

	json_out_object(o);
	json_out_key(o, "sessions");
	json_out_object(o);
	for (size_t i = 0; i < n; i++)
		if (view_is(list[i].language, language)) {
			json_out_key_view(o, list[i].id);
			put(o, &list[i]);
		}
	json_out_end(o, '}');
	json_out_end(o, '}');
	aio_send(r);
}

/* ---- to remove ---- */

static void remove_next(struct asking *k);

static void on_removed(struct context_op *op, const struct context_info *list, size_t n, const struct err *e)
{
	struct asking *k = CONTAINER(op, struct asking, op);

	if (e && e->code != ERR_NOT_FOUND) {
		fail(k->r, e);
		return;
	}
	k->n_removed++;
	remove_next(k);
}

static void remove_next(struct asking *k)
{
	struct request *r = k->r;
	struct err e = { 0 };

	if (k->n_removed == k->n_ids) {
		k->then_removed(r, k->n_ids);
		return;
	}
	k->op = (struct context_op){ .done = on_removed };
	if (contexts_remove(r->core, &r->actor, view_of(r->box), view_of(k->ids[k->n_removed]), &k->op, &e) <
	    0)
		answer_fail(r, &e);
}

static void on_known(struct context_op *op, const struct context_info *list, size_t n, const struct err *e)
{
	struct asking *k = CONTAINER(op, struct asking, op);

	if (e) {
		fail(k->r, e);
		return;
	}
	for (size_t i = 0; i < n && k->n_ids < CONTEXTS_MAX; i++)
		if (view_is(list[i].language, k->language) && (!k->id.p || view_eq(list[i].id, k->id)) &&
		    view_to_str(list[i].id, k->ids[k->n_ids], sizeof(k->ids[0])) >= 0)
			k->n_ids++;
	if (k->id.p && !k->n_ids)
		aio_refuse(k->r, "there is no such session");
	else
		remove_next(k);
}

void aio_sessions_remove(struct request *r, const char *language, struct view id,
			 void (*then)(struct request *r, size_t n))
{
	struct asking *k = asking(r, language);
	struct err e = { 0 };

	if (!k)
		return;
	k->then_removed = then;
	k->id = id;
	k->op.done = on_known;
	if (contexts_list(r->core, &r->actor, view_of(r->box), VIEW_NONE, &k->op, &e) < 0)
		answer_fail(r, &e);
}
