/*
 * A dialect in full, as small as it gets: what a new one needs, and that it needs no
 * more. It is outside src; test_serve.c puts it beside another one and drives it.
 */
#include "sample_dialect.h"

#include "answer.h"
#include "poison.h"

static bool claims(const struct http_exchange *x, void *state)
{
	return view_starts(x->path, "/sample/");
}

static int authenticate(struct request *r, struct err *e)
{
	return auth_actor(r->core, http_get_header(r->x, "x-sample-token"), &r->actor, e);
}

static void fail(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra)
{
	struct buf b = BUF_INIT(4096);

	buf_printf(&b, "oops: %s\n", e->msg);
	http_reply(r->x, err_http(e->code), "text/plain", buf_view(&b), extra, n_extra);
	buf_done(&b);
}

static void greet(struct request *r)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kstr(o, "hello", r->params[0]);
	json_out_ku64(o, "bytes", buf_len(&r->body));
	json_out_end(o, '}');
	answer_send(r, 200);
}

static const struct route routes[] = {
	{ "GET", "/sample/{name}", greet },
	{ "POST", "/sample/{name}", greet, .body = ROUTE_WHOLE, .body_max = 16 },
	{ 0 },
};
static const struct route *const tables[] = { routes, NULL };
static const struct surface surface = {
	.heading = "sample", .routes = tables, .authenticate = authenticate, .fail = fail
};

const struct dialect sample_dialect = { .name = "sample", .claims = claims, .surface = &surface };
