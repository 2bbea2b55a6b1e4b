/*
 * What kind of place an address is: for those who must not dial everywhere.
 */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "view.h"

enum netaddr_kind {
	NETADDR_PUBLIC,
	NETADDR_PRIVATE, /* RFC 1918, shared (RFC 6598), unique local */
	NETADDR_LOOPBACK,
	NETADDR_LINK_LOCAL, /* with it the metadata services of clouds */
	NETADDR_OTHER,      /* unspecified, multicast, broadcast, reserved: nothing to connect to */
};

/* IPv4 within IPv6 (mapped, NAT64, 6to4) counts as the IPv4 address that it is. */
enum netaddr_kind netaddr_kind(const struct sockaddr *sa);
/* A numeric address, without brackets; -EINVAL. */
int netaddr_parse(struct view text, uint16_t port, struct sockaddr_storage *ret,
		  socklen_t *ret_len) _must_check_;
/* Whether a policy ("none", "link-local", "private") refuses it; OTHER is always refused. */
bool netaddr_refused(const struct sockaddr *sa, struct view policy);
