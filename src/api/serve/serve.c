/*
 * Which dialect: see serve.h.
 */
#include "serve.h"

#include <errno.h>
#include <stdlib.h>

#include "poison.h"

/* ---- life ---- */

struct serve *serve_new(struct core *c, const struct dialect *const *dialects, struct err *e)
{
	struct serve *s = calloc(1, sizeof(*s));

	if (!s) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "dialects");
		return NULL;
	}
	s->core = c;
	s->statm = -EBADF;
	s->dialects = dialects;
	list_init(&s->requests);
	list_init(&s->proxies);
	for (size_t i = 0; dialects[i]; i++) {
		assert(i < SERVE_DIALECTS);
		if (!dialects[i]->new)
			continue;
		s->states[i] = dialects[i]->new (c, e);
		if (!s->states[i]) {
			serve_free(s);
			return NULL;
		}
	}
	return s;
}

void serve_free(struct serve *s)
{
	if (!s)
		return;
	for (size_t i = 0; s->dialects[i]; i++)
		if (s->states[i] && s->dialects[i]->free)
			s->dialects[i]->free(s->states[i]);
	free(s);
}

int serve_bind(struct serve *s, unsigned listener, struct view dialect, struct err *e)
{
	assert(listener < SERVE_LISTENERS);
	for (size_t i = 0; s->dialects[i]; i++)
		if (s->dialects[i]->surface && view_is(dialect, s->dialects[i]->name)) {
			s->bound[listener] = (uint8_t)(i + 1);
			return 0;
		}
	return err_set(e, ERR_INVALID, "there is no dialect \"%.*s\"", (int)MIN(dialect.n, 64), dialect.p);
}

void serve_when_idle(struct serve *s, void (*on_idle)(void *arg), void *arg)
{
	LIST_EACH (it, &s->requests) {
		struct request *r = CONTAINER(it, struct request, link);
		if (r->on_drain)
			r->on_drain(r);
	}
	s->on_idle = on_idle;
	s->idle_arg = arg;
	serve_let_go(s);
}

void serve_let_go(struct serve *s)
{
	if (s->on_idle && list_empty(&s->requests) && list_empty(&s->proxies))
		s->on_idle(s->idle_arg);
}

/* ---- whose it is ---- */

struct view serve_listener_box(const struct serve *s, const struct http_exchange *x)
{
	return x->listener < SERVE_LISTENERS ? s->boxes[x->listener] : VIEW("");
}

void serve_alias(const struct serve *s, struct http_exchange *x)
{
	for (size_t i = 0; s->dialects[i]; i++) {
		const char *alias = s->dialects[i]->alias;
		size_t n = alias ? strlen(alias) : 0;
		if (n && x->path.n > n && x->path.p[n] == '/' && view_starts(x->path, alias)) {
			x->path = view_skip(x->path, n);
			return;
		}
	}
}

static bool has_word(const char *words, const char *word)
{
	struct view rest = words ? view_of(words) : VIEW_NONE;

	while (rest.p)
		if (view_is(view_split(rest, ' ', &rest), word))
			return true;
	return false;
}

const struct dialect *serve_bound(const struct serve *s, unsigned listener)
{
	return listener < SERVE_LISTENERS && s->bound[listener] ? s->dialects[s->bound[listener] - 1] : NULL;
}

bool serve_has(const struct serve *s, unsigned listener, const struct dialect *d)
{
	const struct dialect *own = serve_bound(s, listener);

	return d->surface && (!own || own == d || has_word(own->with, d->name));
}

bool serve_has_ports(const struct serve *s, const struct http_exchange *x)
{
	const struct dialect *own = serve_bound(s, x->listener);

	return !own || own->ports_here;
}

const struct dialect *serve_choose(const struct serve *s, const struct http_exchange *x, void **ret_state)
{
	const struct dialect *own = serve_bound(s, x->listener);
	size_t found = own ? s->bound[x->listener] - 1u : SERVE_DIALECTS;

	for (size_t i = 0; s->dialects[i]; i++) {
		const struct dialect *d = s->dialects[i];
		if (serve_has(s, x->listener, d) && (!x->origin.n || d->inside) &&
		    (!d->claims || d->claims(x, s->states[i]))) {
			found = i;
			break;
		}
	}
	if (found == SERVE_DIALECTS)
		return NULL;
	*ret_state = s->states[found];
	return s->dialects[found];
}

