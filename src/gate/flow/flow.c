/*
 * The life of a connection, besides its first bytes (look.c) and the other side (dial.c):
 * accepting, verdicts, what is awaited, time, the end. states.c says what follows what.
 */
#include "flow_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fd.h"
#include "linger.h"
#include "netns.h"
#include "wire_gen.h"
#include "poison.h"

#define PIPE_BYTES (1 << 20)

static void on_client(struct loop_io *io, uint32_t events);
static void on_server(struct loop_io *io, uint32_t events);

/* ---- the end ---- */

static void run_free(struct loop_task *t)
{
	struct flow *f = CONTAINER(t, struct flow, freeing);

	intercept_free(&f->conn);
	free(f);
}

static void close_side(struct loop_io *io, int *fd)
{
	if (*fd >= 0)
		loop_io_leave(io);
	else /* it lives on elsewhere */
		loop_io_stop(io);
	fd_close(TAKE_FD(*fd));
}

void flow_end(struct flow *f, bool reset)
{
	struct flows *g = f->box->all;

	if (f->state == FLOW_OVER)
		return;
	if (f->state == FLOW_DNS)
		server_cancel_all(&f->box->dns, f);
	f->state = FLOW_OVER;
	f->conn.over = true;
	loop_timer_stop(&f->timer);
	names_forget(&f->waiter);
	intercept_forget(&f->conn);
	if (reset)
		(void)setsockopt(f->client_fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 },
				 sizeof(struct linger));
	close_side(&f->client, &f->client_fd);
	close_side(&f->server, &f->server_fd);
	buf_done(&f->conn.to_server);
	buf_done(&f->conn.to_client);
	buf_done(&f->conn.look);
	web_done(f);
	list_del(&f->link);
	share_flows(&f->box->share, -1);
	g->n--;
	f->box->n_intercepts -= f->intercepted;
	f->box->n_over -= f->over;
	f->box->collected -= f->conn.collected;
	f->conn.collected = 0;
	loop_defer(g->loop, &f->freeing, run_free);
}

void flow_part(struct flow *f)
{
	struct gate_box *b = f->box;

	if (f->state == FLOW_OVER)
		return;
	int fd = TAKE_FD(f->client_fd);
	flow_end(f, false);
	linger_start(b, fd);
}

void flow_set_mode(struct flow *f, enum flow_state mode)
{
	f->mode = mode;
	if (flow_is_open(f))
		f->state = mode;
}

/* ---- verdicts ---- */

static const char *protocol_name(const struct flow *f)
{
	return f->state == FLOW_DNS      ? "dns"
	       : f->proto == POLICY_TLS  ? "tls"
	       : f->proto == POLICY_HTTP ? "http"
					 : "tcp";
}

void flow_say(struct flow *f, bool allowed, int reason, const struct policy_rule *rule, struct view method,
	      struct view path)
{
	static const char *const via[] = {
		[VIA_DIRECT] = "direct", [VIA_PROXY] = "proxy", [VIA_SOCKS] = "socks"
	};
	static const struct addr none;
	const struct addr *a = !addr_eq(&f->addr, &none) ? &f->addr : f->has_meant ? &f->meant : NULL;

	f->box->all->ops->say(f->box, &(struct verdict){ .allowed = allowed,
							 .reason = reason,
							 .protocol = protocol_name(f),
							 .via = via[f->via],
							 .name = view_of(f->conn.name),
							 .addr = a,
							 .port = f->conn.port,
							 .rule = rule,
							 .method = method,
							 .path = path });
}

const char *flow_words(int reason, int *ret_status)
{
	*ret_status = 403;
	switch (reason) {
	case WIRE_GATE_REASON_ADDRESS:
		return "paddock: the address is not a public one, and no rule names it";
	case WIRE_GATE_REASON_MISMATCH:
		return "paddock: Host does not fit the connection";
	case WIRE_GATE_REASON_TOKEN:
		*ret_status = 407;
		return "paddock: the token is not valid for this host";
	case WIRE_GATE_REASON_UNRESOLVED:
		*ret_status = 502;
		return "paddock: the name has no address";
	case WIRE_GATE_REASON_UNREACHABLE:
		*ret_status = 502;
		return "paddock: the host cannot be reached";
	case WIRE_GATE_REASON_LIMIT:
		*ret_status = 503;
		return "paddock: a limit of this sandbox is reached";
	default:
		return "paddock: the policy of this sandbox does not allow it";
	}
}

