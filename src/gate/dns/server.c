/*
 * DNS for boxes: addresses of names that a rule could allow, and nothing else. A name
 * that no rule knows does not exist, and is not asked for outside: a question cannot
 * carry a message out. Of the answers only addresses come back, so neither can they.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "dns.h"
#include "fd.h"
#include "host_match.h"
#include "netns.h"
#include "server.h"
#include "wire_gen.h"
#include "poison.h"

#define QUESTIONS 256 /* of one box at once */
#define AT_ONCE   32
#define EACH      8
#define TTL_MOST  60
#define QUIET_MS  1000

/* Over UDP: to whom, and as whom. */
struct peer {
	struct sockaddr_storage from;
	socklen_t from_len;
	int level, type;
	char info[32];
	size_t info_len;
};

struct server_query {
	struct list link; /* server->questions */
	struct server *server;
	struct names_waiter waiter;
	struct dns_query query;
	char message[12 + DNS_NAME + 8];
	size_t size;
	void (*answer)(struct server_query *q, struct view message);
	void *arg;
	struct peer peer;
};

void *server_arg(const struct server_query *q)
{
	return q->arg;
}

static void query_free(struct server_query *q)
{
	names_forget(&q->waiter);
	list_del(&q->link);
	free(q);
}

void server_cancel_all(struct server *s, const void *arg)
{
	LIST_EACH (it, &s->questions) {
		struct server_query *q = CONTAINER(it, struct server_query, link);
		if (arg && q->arg != arg)
			continue;
		query_free(q);
	}
}

static void reply(struct server_query *q, unsigned rcode, const struct dns_address *found, size_t n,
		  uint32_t ttl)
{
	struct buf out = BUF_INIT(DNS_MESSAGE);
	int r = dns_answer(&out, (struct view){ q->message, q->size }, &q->query, rcode, found, n, ttl);

	names_forget(&q->waiter);
	list_del(&q->link);
	if (r == 0)
		q->answer(q, buf_view(&out));
	buf_done(&out);
	free(q);
}

/* Resolvers ask for A and AAAA, and again: one line is enough. */
static void say(struct server_query *q, bool allowed, int reason, const struct addr *a)
{
	struct server *s = q->server;
	struct server_said *said = &s->said[allowed];
	uint64_t now = loop_now(s->loop);

	if (said->reason == reason && strcmp(said->name, q->query.name) == 0 && now - said->at_ms < QUIET_MS)
		return;
	memcpy(said->name, q->query.name, sizeof(said->name));
	said->reason = reason;
	said->at_ms = now;
	s->ops->say(s, allowed, reason, q->query.name, a);
}

static void refused(struct server_query *q, int reason, const struct addr *a)
{
	say(q, false, reason, a);
}

static void on_answer(struct names_waiter *w, const struct names_answer *a)
{
	struct server_query *q = CONTAINER(w, struct server_query, waiter);
	struct server *s = q->server;
	const struct policy *p = s->ops->policy(s);
	struct dns_address found[EACH];
	size_t n = 0, of_type = 0, allowed = 0;

	if (!a) {
		refused(q, WIRE_GATE_REASON_UNRESOLVED, NULL);
		reply(q, DNS_SERVFAIL, NULL, 0, 0);
		return;
	}
	for (size_t i = 0; i < a->n; i++) {
		const struct addr *at = &a->addrs[i];
		struct policy_facts f = { .name = view_of(q->query.name),
					  .addr = at,
					  .own = s->ops->is_own(s, at) };
		bool four = addr_is_v4(at), ok = p && policy_may(p, &f);
		allowed += ok;
		if (four != (q->query.type == DNS_A))
			continue;
		of_type++;
		if (!ok || n == EACH)
			continue;
		memcpy(found[n++].b, four ? at->b + 12 : at->b, four ? 4 : 16);
		s->ops->told(s, at, q->query.name);
	}
	if (a->n && !allowed)
		refused(q, WIRE_GATE_REASON_ADDRESS, &a->addrs[0]);
	else if (a->n)
		say(q, true, WIRE_GATE_REASON_RULE, NULL);
	else
		refused(q, WIRE_GATE_REASON_UNRESOLVED, NULL); /* it was asked for, and is nowhere */
	reply(q, a->known ? DNS_NOERROR : DNS_NXDOMAIN, found, n, MIN(a->ttl, TTL_MOST));
}

/* Names that mean the box itself (RFC 6761), also where its files do not say so, and where an agent finds its
 * API. */
static bool serve_own(struct server_query *q, struct view name)
{
	bool six = view_is(name, "ip6-localhost") || view_is(name, "ip6-loopback");
	bool both = view_is(name, "localhost") ||
		    (q->server->host[0] && view_eq_nocase(name, view_of(q->server->host))) ||
		    host_match(VIEW("*.localhost"), name);
	struct dns_address at = { 0 };
	if (view_is(name, NETNS_HOST_NAME)) {
		memcpy(at.b, (const uint8_t[])NETNS_HOST_ADDR, 4);
		reply(q, DNS_NOERROR, &at, q->query.type == DNS_A, TTL_MOST);
		return true;
	}
	if (!six && !both)
		return false;
	if (q->query.type == DNS_AAAA)
		at.b[15] = 1;
	else
		memcpy(at.b, (const uint8_t[]){ 127, 0, 0, 1 }, 4);
	bool has = q->query.type == DNS_AAAA || (q->query.type == DNS_A && both);
	reply(q, DNS_NOERROR, &at, has, TTL_MOST);
	return true;
}

