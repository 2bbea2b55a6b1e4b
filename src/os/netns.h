/*
 * Captures the traffic of a network namespace that has only lo: every address is made local, and all
 * connections and DNS packets arrive at two sockets of ours. Contains no policy.
 */
#pragma once

#include "view.h"

#define NETNS_PROXY_PORT 15004 /* of the listener; on loopback it is a proxy */
#define NETNS_DNS_PORT   53
/* Where agents find the API that they were written for. The address is RFC 7600's dummy address, which nobody
 * else can have. */
#define NETNS_HOST_NAME "host.docker.internal"
#define NETNS_HOST_ADDR                                                                                      \
	{                                                                                                    \
		192, 0, 0, 8                                                                                 \
	}
#define NETNS_HOST_PORT 8765
/* The proxy, as programs of the box reach it. */
#define NETNS_PROXY_HOST "127.0.0.1:" LITERAL(NETNS_PROXY_PORT)

/* All -1 while there is none. The sockets stay in their namespace wherever the fds go. */
struct netns_gate {
	int tcp;   /* a listener; getsockname of what it accepts is the destination that was meant */
	int dns;   /* UDP, with the destination as a control message */
	int steer; /* a BPF link, or -1 where nothing has to be held */
};

#define NETNS_GATE_NONE ((struct netns_gate){ -1, -1, -1 })

/* How what a box sends comes to them. Kept in boxes' state files: numbers stay. */
enum netns_capture {
	NETNS_UNKNOWN,
	NETNS_SK_LOOKUP, /* a BPF program picks the socket; it goes when `steer` is closed */
	NETNS_NFT,       /* rules of the namespace's own, which stay, do so while there is a listener */
	NETNS_PROXY,     /* not at all: there is no route, and the proxy port and DNS on loopback are all */
};
#define NETNS_CAPTURES 4

/* "sk_lookup", "nft", "proxy"; NULL for any other number, NETNS_UNKNOWN for any other text. */
const char *netns_capture_name(enum netns_capture how);
enum netns_capture netns_capture_named(struct view name);

/*
 * Makes the sockets in the namespace of the calling thread, whose lo is up and whose low
 * ports are everybody's, and what brings connections to them, where it is not there from
 * before. All of it, or an error: -EADDRINUSE when somebody has the ports.
 */
int netns_gate_make(enum netns_capture how, struct netns_gate *ret) _must_check_;
/* Whether a connection to somewhere, by IPv4 and IPv6, really comes to the listener, with its destination. */
int netns_gate_check(const struct netns_gate *g) _must_check_;
void netns_gate_close(struct netns_gate *g);
