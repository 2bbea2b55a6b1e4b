/*
 * DNS messages (RFC 1035), as far as a forwarder of addresses needs them: questions
 * from hostile clients, answers from servers that may be. Names are text, in lower
 * case, without the last dot.
 */
#pragma once

#include "buf.h"

#define DNS_MESSAGE 1232 /* that we send and expect over UDP */
#define DNS_NAME    256
#define DNS_PORT    53

#define DNS_EDE_BLOCKED 15 /* info code: by the policy of who answers */

enum { DNS_A = 1, DNS_AAAA = 28, DNS_OPT = 41 };
enum {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5
};

struct dns_query {
	uint16_t id, type, class;
	bool recursion, edns;
	size_t question;     /* bytes of the question, behind the header, as they came */
	char name[DNS_NAME]; /* "" for the root */
	/* Not of the question: goes into an answer to somebody who speaks EDNS (RFC 8914). */
	const char *why; /* NULL: nothing to say */
};

/* One question and nothing else but an OPT record. -EBADMSG: no answer is possible;
 * -EOPNOTSUPP: something else than a plain question (id and recursion are set). */
int dns_query_parse(struct view in, struct dns_query *ret) _must_check_;

struct dns_address {
	uint8_t b[16]; /* four bytes of an A */
};
/* An answer to a query, whose bytes are `in`: addresses of the query's type. */
int dns_answer(struct buf *out, struct view in, const struct dns_query *q, unsigned rcode,
	       const struct dns_address *found, size_t n, uint32_t ttl);

/* A question of our own; -EINVAL for a name that is none. */
int dns_question(struct buf *out, uint16_t id, struct view name, uint16_t type) _must_check_;
struct dns_reply {
	unsigned rcode;
	bool truncated;
	uint32_t ttl; /* the least one */
	size_t n;
	struct dns_address found[16];
};
/* What a server says to that question; -EBADMSG: it is no answer to it. */
int dns_reply_parse(struct view in, struct view question, uint16_t type, struct dns_reply *ret) _must_check_;