/* A listener for one sandbox has that sandbox's MCP, too. */
static void lead_to_mcp(const struct serve *s, struct http_exchange *x)
{
	struct view box = serve_listener_box(s, x);
	struct buf b = BUF_INIT(4096);
	struct view path;

	if (!box.n || !(view_is(x->path, "/mcp") || view_is(x->path, "/v1/mcp")))
		return;
	buf_puts(&b, "/sandbox/");
	buf_add(&b, box);
	buf_puts(&b, "/mcp");
	path = arena_view(x->arena, buf_view(&b));
	buf_done(&b);
	if (path.p)
		x->path = path;
}

/* A listener for one sandbox knows no other, whoever asks. */
static bool is_elsewhere(const struct serve *s, const struct http_exchange *x)
{
	struct view own = serve_listener_box(s, x), rest, name = boxes_path(x->path, &rest);
	const struct box *b;

	if (!own.n || !name.p || view_eq(name, own))
		return false;
	b = boxes_by_id(s->core, name);
	return !b || !(view_is(own, b->id) || view_eq(own, b->spec.name));
}

void serve_request(struct serve *s, struct http_exchange *x)
{
	void *state;
	lead_to_mcp(s, x);
	const struct dialect *d = is_elsewhere(s, x) ? NULL : serve_choose(s, x, &state);

	if (!d) {
		http_reply(x, 404, NULL, VIEW_NONE, NULL, 0);
		return;
	}
	if (d->enter)
		d->enter(x);
	request_begin(s, x, d->surface, state, NULL, NULL);
}

/* ---- ports of boxes ---- */

struct serve_at serve_find_port(const struct serve *s, uint16_t port)
{
	for (size_t i = 0; s->dialects[i]; i++)
		for (const struct dialect_port *p = s->dialects[i]->ports; p && p->port; p++)
			if (p->port == port)
				return (struct serve_at){ p, s->states[i] };
	return (struct serve_at){ 0 };
}

uint16_t serve_usual_port(const struct serve *s)
{
	for (size_t i = 0; s->dialects[i]; i++)
		for (const struct dialect_port *p = s->dialects[i]->ports; p && p->port; p++)
			if (p->usual)
				return p->port;
	return 0;
}

struct serve_at serve_find_box(const struct serve *s, const struct http_exchange *x, struct view *ret_id)
{
	for (size_t i = 0; s->dialects[i]; i++)
		for (const struct dialect_port *p = s->dialects[i]->ports; p && p->port; p++) {
			struct view id = p->find ? p->find(x, s->core) : VIEW_NONE;
			if (!id.p)
				continue;
			*ret_id = id;
			return (struct serve_at){ p, s->states[i] };
		}
	return (struct serve_at){ 0 };
}

void serve_port(struct serve *s, struct http_exchange *x, struct serve_at at, const struct box *b,
		const struct actor *a)
{
	request_begin(s, x, at.port->surface, at.state, b, a);
}

struct serve_tools serve_find_tools(const struct serve *s)
{
	for (size_t i = 0; s->dialects[i]; i++)
		if (s->dialects[i]->tools)
			return (struct serve_tools){ s->dialects[i]->tools, s->states[i] };
	return (struct serve_tools){ 0 };
}

/* ---- what there is ---- */

static void print_surface(FILE *out, const struct surface *f)
{
	if (!f || !f->heading || !f->heading[0])
		return;
	fprintf(out, "\n# %s\n", f->heading);
	router_print(out, f->routes);
}

void serve_print_routes(FILE *out, const struct dialect *const *dialects)
{
	for (size_t i = 0; dialects[i]; i++) {
		const struct surface *f = dialects[i]->surface;
		if (f && f->heading && !f->heading[0])
			router_print(out, f->routes);
	}
	for (size_t i = 0; dialects[i]; i++) {
		print_surface(out, dialects[i]->surface);
		for (const struct dialect_port *p = dialects[i]->ports; p && p->port; p++)
			print_surface(out, p->surface);
	}
}
