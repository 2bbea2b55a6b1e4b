/*
 * DNS: a question that is understood can be answered, and the answer is one to it.
 */
#include <string.h>

#include "dns.h"
#include "fuzz.h"

#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view in = { (const char *)data, size };
	struct dns_address found[2] = { { { 1, 2, 3 } }, { { 4 } } };
	struct buf out = BUF_INIT(DNS_MESSAGE), asked = BUF_INIT(DNS_MESSAGE);
	struct dns_query q;
	struct dns_reply r;

	if (dns_query_parse(in, &q) == 0) {
		FUZZ_CHECK(strlen(q.name) <= 253);
		FUZZ_CHECK(dns_answer(&out, in, &q, DNS_NOERROR, found, 2, 9) == 0);
		FUZZ_CHECK(dns_reply_parse(buf_view(&out), view_head(in, 12 + q.question), q.type, &r) == 0);
		if (q.type == DNS_A || q.type == DNS_AAAA)
			FUZZ_CHECK(r.n == 2 && r.ttl == 9);
	}
	/* As a server's answer, to a question that it fits. */
	if (dns_question(&asked, 0, VIEW("a.test"), DNS_A) == 0 && size > 12) {
		struct buf reply = BUF_INIT(1u << 20);
		buf_add(&reply, buf_view(&asked));
		reply.p[2] = (char)0x81;
		memcpy(reply.p + 6, data, 6);
		buf_append(&reply, data + 6, size - 6);
		FUZZ_CHECK(dns_reply_parse(buf_view(&reply), buf_view(&asked), DNS_A, &r) == 0 &&
			   r.n <= ELEMS(r.found));
		buf_done(&reply);
	}
	buf_done(&out);
	buf_done(&asked);
	return 0;
}
