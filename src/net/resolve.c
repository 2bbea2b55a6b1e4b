/*
 * One question to a name server: see resolve.h. The bytes are src/proto/dns.c's.
 */
#include "resolve.h"

#include <netinet/in.h>
#include <string.h>

#include "poison.h"

static uint16_t type_of(const struct resolve_question *q)
{
	return q->v6 ? DNS_AAAA : DNS_A;
}

size_t resolve_ask(const struct resolve_question *q, uint8_t out[RESOLVE_MESSAGE])
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(RESOLVE_MESSAGE);
	struct view host = q->host;

	if (host.n > 1 && host.p[host.n - 1] == '.')
		host.n--; /* of the root */
	if (dns_question(&b, q->id, host, type_of(q)) < 0)
		return 0;
	memcpy(out, b.p, b.n);
	return b.n;
}

int resolve_read(const struct resolve_question *q, const uint8_t *m, size_t len, struct sockaddr_storage *ret,
		 socklen_t *ret_len)
{
	uint8_t question[RESOLVE_MESSAGE];
	size_t n = resolve_ask(q, question);
	struct dns_reply reply;

	if (!n || dns_reply_parse((struct view){ (const char *)m, len },
				  (struct view){ (const char *)question, n }, type_of(q), &reply) < 0)
		return -1;
	if (reply.n == 0)
		return 0;
	memset(ret, 0, sizeof(*ret));
	if (q->v6) {
		struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
		memcpy(&in6.sin6_addr, reply.found[0].b, sizeof(in6.sin6_addr));
		memcpy(ret, &in6, sizeof(in6));
		*ret_len = sizeof(in6);
	} else {
		struct sockaddr_in in = { .sin_family = AF_INET };
		memcpy(&in.sin_addr, reply.found[0].b, sizeof(in.sin_addr));
		memcpy(ret, &in, sizeof(in));
		*ret_len = sizeof(in);
	}
	return 1;
}
