/*
 * What is served where: see served.h.
 */
#include "served.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "config.h"
#include "poison.h"

#define PATH_MOST     256
#define PREFIXES_MOST 64

int served_note(struct serve *s, unsigned listener, int fd, struct err *e)
{
	struct serve_address *at = &s->at[listener];
	struct sockaddr_storage real = { 0 };
	socklen_t len = sizeof(real);

	if (getsockname(fd, (struct sockaddr *)&real, &len) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "the address of a listener");
	const struct sockaddr_in *four = (const struct sockaddr_in *)&real;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&real;
	bool is_six = real.ss_family == AF_INET6;
	if (!inet_ntop(real.ss_family, is_six ? (const void *)&six->sin6_addr : &four->sin_addr, at->host,
		       sizeof(at->host)))
		return err_sys(e, ERR_INTERNAL, errno, "the address of a listener");
	at->port = ntohs(is_six ? six->sin6_port : four->sin_port);
	s->n_listeners = MAX(s->n_listeners, listener + 1);
	return 0;
}

/* ---- prefixes ---- */

static bool is_version(struct view word)
{
	return view_is(word, "api") ||
	       (word.n == 2 && word.p[0] == 'v' && word.p[1] >= '0' && word.p[1] <= '9');
}

struct view served_prefix(const char *pattern)
{
	struct view all = view_of(pattern), rest, at = all;

	if (view_starts(at, "/sandbox/{")) {
		view_split(view_skip(at, strlen("/sandbox/")), '/', &rest);
		if (!rest.p)
			return all;
		at = (struct view){ rest.p - 1, rest.n + 1 };
	}
	while (at.n) {
		struct view word = view_split(view_skip(at, 1), '/', &rest);
		if (word.n && word.p[0] == '{')
			return view_head(all, (size_t)(at.p - all.p));
		at = rest.p ? (struct view){ rest.p - 1, rest.n + 1 } : (struct view){ word.p + word.n, 0 };
		if (!is_version(word))
			return view_head(all, (size_t)(at.p - all.p));
	}
	return all;
}

struct prefixes {
	struct view all[PREFIXES_MOST];
	size_t n;
};

/* Each once, in the order of the tables. A path is a view of the tables' own text. */
static void add_prefix(struct prefixes *p, struct view prefix)
{
	for (size_t i = 0; i < p->n; i++)
		if (view_eq(p->all[i], prefix))
			return;
	if (p->n < PREFIXES_MOST)
		p->all[p->n++] = prefix;
}

/* Where a dialect is shown. */
struct place {
	const struct serve *serve;
	const struct dialect *dialect;
	const char *under; /* comes before each path */
	unsigned listener; /* HTTP_ADOPTED: it is a port of boxes */
};

/* ---- whose a route is on a listener ---- */

/* A pattern of `d` that nobody else claims, and for which nobody else has a route, is claimed by a value
 * that the pattern does not tell ({provider}). */
static bool is_here(const struct place *p, const char *method, struct view path)
{
	struct http_exchange x = { .method = view_of(method), .path = path, .listener = p->listener };
	struct view params[ROUTE_PARAMS];
	struct buf allow = BUF_INIT(1024);
	void *state;
	const struct dialect *o = serve_choose(p->serve, &x, &state);
	bool found;

	if (!o || o == p->dialect || o->claims)
		return o == p->dialect;
	found = router_find(o->surface->routes, false, view_of(method), path, params, &allow) != NULL;
	buf_done(&allow);
	return !found;
}

/* ---- one dialect at one place ---- */

static void put_route(struct json_out *o, const struct place *p, const struct route *t, struct prefixes *all)
{
	char path[PATH_MOST], line[PATH_MOST + 16];

	snprintf(path, sizeof(path), "%s%s", p->under, t->pattern);
	if (p->listener != HTTP_ADOPTED && !is_here(p, t->method, view_of(path)))
		return;
	snprintf(line, sizeof(line), "%s %s", t->method, path);
	json_out_str(o, view_of(line));
	add_prefix(all, served_prefix(t->pattern));
}

