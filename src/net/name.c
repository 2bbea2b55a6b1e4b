/*
 * Names to addresses without files: /etc/hosts and the first name server of
 * /etc/resolv.conf are read before the program is confined; after that there are UDP
 * questions (resolve.h) for A and then for AAAA. No search list, no TCP, no cache.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "fd.h"
#include "name.h"
#include "netaddr.h"
#include "resolve.h"
#include "rnd.h"
#include "poison.h"

#define FILE_MAX (256u * 1024)
#define DNS_PORT 53
#define TRIES    2 /* of each kind: a datagram may be lost */
#define TRY_MS   2000

/* ---- files ---- */

static struct view next_word(struct view *line)
{
	while (line->n && (line->p[0] == ' ' || line->p[0] == '\t'))
		*line = view_skip(*line, 1);
	size_t n = 0;
	while (n < line->n && line->p[n] != ' ' && line->p[n] != '\t' && line->p[n] != '#')
		n++;
	struct view word = view_head(*line, n);
	*line = n < line->n && line->p[n] == '#' ? VIEW("") : view_skip(*line, n);
	return word;
}

static struct view slurp(const char *path)
{
	struct buf text = BUF_INIT(FILE_MAX);
	struct view copy = VIEW("");

	if (fd_slurp(AT_FDCWD, path, &text) == 0 && buf_len(&text)) {
		char *p = malloc(buf_len(&text)); /* for the program's life */
		if (p) {
			memcpy(p, buf_view(&text).p, buf_len(&text));
			copy = (struct view){ p, buf_len(&text) };
		}
	}
	buf_done(&text);
	return copy;
}

void name_load(struct name_server *h)
{
	struct view rest = slurp("/etc/resolv.conf");

	h->hosts = slurp("/etc/hosts");
	while (rest.p && rest.n) {
		struct view line = view_split(rest, '\n', &rest);
		if (view_is(next_word(&line), "nameserver") &&
		    netaddr_parse(next_word(&line), DNS_PORT, &h->server, &h->server_len) == 0)
			return;
	}
	h->server.ss_family = AF_UNSPEC;
}

static bool in_hosts(struct name_query *q, struct view host)
{
	struct view rest = q->server->hosts;

	while (rest.p && rest.n) {
		struct view line = view_split(rest, '\n', &rest), address = next_word(&line), name;
		while ((name = next_word(&line)).n)
			if (view_eq_nocase(name, host) &&
			    netaddr_parse(address, 0, &q->found, &q->found_len) == 0)
				return true;
	}
	return false;
}

/* ---- DNS ---- */

static void finish(struct name_query *q, const char *error)
{
	name_stop(q);
	q->done(q, error);
}

static void ask(struct name_query *q);

static struct resolve_question question(const struct name_query *q)
{
	return (struct resolve_question){ .id = q->id, .host = view_of(q->host), .v6 = q->v6 };
}

static void on_answer(struct loop_io *io, uint32_t events)
{
	struct name_query *q = CONTAINER(io, struct name_query, io);
	const struct resolve_question asked = question(q);
	uint8_t m[RESOLVE_MESSAGE];
	ssize_t n = recv(io->fd, m, sizeof(m), 0);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			finish(q, "the name server cannot be asked");
		return;
	}
	int r = resolve_read(&asked, m, (size_t)n, &q->found, &q->found_len);
	if (r < 0)
		return; /* somebody guesses: the real answer may yet come */
	if (r > 0) {
		finish(q, NULL);
		return;
	}
	name_stop(q);
	if (q->v6) {
		finish(q, "the name has no address");
		return;
	}
	q->v6 = true;
	q->left = TRIES;
	ask(q);
}

static void on_silence(struct loop_timer *t)
{
	struct name_query *q = CONTAINER(t, struct name_query, timer);

	name_stop(q);
	if (q->left > 0)
		ask(q);
	else
		finish(q, "the name server does not answer");
}

static void ask(struct name_query *q)
{
	const struct name_server *h = q->server;
	uint8_t m[RESOLVE_MESSAGE];

	rnd_bytes(&q->id, sizeof(q->id)); /* the port is random, too: a new socket each time */
	const struct resolve_question it = question(q);
	size_t n = resolve_ask(&it, m);
	int fd = n ? socket(h->server.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
	if (fd < 0 || connect(fd, (const struct sockaddr *)&h->server, h->server_len) < 0 ||
	    send(fd, m, n, 0) != (ssize_t)n || loop_io_start(h->loop, &q->io, fd, EPOLLIN, on_answer) < 0) {
		fd_close(fd);
		q->io.fd = -1;
		finish(q, "the name server cannot be asked");
		return;
	}
	q->left--;
	loop_timer_start(h->loop, &q->timer, TRY_MS, on_silence);
}

void name_start(struct name_query *q, struct name_server *h, struct view host,
		void (*done)(struct name_query *, const char *))
{
	*q = (struct name_query){ .server = h, .io = { .fd = -1 }, .done = done, .left = TRIES };
	if (netaddr_parse(host, 0, &q->found, &q->found_len) == 0 || in_hosts(q, host))
		done(q, NULL);
	else if (view_to_str(host, q->host, sizeof(q->host)) < 0 || h->server.ss_family == AF_UNSPEC)
		done(q, "the name is not known");
	else
		ask(q);
}

void name_stop(struct name_query *q)
{
	int fd = q->io.fd;

	loop_timer_stop(&q->timer);
	if (fd < 0)
		return;
	loop_io_stop(&q->io);
	q->io.fd = -1;
	fd_close(fd);
}
