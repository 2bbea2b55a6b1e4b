/*
 * The life of a connection.
 *
 *   direct:  accept -> LOOK -> RESOLVE -> CONNECT -> OPEN
 *   proxy:   accept -> PROXY -> RESOLVE -> CONNECT -> OPEN
 *
 * A direct connection is connected already as the client sees it; where it goes is the
 * address that was meant. Its first bytes are looked at (unless the rules decide without
 * them) and must name where it goes: the name in a ClientHello, the Host of a request.
 * A client that is silent lets a server speak first where the rules allow plain TCP; its
 * first bytes are judged all the same, when they come. Over the proxy port the name is
 * said beforehand, the other side is connected, and then the first bytes are judged.
 *
 * So in OPEN there is a second state, the mode: nothing of the client's reaches the
 * server before it has left MODE_UNSEEN.
 */
#include "flow.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "fd.h"
#include "intercept.h"
#include "netns.h"
#include "wire_gen.h"
#include "poison.h"

static void on_client(struct loop_io *io, uint32_t events);
static void on_server(struct loop_io *io, uint32_t events);

/* ---- the end ---- */

static void run_free(struct loop_task *t)
{
	struct flow *f = CONTAINER(t, struct flow, freeing);

	intercept_free(f);
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
	struct gate *g = f->box->gate;

	if (f->state == FLOW_OVER)
		return;
	if (f->state == FLOW_DNS)
		server_cancel_all(f->box, f);
	f->state = FLOW_OVER;
	loop_timer_stop(&f->timer);
	names_forget(&f->waiter);
	intercept_vault_forget(f);
	if (reset)
		(void)setsockopt(f->client_fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 },
				 sizeof(struct linger));
	close_side(&f->client, &f->client_fd);
	close_side(&f->server, &f->server_fd);
	buf_done(&f->to_server);
	buf_done(&f->to_client);
	buf_done(&f->look);
	web_done(f);
	list_del(&f->link);
	share_flows(&f->box->share, -1);
	g->n_flows--;
	f->box->n_intercepts -= f->intercepted;
	f->box->collected -= f->collected;
	f->collected = 0;
	loop_defer(g->loop, &f->freeing, run_free);
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

	verdict_say(f->box, &(struct verdict){ .allowed = allowed,
					       .reason = reason,
					       .protocol = protocol_name(f),
					       .via = via[f->via],
					       .name = view_of(f->name),
					       .addr = a,
					       .port = f->port,
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

static void answer_denied(struct flow *f, int reason)
{
	int status;
	const char *words = flow_words(reason, &status);
	bool told = false;

	if (f->via != VIA_DIRECT && !f->has_meant && f->state != FLOW_OPEN)
		proxy_answer(f, false, reason);
	else if (f->proto == POLICY_HTTP && f->mode != MODE_OPAQUE)
		proxy_http_error(f, status, words);
	else if (f->proto == POLICY_TLS && f->state != FLOW_OPEN)
		/* A fatal alert "access denied", which TLS libraries repeat to their users. */
		told = send(f->client_fd, "\x15\x03\x03\x00\x02\x02\x31", 7, MSG_DONTWAIT | MSG_NOSIGNAL) ==
		       7;
	flow_end(f, f->proto != POLICY_HTTP && f->via == VIA_DIRECT && !told);
}

void flow_refuse(struct flow *f, int reason, const struct policy_rule *rule)
{
	if (f->state == FLOW_OVER)
		return;
	if (!f->doomed) /* else that was said at its beginning */
		flow_say(f, false, reason, rule, VIEW(""), VIEW(""));
	answer_denied(f, reason);
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
	*ret = (struct policy_facts){ .name = view_of(f->name),
				      .addr = a,
				      .port = f->port,
				      .proto = proto,
				      .own = a && dial_own(f->box->gate, a),
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
	flow_say(f, true, f->opened ? WIRE_GATE_REASON_ECH : WIRE_GATE_REASON_RULE, rule, VIEW(""), VIEW(""));
	return true;
}

bool flow_still_allowed(const struct flow *f)
{
	const struct policy_rule *rule;
	struct policy_facts facts;

	if (f->state == FLOW_DNS || (f->state != FLOW_OPEN && f->state != FLOW_CONNECT))
		return true; /* judged by the new rules when it comes to that */
	flow_facts(f, &facts, &f->addr, f->proto ? f->proto : POLICY_TCP);
	if (!f->box->policy)
		return false;
	return f->mode == MODE_OPAQUE ? policy_decide(f->box->policy, &facts, &rule) == POLICY_ALLOW
				      : policy_may(f->box->policy, &facts);
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
		r = loop_io_start(f->box->gate->loop, io, fd, events, on_event);
	else
		r = loop_io_want(io, events);
	if (r < 0)
		flow_end(f, true);
}

static bool reads_client(const struct flow *f)
{
	if (f->client_eof || f->throttled || buf_len(&f->to_server) || buf_len(&f->look) >= GATE_LOOK)
		return false;
	if (f->state == FLOW_OPEN)
		return f->mode == MODE_INTERCEPT ? intercept_reads(f) : f->mode != MODE_WAIT;
	return f->state == FLOW_LOOK || f->state == FLOW_PROXY || f->state == FLOW_DNS;
}

void flow_wants(struct flow *f)
{
	uint32_t client = 0, server = 0;

	if (f->state == FLOW_OVER)
		return;
	if (reads_client(f))
		client |= EPOLLIN;
	if (buf_len(&f->to_client))
		client |= EPOLLOUT;
	if (f->state == FLOW_CONNECT)
		server = f->tunnel_asked ? EPOLLIN : EPOLLOUT;
	else if (f->state == FLOW_OPEN) {
		if (!f->server_eof && !f->hold && !f->throttled && buf_len(&f->to_client) == 0)
			server |= EPOLLIN;
		if (buf_len(&f->to_server))
			server |= EPOLLOUT;
	}
	set_io(f, &f->client, f->client_fd, client, on_client);
	if (f->state != FLOW_OVER)
		set_io(f, &f->server, f->server_fd, server, on_server);
}

/* ---- the first bytes ---- */

/* The name may stand for the address that was meant, or is the one that was asked for. */
static bool agrees(struct flow *f, struct view name)
{
	return view_is(name, f->name) || (f->has_meant && box_was_told(f->box, &f->meant, name));
}

static void go_opaque(struct flow *f)
{
	f->mode = MODE_OPAQUE;
	f->hold = false;
	(void)buf_add(&f->to_server, buf_view(&f->look));
	buf_done(&f->look);
	if (f->to_server.bad)
		flow_end(f, true);
	else if (relay_flush(f))
		flow_wants(f);
}

bool flow_collect(struct flow *f, size_t n)
{
	if (n > GATE_COLLECT - f->box->collected)
		return false;
	f->box->collected += n;
	f->collected += n;
	return true;
}

void flow_collected(struct flow *f, size_t n)
{
	if (f->state == FLOW_OVER) /* its end has given back all of it */
		return;
	f->box->collected -= n;
	f->collected -= n;
}

static void look_inside(struct flow *f)
{
	if (f->box->n_intercepts == GATE_INTERCEPTS) {
		flow_refuse(f, WIRE_GATE_REASON_LIMIT, NULL);
		return;
	}
	f->box->n_intercepts++;
	f->intercepted = true;
	intercept_start(f);
}

static void open_ech(struct flow *f, struct view name)
{
	if (!intercept_able(f)) {
		flow_refuse(f, WIRE_GATE_REASON_ECH, NULL);
		return;
	}
	f->opened = true;
	if (flow_judge(f, POLICY_TLS, name, &f->addr))
		look_inside(f);
}

static void looked_tls(struct flow *f, struct view name)
{
	f->proto = POLICY_TLS;
	if (f->state == FLOW_OPEN) {
		if (name.n && !agrees(f, name)) {
			flow_refuse(f, WIRE_GATE_REASON_MISMATCH, NULL);
			return;
		}
		(void)!view_to_str(name, f->name, sizeof(f->name));
		struct policy_facts facts;
		flow_facts(f, &facts, &f->addr, POLICY_TLS);
		if (f->box->policy && policy_intercepts(f->box->policy, &facts))
			look_inside(f);
		else if (f->ech && name.n)
			open_ech(f, name);
		else if (flow_judge(f, POLICY_TLS, name, &f->addr))
			go_opaque(f);
		return;
	}
	(void)!view_to_str(name, f->name, sizeof(f->name));
	if (name.n)
		dial_name(f);
	else
		dial_addr(f, &f->meant);
}

/*
 * An encrypted ClientHello may be for another name than the one that can be read, and one that only looks so
 * (browsers send such always) cannot be told from it. Where the rules ask for no name it passes like one
 * without; otherwise the connection is intercepted: our own hello to the server is a plain one, and its name
 * the true one.
 */
static void looked_ech(struct flow *f, struct view name)
{
	const struct policy *p = f->box->policy;
	struct policy_facts facts;

	f->ech = true;
	flow_facts(f, &facts, f->state == FLOW_OPEN ? &f->addr : &f->meant, POLICY_TLS);
	facts.name = name;
	looked_tls(f, p && policy_opens_ech(p, &facts) ? name : VIEW(""));
}

/* HTTP/2 in clear names its hosts where nobody looks: a rule for hosts lets it through only if it is one for
 * plain TCP. */
static bool hides_names(struct flow *f)
{
	const struct policy_rule *rule;
	struct policy_facts facts;

	flow_facts(f, &facts, &f->addr, POLICY_TCP);
	return f->box->policy && policy_decide(f->box->policy, &facts, &rule) == POLICY_ALLOW &&
	       rule->n_domains && rule->protocol != POLICY_TCP;
}

static void looked_other(struct flow *f, enum peek what)
{
	f->proto = POLICY_TCP;
	/* It says no name itself: what the box was told counts, as for a server that speaks first. */
	if (f->has_meant && !f->name[0])
		(void)!view_to_str(box_name(f->box, &f->meant), f->name, sizeof(f->name));
	if (f->state != FLOW_OPEN)
		dial_addr(f, &f->meant);
	else if (what == PEEK_HTTP2 && hides_names(f))
		flow_refuse(f, WIRE_GATE_REASON_NO_NAME, NULL);
	else if (flow_judge(f, POLICY_TCP, view_of(f->name), &f->addr))
		go_opaque(f);
}

void flow_looked(struct flow *f)
{
	char name[256];

	if (f->mode == MODE_HTTP) {
		if (web_step(f))
			flow_wants(f);
		return;
	}
	enum peek what = peek_look(&f->peek, buf_view(&f->look), name);
	if (what == PEEK_MORE && (f->client_eof || buf_len(&f->look) >= GATE_LOOK))
		what = buf_len(&f->look) >= GATE_LOOK ? PEEK_BAD : PEEK_OTHER;
	if (f->doomed && what != PEEK_MORE) {
		f->proto = what == PEEK_TLS || what == PEEK_ECH ? POLICY_TLS
			   : what == PEEK_HTTP                  ? POLICY_HTTP
								: POLICY_TCP;
		answer_denied(f, f->doom);
		return;
	}
	switch (what) {
	case PEEK_MORE:
		flow_wants(f);
		return;
	case PEEK_TLS:
		looked_tls(f, view_of(name));
		return;
	case PEEK_ECH:
		looked_ech(f, view_of(name));
		return;
	case PEEK_HTTP:
		f->mode = MODE_HTTP;
		f->proto = POLICY_HTTP;
		if (web_step(f))
			flow_wants(f);
		return;
	case PEEK_HTTP2:
	case PEEK_OTHER:
		looked_other(f, what);
		return;
	case PEEK_BAD:
		flow_refuse(f, WIRE_GATE_REASON_MALFORMED, NULL);
		return;
	}
}

void flow_connected(struct flow *f)
{
	const struct policy_rule *rule;
	struct policy_facts facts;

	f->state = FLOW_OPEN;
	f->active_ms = loop_now(f->box->gate->loop);
	flow_timer(f, GATE_IDLE_MS);
	if (f->via != VIA_DIRECT && f->mode == MODE_UNSEEN && !f->has_meant) {
		proxy_answer(f, true, 0);
		if (f->state == FLOW_OVER)
			return;
	}
	if (f->mode == MODE_UNSEEN) {
		flow_facts(f, &facts, &f->addr, POLICY_TCP);
		f->hold = !f->box->policy || policy_decide(f->box->policy, &facts, &rule) != POLICY_ALLOW;
	}
	if (f->mode == MODE_OPAQUE)
		go_opaque(f);
	else if (buf_len(&f->look) || f->client_eof)
		flow_looked(f);
	else
		flow_wants(f);
}

/* ---- time ---- */

/* A server that speaks first: plain TCP, as far as can be seen. */
static void silent(struct flow *f)
{
	const struct policy_rule *rule;
	struct policy_facts facts;

	flow_timer(f, GATE_HEAD_MS);
	flow_facts(f, &facts, &f->meant, POLICY_TCP);
	facts.name = box_name(f->box, &f->meant);
	if (!f->box->policy || policy_decide(f->box->policy, &facts, &rule) != POLICY_ALLOW)
		return;
	(void)!view_to_str(facts.name, f->name, sizeof(f->name));
	dial_addr(f, &f->meant);
}

static void on_time(struct loop_timer *t)
{
	struct flow *f = CONTAINER(t, struct flow, timer);
	uint64_t now = loop_now(f->box->gate->loop);

	if (f->doomed) {
		flow_end(f, true);
	} else if (f->state == FLOW_LOOK && f->active_ms == 0) {
		f->active_ms = now;
		if (buf_len(&f->look) == 0)
			silent(f);
		else
			flow_timer(f, GATE_HEAD_MS);
	} else if (f->state == FLOW_OPEN && f->mode == MODE_INTERCEPT && intercept_late(f)) {
		return;
	} else if (f->state == FLOW_OPEN && !f->last_words && now - f->active_ms < GATE_IDLE_MS) {
		flow_timer(f, GATE_IDLE_MS - (now - f->active_ms));
	} else if (f->state == FLOW_CONNECT) {
		dial_event(f, 0);
	} else if (f->state == FLOW_RESOLVE) {
		flow_refuse(f, WIRE_GATE_REASON_UNRESOLVED, NULL);
	} else {
		flow_end(f, true);
	}
}

void flow_timer(struct flow *f, uint64_t ms)
{
	loop_timer_start(f->box->gate->loop, &f->timer, ms, on_time);
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
			flow_end(f, true);
	}
	if (f->state != FLOW_OVER)
		flow_wants(f);
}

static void on_server(struct loop_io *io, uint32_t events)
{
	struct flow *f = CONTAINER(io, struct flow, server);

	if (f->state == FLOW_CONNECT) {
		dial_event(f, events);
		return;
	}
	if ((events & EPOLLOUT) && !relay_flush(f))
		return;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		relay_server(f);
	if (f->state != FLOW_OVER)
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
	flow_timer(f, GATE_FIRST_MS);
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
		flow_timer(f, GATE_FIRST_MS);
		flow_wants(f);
		return;
	}
	f->proto = POLICY_TCP;
	(void)!view_to_str(facts.name, f->name, sizeof(f->name));
	if (answer != POLICY_ALLOW) {
		doom(f, reason_of(answer, f, POLICY_TCP, facts.name), rule);
		return;
	}
	f->rule = rule;
	f->mode = MODE_OPAQUE;
	flow_say(f, true, WIRE_GATE_REASON_RULE, rule, VIEW(""), VIEW(""));
	dial_addr(f, &f->meant);
}

/* The table is full: whoever has most loses its oldest one to those who have fewer, so that nobody shuts out
 * the others. */
static bool make_room(struct box *b)
{
	struct gate *g = b->gate;
	struct box *most = b;

	if (g->n_flows <= GATE_FLOWS)
		return true;
	for (struct map_node *n = map_first(&g->boxes); n; n = map_next(&g->boxes, n)) {
		struct box *it = CONTAINER(n, struct box, node);
		if (share_is_more(&it->share, &most->share))
			most = it;
	}
	if (most == b)
		return false;
	flow_refuse(CONTAINER(most->flows.next, struct flow, link), WIRE_GATE_REASON_LIMIT, NULL);
	return true;
}

static void start(struct flow *f)
{
	struct box *b = f->box;
	const struct policy *p = b->policy;
	bool proxy = f->meant.b[12] == 127 && addr_is_v4(&f->meant) && f->port == NETNS_PROXY_PORT;
	static const struct addr loopback6 = { { [15] = 1 } };

	proxy = proxy || (addr_eq(&f->meant, &loopback6) && f->port == NETNS_PROXY_PORT);
	f->has_meant = !proxy;
	if (!p && !proxy && f->port != NETNS_DNS_PORT && b->share.n_flows <= GATE_BOX_FLOWS && make_room(b))
		doom(f, WIRE_GATE_REASON_NO_POLICY, NULL);
	else if (!p)
		flow_refuse(f, WIRE_GATE_REASON_NO_POLICY, NULL);
	else if (b->share.n_flows > (p->max_flows ? MIN(p->max_flows, GATE_BOX_FLOWS) : GATE_BOX_FLOWS) ||
		 !box_may_connect(b) || (p->max_bytes && box_used(b) >= p->max_bytes) || !make_room(b))
		flow_refuse(f, WIRE_GATE_REASON_LIMIT, NULL);
	else if (proxy || f->port == NETNS_DNS_PORT) {
		f->state = proxy ? FLOW_PROXY : FLOW_DNS;
		f->via = proxy ? VIA_PROXY : VIA_DIRECT;
		flow_timer(f, GATE_HEAD_MS);
		flow_wants(f);
	} else
		flow_start_direct(f);
}

static struct flow *flow_new(struct box *b, int fd)
{
	struct flow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->box = b;
	f->client.fd = f->server.fd = f->server_fd = -1;
	f->client_fd = fd;
	f->state = FLOW_LOOK;
	list_init(&f->waiter.link);
	buf_init(&f->to_server, sizeof(b->gate->scratch) + GATE_LOOK * 2);
	buf_init(&f->to_client, sizeof(b->gate->scratch) + GATE_LOOK);
	buf_init(&f->look, sizeof(b->gate->scratch));
	list_append(&b->flows, &f->link);
	share_flows(&b->share, 1);
	b->gate->n_flows++;
	return f;
}

void flow_accept(struct loop_io *listener, uint32_t events)
{
	struct box *b = CONTAINER(listener, struct box, tcp);

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
	f->port = ntohs(to.ss_family == AF_INET ? ((struct sockaddr_in *)&to)->sin_port
						: ((struct sockaddr_in6 *)&to)->sin6_port);
	start(f);
}
