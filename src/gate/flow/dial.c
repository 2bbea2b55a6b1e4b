/*
 * The other side of a connection: the name is resolved by us, every address is judged
 * before it is dialled, and the one that was judged is dialled.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

#include "fd.h"
#include "flow_impl.h"
#include "wire_gen.h"
#include "poison.h"

#define RESOLVE_MS  12000
#define TUNNEL_MOST 4096

/* ---- connecting ---- */

static void next_address(struct flow *f);

static void unreachable(struct flow *f)
{
	flow_refuse(f, WIRE_GATE_REASON_UNREACHABLE, NULL);
}

static void drop_server(struct flow *f)
{
	int fd = f->server_fd;

	if (f->server.fd >= 0)
		loop_io_stop(&f->server);
	f->server.fd = -1;
	f->server_fd = -1;
	f->tunnel_asked = false;
	fd_close(fd);
}

static void connect_one(struct flow *f)
{
	const struct flows *g = f->box->all;
	struct sockaddr_storage to;
	socklen_t len;

	if (g->upstream.ss_family) {
		to = g->upstream;
		len = g->upstream_len;
	} else {
		len = addr_to_sockaddr(&f->addr, f->conn.port, &to);
	}
	f->server_fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f->server_fd < 0) {
		next_address(f);
		return;
	}
	(void)setsockopt(f->server_fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	if (connect(f->server_fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS) {
		drop_server(f);
		next_address(f);
		return;
	}
	f->state = FLOW_CONNECT;
	flow_timer(f, CONN_CONNECT_MS);
	flow_wants(f);
}

static void next_address(struct flow *f)
{
	if (f->next_addr == f->n_addrs) {
		unreachable(f);
		return;
	}
	f->addr = f->addrs[f->next_addr++];
	connect_one(f);
}

/* ---- the upstream proxy ---- */

static void ask_tunnel(struct flow *f)
{
	char text[ADDR_TEXT], request[256];
	bool six = !addr_is_v4(&f->addr);
	const char *l = six ? "[" : "", *r = six ? "]" : "";

	addr_text(&f->addr, text);
	int n = snprintf(request, sizeof(request), "CONNECT %s%s%s:%u HTTP/1.1\r\nHost: %s%s%s:%u\r\n\r\n", l,
			 text, r, f->conn.port, l, text, r, f->conn.port);
	if (send(f->server_fd, request, (size_t)n, MSG_NOSIGNAL) != n) {
		drop_server(f);
		next_address(f);
		return;
	}
	f->tunnel_asked = true;
	flow_wants(f);
}

/* Takes exactly the head of the answer out of the socket. */
static void read_tunnel(struct flow *f)
{
	char head[TUNNEL_MOST];
	ssize_t n = recv(f->server_fd, head, sizeof(head), MSG_PEEK);
	const char *end = n > 0 ? memmem(head, (size_t)n, "\r\n\r\n", 4) : NULL;

	if (n < 0 && errno == EAGAIN)
		return;
	bool granted = n >= 12 && memcmp(head, "HTTP/1.", 7) == 0 && head[8] == ' ' && head[9] == '2';
	if (n <= 0 || (!end && n == sizeof(head)) || (n >= 12 && !granted)) {
		drop_server(f);
		next_address(f);
		return;
	}
	/* What was peeked stays there: wake up when there is more of it. */
	(void)setsockopt(f->server_fd, SOL_SOCKET, SO_RCVLOWAT, &(int){ end ? 1 : (int)n + 1 }, sizeof(int));
	if (!end)
		return;
	(void)!recv(f->server_fd, head, (size_t)(end + 4 - head), 0);
	look_connected(f);
}

void dial_on_event(struct flow *f, const struct flow_what *w)
{
	uint32_t events = w->events;
	int error = 0;
	socklen_t len = sizeof(error);

	bool failed = events == 0; /* not in time */
	if (events & (EPOLLERR | EPOLLHUP))
		failed = getsockopt(f->server_fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error;
	if (failed) {
		drop_server(f);
		next_address(f);
	} else if (f->tunnel_asked) {
		read_tunnel(f);
	} else if (f->box->all->upstream.ss_family) {
		ask_tunnel(f);
	} else {
		look_connected(f);
	}
}

/* ---- judging where to ---- */

/* The reason is found by deciding about one address as far as it is known. */
static void refuse(struct flow *f, const struct addr *a)
{
	const struct policy_rule *rule = NULL;
	struct policy_facts facts;

	flow_facts(f, &facts, a, f->proto ? f->proto : POLICY_TCP);
	if (a)
		f->addr = *a;
	enum policy_answer answer =
		f->box->policy && a ? policy_decide(f->box->policy, &facts, &rule) : POLICY_DENY;
	flow_refuse(f,
		    answer == POLICY_DENY_RULE      ? WIRE_GATE_REASON_RULE
		    : answer == POLICY_DENY_ADDRESS ? WIRE_GATE_REASON_ADDRESS
		    : !f->box->policy               ? WIRE_GATE_REASON_NO_POLICY
		    : f->proto == POLICY_TLS && !f->conn.name[0]
			    ? f->ech ? WIRE_GATE_REASON_ECH : WIRE_GATE_REASON_NO_NAME
			    : WIRE_GATE_REASON_NO_RULE,
		    rule);
}

static bool may(struct flow *f, const struct addr *a)
{
	struct policy_facts facts;

	flow_facts(f, &facts, a, f->proto);
	return f->box->policy && policy_may(f->box->policy, &facts);
}

void dial_addr(struct flow *f, const struct addr *a)
{
	if (f->mode != FLOW_OPAQUE && !may(f, a)) {
		refuse(f, a);
		return;
	}
	f->addrs[0] = *a;
	f->n_addrs = 1;
	f->next_addr = 0;
	next_address(f);
}

void dial_on_resolved(struct flow *f, const struct flow_what *w)
{
	const struct names_answer *answer = w->answer;
	bool found = false;

	if (!answer || answer->n == 0) {
		flow_refuse(f, WIRE_GATE_REASON_UNRESOLVED, NULL);
		return;
	}
	if (f->has_meant) {
		for (size_t i = 0; i < answer->n; i++)
			found = found || addr_eq(&answer->addrs[i], &f->meant);
		if (found)
			dial_addr(f, &f->meant);
		else
			flow_refuse(f, WIRE_GATE_REASON_MISMATCH, NULL);
		return;
	}
	f->n_addrs = f->next_addr = 0;
	for (size_t i = 0; i < answer->n; i++)
		if (may(f, &answer->addrs[i]))
			f->addrs[f->n_addrs++] = answer->addrs[i];
	if (f->n_addrs == 0)
		refuse(f, &answer->addrs[0]);
	else
		next_address(f);
}

void dial_on_unresolved(struct flow *f, const struct flow_what *w)
{
	(void)w;
	flow_refuse(f, WIRE_GATE_REASON_UNRESOLVED, NULL);
}

static void on_resolved(struct names_waiter *w, const struct names_answer *answer)
{
	states_event(CONTAINER(w, struct flow, waiter), EVENT_RESOLVED,
		     &(struct flow_what){ .answer = answer });
}

void dial_name(struct flow *f)
{
	if (!may(f, NULL)) {
		/* No rule knows the name; one may know the address. */
		if (f->has_meant)
			dial_addr(f, &f->meant);
		else
			refuse(f, NULL);
		return;
	}
	/* What DNS told the box stays good for it, also when the name leads elsewhere by now. */
	if (f->has_meant && box_was_told(f->box, &f->meant, view_of(f->conn.name))) {
		dial_addr(f, &f->meant);
		return;
	}
	/* As in DNS: a question carries a name out, whoever asks it. */
	if (!names_cached(f->box->all->names, view_of(f->conn.name)) && !box_may_ask(f->box)) {
		flow_refuse(f, WIRE_GATE_REASON_LIMIT, NULL);
		return;
	}
	f->state = FLOW_RESOLVE;
	flow_timer(f, RESOLVE_MS);
	flow_wants(f);
	names_ask(f->box->all->names, view_of(f->conn.name), &f->waiter, on_resolved);
}
