/*
 * A batch of nf_tables: see nft.h.
 *
 * On the wire it is a row of netlink messages between a BATCH_BEGIN and a BATCH_END. A
 * message is a header, a struct nfgenmsg (family) and attributes; an attribute is length,
 * type and value, padded to four bytes, and may hold attributes itself. Numbers within
 * are big-endian. What `nft` would print of ours:
 *
 *	table inet paddock {
 *		chain capture {
 *			type filter hook prerouting priority mangle; policy accept;
 *			meta l4proto != tcp accept
 *			ip daddr 127.0.0.0/8 accept
 *			ip6 daddr ::1 accept
 *			tproxy to :PORT
 *		}
 *	}
 *
 * The chain is in prerouting because that is where what a socket sends to an address of
 * lo comes in again. tproxy hands the packet to a socket without changing it: there is
 * no translation, hence no table of connections to fill, and the listener's end of the
 * connection has the address that was meant.
 */
#include "nft.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "fd.h"
#include "poison.h"

#define PRIORITY_MANGLE (-150) /* before anything that would look at the destination */
#define DADDR4          16     /* where an IPv4 header has it */
#define DADDR6          24

/* ---- bytes ---- */

static void put(struct nft_batch *b, const void *p, size_t n)
{
	size_t padded = NLMSG_ALIGN(n);
	if (b->bad || padded > sizeof(b->p) - b->n) {
		b->bad = true;
		return;
	}
	memcpy(b->p + b->n, p, n);
	memset(b->p + b->n + n, 0, padded - n);
	b->n += padded;
}

static void attr(struct nft_batch *b, uint16_t type, const void *p, size_t n)
{
	const struct nlattr a = { .nla_len = (uint16_t)(sizeof(a) + n), .nla_type = type };
	put(b, &a, sizeof(a));
	put(b, p, n);
}

static void attr_str(struct nft_batch *b, uint16_t type, const char *text)
{
	attr(b, type, text, strlen(text) + 1);
}

static void attr_u32(struct nft_batch *b, uint16_t type, uint32_t value)
{
	value = htonl(value);
	attr(b, type, &value, sizeof(value));
}

/* Returns where it is, for its end. */
static size_t open_attr(struct nft_batch *b, uint16_t type)
{
	size_t at = b->n;
	attr(b, type | NLA_F_NESTED, "", 0);
	return at;
}

static void close_attr(struct nft_batch *b, size_t at)
{
	uint16_t n = (uint16_t)(b->n - at);
	if (!b->bad)
		memcpy(b->p + at + offsetof(struct nlattr, nla_len), &n, sizeof(n));
}

static void open_message(struct nft_batch *b, uint16_t type, uint16_t flags, uint8_t family,
			 uint16_t resource)
{
	const struct nlmsghdr head = { .nlmsg_type = type,
				       .nlmsg_flags = NLM_F_REQUEST | flags,
				       .nlmsg_seq = ++b->seq };
	const struct nfgenmsg gen = { .nfgen_family = family,
				      .version = NFNETLINK_V0,
				      .res_id = htons(resource) };
	b->message = b->n;
	put(b, &head, sizeof(head));
	put(b, &gen, sizeof(gen));
}

static void close_message(struct nft_batch *b)
{
	uint32_t n = (uint32_t)(b->n - b->message);
	if (!b->bad)
		memcpy(b->p + b->message + offsetof(struct nlmsghdr, nlmsg_len), &n, sizeof(n));
}

static void open_table_message(struct nft_batch *b, uint16_t type, uint16_t flags)
{
	open_message(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, NFPROTO_INET, 0);
}

/* ---- expressions: a rule is a row of them, and goes on while they match ---- */

struct expr {
	size_t element, data;
};

static struct expr open_expr(struct nft_batch *b, const char *name)
{
	struct expr x = { .element = open_attr(b, NFTA_LIST_ELEM) };
	attr_str(b, NFTA_EXPR_NAME, name);
	x.data = open_attr(b, NFTA_EXPR_DATA);
	return x;
}

static void close_expr(struct nft_batch *b, struct expr x)
{
	close_attr(b, x.data);
	close_attr(b, x.element);
}

/* register 1 = meta KEY */
static void load_meta(struct nft_batch *b, uint32_t key)
{
	struct expr x = open_expr(b, "meta");
	attr_u32(b, NFTA_META_DREG, NFT_REG_1);
	attr_u32(b, NFTA_META_KEY, key);
	close_expr(b, x);
}

