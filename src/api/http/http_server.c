/*
 * The listening side: accepting in bounded batches, the limit of connections,
 * and what connections share.
 *
 * At the limit somebody gives way (http_yield.h), or the newcomer waits
 * (http_lobby.h), or it is refused. Who is refused may come back at once: after a
 * batch with one all newcomers wait for CROWD_MS in the kernel's queue, or coming
 * and going would take the time of those who are served. A shortage of fds or
 * memory stops accepting for RETRY_MS, because a listening socket stays readable
 * and would spin.
 */
#include "http_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "clock.h"
#include "fd.h"
#include "http_conn.h"
#include "http_lobby.h"
#include "http_turn.h"
#include "http_yield.h"
#include "rnd.h"
#include "poison.h"

#define ACCEPT_BATCH 32
#define RETRY_MS     100
#define CROWD_MS     4
#define SPARE_ROOMS  16
#define KEEP_ARENA   (64u * 1024)
#define BODY_WINDOW  (64u * 1024)

struct listener {
	struct list link;
	struct loop_io io;
	struct http_server *server;
	unsigned index;
	bool ready; /* there is somebody to accept */
};

static void listeners_want(struct http_server *s, uint32_t events)
{
	LIST_EACH (it, &s->listeners) {
		struct listener *l = CONTAINER(it, struct listener, link);
		/* Cannot fail for a registered fd; if it does, accepting goes on as it was. */
		(void)!loop_io_want(&l->io, events);
	}
}

static void on_retry(struct loop_timer *t)
{
	listeners_want(CONTAINER(t, struct http_server, retry), EPOLLIN);
}

static void pause_accepting(struct http_server *s, unsigned ms)
{
	listeners_want(s, 0);
	loop_timer_start(s->loop, &s->retry, ms, on_retry);
}

void http_server_refuse(struct http_server *s, int fd)
{
	struct buf body = BUF_INIT(1024), out = BUF_INIT(2048);
	char id[HTTP_REQUEST_ID];

	s->stats.connections_refused++;
	s->crowding = true;
	http_server_request_id(s, VIEW_NONE, id);
	http_impl_error(&body, 503, "too many connections at once", id);
	(void)!http1_write_head(&out, &(struct http1_answer){ .status = 503,
							      .length = (int64_t)buf_len(&body),
							      .content_type = "application/json",
							      .date = http_server_date(s),
							      .request_id = view_of(id),
							      .version = 11 });
	buf_add(&out, buf_view(&body));
	if (!s->cfg.tls && !out.bad)
		(void)!send(fd, out.p, buf_len(&out), MSG_DONTWAIT | MSG_NOSIGNAL);
	buf_done(&body);
	buf_done(&out);
	fd_close(fd);
}

/* False: stop for now. */
static bool accept_one(struct http_server *s, const struct listener *l)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t n = sizeof(peer);
	int fd = accept4(l->io.fd, (struct sockaddr *)&peer, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			pause_accepting(s, RETRY_MS);
		return errno == EINTR || errno == ECONNABORTED;
	}
	s->stats.connections_total++;
	struct http_party *p = http_place_of_address(s, (struct sockaddr *)&peer);
	if (http_lobby_has_line(p) || !http_yield_make(s, p, false)) {
		if (!http_lobby_enter(s, p, fd, &peer, l->index))
			http_server_refuse(s, fd);
		return true;
	}
	if (http_conn_new(s, fd, (struct sockaddr *)&peer, "", false, l->index) < 0) {
		pause_accepting(s, RETRY_MS);
		return false;
	}
	return true;
}

static void on_accept(struct loop_io *io, uint32_t events)
{
	struct listener *l = CONTAINER(io, struct listener, io);
	l->ready = true;
	http_turn_soon(l->server);
}

