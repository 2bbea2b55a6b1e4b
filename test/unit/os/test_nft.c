/*
 * A batch of nf_tables, read back by a parser that shares nothing with its writer: every
 * length adds up, and each rule says what it should. That the kernel takes it, and what
 * it then does, is test_netns.c's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "nft.h"
#include "poison.h"

struct span {
	const unsigned char *p;
	size_t n;
};

static uint16_t u16(const unsigned char *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t be32(struct span s)
{
	uint32_t v;
	assert_int_equal(s.n, sizeof(v));
	memcpy(&v, s.p, sizeof(v));
	return ntohl(v);
}

/* The next attribute of a row; padding must be there and zero. */
static bool next(struct span *row, uint16_t *type, struct span *value)
{
	if (!row->n)
		return false;
	assert_true(row->n >= 4);
	size_t n = u16(row->p), padded = (n + 3) & ~(size_t)3;
	assert_true(n >= 4 && padded <= row->n);
	for (size_t i = n; i < padded; i++)
		assert_int_equal(row->p[i], 0);
	*type = u16(row->p + 2) & NLA_TYPE_MASK;
	*value = (struct span){ row->p + 4, n - 4 };
	*row = (struct span){ row->p + padded, row->n - padded };
	return true;
}

static struct span get(struct span row, uint16_t wanted)
{
	struct span value, found = { NULL, 0 };
	for (uint16_t type; next(&row, &type, &value);)
		if (type == wanted) {
			assert_null(found.p);
			found = value;
		}
	assert_non_null(found.p);
	return found;
}

static void assert_text(struct span s, const char *text)
{
	assert_int_equal(s.n, strlen(text) + 1);
	assert_memory_equal(s.p, text, s.n);
}

struct message {
	uint16_t type, flags;
	uint32_t seq;
	uint8_t family;
	uint16_t resource;
	struct span attrs;
};

static size_t messages(const struct nft_batch *b, struct message *ret, size_t most)
{
	size_t n = 0;
	for (size_t at = 0; at < b->n; n++) {
		struct nlmsghdr head;
		struct nfgenmsg gen;
		assert_true(n < most && b->n - at >= sizeof(head) + sizeof(gen));
		memcpy(&head, b->p + at, sizeof(head));
		memcpy(&gen, b->p + at + sizeof(head), sizeof(gen));
		assert_true(head.nlmsg_len >= sizeof(head) + sizeof(gen) && head.nlmsg_len <= b->n - at &&
			    head.nlmsg_len % 4 == 0);
		ret[n] = (struct message){ head.nlmsg_type,   head.nlmsg_flags,
					   head.nlmsg_seq,    gen.nfgen_family,
					   ntohs(gen.res_id), { b->p + at + 20, head.nlmsg_len - 20 } };
		at += head.nlmsg_len;
	}
	return n;
}

/* A rule in words of one line: "meta 16 neq 06 accept". */
static void describe(struct span rule, char *dst, size_t size)
{
	struct span list = get(rule, NFTA_RULE_EXPRESSIONS), element;
	size_t at = 0;
	dst[0] = 0;
	for (uint16_t type; next(&list, &type, &element);) {
		struct span name = get(element, NFTA_EXPR_NAME), data = get(element, NFTA_EXPR_DATA), value;
		assert_int_equal(type, NFTA_LIST_ELEM);
		if (strcmp((const char *)name.p, "meta") == 0) {
			assert_int_equal(be32(get(data, NFTA_META_DREG)), NFT_REG_1);
			at += (size_t)snprintf(dst + at, size - at, "meta %u ",
					       be32(get(data, NFTA_META_KEY)));
		} else if (strcmp((const char *)name.p, "payload") == 0) {
			assert_int_equal(be32(get(data, NFTA_PAYLOAD_DREG)), NFT_REG_1);
			assert_int_equal(be32(get(data, NFTA_PAYLOAD_BASE)), NFT_PAYLOAD_NETWORK_HEADER);
			at += (size_t)snprintf(dst + at, size - at, "header %u+%u ",
					       be32(get(data, NFTA_PAYLOAD_OFFSET)),
					       be32(get(data, NFTA_PAYLOAD_LEN)));
		} else if (strcmp((const char *)name.p, "cmp") == 0) {
			assert_int_equal(be32(get(data, NFTA_CMP_SREG)), NFT_REG_1);
			value = get(get(data, NFTA_CMP_DATA), NFTA_DATA_VALUE);
			at += (size_t)snprintf(dst + at, size - at, "%s ",
					       be32(get(data, NFTA_CMP_OP)) == NFT_CMP_EQ ? "eq" : "neq");
			for (size_t i = 0; i < value.n; i++)
				at += (size_t)snprintf(dst + at, size - at, "%02x", value.p[i]);
			at += (size_t)snprintf(dst + at, size - at, " ");
		} else if (strcmp((const char *)name.p, "immediate") == 0) {
			uint32_t reg = be32(get(data, NFTA_IMMEDIATE_DREG));
			struct span what = get(data, NFTA_IMMEDIATE_DATA);
			if (reg == NFT_REG_VERDICT) {
				assert_int_equal(be32(get(get(what, NFTA_DATA_VERDICT), NFTA_VERDICT_CODE)),
						 NF_ACCEPT);
				at += (size_t)snprintf(dst + at, size - at, "accept ");
				continue;
			}
			value = get(what, NFTA_DATA_VALUE);
			assert_true(reg == NFT_REG_1 && value.n == 2);
			at += (size_t)snprintf(dst + at, size - at, "port %d ", value.p[0] << 8 | value.p[1]);
		} else {
			assert_text(name, "tproxy");
			assert_int_equal(be32(get(data, NFTA_TPROXY_FAMILY)), NFPROTO_UNSPEC);
			assert_int_equal(be32(get(data, NFTA_TPROXY_REG_PORT)), NFT_REG_1);
			at += (size_t)snprintf(dst + at, size - at, "tproxy ");
		}
		assert_true(at < size);
	}
}

