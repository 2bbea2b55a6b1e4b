/*
 * The sockets of the gate in a box's network namespace: see netns.h.
 *
 * `local default dev lo` (AnyIP) makes each address of the world one of lo's. A socket
 * that connects to it reaches this namespace itself. There a connection to any port must
 * come to our one listener, by one of two ways: a small sk_lookup program, written out
 * below, which picks the socket before the kernel looks for listeners; or rules of
 * nf_tables that hand the packets to it (nft.c). Either leaves 127.0.0.0/8 and ::1 alone:
 * what the box's programs say to each other is theirs. Questions to port 53 of any address
 * come to our UDP socket because it is bound to that port of all addresses; the program
 * makes sure of it.
 *
 * Routes come last: without them nothing leaves at all.
 */
#include "netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"
#include "nft.h"
#include "poison.h"

#define BACKLOG 1024
#define LO      1 /* the first interface of every namespace */

static const char *const names[NETNS_CAPTURES] = {
	[NETNS_SK_LOOKUP] = "sk_lookup",
	[NETNS_NFT] = "nft",
	[NETNS_PROXY] = "proxy",
};

const char *netns_capture_name(enum netns_capture how)
{
	return (unsigned)how < NETNS_CAPTURES ? names[how] : NULL;
}

enum netns_capture netns_capture_named(struct view name)
{
	for (unsigned i = 0; i < NETNS_CAPTURES; i++)
		if (names[i] && view_is(name, names[i]))
			return (enum netns_capture)i;
	return NETNS_UNKNOWN;
}

void netns_gate_close(struct netns_gate *g)
{
	fd_close(g->tcp);
	fd_close(g->dns);
	fd_close(g->steer);
	*g = NETNS_GATE_NONE;
}

/* ---- routes ---- */

static int local_default(int nl, int family)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
		struct rtattr oif;
		uint32_t index;
	} m = {
		.head = { .nlmsg_len = sizeof(m),
			  .nlmsg_type = RTM_NEWROUTE,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK },
		.route = { .rtm_family = (unsigned char)family,
			   .rtm_table = RT_TABLE_LOCAL,
			   .rtm_protocol = RTPROT_STATIC,
			   .rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
			   .rtm_type = RTN_LOCAL },
		.oif = { .rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = RTA_OIF },
		.index = LO,
	};
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[256];
	} answer;
	if (send(nl, &m, sizeof(m), 0) < 0)
		return -errno;
	ssize_t n = recv(nl, &answer, sizeof(answer), 0);
	if (n < 0)
		return -errno;
	if ((size_t)n < offsetof(__typeof__(answer), rest) || answer.head.nlmsg_type != NLMSG_ERROR)
		return -EBADMSG;
	return answer.error.error;
}

static int add_routes(bool six)
{
	_cleanup_(closep) int nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (nl < 0)
		return -errno;
	int r = local_default(nl, AF_INET);
	return r == 0 && six ? local_default(nl, AF_INET6) : r;
}

/* ---- sockets ---- */

static int bound(int type, uint16_t port, bool six)
{
	_cleanup_(closep) int fd = socket(six ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	int zero = 0, one = 1;
	if (fd < 0)
		return -errno;
	/* Connections to the proxy that are still in TIME_WAIT must not keep a new listener away. */
	if (type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0)
		return -errno;
	if (six && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) < 0)
		return -errno;
	if (bind(fd, six ? (struct sockaddr *)&any6 : (struct sockaddr *)&any4,
		 six ? sizeof(any6) : sizeof(any4)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int make_sockets(struct netns_gate *g, bool six)
{
	int one = 1;
	g->tcp = bound(SOCK_STREAM, NETNS_PROXY_PORT, six);
	if (g->tcp < 0)
		return g->tcp;
	if (listen(g->tcp, BACKLOG) < 0)
		return -errno;
	g->dns = bound(SOCK_DGRAM, NETNS_DNS_PORT, six);
	if (g->dns < 0)
		return g->dns;
	/* Where a question was sent to, so that the answer comes from there. An address that is local by a
	 * route alone is good enough for IPv4; IPv6 wants to be told. */
	int level = six ? IPPROTO_IPV6 : IPPROTO_IP;
	if (setsockopt(g->dns, level, six ? IPV6_RECVPKTINFO : IP_PKTINFO, &one, sizeof(one)) < 0 ||
	    setsockopt(g->dns, level, six ? IPV6_FREEBIND : IP_FREEBIND, &one, sizeof(one)) < 0)
		return -errno;
	return 0;
}

/* ---- steering ---- */

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	long r = syscall(SYS_bpf, command, attr, sizeof(*attr));
	return r < 0 ? -errno : (int)r;
}

static int make_map(const struct netns_gate *g)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_SOCKMAP, .key_size = 4, .value_size = 8, .max_entries = 2
	};
	_cleanup_(closep) int map = bpf(BPF_MAP_CREATE, &attr);
	for (uint32_t i = 0; map >= 0 && i < 2; i++) {
		uint64_t fd = (uint64_t)(i == 0 ? g->tcp : g->dns);
		attr = (union bpf_attr){ 0 };
		attr.map_fd = (uint32_t)map;
		attr.key = (uintptr_t)&i;
		attr.value = (uintptr_t)&fd;
		int r = bpf(BPF_MAP_UPDATE_ELEM, &attr);
		if (r < 0)
			return r;
	}
	return map < 0 ? map : TAKE_FD(map);
}

