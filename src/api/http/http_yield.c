/*
 * Who gives way: see http_yield.h.
 */
#include "http_yield.h"

#include <errno.h>
#include <stdlib.h>

#include "http_conn.h"
#include "poison.h"

#define GUESTS 8 /* the part of a party's places that is for guests: one in so many */

enum { STRANGERS, KNOWN };

/* Who may have to give way: a connection of no use, a guest as well, or any. */
enum whom { USELESS, GUEST, ANY };

/* ---- which party has the most ---- */

int http_yield_init(struct http_server *s)
{
	size_t n = (size_t)s->cfg.limits.connections + 1;

	for (size_t k = 0; k < ELEMS(s->ranks); k++) {
		s->ranks[k] = calloc(n, sizeof(struct list));
		if (!s->ranks[k])
			return -ENOMEM;
		for (size_t i = 0; i < n; i++)
			list_init(&s->ranks[k][i]);
	}
	return 0;
}

void http_yield_done(struct http_server *s)
{
	for (size_t k = 0; k < ELEMS(s->ranks); k++)
		free(s->ranks[k]);
}

void http_yield_rank(struct http_party *p)
{
	struct http_server *s = p->server;
	unsigned k = p->key.kind ? KNOWN : STRANGERS, n = MIN(p->n, s->cfg.limits.connections);
	unsigned *most = &s->most[k];

	list_del(&p->rank);
	if (n)
		list_append(&s->ranks[k][n], &p->rank);
	*most = MAX(*most, n);
	while (*most && list_empty(&s->ranks[k][*most]))
		--*most;
}

static struct http_party *largest(const struct http_server *s, unsigned k)
{
	return s->most[k] ? CONTAINER(s->ranks[k][s->most[k]].next, struct http_party, rank) : NULL;
}

/* ---- which of its connections ---- */

static struct http_conn *first(const struct list *l, const struct http_conn *but)
{
	LIST_EACH (it, l) {
		struct http_conn *c = CONTAINER(it, struct http_conn, seat.own);
		if (c != but && !c->doomed)
			return c;
	}
	return NULL;
}

static bool is_stale(const struct http_conn *c)
{
	const struct http_server *s = c->server;
	return c->seat.used_ms + s->cfg.limits.useless_ms <= loop_now(s->loop);
}

static struct http_conn *choose(const struct http_party *p, const struct http_conn *but, enum whom whom)
{
	struct http_conn *oldest = first(&p->conns, but), *guest = first(&p->guests, but);

	if (oldest && is_stale(oldest))
		return oldest;
	if (whom >= GUEST && guest)
		return guest;
	return whom == ANY ? oldest : NULL;
}

struct http_conn *http_yield_of(const struct http_party *p, const struct http_conn *but)
{
	return choose(p, but, ANY);
}

static bool give_way(const struct http_party *p, enum whom whom)
{
	struct http_conn *c = choose(p, NULL, whom);

	if (c)
		http_conn_close(c); /* p may be gone */
	return c != NULL;
}

/* ---- to whom ---- */

bool http_yield_make(struct http_server *s, struct http_party *p, bool guests)
{
	const struct http_limits *l = &s->cfg.limits;
	const struct http_party *keyed = largest(s, KNOWN), *crowd = largest(s, STRANGERS);
	bool many = s->n_strangers >= l->strangers;
	unsigned own = p ? p->n : 0, all = s->n_strangers + 1; /* with the newcomer */

	if (own < l->party && !many && s->stats.connections_open < l->connections)
		return true;
	if (own < l->party && !many && keyed && keyed->n >= all &&
	    give_way(keyed, keyed->n > all ? ANY : GUEST))
		return true;
	if (own < l->party && crowd && crowd->n > own)
		return give_way(crowd, crowd->n > own + 1 ? ANY : GUEST);
	return own && give_way(p, guests ? GUEST : USELESS);
}

bool http_yield_place(const struct http_party *p)
{
	const struct http_limits *l = &p->server->cfg.limits;
	struct http_conn *oldest = first(&p->conns, NULL);

	if (p->n - p->n_guests < l->party - l->party / GUESTS)
		return true;
	if (!oldest || !is_stale(oldest))
		return false;
	http_conn_doom(oldest);
	return true;
}