static void serve(struct server_query *q)
{
	struct server *s = q->server;
	const struct policy *p = s->ops->policy(s);
	struct policy_facts f = { 0 };
	char name[256];

	if (policy_name(view_of(q->query.name), name) < 0) {
		refused(q, WIRE_GATE_REASON_MALFORMED, NULL);
		reply(q, DNS_NXDOMAIN, NULL, 0, 0);
		return;
	}
	f.name = view_of(name);
	if (serve_own(q, f.name))
		return;
	if (!p || !policy_may(p, &f)) {
		refused(q, p ? WIRE_GATE_REASON_NO_RULE : WIRE_GATE_REASON_NO_POLICY, NULL);
		/* Not REFUSED: musl waits its whole time when it hears that, and glibc calls it temporary. */
		q->query.why = "paddock: the policy of this sandbox does not allow this name";
		reply(q, DNS_NXDOMAIN, NULL, 0, 0);
	} else if (q->query.type != DNS_A && q->query.type != DNS_AAAA) {
		reply(q, DNS_NOERROR, NULL, 0, 0);
	} else if (!names_cached(s->names, f.name) && !s->ops->may_ask(s)) {
		refused(q, WIRE_GATE_REASON_LIMIT, NULL);
		reply(q, DNS_REFUSED, NULL, 0, 0);
	} else {
		names_ask(s->names, f.name, &q->waiter, on_answer);
	}
}

/* False: it was no question, or one too many. */
static bool start(struct server *s, struct view message,
		  void (*answer)(struct server_query *q, struct view message), void *arg,
		  const struct peer *peer)
{
	struct server_query *q = calloc(1, sizeof(*q));
	unsigned n = 0;

	if (!q)
		return false;
	list_init(&q->waiter.link);
	list_init(&q->link);
	q->server = s;
	q->answer = answer;
	q->arg = arg;
	if (peer)
		q->peer = *peer;
	int r = dns_query_parse(message, &q->query);
	LIST_EACH (it, &s->questions)
		n++;
	if (r == -EBADMSG || n >= QUESTIONS) {
		free(q);
		return false;
	}
	q->size = MIN(message.n, 12 + q->query.question);
	memcpy(q->message, message.p, MIN(q->size, sizeof(q->message)));
	list_append(&s->questions, &q->link);
	if (r < 0)
		reply(q, DNS_NOTIMP, NULL, 0, 0);
	else
		serve(q);
	return true;
}

bool server_start(struct server *s, struct view message,
		  void (*answer)(struct server_query *q, struct view message), void *arg)
{
	return start(s, message, answer, arg, NULL);
}

/* ---- UDP ---- */

static void send_udp(struct server_query *q, struct view message)
{
	const struct peer *p = &q->peer;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(p->info))];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)message.p, message.n };
	struct msghdr m = { .msg_name = (void *)(uintptr_t)&p->from,
			    .msg_namelen = p->from_len,
			    .msg_iov = &iov,
			    .msg_iovlen = 1 };

	if (p->info_len) {
		m.msg_control = control.room;
		m.msg_controllen = CMSG_SPACE(p->info_len);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = p->level;
		c->cmsg_type = p->type;
		c->cmsg_len = CMSG_LEN(p->info_len);
		memcpy(CMSG_DATA(c), p->info, p->info_len);
	}
	(void)!sendmsg(q->server->io.fd, &m,
		       MSG_DONTWAIT | MSG_NOSIGNAL); /* a box that reads nothing loses it */
}

/* What the kernel said about the destination becomes the source. */
static void keep_info(struct peer *p, struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			info.ipi6_ifindex = 0;
			memcpy(p->info, &info, sizeof(info));
			p->info_len = sizeof(info);
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			info.ipi_ifindex = 0;
			info.ipi_spec_dst = info.ipi_addr;
			memcpy(p->info, &info, sizeof(info));
			p->info_len = sizeof(info);
		} else {
			continue;
		}
		p->level = c->cmsg_level;
		p->type = c->cmsg_type;
		return;
	}
}

static bool receive(struct server *s)
{
	union {
		struct cmsghdr head;
		char room[256];
	} control;
	char message[DNS_MESSAGE];
	struct peer p = { 0 };
	struct iovec iov = { message, sizeof(message) };
	struct msghdr m = { .msg_name = &p.from,
			    .msg_namelen = sizeof(p.from),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.room,
			    .msg_controllen = sizeof(control.room) };
	ssize_t n = recvmsg(s->io.fd, &m, MSG_DONTWAIT);

	if (n < 0)
		return false;
	p.from_len = m.msg_namelen;
	keep_info(&p, &m);
	if (!(m.msg_flags & MSG_TRUNC))
		(void)start(s, (struct view){ message, (size_t)n }, send_udp, NULL, &p);
	return true;
}

static void on_question(struct loop_io *io, uint32_t events)
{
	struct server *s = CONTAINER(io, struct server, io);

	for (int i = 0; i < AT_ONCE && receive(s); i++)
		;
}

/* ---- life ---- */

void server_init(struct server *s, struct loop *loop, struct names *names, const struct server_ops *ops)
{
	*s = (struct server){ .ops = ops, .loop = loop, .names = names, .io = { .fd = -1 } };
	list_init(&s->questions);
}

int server_serve(struct server *s, int fd)
{
	loop_io_close(&s->io);
	int r = fd_nonblock(fd, true);
	if (r == 0)
		r = loop_io_start(s->loop, &s->io, fd, EPOLLIN, on_question);
	if (r < 0) {
		s->io.fd = -1;
		fd_close(fd);
	}
	return r;
}

void server_done(struct server *s)
{
	server_cancel_all(s, NULL);
	loop_io_close(&s->io);
}
