/*
 * Secrets as variables: see rest_variables.h.
 */
#include "rest_variables.h"

#include "secret.h"
#include "poison.h"

static int take(struct rest_variables *v, const struct secret_values *reply, struct err *e)
{
	struct arena *a = &v->r->arena;
	struct json_strmap map = { .keys = arena_array(a, v->list.n, sizeof(struct view)),
				   .values = arena_array(a, v->list.n, sizeof(struct view)) };

	if (!map.keys || !map.values || reply->n != v->list.n)
		return err_set(e, ERR_INTERNAL, "the secrets cannot be passed on");
	for (; map.n < v->list.n; map.n++) {
		map.keys[map.n] = v->list.items[map.n].env;
		map.values[map.n] = arena_view(a, reply->values[map.n]);
		if (!map.values[map.n].p)
			return err_set(e, ERR_TOO_LARGE, "the secrets are too large");
	}
	*v->into = map;
	return 0;
}

static void on_values(void *arg, const void *result, const struct err *failed)
{
	struct rest_variables *v = arg;
	struct err e = { 0 };

	v->r->job = NULL;
	if (failed)
		e = *failed;
	else if (take(v, result, &e) == 0)
		v->go(v->r, v->body);
	if (e.code)
		answer_fail(v->r, &e);
}

void *rest_variables_body(struct request *r, size_t size)
{
	void *body = arena_alloc(&r->arena, size);
	struct err e = { 0 };

	if (!body) {
		err_set(&e, ERR_TOO_LARGE, "the request is too large");
		answer_fail(r, &e);
	}
	return body;
}

void rest_variables_fetch(struct request *r, struct rest_variables *v, struct json_strmap *into,
			  void (*go)(struct request *r, void *body), void *body)
{
	struct err e = { 0 };

	v->r = r;
	v->into = into;
	v->go = go;
	v->body = body;
	if (spec_secrets_read(&r->arena, v->wish, false, &v->list, &e) < 0) {
		answer_fail(r, &e);
		return;
	}
	if (!v->list.n) {
		go(r, body);
		return;
	}
	r->arena.secret = true;
	answer_await(r, secrets_read(r->core, &r->actor, r->params[0], &v->list, on_values, v, &e), &e);
}