static void test_batch(void **state)
{
	static const char *const rules[] = {
		"meta 16 neq 06 accept ",
		"meta 15 eq 02 header 16+1 eq 7f accept ",
		"meta 15 eq 0a header 24+16 eq 00000000000000000000000000000001 accept ",
		"port 15004 tproxy ",
	};
	struct nft_batch b;
	struct message m[16];
	assert_int_equal(nft_capture(&b, 15004), 0);
	assert_int_equal(messages(&b, m, ELEMS(m)), 4 + ELEMS(rules));
	for (unsigned i = 0; i < 4 + ELEMS(rules); i++) {
		assert_int_equal(m[i].seq, i + 1);
		assert_true(m[i].flags & NLM_F_REQUEST);
		/* One answer is asked for: that to the last message before the end. */
		assert_int_equal(!!(m[i].flags & NLM_F_ACK), i == 2 + ELEMS(rules));
	}
	unsigned last = 3 + ELEMS(rules);
	assert_true(m[0].type == NFNL_MSG_BATCH_BEGIN && m[last].type == NFNL_MSG_BATCH_END);
	assert_true(m[0].resource == NFNL_SUBSYS_NFTABLES && m[last].resource == NFNL_SUBSYS_NFTABLES);
	for (unsigned i = 1; i < last; i++)
		assert_true(m[i].type >> 8 == NFNL_SUBSYS_NFTABLES && m[i].family == NFPROTO_INET);

	/* A table that is there already fails the whole. */
	assert_true((m[1].type & 0xff) == NFT_MSG_NEWTABLE && m[1].flags & NLM_F_CREATE &&
		    m[1].flags & NLM_F_EXCL);
	assert_text(get(m[1].attrs, NFTA_TABLE_NAME), NFT_TABLE);

	assert_int_equal(m[2].type & 0xff, NFT_MSG_NEWCHAIN);
	assert_text(get(m[2].attrs, NFTA_CHAIN_TABLE), NFT_TABLE);
	assert_text(get(m[2].attrs, NFTA_CHAIN_NAME), NFT_CHAIN);
	assert_text(get(m[2].attrs, NFTA_CHAIN_TYPE), "filter");
	assert_int_equal(be32(get(m[2].attrs, NFTA_CHAIN_POLICY)), NF_ACCEPT);
	struct span hook = get(m[2].attrs, NFTA_CHAIN_HOOK);
	assert_int_equal(be32(get(hook, NFTA_HOOK_HOOKNUM)), NF_INET_PRE_ROUTING);
	assert_int_equal((int32_t)be32(get(hook, NFTA_HOOK_PRIORITY)), -150);

	for (unsigned i = 0; i < ELEMS(rules); i++) {
		char text[256];
		assert_true((m[3 + i].type & 0xff) == NFT_MSG_NEWRULE && m[3 + i].flags & NLM_F_APPEND);
		assert_text(get(m[3 + i].attrs, NFTA_RULE_TABLE), NFT_TABLE);
		assert_text(get(m[3 + i].attrs, NFTA_RULE_CHAIN), NFT_CHAIN);
		describe(m[3 + i].attrs, text, sizeof(text));
		assert_string_equal(text, rules[i]);
	}
}

static void test_port(void **state)
{
	struct nft_batch one, two;
	assert_int_equal(nft_capture(&one, 0x1234), 0);
	assert_int_equal(nft_capture(&two, 0x1235), 0);
	assert_int_equal(one.n, two.n);
	size_t differ = 0;
	for (size_t i = 0; i < one.n; i++)
		differ += one.p[i] != two.p[i];
	assert_int_equal(differ, 1); /* big-endian, and nowhere else */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_batch), cmocka_unit_test(test_port) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
