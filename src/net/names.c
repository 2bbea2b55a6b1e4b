/*
 * Names to addresses, for programs without files: /etc/hosts (where it is wanted) and the
 * name servers of /etc/resolv.conf are read at the start. Our own small client of DNS,
 * without a search list: each question has a socket (and so a
 * port) and an id of its own; A and AAAA are asked at once; what comes back is a
 * stranger's. What does not fit into a datagram is asked for again over TCP. Answers are kept for as long as
 * they say, within bounds, so that a storm of connections asks once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "addr.h"
#include "dns.h"
#include "fd.h"
#include "map.h"
#include "names.h"
#include "rnd.h"
#include "poison.h"

#define SERVERS    2
#define ENTRIES    4096
#define TRIES      3
#define TRY_MS     1500
#define TTL_LEAST  5
#define TTL_MOST   300
#define FAILED_TTL 2
#define EACH       (NAMES_ADDRS / 2) /* of each family */
#define STREAM     8192              /* of an answer over TCP */
#define LENGTH     2                 /* before a message over TCP */
#define FILE_MAX   (256u * 1024)

struct entry;

struct question {
	struct entry *entry;
	struct loop_io io;
	uint16_t type;
	bool done;
	struct buf sent;
	struct buf got; /* over TCP */
	struct dns_reply reply;
};

struct entry {
	struct map_node node;
	struct list lru;
	struct names *names;
	char name[DNS_NAME];
	struct list waiters;
	bool asking, failed;
	unsigned tries;
	struct loop_timer timer;
	struct question questions[2];
	struct names_answer answer;
	uint64_t until_ms;
};

struct names {
	struct loop *loop;
	struct sockaddr_storage servers[SERVERS];
	socklen_t lens[SERVERS];
	unsigned n_servers;
	struct map entries;
	struct list lru;      /* the one that was not used for longest first */
	struct buf hosts;     /* /etc/hosts, as it was at the start */
	bool reads_addresses; /* names may be addresses */
};

static void stop_question(struct question *q)
{
	loop_io_close(&q->io);
	buf_done(&q->sent);
	buf_done(&q->got);
}

/* ---- what the machine says ---- */

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

static void add_server(struct names *n, struct view text)
{
	struct addr a;

	if (addr_parse(text, &a) < 0)
		return;
	n->lens[n->n_servers] = addr_to_sockaddr(&a, DNS_PORT, &n->servers[n->n_servers]);
	n->n_servers++;
}

static void read_resolv_conf(struct names *n)
{
	struct buf text = BUF_INIT(FILE_MAX);

	if (fd_slurp(AT_FDCWD, "/etc/resolv.conf", &text) == 0)
		for (struct view rest = buf_view(&text); rest.p && rest.n && n->n_servers < SERVERS;) {
			struct view line = view_split(rest, '\n', &rest);
			if (view_is(next_word(&line), "nameserver"))
				add_server(n, next_word(&line));
		}
	buf_done(&text);
}

struct names *names_new(struct loop *loop, const struct names_setup *setup, struct err *e)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "names");
		return NULL;
	}
	n->loop = loop;
	map_init(&n->entries);
	list_init(&n->lru);
	n->hosts = BUF_INIT(FILE_MAX);
	if (setup->hosts && fd_slurp(AT_FDCWD, "/etc/hosts", &n->hosts) < 0)
		buf_done(&n->hosts);
	n->reads_addresses = setup->hosts;
	if (setup->server_len) {
		n->servers[0] = setup->server;
		n->lens[0] = setup->server_len;
		n->n_servers = 1;
	} else {
		read_resolv_conf(n); /* without any, no name is known */
	}
	return n;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	for (struct map_node *it; (it = map_first(&n->entries));) {
		struct entry *e = CONTAINER(it, struct entry, node);
		loop_timer_stop(&e->timer);
		for (size_t i = 0; e->asking && i < ELEMS(e->questions); i++)
			stop_question(&e->questions[i]);
		map_del(&n->entries, it);
		free(e);
	}
	map_done(&n->entries);
	buf_done(&n->hosts);
	free(n);
}

/* The first line that has it. */
static bool in_hosts(const struct names *n, struct view name, struct addr *ret)
{
	struct view rest = buf_view(&n->hosts);

	while (rest.p && rest.n) {
		struct view line = view_split(rest, '\n', &rest), address = next_word(&line), one;
		while ((one = next_word(&line)).n)
			if (view_eq_nocase(one, name) && addr_parse(address, ret) == 0)
				return true;
	}
	return false;
}

/* ---- the end of a question ---- */

