/*
 * Names to addresses without files: /etc/hosts and the first name server of
 * /etc/resolv.conf are read before the program is confined; after that there is one
 * UDP question for A and one for AAAA. No search list, no TCP, no cache. What comes
 * back is a stranger's: every offset is checked, names are skipped and not followed.
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
#include "hook.h"
#include "netaddr.h"
#include "rnd.h"
#include "poison.h"

#define FILE_MAX   (256u * 1024)
#define MESSAGE    1232
#define HEADER     12
#define TYPE_A     1
#define TYPE_AAAA  28
#define CLASS_IN   1
#define DNS_PORT   53
#define TRIES      2 /* of each kind; the delivery as a whole has its time limit */

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

void name_load(struct hook *h)
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
	struct view rest = q->hook->hosts;

	while (rest.p && rest.n) {
		struct view line = view_split(rest, '\n', &rest), address = next_word(&line), name;
		while ((name = next_word(&line)).n)
			if (view_eq_nocase(name, host) && netaddr_parse(address, 0, &q->found, &q->found_len) == 0)
				return true;
	}
	return false;
}

/* ---- DNS ---- */

static size_t put_question(const struct name_query *q, uint8_t *out)
{
	struct view rest = view_of(q->host);
	size_t n = HEADER;

	memset(out, 0, HEADER);
	out[0] = (uint8_t)(q->id >> 8);
	out[1] = (uint8_t)q->id;
	out[2] = 1; /* recursion, please */
	out[5] = 1; /* one question */
	while (rest.p && rest.n) {
		struct view label = view_split(rest, '.', &rest);
		if (label.n < 1 || label.n > 63)
			return 0;
		out[n++] = (uint8_t)label.n;
		memcpy(out + n, label.p, label.n);
		n += label.n;
	}
	out[n++] = 0;
	out[n++] = 0;
	out[n++] = q->v6 ? TYPE_AAAA : TYPE_A;
	out[n++] = 0;
	out[n++] = CLASS_IN;
	return n;
}

/* The place behind a name, or 0. */
static size_t skip_name(const uint8_t *m, size_t len, size_t at)
{
	while (at < len) {
		if (m[at] == 0)
			return at + 1;
		if ((m[at] & 0xc0) == 0xc0)
			return at + 2 <= len ? at + 2 : 0;
		if (m[at] & 0xc0)
			return 0;
		at += 1u + m[at];
	}
	return 0;
}

static bool take_address(struct name_query *q, const uint8_t *data, size_t n)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&q->found;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&q->found;

	memset(&q->found, 0, sizeof(q->found));
	if (q->v6 && n == 16) {
		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_addr, data, n);
		q->found_len = sizeof(*in6);
		return true;
	}
	if (!q->v6 && n == 4) {
		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, data, n);
		q->found_len = sizeof(*in);
		return true;
	}
	return false;
}

/* 1: found; 0: the name has none of this kind; -1: not an answer to our question. */
static int read_answer(struct name_query *q, const uint8_t *m, size_t len)
{
	uint8_t question[MESSAGE];
	size_t n = put_question(q, question), at = n;

	if (len < n || m[0] != question[0] || m[1] != question[1] || !(m[2] & 0x80) || m[4] != 0 || m[5] != 1 ||
	    memcmp(m + HEADER, question + HEADER, n - HEADER) != 0)
		return -1;
	for (unsigned i = (unsigned)m[6] << 8 | m[7]; i > 0; i--) {
		at = skip_name(m, len, at);
		if (!at || at + 10 > len)
			return 0;
		unsigned type = (unsigned)m[at] << 8 | m[at + 1], class = (unsigned)m[at + 2] << 8 | m[at + 3];
		size_t size = (size_t)m[at + 8] << 8 | m[at + 9];
		at += 10;
		if (size > len - at)
			return 0;
		if (class == CLASS_IN && type == (q->v6 ? TYPE_AAAA : TYPE_A) && take_address(q, m + at, size))
			return 1;
		at += size;
	}
	return 0;
}

static void finish(struct name_query *q, const char *error)
{
	name_stop(q);
	q->done(q, error);
}

static void ask(struct name_query *q);

static void on_answer(struct loop_io *io, uint32_t events)
{
	struct name_query *q = CONTAINER(io, struct name_query, io);
	uint8_t m[MESSAGE];
	ssize_t n = recv(io->fd, m, sizeof(m), 0);
	int r = n < 0 ? 0 : read_answer(q, m, (size_t)n);

	if (r < 0 || (n < 0 && errno == EAGAIN))
		return;
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
	ask(q);
}

static void ask(struct name_query *q)
{
	const struct hook *h = q->hook;
	uint8_t m[MESSAGE];

	rnd_bytes(&q->id, sizeof(q->id)); /* the port is random, too: a new socket each time */
	size_t n = put_question(q, m);
	int fd = n ? socket(h->server.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
	if (fd < 0 || connect(fd, (const struct sockaddr *)&h->server, h->server_len) < 0 ||
	    send(fd, m, n, 0) != (ssize_t)n || loop_io_start(h->loop, &q->io, fd, EPOLLIN, on_answer) < 0) {
		fd_close(fd);
		finish(q, "the name server cannot be asked");
	}
}

void name_start(struct name_query *q, struct hook *h, struct view host, void (*done)(struct name_query *, const char *))
{
	*q = (struct name_query){ .hook = h, .io = { .fd = -1 }, .done = done, .left = TRIES };
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

	if (fd < 0)
		return;
	loop_io_stop(&q->io);
	q->io.fd = -1;
	fd_close(fd);
}