void http_server_accept(struct http_server *s)
{
	s->crowding = false;
	LIST_EACH (it, &s->listeners) {
		struct listener *l = CONTAINER(it, struct listener, link);
		for (int i = 0; i < ACCEPT_BATCH && l->ready && accept_one(s, l); i++)
			;
		l->ready = false;
	}
	if (s->crowding && !loop_timer_active(&s->retry))
		pause_accepting(s, CROWD_MS);
}

static void limits_default(struct http_limits *l)
{
	static const struct http_limits d = { .head_bytes = 32 * 1024,
					      .headers = 100,
					      .idle_ms = 75000,
					      .head_ms = 10000,
					      .stall_ms = 60000,
					      .connections = 4096,
					      .streams = 128,
					      .useless_ms = 1000 };
	l->head_bytes = l->head_bytes ? l->head_bytes : d.head_bytes;
	l->headers = l->headers ? l->headers : d.headers;
	l->idle_ms = l->idle_ms ? l->idle_ms : d.idle_ms;
	l->head_ms = l->head_ms ? l->head_ms : d.head_ms;
	l->stall_ms = l->stall_ms ? l->stall_ms : d.stall_ms;
	l->connections = l->connections ? l->connections : d.connections;
	l->strangers = l->strangers ? l->strangers : l->connections - l->connections / 4;
	l->party = l->party ? l->party : MAX(l->connections / 2, 1);
	l->streams = l->streams ? l->streams : d.streams;
	l->useless_ms = l->useless_ms ? l->useless_ms : d.useless_ms;
}

struct http_server *http_server_new(struct loop *l, const struct http_config *c, struct err *e)
{
	struct http_server *s = calloc(1, sizeof(*s));
	if (!s) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "HTTP server");
		return NULL;
	}
	s->loop = l;
	s->cfg = *c;
	limits_default(&s->cfg.limits);
	list_init(&s->listeners);
	list_init(&s->conns);
	http_turn_init(s);
	http_lobby_init(s);
	if (http_place_init(s) < 0) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "HTTP server");
		http_server_free(s);
		return NULL;
	}
	rnd_name(s->id_prefix, sizeof(s->id_prefix) - 1);
	s->date_s = UINT64_MAX;
	return s;
}

/*
 * What is accepted inherits these. Keep-alive probes find the peers that are gone
 * without a word, for which no other limit may hold (a conversation without an end).
 * They fail on a unix socket, which needs none of it.
 */
static void tune(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },   { SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 60 }, { IPPROTO_TCP, TCP_KEEPINTVL, 15 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 4 },
	};
	for (size_t i = 0; i < ELEMS(options); i++)
		(void)!setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

int http_server_listen(struct http_server *s, int fd, struct err *e)
{
	struct listener *l = calloc(1, sizeof(*l));
	if (!l) {
		fd_close(fd);
		return err_sys(e, ERR_INTERNAL, ENOMEM, "listening");
	}
	tune(fd);
	l->server = s;
	l->index = s->n_listeners;
	int r = loop_io_start(s->loop, &l->io, fd, EPOLLIN, on_accept);
	if (r < 0) {
		free(l);
		fd_close(fd);
		return err_sys(e, ERR_INTERNAL, r, "listening");
	}
	list_append(&s->listeners, &l->link);
	s->n_listeners++;
	return 0;
}

/* Those of one origin may not crowd out the others, nor all origins together those who come by themselves.
 * Who is one too many hears it with the answer to its request; there may be fewer of those, and not for long.
 */
void http_server_adopt(struct http_server *s, int fd, const char *origin)
{
	struct sockaddr_storage nobody = { .ss_family = AF_UNSPEC };
	bool crowded = http_place_of_origin(s, origin) >= HTTP_ORIGIN_CONNS ||
		       s->n_adopted >= s->cfg.limits.connections / 2;

	if ((crowded && s->n_crowded >= s->cfg.limits.connections / 4) || fd_nonblock(fd, true) < 0 ||
	    !http_yield_make(s, NULL, false)) {
		fd_close(fd);
		return;
	}
	tune(fd);
	s->stats.connections_total++;
	(void)!http_conn_new(s, fd, (struct sockaddr *)&nobody, origin, crowded, HTTP_ADOPTED);
}