static void tell(struct entry *e)
{
	struct names_answer answer = e->answer; /* the entry may go while others are told */
	bool failed = e->failed;
	struct list waiters;

	list_init(&waiters);
	LIST_EACH (it, &e->waiters) {
		list_del(it);
		list_append(&waiters, it);
	}
	while (!list_empty(&waiters)) {
		struct names_waiter *w = CONTAINER(waiters.next, struct names_waiter, link);
		list_del(&w->link);
		w->done(w, failed ? NULL : &answer);
	}
}

static void finish(struct entry *e)
{
	bool answered = false;
	uint32_t ttl = TTL_MOST;

	loop_timer_stop(&e->timer);
	e->answer = (struct names_answer){ 0 };
	for (size_t i = 0; i < ELEMS(e->questions); i++) {
		struct question *q = &e->questions[i];
		bool good = q->done && (q->reply.rcode == DNS_NOERROR || q->reply.rcode == DNS_NXDOMAIN);
		stop_question(q);
		answered = answered || good;
		e->answer.known = e->answer.known || (good && q->reply.rcode == DNS_NOERROR);
		for (size_t k = 0; good && k < MIN(q->reply.n, EACH); k++) {
			struct addr *a = &e->answer.addrs[e->answer.n++];
			if (q->type == DNS_A) {
				struct sockaddr_in in = { .sin_family = AF_INET };
				memcpy(&in.sin_addr, q->reply.found[k].b, 4);
				addr_from_sockaddr((struct sockaddr *)&in, a);
			} else {
				memcpy(a->b, q->reply.found[k].b, 16);
			}
			ttl = MIN(ttl, q->reply.ttl);
		}
	}
	e->asking = false;
	e->failed = !answered;
	e->answer.ttl = MAX(ttl, TTL_LEAST);
	e->until_ms = loop_now(e->names->loop) + (e->answer.n ? e->answer.ttl : FAILED_TTL) * 1000ull;
	tell(e);
}

static void answered(struct question *q)
{
	struct entry *e = q->entry;

	q->done = true;
	stop_question(q);
	if (e->questions[0].done && e->questions[1].done)
		finish(e);
}

/* Starts to talk to the server of this try. */
static void dial_server(struct question *q, int type, uint32_t events,
			void (*on_event)(struct loop_io *, uint32_t))
{
	const struct names *n = q->entry->names;
	unsigned server = q->entry->tries % n->n_servers;
	int fd = socket(n->servers[server].ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool ok =
		fd >= 0 && (connect(fd, (const struct sockaddr *)&n->servers[server], n->lens[server]) == 0 ||
			    errno == EINPROGRESS);

	if (!ok || loop_io_start(n->loop, &q->io, fd, events, on_event) < 0) {
		q->io.fd = -1;
		fd_close(fd);
	}
}

/* ---- over TCP ---- */

static void on_stream(struct loop_io *io, uint32_t events)
{
	struct question *q = CONTAINER(io, struct question, io);
	char m[4096];
	ssize_t n = recv(io->fd, m, sizeof(m), 0);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || buf_append(&q->got, m, (size_t)n) < 0) {
		stop_question(q); /* the next try asks anew */
		return;
	}
	struct view v = buf_view(&q->got);
	if (v.n < LENGTH)
		return;
	size_t length = (size_t)(uint8_t)v.p[0] << 8 | (uint8_t)v.p[1];
	if (v.n < LENGTH + length)
		return;
	if (dns_reply_parse(view_head(view_skip(v, LENGTH), length), buf_view(&q->sent), q->type, &q->reply) <
	    0)
		stop_question(q);
	else
		answered(q);
}

static void on_connected(struct loop_io *io, uint32_t events)
{
	struct question *q = CONTAINER(io, struct question, io);
	_cleanup_(buf_done) struct buf out = BUF_INIT(LENGTH + DNS_MESSAGE);

	(void)events;
	buf_putc(&out, (char)(buf_len(&q->sent) >> 8));
	buf_putc(&out, (char)buf_len(&q->sent));
	buf_add(&out, buf_view(&q->sent));
	if (send(io->fd, out.p, out.n, MSG_NOSIGNAL) != (ssize_t)out.n || loop_io_want(io, EPOLLIN) < 0) {
		stop_question(q);
		return;
	}
	io->on_event = on_stream;
}

static void ask_by_stream(struct question *q)
{
	int fd = q->io.fd;

	loop_io_stop(&q->io);
	fd_close(fd);
	q->got = BUF_INIT(STREAM);
	dial_server(q, SOCK_STREAM, EPOLLOUT, on_connected);
}

/* ---- by datagram ---- */

