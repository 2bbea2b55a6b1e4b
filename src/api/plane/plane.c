/*
 * From a request to the port it is for: see plane.h.
 */
#include "plane.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "http1.h"
#include "plane_target.h"
#include "port.h"
#include "proxy.h"
#include "proxy_head.h"
#include "proxy_secrets.h"
#include "text.h"
#include "who.h"
#include "poison.h"

struct plane {
	struct core *core;
	struct serve *serve;
	struct box nobody; /* see serve_named */
};

#define TICKET "paddock_ticket" /* of a query */

/* ---- life ---- */

struct plane *plane_new(struct serve *s, struct err *e)
{
	struct plane *p = calloc(1, sizeof(*p));
	if (!p) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "plane");
		return NULL;
	}
	p->core = s->core;
	p->serve = s;
	memset(p->nobody.id, 'x', BOX_ID);
	return p;
}

void plane_free(struct plane *p)
{
	free(p);
}

void plane_print_routes(FILE *out)
{
	static const char *const methods[] = { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS" };

	for (size_t i = 0; i < ELEMS(methods); i++)
		fprintf(out,
			"%s /v1/sandboxes/{id}/ports/{port}/{path}\n%s "
			"/v1/previews/{id}/{port}/{ticket}/{path}\n",
			methods[i], methods[i]);
}

/* ---- which port ---- */

static bool by_header(const struct plane *p, const struct http_exchange *x, struct plane_name *ret)
{
	struct view id = http_get_header(x, "e2b-sandbox-id"), port = http_get_header(x, "e2b-sandbox-port");

	if (!id.p)
		return false;
	*ret = (struct plane_name){ .id = id, .port = serve_usual_port(p->serve), .path = x->path };
	if (port.p && !plane_target_port(port, &ret->port))
		ret->port = 0;
	struct serve_at own = serve_find_port(p->serve, ret->port);
	if (!own.port || !own.port->strays || !own.port->strays(x))
		return true;
	*ret = (struct plane_name){ 0 };
	return false;
}

static bool by_own(struct plane *p, const struct http_exchange *x, struct plane_name *ret)
{
	struct view id;
	struct serve_at at = serve_find_box(p->serve, x, &id);

	if (!at.port)
		return false;
	*ret = (struct plane_name){ .id = id, .port = at.port->port, .path = x->path };
	return true;
}

/* Agent-Sandbox's path leads to what a dialect serves, such as envd, as E2B's addresses do. The other ports
 * of that path are its own matter. */
static bool by_router(struct plane *p, struct http_exchange *x, struct plane_name *ret)
{
	struct plane_name name;

	if (!plane_target_router(x->path, &name) || !serve_find_port(p->serve, name.port).port)
		return false;
	x->prefix = name.prefix;
	x->path = name.path;
	*ret = name;
	return true;
}

/* ---- who may ---- */

static int actor_of(struct plane *p, const struct http_exchange *x, struct actor *ret)
{
	struct view token = http_get_header(x, "authorization");
	struct err e = { 0 };

	if (proxy_head_is_key(token))
		token = view_trim(view_skip(token, strlen("bearer ")));
	else
		token = http_get_header(x, "x-api-key");
	return auth_actor(p->core, token, ret, &e);
}

static bool has_key(struct plane *p, const struct http_exchange *x, enum act act, const struct box *b)
{
	struct actor actor;
	struct err e = { 0 };

	return actor_of(p, x, &actor) >= 0 && auth_permit(&actor, act, b->tenant, &e) >= 0;
}

static bool has_token(struct plane *p, const struct http_exchange *x, const struct box *b)
{
	struct view token = http_get_header(x, "e2b-traffic-access-token");

	if (!token.p)
		token = http_get_header(x, "x-paddock-traffic-token");
	return token.p && tokens_fit(p->core, b, TOKEN_TRAFFIC, token);
}

/* Browsers send the cookie whoever asks them to, and to them all boxes of the domain are one site: it
 * counts for the host's own pages and for somebody who goes there. */
static bool is_own_page(const struct http_exchange *x)
{
	struct view origin = http_get_header(x, "origin"), site = http_get_header(x, "sec-fetch-site");
	size_t scheme = view_starts(origin, "https://") ? 8 : view_starts(origin, "http://") ? 7 : 0;

	if (origin.p && (!scheme || !view_eq_nocase(view_skip(origin, scheme), x->host)))
		return false;
	return !site.p || view_is(site, "same-origin") || view_is(site, "none") ||
	       (view_is(http_get_header(x, "sec-fetch-mode"), "navigate") && view_is(x->method, "GET"));
}

typedef bool ticket_check(const struct core *c, const struct box *b, uint16_t port, struct view ticket);

static bool has_ticket(struct plane *p, const struct http_exchange *x, const struct box *b,
		       const struct plane_name *name, ticket_check *check)
{
	if (name->ticket.p)
		return check(p->core, b, name->port, name->ticket);
	if (!name->by_host || !is_own_page(x))
		return false;
	/* Any of them: a page of another box can set one of this name for the whole domain, which must not
	 * hide ours. */
	for (size_t i = 0; i < x->n_headers; i++) {
		struct view ticket, rest = x->headers[i].value;
		while (view_is(x->headers[i].name, "cookie") &&
		       (ticket = proxy_head_cookie(&rest, PROXY_HEAD_COOKIE)).p)
			if (check(p->core, b, name->port, ticket))
				return true;
	}
	return false;
}

static bool is_let_in(struct plane *p, const struct http_exchange *x, const struct box *b,
		      const struct plane_name *name)
{
	return has_token(p, x, b) || has_ticket(p, x, b, name, ports_ticket_fits) ||
	       has_key(p, x, ACT_BOX_PORTS, b);
}

static bool may(struct plane *p, struct http_exchange *x, struct serve_at own, const struct box *b,
		const struct plane_name *name)
{
	if (b->spec.ports_public && !(own.port && own.port->shut))
		return true;
	if (!is_let_in(p, x, b, name))
		return false;
	http_vouch(x, (uintptr_t)b->tenant);
	return true;
}

/* Whether it may be told that there is such a box: to whoever may see it, has one of its tokens, or was given
 * a link to it once. */
static bool knows(struct plane *p, const struct http_exchange *x, const struct box *b,
		  const struct plane_name *name)
{
	struct view link = name->by_host ? http_get_query(x, TICKET) : VIEW_NONE;
	struct view access = http_get_header(x, "x-access-token");

	return b->spec.ports_public || has_token(p, x, b) ||
	       (access.p && tokens_fit(p->core, b, TOKEN_ENVD, access)) ||
	       (link.p && ports_ticket_genuine(p->core, b, name->port, link)) ||
	       has_ticket(p, x, b, name, ports_ticket_genuine) || has_key(p, x, ACT_BOX_READ, b);
}

static void unknown(struct http_exchange *x, struct serve_at own, const struct plane_name *name)
{
	if (own.port && own.port->words)
		proxy_refuse(x, own.port->words, 404, VIEW_NONE, 0, "no such sandbox");
	else
		proxy_unknown_box(x, name->id);
}

/* ---- a signed link to a host name: the ticket moves from the address into a cookie ---- */

/* True: it was one, and has been answered. */
static bool take_ticket(struct plane *p, struct http_exchange *x, struct serve_at own, const struct box *b,
			const struct plane_name *name)
{
	struct view ticket = name->by_host ? http_get_query(x, TICKET) : VIEW_NONE;
	_cleanup_(buf_done) struct buf cookie = BUF_INIT(1024), to = BUF_INIT(64 * 1024);

	if (!ticket.p)
		return false;
	if (!ports_ticket_fits(p->core, b, name->port, ticket)) {
		if (knows(p, x, b, name))
			proxy_refuse(x, own.port && own.port->words ? own.port->words : proxy_words_e2b, 403,
				     name->id, name->port, "The link is not valid, or not any more");
		else
			unknown(x, own, name);
		return true;
	}
	buf_printf(&cookie, PROXY_HEAD_COOKIE "=%.*s; Path=/; HttpOnly; SameSite=Lax%s", VIEW_ARG(ticket),
		   x->tls ? "; Secure" : "");
	/* "//x" would be another host. */
	buf_puts(&to, view_starts(x->path, "//") ? "/." : "");
	buf_add(&to, x->path);
	proxy_secrets_query(&to, x->query, TICKET);
	struct http_header headers[] = { { VIEW("set-cookie"), buf_view(&cookie) },
					 { VIEW("location"), buf_view(&to) },
					 { VIEW("cache-control"), VIEW("no-store") },
					 { VIEW("referrer-policy"), VIEW("no-referrer") } };
	http_reply(x, 302, NULL, VIEW_NONE, headers, ELEMS(headers));
	return true;
}

/* ---- serving ---- */

static struct view host_for_box(struct http_exchange *x, const struct box *b, const struct plane_name *name)
{
	_cleanup_(buf_done) struct buf host = BUF_INIT(2 * BOX_FIELD_HOST_MAX);

	if (b->spec.mask_host.n)
		proxy_head_mask(&host, b->spec.mask_host, name->port);
	else if (name->by_host)
		return x->host;
	else
		buf_printf(&host, "localhost:%u", name->port);
	return arena_view(x->arena, buf_view(&host));
}

/* A port that a dialect serves, and checks itself who asks. */
static void serve_own(struct plane *p, struct http_exchange *x, struct serve_at own, const struct box *b,
		      const struct plane_name *name)
{
	struct actor actor = { .tenant = b->tenant, .role = STORE_ROLE_USER };

	if (knows(p, x, b, name) || (own.port->proves && own.port->proves(x, p->core, b)))
		serve_port(p->serve, x, own, b, &actor);
	else
		unknown(x, own, name);
}

static void serve(struct plane *p, struct http_exchange *x, struct serve_at own, const struct box *b,
		  const struct plane_name *name, proxy_words *words)
{
	struct actor actor = { .tenant = b->tenant, .role = STORE_ROLE_USER };

	if (own.port && own.port->words)
		words = own.port->words;
	if (take_ticket(p, x, own, b, name))
		return;
	if (!may(p, x, own, b, name)) {
		if (knows(p, x, b, name))
			proxy_refuse(x, words, 403, name->id, name->port,
				     b->spec.ports_public
					     ? "This port is never public: a key or the header "
					       "'e2b-traffic-access-token' is needed"
					     : "The ports of this sandbox are private: a key or the header "
					       "'e2b-traffic-access-token' is needed");
		else
			unknown(x, own, name);
		return;
	}
	if (own.port) {
		serve_port(p->serve, x, own, b, &actor);
		return;
	}
	proxy_start(x, &(struct proxy_wish){ .serve = p->serve,
					     .actor = actor,
					     .box = view_of(b->id),
					     .path = name->path,
					     .prefix = name->prefix,
					     .host = host_for_box(x, b, name),
					     .port = name->port,
					     .credentials = TICKET,
					     .words = words });
}

/* ---- below a path of ours ---- */

/* Relative links of the page need the slash. */
static void add_slash(struct http_exchange *x)
{
	_cleanup_(buf_done) struct buf to = BUF_INIT(64 * 1024);

	buf_add(&to, x->path);
	buf_putc(&to, '/');
	if (x->query.n) {
		buf_putc(&to, '?');
		buf_add(&to, x->query);
	}
	struct http_header header = { VIEW("location"), buf_view(&to) };
	http_reply(x, 308, NULL, VIEW_NONE, &header, 1);
}

static void serve_path(struct plane *p, struct http_exchange *x, const struct plane_name *name)
{
	const struct box *b = ports_box(p->core, name->id);
	struct actor actor;
	struct err e = { 0 };
	bool known = actor_of(p, x, &actor) >= 0;

	if (!b && known)
		b = boxes_find(p->core, &actor, ACT_BOX_READ, name->id, &e);
	/* Whether there is such a box is nobody's business who may not reach it. */
	if (!b || !may(p, x, (struct serve_at){ 0 }, b, name))
		proxy_refuse(x, proxy_words_rest, known ? 404 : 401, VIEW_NONE, 0,
			     known ? "no such sandbox"
				   : "a valid key is needed (Authorization: Bearer, or X-API-Key)");
	else if (!name->path.n)
		add_slash(x);
	else
		serve(p, x, (struct serve_at){ 0 }, b, name, proxy_words_rest);
}

/* ---- by a host or by headers ---- */

/* Whoever shows nothing gets the same answer whether there is such a box or not, and after the same work: in
 * place of one that is not there stands one that nobody may reach. */
static void serve_named(struct plane *p, struct http_exchange *x, const struct plane_name *name)
{
	struct serve_at own = name->port ? serve_find_port(p->serve, name->port) : (struct serve_at){ 0 };
	const struct box *b = name->port ? ports_box(p->core, name->id) : NULL;

	if (own.port && own.port->anyway && own.port->anyway(x))
		return;
	if (!b) {
		bool checked = own.port && !own.port->guarded;
		(void)((!checked && is_let_in(p, x, &p->nobody, name)) || knows(p, x, &p->nobody, name) ||
		       (checked && own.port->proves && own.port->proves(x, p->core, &p->nobody)));
		unknown(x, own, name);
	} else if (own.port && !own.port->guarded) {
		serve_own(p, x, own, b, name);
	} else {
		serve(p, x, own, b, name, proxy_words_e2b);
	}
}

bool plane_request(struct plane *p, struct http_exchange *x)
{
	struct plane_name name = { 0 };

	if (plane_target_host(x->host, core_config(p->core)->ports.domain, &name)) {
		name.path = x->path;
	} else if (!by_header(p, x, &name) && plane_target_path(x->path, &name)) {
		serve_path(p, x, &name);
		return true;
	} else if (!name.id.p && !by_router(p, x, &name) && !by_own(p, x, &name)) {
		return false;
	}
	serve_named(p, x, &name);
	return true;
}