#define FIELD(name) ((short)offsetof(struct bpf_sk_lookup, name))
#define INSN(c, d, s, o, i)                                                                                  \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define MOV(d, s)            INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define MOV_IMM(d, i)        INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define ADD_IMM(d, i)        INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define OR(d, s)             INSN(BPF_ALU64 | BPF_OR | BPF_X, d, s, 0, 0)
#define LOAD(size, d, field) INSN(BPF_LDX | (size) | BPF_MEM, d, 6, field, 0)
#define STORE_IMM(off, i)    INSN(BPF_ST | BPF_W | BPF_MEM, 10, 0, off, i)
#define CALL(fn)             INSN(BPF_JMP | BPF_CALL, 0, 0, 0, fn)
#define JUMP(op, d, i, off)  INSN(BPF_JMP | (op) | BPF_K, d, 0, off, i)

static int load_program(int map)
{
	/* Jumps are relative to the next instruction; the numbers at the left are the targets. */
	const struct bpf_insn code[] = {
		/*  0 */ MOV(6, 1),
		/*  1 */ LOAD(BPF_W, 2, FIELD(family)),
		/*  2 */ JUMP(BPF_JNE, 2, AF_INET, 3), /* to 6 */
		/*  3 */ LOAD(BPF_B, 3, FIELD(local_ip4)),
		/*  4 */ JUMP(BPF_JEQ, 3, 127, 28), /* to 33 */
		/*  5 */ JUMP(BPF_JA, 0, 0, 8),     /* to 14 */
		/*  6 */ LOAD(BPF_W, 3, FIELD(local_ip6)),
		/*  7 */ LOAD(BPF_W, 4, FIELD(local_ip6) + 4),
		/*  8 */ OR(3, 4),
		/*  9 */ LOAD(BPF_W, 4, FIELD(local_ip6) + 8),
		/* 10 */ OR(3, 4),
		/* 11 */ JUMP(BPF_JNE, 3, 0, 2), /* to 14 */
		/* 12 */ LOAD(BPF_W, 4, FIELD(local_ip6) + 12),
		/* 13 */ JUMP(BPF_JEQ, 4, (int)htonl(1), 19), /* to 33 */
		/* 14 */ STORE_IMM(-4, 0),
		/* 15 */ LOAD(BPF_W, 2, FIELD(protocol)),
		/* 16 */ JUMP(BPF_JEQ, 2, IPPROTO_TCP, 3), /* to 20 */
		/* 17 */ LOAD(BPF_W, 2, FIELD(local_port)),
		/* 18 */ JUMP(BPF_JNE, 2, NETNS_DNS_PORT, 14), /* to 33 */
		/* 19 */ STORE_IMM(-4, 1),
		/* 20 */
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map },
		/* 21 */ { 0 },
		/* 22 */ MOV(2, 10),
		/* 23 */ ADD_IMM(2, -4),
		/* 24 */ CALL(BPF_FUNC_map_lookup_elem),
		/* 25 */ JUMP(BPF_JEQ, 0, 0, 7), /* to 33 */
		/* 26 */ MOV(7, 0),
		/* 27 */ MOV(1, 6),
		/* 28 */ MOV(2, 7),
		/* 29 */ MOV_IMM(3, 0),
		/* 30 */ CALL(BPF_FUNC_sk_assign),
		/* 31 */ MOV(1, 7),
		/* 32 */ CALL(BPF_FUNC_sk_release),
		/* 33 */ MOV_IMM(0, 1 /* SK_PASS */),
		/* 34 */ INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr attr = { 0 };
	attr.prog_type = BPF_PROG_TYPE_SK_LOOKUP;
	attr.expected_attach_type = BPF_SK_LOOKUP;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = ELEMS(code);
	attr.license = (uintptr_t) "Apache-2.0";
	return bpf(BPF_PROG_LOAD, &attr);
}

