/*
 * Addresses and ranges: see addr.h.
 */
#include "addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "num.h"
#include "poison.h"

#define V4(a, b, c, d)                                                                                       \
	{                                                                                                    \
		{                                                                                            \
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d                                 \
		}                                                                                            \
	}

static const struct special {
	struct addr_net net;
	bool never;
	bool link; /* link-local, or a metadata service of a cloud */
} specials[] = {
	{ { V4(0, 0, 0, 0), 96 + 8 }, true, false },
	{ { V4(10, 0, 0, 0), 96 + 8 }, false, false },
	{ { V4(100, 64, 0, 0), 96 + 10 }, false, false },
	{ { V4(100, 100, 100, 200), 128 }, false, true }, /* metadata */
	{ { V4(127, 0, 0, 0), 96 + 8 }, false, false },
	{ { V4(168, 63, 129, 16), 128 }, false, true }, /* metadata */
	{ { V4(169, 254, 0, 0), 96 + 16 }, false, true },
	{ { V4(172, 16, 0, 0), 96 + 12 }, false, false },
	{ { V4(192, 0, 0, 0), 96 + 24 }, false, true },
	{ { V4(192, 88, 99, 0), 96 + 24 }, true, false }, /* 6to4 relays */
	{ { V4(192, 168, 0, 0), 96 + 16 }, false, false },
	{ { V4(198, 18, 0, 0), 96 + 15 }, false, false },
	{ { V4(224, 0, 0, 0), 96 + 3 }, true, false },
	{ { { { 0 } }, 96 }, true, false },                /* unspecified, IPv4-compatible */
	{ { { { [8] = 0xff, 0xff } }, 96 }, true, false }, /* IPv4-translated */
	{ { { { [15] = 1 } }, 128 }, false, false },
	{ { { { 0, 0x64, 0xff, 0x9b, 0, 1 } }, 48 }, false, false }, /* NAT64 of one's own */
	{ { { { 0x01 } }, 64 }, true, false },                       /* discard */
	{ { { { 0x20, 0x01 } }, 32 }, true, false },                 /* Teredo: an IPv4 address in disguise */
	{ { { { 0x5f } }, 16 }, true, false },
	{ { { { 0xfc } }, 7 }, false, false },
	{ { { { 0xfd, 0, 0x0e, 0xc2, [14] = 2, 0x54 } }, 128 }, false, true }, /* metadata */
	{ { { { 0xfe, 0x80 } }, 10 }, false, true },
	{ { { { 0xfe, 0xc0 } }, 10 }, false, false },
	{ { { { 0xff } }, 8 }, true, false },
};

static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

bool addr_is_v4(const struct addr *a)
{
	return memcmp(a->b, mapped, sizeof(mapped)) == 0;
}

bool addr_eq(const struct addr *a, const struct addr *b)
{
	return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

bool addr_from_sockaddr(const struct sockaddr *sa, struct addr *ret)
{
	if (sa->sa_family == AF_INET) {
		memcpy(ret->b, mapped, sizeof(mapped));
		memcpy(ret->b + 12, &((const struct sockaddr_in *)sa)->sin_addr, 4);
		return true;
	}
	if (sa->sa_family == AF_INET6) {
		memcpy(ret->b, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
		return true;
	}
	return false;
}

socklen_t addr_to_sockaddr(const struct addr *a, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (addr_is_v4(a)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, a->b + 12, 4);
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, a->b, 16);
	return sizeof(*in6);
}

int addr_parse(struct view text, struct addr *ret)
{
	char s[ADDR_TEXT + 2];
	struct addr a;

	if (text.n > 2 && text.p[0] == '[' && text.p[text.n - 1] == ']')
		text = (struct view){ text.p + 1, text.n - 2 };
	else if (memchr(text.p, ':', text.n) && memchr(text.p, ']', text.n))
		return -EINVAL;
	if (view_to_str(text, s, sizeof(s)) < 0)
		return -EINVAL;
	if (inet_pton(AF_INET, s, a.b + 12) == 1)
		memcpy(a.b, mapped, sizeof(mapped));
	else if (inet_pton(AF_INET6, s, a.b) != 1)
		return -EINVAL;
	*ret = a;
	return 0;
}

static bool tail_is_zero(const struct addr_net *n)
{
	for (unsigned i = n->bits; i < 128; i++)
		if (n->base.b[i / 8] & (0x80u >> i % 8))
			return false;
	return true;
}

int addr_net_parse(struct view text, struct addr_net *ret)
{
	struct view rest, host = view_split(text, '/', &rest);
	struct addr_net n = { .bits = 128 };
	uint32_t bits;

	if (!host.n || host.p[0] == '[' || addr_parse(host, &n.base) < 0)
		return -EINVAL;
	if (rest.p) {
		bool four = !memchr(host.p, ':', host.n);
		if (num_u32(rest, &bits) < 0 || bits > (four ? 32u : 128u))
			return -EINVAL;
		n.bits = (uint8_t)(four ? bits + 96 : bits);
	}
	if (!tail_is_zero(&n))
		return -EINVAL;
	*ret = n;
	return 0;
}

const char *addr_text(const struct addr *a, char dst[ADDR_TEXT])
{
	bool four = addr_is_v4(a);

	if (!inet_ntop(four ? AF_INET : AF_INET6, four ? a->b + 12 : a->b, dst, ADDR_TEXT))
		dst[0] = 0;
	return dst;
}

bool addr_net_has(const struct addr_net *n, const struct addr *a)
{
	unsigned whole = n->bits / 8, rest = n->bits % 8;

	if (memcmp(n->base.b, a->b, whole) != 0)
		return false;
	return rest == 0 || ((n->base.b[whole] ^ a->b[whole]) & (0xff00u >> rest & 0xff)) == 0;
}

bool addr_net_within(const struct addr_net *inner, const struct addr_net *outer)
{
	return inner->bits >= outer->bits && addr_net_has(outer, &inner->base);
}

static const struct special *find(const struct addr *a)
{
	const struct special *best = NULL;

	for (size_t i = 0; i < ELEMS(specials); i++)
		if (addr_net_has(&specials[i].net, a) && (!best || specials[i].net.bits > best->net.bits))
			best = &specials[i];
	return best;
}

bool addr_embedded(const struct addr *a, struct addr *ret)
{
	static const uint8_t nat64[12] = { 0, 0x64, 0xff, 0x9b };

	memcpy(ret->b, mapped, sizeof(mapped));
	if (memcmp(a->b, nat64, sizeof(nat64)) == 0)
		memcpy(ret->b + 12, a->b + 12, 4);
	else if (a->b[0] == 0x20 && a->b[1] == 0x02)
		memcpy(ret->b + 12, a->b + 2, 4);
	else
		return false;
	return true;
}

const struct addr_net *addr_special(const struct addr *a)
{
	struct addr inner;
	const struct special *s = find(addr_embedded(a, &inner) ? &inner : a);

	return s ? &s->net : NULL;
}

bool addr_never(const struct addr *a)
{
	struct addr inner;
	const struct special *s = find(addr_embedded(a, &inner) ? &inner : a);

	return s && s->never;
}

bool addr_refused(const struct addr *a, struct view policy)
{
	struct addr inner;
	const struct special *s = find(addr_embedded(a, &inner) ? &inner : a);

	if (!s || s->never)
		return s != NULL;
	if (view_is(policy, "none"))
		return false;
	return !view_is(policy, "link-local") || s->link;
}