void http_server_stop_listening(struct http_server *s)
{
	LIST_EACH (it, &s->listeners) {
		struct listener *l = CONTAINER(it, struct listener, link);
		int fd = l->io.fd;
		loop_io_stop(&l->io);
		fd_close(fd);
		list_del(it);
		free(l);
	}
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	http_server_stop_listening(s);
	http_lobby_done(s);
	while (!list_empty(&s->conns))
		http_conn_free(CONTAINER(s->conns.next, struct http_conn, link));
	loop_timer_stop(&s->retry);
	http_turn_done(s);
	http_place_done(s);
	for (struct http_room *r = s->rooms, *next; r; r = next) {
		next = r->next;
		arena_done(&r->arena);
		buf_done(&r->out);
		free(r);
	}
	free(s->scratch);
	free(s);
}

struct http_held http_server_held(struct http_server *s, uint64_t party)
{
	return http_place_held(s, party);
}

struct http_stats http_server_stats(const struct http_server *s)
{
	return s->stats;
}

/* ---- what connections share ---- */

struct http_room *http_server_take_room(struct http_server *s)
{
	struct http_room *r = s->rooms;
	if (r) {
		s->rooms = r->next;
		s->n_rooms--;
		return r;
	}
	size_t cap = s->cfg.limits.head_bytes + BODY_WINDOW;
	size_t aligned = (cap + 15) & ~(size_t)15;
	r = malloc(sizeof(*r) + aligned + s->cfg.limits.headers * sizeof(struct http_header));
	if (!r)
		return NULL;
	*r = (struct http_room){ .cap = cap };
	r->headers = (struct http_header *)(void *)(r->in + aligned);
	arena_init(&r->arena, HTTP_ARENA_MAX);
	buf_init(&r->out, HTTP_OUT_MAX);
	return r;
}

void http_server_clean_room(struct http_room *r)
{
	/* A reset keeps a block; one of a large request is not worth keeping. */
	if (r->arena.used > KEEP_ARENA)
		arena_done(&r->arena);
	else
		arena_reset(&r->arena);
}

void http_server_give_room(struct http_server *s, struct http_room *r)
{
	if (!r)
		return;
	if (s->n_rooms == SPARE_ROOMS) {
		arena_done(&r->arena);
		buf_done(&r->out);
		free(r);
		return;
	}
	http_server_clean_room(r);
	buf_clear(&r->out);
	buf_shrink(&r->out);
	r->next = s->rooms;
	s->rooms = r;
	s->n_rooms++;
}

struct view http_server_date(struct http_server *s)
{
	uint64_t second = loop_now(s->loop) / 1000;
	if (second != s->date_s) {
		s->date_s = second;
		http1_write_date(s->date, clock_wall_ms() / 1000);
	}
	return (struct view){ s->date, HTTP1_DATE_SIZE - 1 };
}

static bool id_is_sane(struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		bool ok = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			  c == '-' || c == '_' || c == '.';
		if (!ok)
			return false;
	}
	return v.n > 0 && v.n < HTTP_REQUEST_ID;
}

/* Random once per server and counted from there: unique, cheap, and no secret. */
void http_server_request_id(struct http_server *s, struct view wish, char dst[HTTP_REQUEST_ID])
{
	static const char set[] = "0123456789bcdfghjklmnpqrstvwxz"; /* 30 of them */
	if (id_is_sane(wish)) {
		memcpy(dst, wish.p, wish.n);
		dst[wish.n] = 0;
		return;
	}
	uint64_t n = s->id_next++;
	memcpy(dst, s->id_prefix, 8);
	for (int i = 19; i >= 8; i--, n /= 30)
		dst[i] = set[n % 30];
	dst[20] = 0;
}