void flow_deny(struct flow *f, int reason)
{
	int status;
	const char *words = flow_words(reason, &status);
	bool told = false;

	if (f->via != VIA_DIRECT && !f->has_meant && !flow_is_open(f))
		proxy_answer(f, false, reason);
	else if (f->proto == POLICY_HTTP && f->mode != FLOW_OPAQUE)
		proxy_http_error(f, status, words);
	else if (f->proto == POLICY_TLS && !flow_is_open(f))
		/* A fatal alert "access denied", which TLS libraries repeat to their users. */
		told = send(f->client_fd, "\x15\x03\x03\x00\x02\x02\x31", 7, MSG_DONTWAIT | MSG_NOSIGNAL) ==
		       7;
	if (f->proto != POLICY_HTTP && f->via == VIA_DIRECT && !told)
		flow_end(f, true);
	else
		flow_part(f);
}

void flow_refuse(struct flow *f, int reason, const struct policy_rule *rule)
{
	if (f->state == FLOW_OVER)
		return;
	if (!f->doomed) /* else that was said at its beginning */
		flow_say(f, false, reason, rule, VIEW(""), VIEW(""));
	flow_deny(f, reason);
}

static int reason_of(enum policy_answer a, const struct flow *f, enum policy_proto proto, struct view name)
{
	if (a == POLICY_DENY_RULE || a == POLICY_ALLOW)
		return WIRE_GATE_REASON_RULE;
	if (a == POLICY_DENY_ADDRESS)
		return WIRE_GATE_REASON_ADDRESS;
	if (!f->box->policy)
		return WIRE_GATE_REASON_NO_POLICY;
	if (proto != POLICY_TLS || name.n)
		return WIRE_GATE_REASON_NO_RULE;
	return f->ech ? WIRE_GATE_REASON_ECH : WIRE_GATE_REASON_NO_NAME;
}

void flow_facts(const struct flow *f, struct policy_facts *ret, const struct addr *a, enum policy_proto proto)
{
	*ret = (struct policy_facts){ .name = view_of(f->conn.name),
				      .addr = a,
				      .port = f->conn.port,
				      .proto = proto,
				      .own = a && flow_is_own(f->box->all, a),
				      .opened = f->intercepted && proto == POLICY_HTTP };
}

bool flow_judge(struct flow *f, enum policy_proto proto, struct view name, const struct addr *a)
{
	const struct policy_rule *rule = NULL;
	enum policy_answer answer = POLICY_DENY;
	struct policy_facts facts;

	flow_facts(f, &facts, a, proto);
	facts.name = name;
	if (f->box->policy)
		answer = policy_decide(f->box->policy, &facts, &rule);
	f->proto = proto;
	if (answer != POLICY_ALLOW) {
		flow_refuse(f, reason_of(answer, f, proto, name), rule);
		return false;
	}
	f->rule = rule;
	flow_say(f, true, f->conn.opened ? WIRE_GATE_REASON_ECH : WIRE_GATE_REASON_RULE, rule, VIEW(""),
		 VIEW(""));
	return true;
}

/* ---- what is awaited ---- */

static void set_io(struct flow *f, struct loop_io *io, int fd, uint32_t events,
		   void (*on_event)(struct loop_io *, uint32_t))
{
	int r = 0;

	/* Nothing is awaited: not even hang-ups, which come again and again. */
	if (events == 0 || fd < 0) {
		if (io->fd >= 0)
			loop_io_stop(io);
		io->fd = -1;
		return;
	}
	if (io->fd < 0)
		r = loop_io_start(f->box->all->loop, io, fd, events, on_event);
	else
		r = loop_io_want(io, events);
	if (r < 0)
		flow_end(f, true);
}

