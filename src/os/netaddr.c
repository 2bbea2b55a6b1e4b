/*
 * Kinds of addresses: see netaddr.h.
 */
#include "netaddr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "poison.h"

struct range {
	uint32_t net, mask;
	enum netaddr_kind kind;
};

#define NET(a, b, c, d, bits)                                                                                \
	((uint32_t)(a) << 24 | (b) << 16 | (c) << 8 | (d)), (bits) ? ~0u << (32 - (bits)) : 0

static const struct range v4[] = {
	{ NET(0, 0, 0, 0, 8), NETADDR_OTHER },
	{ NET(10, 0, 0, 0, 8), NETADDR_PRIVATE },
	{ NET(100, 64, 0, 0, 10), NETADDR_PRIVATE },
	{ NET(100, 100, 100, 200, 32), NETADDR_LINK_LOCAL }, /* a metadata service, in shared space */
	{ NET(127, 0, 0, 0, 8), NETADDR_LOOPBACK },
	{ NET(169, 254, 0, 0, 16), NETADDR_LINK_LOCAL },
	{ NET(172, 16, 0, 0, 12), NETADDR_PRIVATE },
	{ NET(192, 0, 0, 0, 24), NETADDR_LINK_LOCAL }, /* protocol assignments; one cloud's metadata */
	{ NET(192, 168, 0, 0, 16), NETADDR_PRIVATE },
	{ NET(198, 18, 0, 0, 15), NETADDR_PRIVATE },
	{ NET(224, 0, 0, 0, 3), NETADDR_OTHER },
};

/* The narrowest range counts. */
static enum netaddr_kind kind_v4(uint32_t a)
{
	const struct range *best = NULL;

	for (size_t i = 0; i < ELEMS(v4); i++)
		if ((a & v4[i].mask) == v4[i].net && (!best || v4[i].mask > best->mask))
			best = &v4[i];
	return best ? best->kind : NETADDR_PUBLIC;
}

static uint32_t read_v4(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static enum netaddr_kind kind_v6(const uint8_t a[16])
{
	static const uint8_t zero[16], nat64[12] = { 0, 0x64, 0xff, 0x9b },
				       ec2[16] = { 0xfd, 0, 0x0e, 0xc2, [14] = 2, 0x54 };
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	if (memcmp(a, mapped, 12) == 0 || memcmp(a, nat64, 12) == 0)
		return kind_v4(read_v4(a + 12));
	if (a[0] == 0x20 && a[1] == 0x02) /* 6to4 */
		return kind_v4(read_v4(a + 2));
	if (memcmp(a, zero, 15) == 0 && a[15] == 1)
		return NETADDR_LOOPBACK;
	if (memcmp(a, zero, 12) == 0 || a[0] == 0xff) /* unspecified, old mapped forms, multicast */
		return NETADDR_OTHER;
	if ((a[0] == 0xfe && (a[1] & 0xc0) == 0x80) || memcmp(a, ec2, 16) == 0)
		return NETADDR_LINK_LOCAL;
	if ((a[0] & 0xfe) == 0xfc || (a[0] == 0xfe && (a[1] & 0xc0) == 0xc0))
		return NETADDR_PRIVATE;
	return NETADDR_PUBLIC;
}

enum netaddr_kind netaddr_kind(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return kind_v4(ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr));
	if (sa->sa_family == AF_INET6)
		return kind_v6(((const struct sockaddr_in6 *)sa)->sin6_addr.s6_addr);
	return NETADDR_OTHER;
}

int netaddr_parse(struct view text, uint16_t port, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ss;
	char host[64];

	if (view_to_str(text, host, sizeof(host)) < 0)
		return -EINVAL;
	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		*ret_len = sizeof(*in);
	} else if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		*ret_len = sizeof(*in6);
	} else {
		return -EINVAL;
	}
	*ret = ss;
	return 0;
}

bool netaddr_refused(const struct sockaddr *sa, struct view policy)
{
	enum netaddr_kind k = netaddr_kind(sa);

	if (k == NETADDR_OTHER)
		return true;
	if (view_is(policy, "none"))
		return false;
	if (view_is(policy, "link-local"))
		return k == NETADDR_LINK_LOCAL;
	return k != NETADDR_PUBLIC;
}
