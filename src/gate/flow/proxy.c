/*
 * The proxy port, on the box's own loopback: HTTP (CONNECT and absolute-form requests)
 * and SOCKS 5. A convenience for programs that know proxies: nothing is allowed here
 * that a direct connection would not be.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "flow_impl.h"
#include "socks5.h"
#include "wire_gen.h"
#include "poison.h"

#define HEADERS 64

/* ---- answers ---- */

static void send_text(struct flow *f, const void *p, size_t n)
{
	/* Small, and the first that this side is sent: the socket takes it. */
	(void)!send(f->client_fd, p, n, MSG_NOSIGNAL);
}

void proxy_http_error(struct flow *f, int status, const char *text)
{
	static const struct {
		int status;
		const char *name;
	} names[] = { { 400, "Bad Request" },
		      { 403, "Forbidden" },
		      { 407, "Proxy Authentication Required" },
		      { 431, "Request Header Fields Too Large" },
		      { 502, "Bad Gateway" },
		      { 503, "Service Unavailable" } };
	const char *name = "Error";
	char out[768];

	for (size_t i = 0; i < ELEMS(names); i++)
		if (names[i].status == status)
			name = names[i].name;
	int n = snprintf(out, sizeof(out),
			 "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
			 "Connection: close\r\n\r\n%s\n",
			 status, name, strlen(text) + 1, text);
	send_text(f, out, MIN((size_t)n, sizeof(out) - 1));
}

static void answer_socks(struct flow *f, bool ok, int reason)
{
	char reply[SOCKS5_REPLY];

	socks5_reply(ok                                       ? SOCKS5_OK
		     : reason == WIRE_GATE_REASON_UNREACHABLE ? SOCKS5_REFUSED
		     : reason == WIRE_GATE_REASON_UNRESOLVED  ? SOCKS5_UNREACHABLE
		     : reason == WIRE_GATE_REASON_MALFORMED   ? SOCKS5_FAILED
							      : SOCKS5_FORBIDDEN,
		     reply);
	send_text(f, reply, sizeof(reply));
}