static bool reads_client(const struct flow *f)
{
	if (f->conn.client_eof || f->throttled || buf_len(&f->conn.to_server) ||
	    buf_len(&f->conn.look) >= FLOW_LOOK_MOST)
		return false;
	if (flow_is_open(f))
		return f->mode == FLOW_INTERCEPT ? intercept_reads(&f->conn) : f->mode != FLOW_WAIT;
	return f->state == FLOW_LOOK || f->state == FLOW_PROXY || f->state == FLOW_DNS;
}

void flow_wants(struct flow *f)
{
	uint32_t client = 0, server = 0;

	if (f->state == FLOW_OVER)
		return;
	if (reads_client(f))
		client |= EPOLLIN;
	if (buf_len(&f->conn.to_client))
		client |= EPOLLOUT;
	if (f->state == FLOW_CONNECT)
		server = f->tunnel_asked ? EPOLLIN : EPOLLOUT;
	else if (flow_is_open(f)) {
		if (!f->server_eof && !f->hold && !f->throttled && buf_len(&f->conn.to_client) == 0)
			server |= EPOLLIN;
		if (buf_len(&f->conn.to_server))
			server |= EPOLLOUT;
	}
	set_io(f, &f->client, f->client_fd, client, on_client);
	if (f->state != FLOW_OVER)
		set_io(f, &f->server, f->server_fd, server, on_server);
}

/* ---- time ---- */

static void on_time(struct loop_timer *t)
{
	states_event(CONTAINER(t, struct flow, timer), EVENT_TIME, &(struct flow_what){ 0 });
}

void flow_timer(struct flow *f, uint64_t ms)
{
	loop_timer_start(f->box->all->loop, &f->timer, ms, on_time);
}

/* ---- steps ---- */

void flow_stay(struct flow *f, const struct flow_what *w)
{
	(void)f;
	(void)w;
}

void flow_on_lost(struct flow *f, const struct flow_what *w)
{
	(void)w;
	flow_end(f, true);
}

void flow_on_idle(struct flow *f, const struct flow_what *w)
{
	uint64_t now = loop_now(f->box->all->loop);

	(void)w;
	if (!f->last_words && now - f->active_ms < CONN_IDLE_MS)
		flow_timer(f, CONN_IDLE_MS - (now - f->active_ms));
	else
		flow_end(f, true);
}

/* What is judged already is judged again; the rest will be, by the new rules. */
void flow_on_policy(struct flow *f, const struct flow_what *w)
{
	const struct policy *p = f->box->policy;
	const struct policy_rule *rule;
	struct policy_facts facts;

	(void)w;
	flow_facts(f, &facts, &f->addr, f->proto ? f->proto : POLICY_TCP);
	if (!p || (f->mode == FLOW_OPAQUE ? policy_decide(p, &facts, &rule) != POLICY_ALLOW
					  : !policy_may(p, &facts)))
		flow_end(f, true);
}

/* ---- events ---- */

static void on_client(struct loop_io *io, uint32_t events)
{
	struct flow *f = CONTAINER(io, struct flow, client);

	if ((events & EPOLLOUT) && !relay_flush(f))
		return;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		if (reads_client(f))
			relay_client(f);
		else if (events & (EPOLLHUP | EPOLLERR))
			states_event(f, EVENT_GONE, &(struct flow_what){ 0 });
	}
	flow_wants(f);
}

static void on_server(struct loop_io *io, uint32_t events)
{
	struct flow *f = CONTAINER(io, struct flow, server);

	if (f->state == FLOW_CONNECT) {
		states_event(f, EVENT_DIALLED, &(struct flow_what){ .events = events });
		return;
	}
	if ((events & EPOLLOUT) && !relay_flush(f))
		return;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		relay_server(f);
	flow_wants(f);
}

/* ---- the beginning ---- */

