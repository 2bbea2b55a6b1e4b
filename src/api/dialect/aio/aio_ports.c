/*
 * /proxy/{port}/… and /absproxy/{port}/…: ways to servers in the sandbox. The first takes its path off before
 * the server sees it, the second leaves it there. They ask for a key or a ticket, unless the sandbox's ports
 * are public; what proved who asks is not passed on.
 */
#include <stdio.h>

#include "aio_impl.h"
#include "num.h"
#include "proxy.h"
#include "poison.h"

static void words(struct json_out *o, const struct proxy_refusal *why)
{
	json_out_object(o);
	json_out_kbool(o, "success", false);
	json_out_kz(o, "message", why->message);
	json_out_kz(o, "data", NULL);
	json_out_kz(o, "hint", NULL);
	json_out_end(o, '}');
}

/* Somebody who may use the box's ports; NULL: the answer is sent. */
static const struct box *find(struct request *r, struct actor *ret)
{
	struct err e = { 0 };
	bool known = aio_authenticate(r, &e) >= 0;
	const struct box *b;

	r->admitted = known;
	b = known ? boxes_find(r->core, &r->actor, ACT_BOX_PORTS, view_of(r->box), &e)
		  : boxes_by_id(r->core, aio_name(r)); /* who shows nothing must know the id */
	if (b && (known || b->spec.ports_public)) {
		*ret = known ? r->actor : (struct actor){ .tenant = b->tenant, .role = STORE_ROLE_USER };
		return b;
	}
	answer_fail(r, &e);
	return NULL;
}

/* How long "/proxy/PORT" is. */
static size_t behind_port(struct view path)
{
	unsigned slashes = 0;

	for (size_t i = 0; i < path.n; i++)
		if (path.p[i] == '/' && ++slashes == 3)
			return i;
	return path.n;
}

static void to_port(struct request *r, bool whole)
{
	struct view all = r->x->path, prefix, path;
	uint32_t port;
	struct actor actor;
	const struct box *b;
	char host[32];
	size_t at = behind_port(all);

	if (num_u32(r->params[0], &port) < 0 || !port || port > UINT16_MAX) {
		struct err e = { 0 };
		err_set(&e, ERR_INVALID, "the port must be between 1 and 65535");
		answer_fail(r, &e);
		return;
	}
	b = find(r, &actor);
	if (!b)
		return;
	if (whole) {
		path = all;
		/* Not empty: the page is on our origin, and nobody there. Clients make "/./x" "/x". */
		prefix = r->x->prefix.n ? r->x->prefix : VIEW("/.");
	} else {
		struct buf text = BUF_INIT(4096);
		path = view_skip(all, at);
		buf_add(&text, r->x->prefix);
		buf_add(&text, view_head(all, at));
		prefix = arena_view(r->x->arena, buf_view(&text));
		buf_done(&text);
	}
	snprintf(host, sizeof(host), "localhost:%u", port);
	proxy_take(r, &(struct proxy_wish){ .serve = r->serve,
					    .actor = actor,
					    .box = arena_view(r->x->arena, view_of(b->id)),
					    .path = path.n ? path : VIEW("/"),
					    .prefix = prefix,
					    .host = arena_view(r->x->arena, view_of(host)),
					    .port = (uint16_t)port,
					    .credentials = "api_key ticket",
					    .words = words });
}

static void strip(struct request *r)
{
	to_port(r, false);
}

static void leave(struct request *r)
{
	to_port(r, true);
}

#define ANY .auth = ROUTE_OPEN, .body = ROUTE_STREAM, .query = ROUTE_ANY_QUERY
const struct route aio_ports_routes[] = {
	{ ROUTE_ANY_METHOD, "/proxy/{port}", strip, ANY },
	{ ROUTE_ANY_METHOD, "/proxy/{port}/{path}", strip, ANY },
	{ ROUTE_ANY_METHOD, "/absproxy/{port}", leave, ANY },
	{ ROUTE_ANY_METHOD, "/absproxy/{port}/{path}", leave, ANY },
	{ 0 },
};
