/*
 * Addresses as the gate judges them: always 16 bytes, IPv4 in its mapped form, so that
 * one address has one spelling. Ranges, and which of them are not the public internet.
 */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "view.h"

struct addr {
	uint8_t b[16];
};

struct addr_net {
	struct addr base; /* bits past the length are zero */
	uint8_t bits;     /* of 128: an IPv4 prefix has 96 more */
};

#define ADDR_TEXT 46

bool addr_is_v4(const struct addr *a);
bool addr_eq(const struct addr *a, const struct addr *b);
/* False for another family. */
bool addr_from_sockaddr(const struct sockaddr *sa, struct addr *ret);
socklen_t addr_to_sockaddr(const struct addr *a, uint16_t port, struct sockaddr_storage *ret);
/* "1.2.3.4", "::1", "[::1]"; nothing else: no octal, no short forms. -EINVAL */
int addr_parse(struct view text, struct addr *ret) _must_check_;
/* "10.0.0.0/8", or an address alone; bits past the length must be zero. -EINVAL */
int addr_net_parse(struct view text, struct addr_net *ret) _must_check_;
const char *addr_text(const struct addr *a, char dst[ADDR_TEXT]);

bool addr_net_has(const struct addr_net *n, const struct addr *a);
bool addr_net_within(const struct addr_net *inner, const struct addr_net *outer);
/* The IPv4 address that an IPv6 address (NAT64, 6to4) stands for; false when for none. */
bool addr_embedded(const struct addr *a, struct addr *ret);
/* The narrowest range of special use that holds the address, or NULL when it is public. An
 * IPv4 address inside of IPv6 (NAT64, 6to4) is special when the IPv4 address is. */
const struct addr_net *addr_special(const struct addr *a);
/* Nobody may dial it, whatever a rule says: multicast, unspecified, reserved. */
bool addr_never(const struct addr *a);
/* For those who must not dial everywhere (webhooks.refuse): what addr_never tells is always refused;
 * "private" refuses everything that is not public, "link-local" link-local addresses and the metadata
 * services of clouds, "none" nothing more. Another word refuses as "private" does. */
bool addr_refused(const struct addr *a, struct view policy);