/* Denied whatever it is. A client that speaks first is answered in its own protocol, others are reset. */
static void doom(struct flow *f, int reason, const struct policy_rule *rule)
{
	flow_say(f, false, reason, rule, VIEW(""), VIEW(""));
	f->state = FLOW_LOOK;
	f->doomed = true;
	f->doom = reason;
	flow_timer(f, FLOW_FIRST_MS);
	flow_wants(f);
}

void flow_start_direct(struct flow *f)
{
	const struct policy *p = f->box->policy;
	const struct policy_rule *rule;
	struct policy_facts facts;
	enum policy_answer answer;

	f->state = FLOW_LOOK;
	flow_facts(f, &facts, &f->meant, 0);
	facts.name = box_name(f->box, &f->meant);
	if (!policy_opaque(p, &facts, &answer, &rule)) {
		flow_timer(f, FLOW_FIRST_MS);
		flow_wants(f);
		return;
	}
	f->proto = POLICY_TCP;
	(void)!view_to_str(facts.name, f->conn.name, sizeof(f->conn.name));
	if (answer != POLICY_ALLOW) {
		doom(f, reason_of(answer, f, POLICY_TCP, facts.name), rule);
		return;
	}
	f->rule = rule;
	flow_set_mode(f, FLOW_OPAQUE);
	flow_say(f, true, WIRE_GATE_REASON_RULE, rule, VIEW(""), VIEW(""));
	dial_addr(f, &f->meant);
}

/* The table is full: whoever has most loses its oldest one to those who have fewer, so that nobody shuts out
 * the others. */
static bool make_room(struct gate_box *b)
{
	struct flows *g = b->all;
	struct gate_box *most = b;

	if (g->n <= FLOW_MOST)
		return true;
	for (struct map_node *n = map_first(&g->boxes); n; n = map_next(&g->boxes, n)) {
		struct gate_box *it = CONTAINER(n, struct gate_box, node);
		if (share_is_more(&it->share, &most->share))
			most = it;
	}
	if (most == b)
		return false;
	flow_refuse(CONTAINER(most->flows.next, struct flow, link), WIRE_GATE_REASON_LIMIT, NULL);
	return true;
}

/* Of the policy, or of the gate. */
static bool is_too_much(struct gate_box *b, const struct policy *p)
{
	return b->share.n_flows - b->n_over >
		       (p->max_flows ? MIN(p->max_flows, FLOW_BOX_MOST) : FLOW_BOX_MOST) ||
	       !box_may_connect(b) || (p->max_bytes && box_used(b) >= p->max_bytes) || !make_room(b);
}

/* Who asks us, and not the world, is told so as soon as it speaks, as long as there is room to wait for that:
 * for an agent a reset is a bug, and 503 a reason to try again. */
static void refuse_one_too_many(struct flow *f, bool ours)
{
	struct gate_box *b = f->box;

	if (!ours || b->share.n_flows > FLOW_BOX_MOST || !make_room(b)) {
		flow_refuse(f, WIRE_GATE_REASON_LIMIT, NULL);
		return;
	}
	f->over = true;
	b->n_over++;
	doom(f, WIRE_GATE_REASON_LIMIT, NULL);
	if (f->state != FLOW_OVER)
		flow_timer(f, FLOW_HEAD_MS);
}

static void start(struct flow *f)
{
	struct gate_box *b = f->box;
	const struct policy *p = b->policy;
	bool proxy = f->meant.b[12] == 127 && addr_is_v4(&f->meant) && f->conn.port == NETNS_PROXY_PORT;
	static const struct addr loopback6 = { { [15] = 1 } };

	static const uint8_t host[] = NETNS_HOST_ADDR;
	bool api = addr_is_v4(&f->meant) && memcmp(f->meant.b + 12, host, sizeof(host)) == 0 &&
		   f->conn.port == NETNS_HOST_PORT;

	proxy = proxy || (addr_eq(&f->meant, &loopback6) && f->conn.port == NETNS_PROXY_PORT);
	f->has_meant = !proxy;
	if (!p && !proxy && f->conn.port != NETNS_DNS_PORT && b->share.n_flows <= FLOW_BOX_MOST &&
	    make_room(b))
		doom(f, WIRE_GATE_REASON_NO_POLICY, NULL);
	else if (!p)
		flow_refuse(f, WIRE_GATE_REASON_NO_POLICY, NULL);
	else if (is_too_much(b, p))
		refuse_one_too_many(f, api || proxy);
	else if (api)
		relay_pass_on(f);
	else if (proxy || f->conn.port == NETNS_DNS_PORT) {
		f->state = proxy ? FLOW_PROXY : FLOW_DNS;
		f->via = proxy ? VIA_PROXY : VIA_DIRECT;
		flow_timer(f, FLOW_HEAD_MS);
		flow_wants(f);
	} else
		flow_start_direct(f);
}

