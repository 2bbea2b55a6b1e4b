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
#include "gate.h"
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
	struct list link; /* box->questions */
	struct box *box;
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

void server_cancel_all(struct box *b, const void *arg)
{
	LIST_EACH (it, &b->questions) {
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
	struct box *b = q->box;
	struct box_told *told = &b->told[allowed];
	uint64_t now = loop_now(b->gate->loop);

	if (told->reason == reason && strcmp(told->name, q->query.name) == 0 && now - told->at_ms < QUIET_MS)
		return;
	memcpy(told->name, q->query.name, sizeof(told->name));
	told->reason = reason;
	told->at_ms = now;
	verdict_say(b, &(struct verdict){ .allowed = allowed,
					  .reason = reason,
					  .protocol = "dns",
					  .via = "dns",
					  .name = view_of(q->query.name),
					  .addr = a,
					  .port = 53 });
}

static void refused(struct server_query *q, int reason, const struct addr *a)
{
	say(q, false, reason, a);
}

static void on_answer(struct names_waiter *w, const struct names_answer *a)
{
	struct server_query *q = CONTAINER(w, struct server_query, waiter);
	struct box *b = q->box;
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
					  .own = dial_own(b->gate, at) };
		bool four = addr_is_v4(at), ok = b->policy && policy_may(b->policy, &f);
		allowed += ok;
		if (four != (q->query.type == DNS_A))
			continue;
		of_type++;
		if (!ok || n == EACH)
			continue;
		memcpy(found[n++].b, four ? at->b + 12 : at->b, four ? 4 : 16);
		box_remember(b, at, q->query.name);
	}
	if (a->n && !allowed)
		refused(q, WIRE_GATE_REASON_ADDRESS, &a->addrs[0]);
	else if (a->n)
		say(q, true, WIRE_GATE_REASON_RULE, NULL);
	else
		refused(q, WIRE_GATE_REASON_UNRESOLVED, NULL); /* it was asked for, and is nowhere */
	reply(q, a->known ? DNS_NOERROR : DNS_NXDOMAIN, found, n, MIN(a->ttl, TTL_MOST));
}

/* Names that mean the box itself (RFC 6761), also where its files do not say so. */
static bool serve_own(struct server_query *q, struct view name)
{
	const struct view local = VIEW(".localhost");
	bool six = view_is(name, "ip6-localhost") || view_is(name, "ip6-loopback");
	bool both = view_is(name, "localhost") ||
		    (q->box->host[0] && view_eq_nocase(name, view_of(q->box->host))) ||
		    (name.n > local.n && memcmp(name.p + name.n - local.n, local.p, local.n) == 0);
	if (!six && !both)
		return false;
	struct dns_address at = { 0 };
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
	struct box *b = q->box;
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
	if (!b->policy || !policy_may(b->policy, &f)) {
		refused(q, b->policy ? WIRE_GATE_REASON_NO_RULE : WIRE_GATE_REASON_NO_POLICY, NULL);
		/* Not REFUSED: musl waits its whole time when it hears that, and glibc calls it temporary. */
		q->query.why = "paddock: the policy of this sandbox does not allow this name";
		reply(q, DNS_NXDOMAIN, NULL, 0, 0);
	} else if (q->query.type != DNS_A && q->query.type != DNS_AAAA) {
		reply(q, DNS_NOERROR, NULL, 0, 0);
	} else if (!names_cached(b->gate->names, f.name) && !box_may_ask(b)) {
		refused(q, WIRE_GATE_REASON_LIMIT, NULL);
		reply(q, DNS_REFUSED, NULL, 0, 0);
	} else {
		names_ask(b->gate->names, f.name, &q->waiter, on_answer);
	}
}

/* False: it was no question, or one too many. */
static bool start(struct box *b, struct view message,
		  void (*answer)(struct server_query *q, struct view message), void *arg,
		  const struct peer *peer)
{
	struct server_query *q = calloc(1, sizeof(*q));
	unsigned n = 0;

	if (!q)
		return false;
	list_init(&q->waiter.link);
	list_init(&q->link);
	q->box = b;
	q->answer = answer;
	q->arg = arg;
	if (peer)
		q->peer = *peer;
	int r = dns_query_parse(message, &q->query);
	LIST_EACH (it, &b->questions)
		n++;
	if (r == -EBADMSG || n >= QUESTIONS) {
		free(q);
		return false;
	}
	q->size = MIN(message.n, 12 + q->query.question);
	memcpy(q->message, message.p, MIN(q->size, sizeof(q->message)));
	list_append(&b->questions, &q->link);
	if (r < 0)
		reply(q, DNS_NOTIMP, NULL, 0, 0);
	else
		serve(q);
	return true;
}

bool server_start(struct box *b, struct view message,
		  void (*answer)(struct server_query *q, struct view message), void *arg)
{
	return start(b, message, answer, arg, NULL);
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
	(void)!sendmsg(q->box->dns.fd, &m,
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

static bool receive(struct box *b)
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
	ssize_t n = recvmsg(b->dns.fd, &m, MSG_DONTWAIT);

	if (n < 0)
		return false;
	p.from_len = m.msg_namelen;
	keep_info(&p, &m);
	if (!(m.msg_flags & MSG_TRUNC))
		(void)start(b, (struct view){ message, (size_t)n }, send_udp, NULL, &p);
	return true;
}

void server_on_question(struct loop_io *io, uint32_t events)
{
	struct box *b = CONTAINER(io, struct box, dns);

	for (int i = 0; i < AT_ONCE && receive(b); i++)
		;
}
