/*
 * The way out of a network namespace that has nothing but lo: every address is made
 * local, and whatever is sent to one comes to two sockets of ours. No policy.
 */
#pragma once

#include "defs.h"

#define NETNS_PROXY_PORT 15004 /* of the listener; on loopback it is a proxy */
#define NETNS_DNS_PORT   53

/* All -1 while there is none. The sockets stay in their namespace wherever the fds go. */
struct netns_gate {
	int tcp;   /* a listener; getsockname of what it accepts is the destination that was meant */
	int dns;   /* UDP, with the destination as a control message */
	int steer; /* as long as it is open, connections and questions to any address but loopback come to the two */
};

#define NETNS_GATE_NONE ((struct netns_gate){ -1, -1, -1 })

/*
 * Makes them in the namespace of the calling thread, whose lo is up and whose low ports
 * are everybody's. Without the kernel's sk_lookup programs there is no `steer` (-1) and no
 * route: then only the proxy port and the name server on loopback are there.
 */
int netns_gate_make(struct netns_gate *ret) _must_check_;
void netns_gate_close(struct netns_gate *g);