static int attach_program(const struct netns_gate *g)
{
	_cleanup_(closep) int map = make_map(g);
	if (map < 0)
		return map;
	_cleanup_(closep) int program = load_program(map);
	if (program < 0)
		return program;
	_cleanup_(closep) int ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (ns < 0)
		return -errno;
	union bpf_attr attr = { 0 };
	attr.link_create.prog_fd = (uint32_t)program;
	attr.link_create.target_fd = (uint32_t)ns;
	attr.link_create.attach_type = BPF_SK_LOOKUP;
	return bpf(BPF_LINK_CREATE, &attr);
}

/* The listener may be given what is meant for others' addresses; that is asked of the socket, too. */
static int apply_rules(const struct netns_gate *g, bool six)
{
	struct nft_batch rules;
	int one = 1;
	if (setsockopt(g->tcp, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_TRANSPARENT : IP_TRANSPARENT, &one,
		       sizeof(one)) < 0)
		return -errno;
	int r = nft_capture(&rules, NETNS_PROXY_PORT);
	if (r == 0)
		r = nft_apply(&rules);
	return r == -EEXIST ? 0 : r; /* a gate before this one had them made */
}

static int steer(enum netns_capture how, struct netns_gate *g, bool six)
{
	switch (how) {
	case NETNS_SK_LOOKUP:
		g->steer = attach_program(g);
		return g->steer < 0 ? g->steer : add_routes(six);
	case NETNS_NFT: {
		int r = apply_rules(g, six);
		return r < 0 ? r : add_routes(six);
	}
	case NETNS_PROXY:
		return 0;
	case NETNS_UNKNOWN:
		break;
	}
	return -EINVAL;
}

int netns_gate_make(enum netns_capture how, struct netns_gate *ret)
{
	struct netns_gate g = NETNS_GATE_NONE;
	bool six = true;
	int r = make_sockets(&g, six);
	if (r == -EAFNOSUPPORT) {
		netns_gate_close(&g);
		six = false;
		r = make_sockets(&g, six);
	}
	if (r == 0)
		r = steer(how, &g, six);
	if (r < 0) {
		netns_gate_close(&g);
		return r;
	}
	*ret = g;
	return 0;
}

/* ---- checking ---- */

#define CHECK_MS 1000 /* a connection within a namespace takes microseconds */

/* An address of those that documents use, and a port that is nobody's. */
static socklen_t somewhere(int family, struct sockaddr_storage *ret)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
	(void)inet_pton(AF_INET, "192.0.2.1", &v4.sin_addr);
	(void)inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr);
	size_t n = family == AF_INET ? sizeof(v4) : sizeof(v6);
	memcpy(ret, family == AF_INET ? (void *)&v4 : (void *)&v6, n);
	return (socklen_t)n;
}

/* The same place may be said as IPv4 or as IPv4 within IPv6, after the kind of the listener. */
static bool same_place(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct in6_addr where[2] = { 0 };
	in_port_t port[2];
	for (int i = 0; i < 2; i++) {
		const struct sockaddr_storage *it = i ? b : a;
		const struct sockaddr_in *v4 = (const void *)it;
		const struct sockaddr_in6 *v6 = (const void *)it;
		port[i] = it->ss_family == AF_INET ? v4->sin_port : v6->sin6_port;
		if (it->ss_family == AF_INET) {
			where[i].s6_addr[10] = where[i].s6_addr[11] = 0xff;
			memcpy(&where[i].s6_addr[12], &v4->sin_addr, 4);
		} else {
			where[i] = v6->sin6_addr;
		}
	}
	return port[0] == port[1] && memcmp(&where[0], &where[1], sizeof(where[0])) == 0;
}

static int check_family(const struct netns_gate *g, int family)
{
	_cleanup_(closep) int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd ready = { .fd = g->tcp, .events = POLLIN };
	struct sockaddr_storage to = { 0 }, at = { 0 };
	socklen_t n = somewhere(family, &to), len = sizeof(at);
	if (fd < 0 || (connect(fd, (struct sockaddr *)&to, n) < 0 && errno != EINPROGRESS))
		return -errno;
	int r = poll(&ready, 1, CHECK_MS);
	if (r <= 0)
		return r < 0 ? -errno : -ECONNREFUSED;
	_cleanup_(closep) int theirs = accept4(g->tcp, NULL, NULL, SOCK_CLOEXEC);
	if (theirs < 0 || getsockname(theirs, (struct sockaddr *)&at, &len) < 0)
		return -errno;
	return same_place(&at, &to) ? 0 : -ECONNREFUSED;
}

int netns_gate_check(const struct netns_gate *g)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof(at);
	if (getsockname(g->tcp, (struct sockaddr *)&at, &len) < 0)
		return -errno;
	int r = check_family(g, AF_INET);
	return r == 0 && at.ss_family == AF_INET6 ? check_family(g, AF_INET6) : r;
}