static void on_reply(struct loop_io *io, uint32_t events)
{
	struct question *q = CONTAINER(io, struct question, io);
	char m[4096];
	ssize_t n = recv(io->fd, m, sizeof(m), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* Nobody listens there: the next try is another server's. */
	if (n < 0) {
		stop_question(q);
		return;
	}
	if (dns_reply_parse((struct view){ m, (size_t)n }, buf_view(&q->sent), q->type, &q->reply) < 0)
		return;
	/* With some addresses it is good enough. */
	if (q->reply.truncated && q->reply.n == 0)
		ask_by_stream(q);
	else
		answered(q);
}

/* False: there is no such question. */
static bool ask(struct entry *e, struct question *q)
{
	uint16_t id;

	stop_question(q);
	rnd_bytes(&id, sizeof(id));
	q->sent = BUF_INIT(DNS_MESSAGE);
	if (!e->names->n_servers || dns_question(&q->sent, id, view_of(e->name), q->type) < 0)
		return false;
	dial_server(q, SOCK_DGRAM, EPOLLIN, on_reply);
	if (q->io.fd >= 0 && send(q->io.fd, q->sent.p, q->sent.n, 0) < 0)
		stop_question(q);
	return true;
}

static void on_time(struct loop_timer *t)
{
	struct entry *e = CONTAINER(t, struct entry, timer);

	/* One of the two is enough to go on with, after a while. */
	bool some = (e->questions[0].done && e->questions[0].reply.n) ||
		    (e->questions[1].done && e->questions[1].reply.n);
	if (some || ++e->tries == TRIES) {
		finish(e);
		return;
	}
	for (size_t i = 0; i < ELEMS(e->questions); i++)
		if (!e->questions[i].done)
			(void)ask(e, &e->questions[i]);
	loop_timer_start(e->names->loop, &e->timer, TRY_MS, on_time);
}

static void start(struct entry *e)
{
	bool asked = false;

	e->asking = true;
	e->tries = 0;
	for (size_t i = 0; i < ELEMS(e->questions); i++) {
		e->questions[i] =
			(struct question){ .entry = e, .io = { .fd = -1 }, .type = i ? DNS_AAAA : DNS_A };
		asked |= ask(e, &e->questions[i]);
	}
	if (!asked) /* there is nobody to ask, or nothing: not from within names_ask, though */
		e->tries = TRIES - 1;
	loop_timer_start(e->names->loop, &e->timer, asked ? TRY_MS : 0, on_time);
}

/* ---- the cache ---- */

static bool make_room(struct names *n)
{
	if (n->entries.n < ENTRIES)
		return true;
	LIST_EACH (it, &n->lru) {
		struct entry *e = CONTAINER(it, struct entry, lru);
		if (e->asking)
			continue;
		list_del(&e->lru);
		map_del(&n->entries, &e->node);
		free(e);
		return true;
	}
	return false;
}

static struct entry *get(struct names *n, struct view name)
{
	struct map_node *node = map_get(&n->entries, name);
	struct entry *e;

	if (node)
		return CONTAINER(node, struct entry, node);
	if (!make_room(n) || !(e = calloc(1, sizeof(*e))))
		return NULL;
	e->names = n;
	list_init(&e->lru);
	list_init(&e->waiters);
	if (view_to_str(name, e->name, sizeof(e->name)) < 0 ||
	    map_put(&n->entries, &e->node, view_of(e->name)) < 0) {
		free(e);
		return NULL;
	}
	return e;
}

void names_ask(struct names *n, struct view name, struct names_waiter *w,
	       void (*done)(struct names_waiter *, const struct names_answer *))
{
	struct names_answer known = { .n = 1, .ttl = TTL_MOST, .known = true };

	list_init(&w->link);
	w->done = done;
	if ((n->reads_addresses && addr_parse(name, &known.addrs[0]) == 0) ||
	    in_hosts(n, name, &known.addrs[0])) {
		done(w, &known);
		return;
	}
	if (name.n > 1 && name.p[name.n - 1] == '.')
		name.n--; /* of the root */
	struct entry *e = get(n, name);
	if (!e) {
		done(w, NULL);
		return;
	}
	list_del(&e->lru);
	list_append(&n->lru, &e->lru);
	if (!e->asking && e->until_ms > loop_now(n->loop)) {
		struct names_answer answer = e->answer;
		done(w, e->failed ? NULL : &answer);
		return;
	}
	list_append(&e->waiters, &w->link);
	if (!e->asking)
		start(e);
}

bool names_cached(const struct names *n, struct view name)
{
	struct map_node *node = map_get(&n->entries, name);
	const struct entry *e = node ? CONTAINER(node, struct entry, node) : NULL;

	return e && (e->asking || e->until_ms > loop_now(n->loop));
}

void names_forget(struct names_waiter *w)
{
	if (w->link.next)
		list_del(&w->link);
}
