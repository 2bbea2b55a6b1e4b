/*
 * The machine's own addresses: see own.h.
 */
#include "own.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "poison.h"

#define KNOWN_MS 200 /* the host's addresses do not change more often */

/* Zero, which has no route and is this machine to connect(), and what some take for it. */
static bool is_unspecified(const struct addr *a)
{
	static const struct view nets[] = { VIEW("0.0.0.0/8"), VIEW("::") };
	struct addr_net n;

	for (size_t i = 0; i < ELEMS(nets); i++)
		if (addr_net_parse(nets[i], &n) >= 0 && addr_net_has(&n, a))
			return true;
	return false;
}

static bool ask(const struct own *o, const struct addr *a)
{
	bool four = addr_is_v4(a);
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
		struct rtattr dst;
		uint8_t bytes[16];
	} m = {
		.head = { .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST },
		.route = { .rtm_family = four ? AF_INET : AF_INET6, .rtm_dst_len = four ? 32 : 128 },
		.dst = { .rta_type = RTA_DST, .rta_len = RTA_LENGTH(four ? 4 : 16) },
	};
	char answer[2048];

	if (is_unspecified(a))
		return true;
	m.head.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof(m.route)) + m.dst.rta_len);
	memcpy(m.bytes, four ? a->b + 12 : a->b, four ? 4 : 16);
	/* The kernel answers within send: nothing is waited for. */
	if (send(o->route, &m, m.head.nlmsg_len, MSG_DONTWAIT) < 0)
		return true;
	ssize_t n = recv(o->route, answer, sizeof(answer), MSG_DONTWAIT);
	const struct nlmsghdr *head = (const struct nlmsghdr *)answer;
	if (n < (ssize_t)sizeof(*head))
		return true; /* not known: as if it were */
	if (head->nlmsg_type == NLMSG_ERROR)
		return false; /* no route: it cannot be dialled either */
	if (head->nlmsg_type != RTM_NEWROUTE || n < (ssize_t)NLMSG_LENGTH(sizeof(struct rtmsg)))
		return true;
	const struct rtmsg *route = NLMSG_DATA(head);
	return route->rtm_type != RTN_UNICAST;
}

int own_init(struct own *o, struct err *e)
{
	o->route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	return o->route < 0 ? err_sys(e, ERR_INTERNAL, errno, "netlink") : 0;
}

bool own_is(struct own *o, const struct addr *a, uint64_t now_ms)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < sizeof(a->b); i++)
		hash = (hash ^ a->b[i]) * 16777619u;
	size_t at = hash % OWN_KNOWN;
	if (o->known[at].until_ms <= now_ms || !addr_eq(&o->known[at].addr, a)) {
		struct addr inner; /* a translator would bring it back */
		o->known[at].addr = *a;
		o->known[at].own = ask(o, a) || (addr_embedded(a, &inner) && ask(o, &inner));
		o->known[at].until_ms = now_ms + KNOWN_MS;
	}
	return o->known[at].own;
}
