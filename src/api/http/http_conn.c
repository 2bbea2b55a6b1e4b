/*
 * Connections: see http_conn.h. Also the TLS handshake, which is a driver of its
 * own until ALPN has said which of the others follows.
 */
#include "http_conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "fd.h"
#include "http_turn.h"
#include "poison.h"

#define LINGER_MS    2000
#define LINGER_BYTES (64u << 20) /* so that whoever sends all of a refused upload first reads the answer */

static void linger_on(struct http_conn *c)
{
	char nowhere[16384];
	ssize_t n = http_transport_recv(&c->t, nowhere, sizeof(nowhere));
	explicit_bzero(nowhere, n > 0 ? (size_t)n : 0); /* see http_impl_wipe */
	c->dropped += n > 0 ? (uint64_t)n : 0;
	if ((n <= 0 && n != -EAGAIN) || c->dropped > LINGER_BYTES)
		http_conn_close(c);
}

static void on_io(struct loop_io *io, uint32_t events)
{
	struct http_conn *c = CONTAINER(io, struct http_conn, io);
	c->events |= events;
	http_turn_wait(c);
}

void http_conn_turn(struct http_conn *c)
{
	uint32_t events = c->events;
	bool kicked = c->kicked;

	c->events = 0;
	c->kicked = false;
	if (events && c->lingering)
		linger_on(c);
	else if (events)
		c->driver->on_io(c, events);
	if (kicked && !c->dead && !c->lingering)
		c->driver->on_kick(c);
}

static void on_task(struct loop_task *t)
{
	struct http_conn *c = CONTAINER(t, struct http_conn, task);
	c->ending = false;
	if (c->dead)
		http_conn_free(c);
	else
		http_conn_close(c);
}

static void end_later(struct http_conn *c)
{
	if (!c->ending)
		loop_defer(c->server->loop, &c->task, on_task);
	c->ending = true;
}

static void on_time(struct loop_timer *t)
{
	struct http_conn *c = CONTAINER(t, struct http_conn, timer);
	uint64_t now = loop_now(c->server->loop);
	if (c->lingering)
		http_conn_close(c);
	else if (c->deadline_ms && c->deadline_ms <= now)
		c->driver->on_deadline(c);
	else if (c->deadline_ms)
		loop_timer_start(c->server->loop, t, c->deadline_ms - now, on_time);
}

void http_conn_deadline(struct http_conn *c, uint64_t at_ms)
{
	c->deadline_ms = at_ms;
	if (!at_ms || (loop_timer_active(&c->timer) && c->timer.at_ms <= at_ms))
		return;
	uint64_t now = loop_now(c->server->loop);
	loop_timer_start(c->server->loop, &c->timer, at_ms > now ? at_ms - now : 0, on_time);
}

void http_conn_want(struct http_conn *c, bool read, bool write)
{
	if (!c->dead && loop_io_want(&c->io, http_transport_events(&c->t, read, write)) < 0)
		http_conn_close(c);
}

void http_conn_kick(struct http_conn *c)
{
	if (c->dead)
		return;
	c->kicked = true;
	http_turn_wait(c);
}

/* ---- life ---- */

static void shut(struct http_conn *c, bool reset)
{
	struct http_server *s = c->server;
	if (c->dead)
		return;
	c->dead = true;
	loop_io_stop(&c->io);
	loop_timer_stop(&c->timer);
	http_transport_close(&c->t, reset);
	s->stats.connections_open--;
	s->n_adopted -= c->origin[0] && !c->crowded;
	s->n_crowded -= c->crowded;
	http_place_leave(c);
	end_later(c);
	c->driver->abort(c);
}

void http_conn_close(struct http_conn *c)
{
	shut(c, false);
}

void http_conn_reset(struct http_conn *c)
{
	shut(c, true);
}

void http_conn_doom(struct http_conn *c)
{
	if (!c || c->dead)
		return;
	c->doomed = true;
	end_later(c);
}

void http_conn_linger(struct http_conn *c)
{
	if (c->dead || c->lingering)
		return;
	c->lingering = true;
	c->driver->abort(c);
	http_transport_shutdown(&c->t);
	http_conn_want(c, true, false);
	if (!c->dead)
		loop_timer_start(c->server->loop, &c->timer, LINGER_MS, on_time);
}

void http_conn_free(struct http_conn *c)
{
	shut(c, false);
	list_del(&c->task.link);
	list_del(&c->link);
	c->driver->free(c);
	free(c);
}

/* ---- the TLS handshake ---- */

static void hello_on_io(struct http_conn *c, uint32_t events)
{
	int r = events & (EPOLLERR | EPOLLHUP) ? -ECONNRESET : tls_conn_handshake(c->t.tls);
	if (r == -EAGAIN) {
		http_conn_want(c, true, false);
		return;
	}
	if (r == 0) {
		r = tls_conn_is_h2(c->t.tls) ? http_h2_start(c) : http_h1_start(c);
		http_conn_kick(c); /* the first request may have come with the end of the handshake */
	}
	if (r < 0)
		http_conn_close(c);
}

static void hello_nothing(struct http_conn *c)
{
}

static const struct http_driver hello_driver = {
	.on_io = hello_on_io,
	.on_kick = hello_nothing,
	.on_deadline = http_conn_close,
	.abort = hello_nothing,
	.free = hello_nothing,
};

static void name_peer(struct http_conn *c, const struct sockaddr *peer)
{
	const void *address =
		peer->sa_family == AF_INET6
			? (const void *)&((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr
			: &((const struct sockaddr_in *)(const void *)peer)->sin_addr;

	if ((peer->sa_family != AF_INET && peer->sa_family != AF_INET6) ||
	    !inet_ntop(peer->sa_family, address, c->peer, sizeof(c->peer)))
		c->peer[0] = 0;
}

int http_conn_new(struct http_server *s, int fd, const struct sockaddr *peer, const char *origin,
		  bool crowded, unsigned listener)
{
	struct http_conn *c = calloc(1, sizeof(*c));
	if (!c) {
		fd_close(fd);
		return -ENOMEM;
	}
	c->server = s;
	c->t.fd = fd;
	c->driver = &hello_driver;
	name_peer(c, peer);
	c->listener = listener;
	(void)!view_to_str(view_of(origin), c->origin, sizeof(c->origin));
	list_init(&c->task.link);
	list_init(&c->turn);
	list_append(&s->conns, &c->link);
	s->stats.connections_open++;
	c->crowded = crowded;
	s->n_adopted += c->origin[0] && !crowded;
	s->n_crowded += crowded;
	http_conn_progress(c);
	int r = http_place_enter(c, peer);
	if (r == 0)
		r = loop_io_start(s->loop, &c->io, fd, EPOLLIN, on_io);
	if (r == 0 && s->cfg.tls && !c->origin[0]) {
		c->t.tls = tls_server_conn(s->cfg.tls, fd);
		r = c->t.tls ? 0 : -ENOMEM;
		http_conn_deadline(c, c->progress_ms + s->cfg.limits.head_ms);
	} else if (r == 0) {
		r = http_h1_start(c);
	}
	if (r < 0)
		http_conn_close(c);
	return r;
}