static void put_prefixes(struct json_out *o, const struct place *p, const struct prefixes *all)
{
	for (size_t i = 0; i < all->n; i++) {
		char path[PATH_MOST];
		snprintf(path, sizeof(path), "%s%.*s", p->under, VIEW_ARG(all->all[i]));
		json_out_str(o, view_of(path));
	}
}

/* "routes" and "paths" of a surface. */
static void put_surface(struct json_out *o, const struct place *p, const struct surface *f)
{
	struct prefixes all = { 0 };

	json_out_key(o, "routes");
	json_out_array(o);
	for (const struct route *const *t = f->routes; t && *t; t++)
		for (const struct route *one = *t; one->method; one++)
			put_route(o, p, one, &all);
	for (const struct rpc_method *const *t = f->methods; t && *t; t++)
		for (const struct rpc_method *one = *t; one->path; one++) {
			char line[PATH_MOST];
			snprintf(line, sizeof(line), "POST %s", one->path);
			json_out_str(o, view_of(line));
			add_prefix(&all, served_prefix(one->path));
		}
	json_out_end(o, ']');
	json_out_key(o, "paths");
	json_out_array(o);
	put_prefixes(o, p, &all);
	json_out_end(o, ']');
}

static void say_off(void *arg, const char *what, const char *why)
{
	struct json_out *o = arg;

	json_out_object(o);
	json_out_kz(o, "what", what);
	json_out_kz(o, "why", why);
	json_out_end(o, '}');
}

static void put_dialect(struct json_out *o, const struct place *p)
{
	const struct dialect *d = p->dialect;

	json_out_object(o);
	json_out_kz(o, "name", d->name);
	json_out_kz(o, "version", d->version);
	json_out_kz(o, "alias", d->alias);
	put_surface(o, p, d->surface);
	json_out_key(o, "disabled");
	json_out_array(o);
	if (d->off)
		d->off(p->serve->core, say_off, o);
	json_out_end(o, ']');
	json_out_end(o, '}');
}

/* ---- all of it ---- */

static void put_listener(const struct serve *s, struct json_out *o, unsigned i)
{
	const struct dialect *own = serve_bound(s, i);

	json_out_object(o);
	json_out_kz(o, "address", s->at[i].host);
	json_out_ku64(o, "port", s->at[i].port);
	json_out_kbool(o, "tls", core_config(s->core)->tls.cert.n > 0);
	json_out_kbool(o, "anonymous", s->anonymous[i]);
	json_out_key(o, "sandbox");
	if (s->boxes[i].n)
		json_out_str(o, s->boxes[i]);
	else
		json_out_null(o);
	json_out_kz(o, "dialect", own ? own->name : NULL);
	json_out_key(o, "dialects");
	json_out_array(o);
	for (size_t k = 0; s->dialects[k]; k++) {
		const struct dialect *d = s->dialects[k];
		struct place p = { s, d, own == d || !d->under ? "" : d->under, i };
		if (serve_has(s, i, d) && (d->version || own == d))
			put_dialect(o, &p);
	}
	json_out_end(o, ']');
	json_out_end(o, '}');
}

static void put_port(const struct serve *s, struct json_out *o, const struct dialect *d,
		     const struct dialect_port *port)
{
	struct place p = { s, d, "", HTTP_ADOPTED };

	json_out_object(o);
	json_out_ku64(o, "port", port->port);
	json_out_kz(o, "dialect", d->name);
	json_out_kz(o, "version", d->version);
	put_surface(o, &p, port->surface);
	json_out_end(o, '}');
}

void served_put(const struct serve *s, struct json_out *o)
{
	json_out_key(o, "listeners");
	json_out_array(o);
	for (unsigned i = 0; i < s->n_listeners; i++)
		put_listener(s, o, i);
	json_out_end(o, ']');
	json_out_key(o, "ports");
	json_out_array(o);
	for (size_t k = 0; s->dialects[k]; k++)
		for (const struct dialect_port *p = s->dialects[k]->ports; p && p->port; p++)
			put_port(s, o, s->dialects[k], p);
	json_out_end(o, ']');
}
