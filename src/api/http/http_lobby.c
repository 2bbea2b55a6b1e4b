/*
 * The lobby: see http_lobby.h.
 */
#include "http_lobby.h"

#include <stdlib.h>

#include "fd.h"
#include "http_conn.h"
#include "http_yield.h"
#include "poison.h"

#define PERIOD_MS 10
#define ADMITTED  8     /* of a party in that time */
#define MOST      16384 /* of all parties: each has a file descriptor */

struct waiting {
	struct list link;
	int fd;
	unsigned listener;
	uint64_t until_ms; /* then it is refused */
	struct sockaddr_storage peer;
};

/* p lives as long as its count says that somebody is here. */
static void uncount(struct http_server *s, struct http_party *p)
{
	s->n_lobby--;
	if (--p->n_lobby == 0)
		list_del(&p->waits);
	http_place_release(p);
}

/* False: all those behind it wait on, too. */
static bool admit_first(struct http_server *s, struct http_party *p)
{
	bool may = http_yield_make(s, p, true);
	struct waiting *w = CONTAINER(p->lobby.next, struct waiting, link);

	if (!may && loop_now(s->loop) < w->until_ms)
		return false;
	list_del(&w->link);
	if (may)
		(void)!http_conn_new(s, w->fd, (struct sockaddr *)&w->peer, "", false, w->listener);
	else
		http_server_refuse(s, w->fd);
	free(w);
	uncount(s, p);
	return true;
}

static void on_period(struct loop_timer *t)
{
	struct http_server *s = CONTAINER(t, struct http_server, lobby);

	LIST_EACH (it, &s->lobbies) {
		struct http_party *p = CONTAINER(it, struct http_party, waits);
		for (unsigned n = MIN(p->n_lobby, ADMITTED); n && admit_first(s, p); n--)
			;
	}
	if (s->n_lobby)
		loop_timer_start(s->loop, t, PERIOD_MS, on_period);
}

void http_lobby_init(struct http_server *s)
{
	list_init(&s->lobbies);
}

void http_lobby_done(struct http_server *s)
{
	loop_timer_stop(&s->lobby);
	LIST_EACH (it, &s->lobbies) {
		struct http_party *p = CONTAINER(it, struct http_party, waits);
		for (unsigned n = p->n_lobby; n; n--) {
			struct waiting *w = CONTAINER(p->lobby.next, struct waiting, link);
			list_del(&w->link);
			fd_close(w->fd);
			free(w);
			uncount(s, p);
		}
	}
}

bool http_lobby_has_line(const struct http_party *p)
{
	return p && p->n_lobby;
}

bool http_lobby_enter(struct http_server *s, struct http_party *p, int fd,
		      const struct sockaddr_storage *peer, unsigned listener)
{
	unsigned all = MIN(4 * s->cfg.limits.connections, MOST);

	if (!p || p->n_lobby >= all / 2 || s->n_lobby >= all)
		return false;
	struct waiting *w = calloc(1, sizeof(*w));
	if (!w)
		return false;
	w->fd = fd;
	w->listener = listener;
	w->until_ms = loop_now(s->loop) + s->cfg.limits.head_ms;
	w->peer = *peer;
	list_append(&p->lobby, &w->link);
	if (p->n_lobby++ == 0)
		list_append(&s->lobbies, &p->waits);
	if (s->n_lobby++ == 0)
		loop_timer_start(s->loop, &s->lobby, PERIOD_MS, on_period);
	return true;
}