/* register 1 = LEN bytes of the network header */
static void load_header(struct nft_batch *b, uint32_t offset, uint32_t len)
{
	struct expr x = open_expr(b, "payload");
	attr_u32(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
	attr_u32(b, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
	attr_u32(b, NFTA_PAYLOAD_OFFSET, offset);
	attr_u32(b, NFTA_PAYLOAD_LEN, len);
	close_expr(b, x);
}

/* register 1 OP VALUE */
static void compare(struct nft_batch *b, uint32_t op, const void *value, size_t n)
{
	struct expr x = open_expr(b, "cmp");
	attr_u32(b, NFTA_CMP_SREG, NFT_REG_1);
	attr_u32(b, NFTA_CMP_OP, op);
	size_t data = open_attr(b, NFTA_CMP_DATA);
	attr(b, NFTA_DATA_VALUE, value, n);
	close_attr(b, data);
	close_expr(b, x);
}

static void accept_it(struct nft_batch *b)
{
	struct expr x = open_expr(b, "immediate");
	attr_u32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	size_t data = open_attr(b, NFTA_IMMEDIATE_DATA);
	size_t verdict = open_attr(b, NFTA_DATA_VERDICT);
	attr_u32(b, NFTA_VERDICT_CODE, NF_ACCEPT);
	close_attr(b, verdict);
	close_attr(b, data);
	close_expr(b, x);
}

static void give_to(struct nft_batch *b, uint16_t port)
{
	port = htons(port);
	struct expr x = open_expr(b, "immediate");
	attr_u32(b, NFTA_IMMEDIATE_DREG, NFT_REG_1);
	size_t data = open_attr(b, NFTA_IMMEDIATE_DATA);
	attr(b, NFTA_DATA_VALUE, &port, sizeof(port));
	close_attr(b, data);
	close_expr(b, x);
	x = open_expr(b, "tproxy");
	attr_u32(b, NFTA_TPROXY_FAMILY, NFPROTO_UNSPEC); /* IPv4 and IPv6 alike */
	attr_u32(b, NFTA_TPROXY_REG_PORT, NFT_REG_1);
	close_expr(b, x);
}

/* ---- the rules ---- */

static size_t open_rule(struct nft_batch *b, uint16_t flags)
{
	open_table_message(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | flags);
	attr_str(b, NFTA_RULE_TABLE, NFT_TABLE);
	attr_str(b, NFTA_RULE_CHAIN, NFT_CHAIN);
	return open_attr(b, NFTA_RULE_EXPRESSIONS);
}

static void close_rule(struct nft_batch *b, size_t expressions)
{
	close_attr(b, expressions);
	close_message(b);
}

static void accept_protocol_but(struct nft_batch *b, uint8_t protocol)
{
	size_t at = open_rule(b, 0);
	load_meta(b, NFT_META_L4PROTO);
	compare(b, NFT_CMP_NEQ, &protocol, sizeof(protocol));
	accept_it(b);
	close_rule(b, at);
}

static void accept_destination(struct nft_batch *b, uint8_t family, uint32_t offset, const void *value,
			       size_t n)
{
	size_t at = open_rule(b, 0);
	load_meta(b, NFT_META_NFPROTO);
	compare(b, NFT_CMP_EQ, &family, sizeof(family));
	load_header(b, offset, (uint32_t)n);
	compare(b, NFT_CMP_EQ, value, n);
	accept_it(b);
	close_rule(b, at);
}

static void add_chain(struct nft_batch *b)
{
	open_table_message(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
	attr_str(b, NFTA_CHAIN_TABLE, NFT_TABLE);
	attr_str(b, NFTA_CHAIN_NAME, NFT_CHAIN);
	size_t hook = open_attr(b, NFTA_CHAIN_HOOK);
	attr_u32(b, NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
	attr_u32(b, NFTA_HOOK_PRIORITY, (uint32_t)PRIORITY_MANGLE);
	close_attr(b, hook);
	attr_u32(b, NFTA_CHAIN_POLICY, NF_ACCEPT);
	attr_str(b, NFTA_CHAIN_TYPE, "filter");
	close_message(b);
}

int nft_capture(struct nft_batch *b, uint16_t port)
{
	static const unsigned char loopback4[1] = { 127 }, loopback6[16] = { [15] = 1 };
	*b = (struct nft_batch){ 0 };
	open_message(b, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	close_message(b);
	open_table_message(b, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
	attr_str(b, NFTA_TABLE_NAME, NFT_TABLE);
	close_message(b);
	add_chain(b);
	accept_protocol_but(b, IPPROTO_TCP);
	accept_destination(b, NFPROTO_IPV4, DADDR4, loopback4, sizeof(loopback4));
	accept_destination(b, NFPROTO_IPV6, DADDR6, loopback6, sizeof(loopback6));
	size_t at = open_rule(b, NLM_F_ACK); /* of the last one: its answer is that to the whole */
	give_to(b, port);
	close_rule(b, at);
	open_message(b, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	close_message(b);
	return b->bad ? -EMSGSIZE : 0;
}

/* ---- applying ---- */

/* What a datagram of answers says: 1 there may be more, 0 all was taken, or an error. */
static int read_answers(const unsigned char *p, size_t n, uint32_t last)
{
	while (n >= sizeof(struct nlmsghdr)) {
		struct nlmsghdr head;
		int32_t error;
		memcpy(&head, p, sizeof(head));
		if (head.nlmsg_len < sizeof(head) || head.nlmsg_len > n)
			return -EBADMSG;
		if (head.nlmsg_type == NLMSG_ERROR) {
			if (head.nlmsg_len < sizeof(head) + sizeof(error))
				return -EBADMSG;
			memcpy(&error, p + sizeof(head), sizeof(error));
			if (error != 0)
				return error < 0 ? error : -EBADMSG;
			if (head.nlmsg_seq == last)
				return 0;
		}
		size_t step = MIN(NLMSG_ALIGN(head.nlmsg_len), n);
		p += step;
		n -= step;
	}
	return 1;
}

int nft_apply(const struct nft_batch *b)
{
	_cleanup_(closep) int nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	unsigned char answers[4096];
	if (nl < 0)
		return -errno;
	if (sendto(nl, b->p, b->n, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	/* The kernel works while it is sent to: all answers are there by now, errors of the whole before
	 * those of its messages. The message before the last is the rule that asked for one. */
	for (;;) {
		ssize_t n = recv(nl, answers, sizeof(answers), MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN ? -EBADMSG : -errno;
		int r = read_answers(answers, (size_t)n, b->seq - 1);
		if (r != 1)
			return r;
	}
}