static struct flow *flow_new(struct gate_box *b, int fd)
{
	struct flow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->box = b;
	f->client.fd = f->server.fd = f->server_fd = -1;
	f->client_fd = fd;
	f->state = FLOW_LOOK;
	f->mode = FLOW_UNSEEN;
	f->conn.ops = &inside_conn_ops;
	f->conn.box = b->id;
	list_init(&f->waiter.link);
	buf_init(&f->conn.to_server, sizeof(b->all->scratch) + FLOW_LOOK_MOST * 2);
	buf_init(&f->conn.to_client, sizeof(b->all->scratch) + FLOW_LOOK_MOST);
	buf_init(&f->conn.look, sizeof(b->all->scratch));
	list_append(&b->flows, &f->link);
	share_flows(&b->share, 1);
	b->all->n++;
	return f;
}

void flow_accept(struct loop_io *listener, uint32_t events)
{
	struct gate_box *b = CONTAINER(listener, struct gate_box, tcp);

	/* One for each event: a second try would mostly find nothing, and who waits is told of again. */
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			box_later(b);
		return;
	}
	struct sockaddr_storage to;
	socklen_t len = sizeof(to);
	struct flow *f = flow_new(b, fd);
	if (!f) {
		fd_close(fd);
		return;
	}
	if (getsockname(fd, (struct sockaddr *)&to, &len) < 0 ||
	    !addr_from_sockaddr((struct sockaddr *)&to, &f->meant)) {
		flow_end(f, true);
		return;
	}
	f->conn.port = ntohs(to.ss_family == AF_INET ? ((struct sockaddr_in *)&to)->sin_port
						     : ((struct sockaddr_in6 *)&to)->sin6_port);
	start(f);
}

/* ---- all of a box ---- */

void flow_end_all(struct gate_box *b)
{
	LIST_EACH (it, &b->flows)
		flow_end(CONTAINER(it, struct flow, link), true);
	linger_end_all(b);
}

void flow_let_go(struct gate_box *b)
{
	LIST_EACH (it, &b->flows) {
		struct flow *f = CONTAINER(it, struct flow, link);
		if (f->throttled) {
			f->throttled = false;
			flow_wants(f);
		}
	}
}

void flow_forget_rules(struct gate_box *b)
{
	LIST_EACH (it, &b->flows)
		CONTAINER(it, struct flow, link)->rule = NULL;
}

unsigned flow_recheck(struct gate_box *b)
{
	unsigned ended = 0;

	LIST_EACH (it, &b->flows) {
		struct flow *f = CONTAINER(it, struct flow, link);
		states_event(f, EVENT_POLICY, &(struct flow_what){ 0 });
		ended += f->state == FLOW_OVER;
	}
	return ended;
}

bool flow_is_own(struct flows *all, const struct addr *a)
{
	return own_is(&all->own, a, loop_now(all->loop));
}

int flow_setup(struct flows *all, struct err *e)
{
	map_init(&all->boxes);
	if (own_init(&all->own, e) < 0)
		return -1;
	if (pipe2(all->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, ERR_INTERNAL, errno, "a pipe");
	/* More places, each of which holds a piece of a packet: otherwise 64 KiB can fill it. */
	(void)!fcntl(all->pipe[0], F_SETPIPE_SZ, PIPE_BYTES);
	return 0;
}