void proxy_answer(struct flow *f, bool ok, int reason)
{
	static const char yes[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	char text[320];

	if (f->via == VIA_SOCKS) {
		answer_socks(f, ok, reason);
		return;
	}
	if (ok) {
		send_text(f, yes, sizeof(yes) - 1);
		return;
	}
	if (reason == WIRE_GATE_REASON_MALFORMED) {
		proxy_http_error(f, 400, "Invalid proxy request");
	} else if (reason == WIRE_GATE_REASON_UNREACHABLE || reason == WIRE_GATE_REASON_UNRESOLVED) {
		proxy_http_error(f, 502,
				 reason == WIRE_GATE_REASON_UNREACHABLE ? "The host cannot be reached"
									: "The name has no address");
	} else if (reason == WIRE_GATE_REASON_TOKEN) {
		proxy_http_error(f, 407, "The token is not valid for this host");
	} else {
		snprintf(text, sizeof(text), "Host not allowed: %s", f->conn.name);
		proxy_http_error(f, 403, text);
	}
}

/* ---- requests ---- */

static void go(struct flow *f, const struct target *t)
{
	memcpy(f->conn.name, t->name, sizeof(f->conn.name));
	f->conn.port = t->port;
	if (t->name[0]) {
		dial_name(f);
		return;
	}
	struct policy_facts facts;
	flow_facts(f, &facts, &t->addr, 0);
	f->addr = t->addr;
	if (!f->box->policy || !policy_may(f->box->policy, &facts)) {
		flow_refuse(f,
			    addr_special(&t->addr) || facts.own ? WIRE_GATE_REASON_ADDRESS
								: WIRE_GATE_REASON_NO_RULE,
			    NULL);
		return;
	}
	/* An address: from here on as if the client had connected to it. */
	proxy_answer(f, true, 0);
	f->meant = t->addr;
	f->has_meant = true;
	flow_start_direct(f);
	if (f->state == FLOW_LOOK && buf_len(&f->conn.look))
		look_bytes(f);
}

static void read_socks(struct flow *f)
{
	struct socks5_request r;
	struct target t = { 0 };
	uint8_t method;
	int n;

	f->via = VIA_SOCKS;
	if (!f->greeted) {
		n = socks5_greeting(buf_view(&f->conn.look), &method);
		if (n == 0)
			return;
		if (n > 0)
			send_text(f, (char[]){ 5, (char)method }, 2);
		if (n < 0 || method != 0) {
			flow_end(f, false);
			return;
		}
		f->greeted = true;
		buf_consume(&f->conn.look, (size_t)n);
	}
	n = buf_len(&f->conn.look) ? socks5_parse(buf_view(&f->conn.look), &r) : 0;
	if (n == 0)
		return;
	if (n > 0 && r.kind == 3) {
		struct view host = r.host;
		if (addr_parse(host, &t.addr) < 0 && policy_name(host, t.name) < 0)
			n = -EINVAL;
	} else if (n > 0) {
		struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
		struct sockaddr_in in = { .sin_family = AF_INET };
		if (r.kind == 1)
			memcpy(&in.sin_addr, r.host.p, 4);
		else
			memcpy(&in6.sin6_addr, r.host.p, 16);
		addr_from_sockaddr(r.kind == 1 ? (struct sockaddr *)&in : (struct sockaddr *)&in6, &t.addr);
	}
	if (n < 0) {
		flow_refuse(f, WIRE_GATE_REASON_MALFORMED, NULL);
		return;
	}
	t.port = r.port;
	buf_consume(&f->conn.look, (size_t)n);
	go(f, &t);
}

/* "CONNECT host:port HTTP/1.1" and headers, of which the token counts. The parser of requests knows no
 * CONNECT: it is given the headers behind a line of our own. */
static int parse_connect(struct flow *f, struct view head, struct target *t)
{
	struct http_header headers[HEADERS];
	struct http1_request r;
	struct buf copy = BUF_INIT(FLOW_LOOK_MOST + 64);
	struct view rest, line = view_split(head, '\n', &rest);
	int n = -EINVAL;

	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	struct view words = view_skip(line, 8), version, target = view_split(words, ' ', &version);
	bool fine = version.p && (view_is(version, "HTTP/1.1") || view_is(version, "HTTP/1.0"));
	if (fine && target_parse(target, t) == 0 && t->port &&
	    buf_puts(&copy, "OPTIONS * HTTP/1.0\r\n") == 0 && buf_add(&copy, rest) == 0) {
		http1_request_init(&r, headers, HEADERS, FLOW_LOOK_MOST + 64);
		n = http1_request_parse(&r, copy.p, copy.n) == (int)copy.n && r.content_length == 0 ? 0
												    : -EINVAL;
	}
	struct view host =
		t->name[0] ? view_of(t->name)
			   : view_head(target,
				       (size_t)((const char *)memrchr(target.p, ':', target.n) - target.p));
	for (size_t i = 0; n == 0 && i < r.n_headers; i++)
		if (view_is(r.headers[i].name, "proxy-authorization") &&
		    !token_allows(f->box->policy ? f->box->policy->token_key : VIEW_NONE, r.headers[i].value,
				  host, clock_wall_ms() / 1000))
			n = -EACCES;
	buf_done(&copy);
	return n;
}

static void read_connect(struct flow *f)
{
	struct view v = buf_view(&f->conn.look);
	struct view unseen = view_skip(v, MAX(f->head_seen, 3u) - 3);
	const char *end = memmem(unseen.p, unseen.n, "\r\n\r\n", 4);
	struct target t = { 0 };

	f->head_seen = end ? 0 : v.n;
	if (!end) {
		if (v.n >= FLOW_LOOK_MOST)
			flow_refuse(f, WIRE_GATE_REASON_MALFORMED, NULL);
		return;
	}
	size_t n = (size_t)(end + 4 - v.p);
	int r = parse_connect(f, view_head(v, n), &t);
	if (r < 0) {
		memcpy(f->conn.name, t.name, sizeof(f->conn.name));
		f->conn.port = t.port;
		flow_refuse(f, r == -EACCES ? WIRE_GATE_REASON_TOKEN : WIRE_GATE_REASON_MALFORMED, NULL);
		return;
	}
	buf_consume(&f->conn.look, n);
	go(f, &t);
}

static void read_first(struct flow *f)
{
	struct view v = buf_view(&f->conn.look);

	if (f->greeted || (v.n && v.p[0] == 5)) {
		read_socks(f);
		return;
	}
	if (v.n < 8 && memcmp(v.p, "CONNECT ", v.n) == 0)
		return;
	if (view_starts(v, "CONNECT ")) {
		read_connect(f);
		return;
	}
	flow_set_mode(f, FLOW_HTTP);
	f->proto = POLICY_HTTP;
	f->one_request = true;
	if (web_step(f))
		flow_wants(f);
}

void proxy_on_bytes(struct flow *f, const struct flow_what *w)
{
	if (buf_add(&f->conn.look, w->data) < 0)
		flow_end(f, true);
	else
		read_first(f);
}
