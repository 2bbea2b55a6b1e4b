/*
 * What a name server answers. The first byte chooses the question; the rest is the
 * answer, with the question put in its place where the byte says so (nothing would
 * get past the comparison otherwise).
 */
#include <stdlib.h>
#include <string.h>

#include "dns.h"
#include "fuzz.h"
#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf question = BUF_INIT(DNS_MESSAGE);
	struct dns_reply reply;

	if (size == 0 || size > DNS_MESSAGE)
		return 0;
	uint16_t type = data[0] & 1 ? DNS_AAAA : DNS_A;
	FUZZ_CHECK(dns_question(&question, 0x1234, VIEW("hook.example"), type) == 0);
	size_t asked = question.n, n = size - 1;
	uint8_t *m = malloc(n ? n : 1); /* so that a byte too many is noticed */
	FUZZ_CHECK(m);
	memcpy(m, data + 1, n);
	if ((data[0] & 2) && n >= asked) {
		memcpy(m, question.p, 2);
		m[2] |= 0x80;
		memcpy(m + 4, question.p + 4, 2);
		memcpy(m + 12, question.p + 12, asked - 12);
	}
	int r = dns_reply_parse((struct view){ (const char *)m, n }, buf_view(&question), type, &reply);
	FUZZ_CHECK(r < 0 || reply.n <= ELEMS(reply.found));
	free(m);
	buf_done(&question);
	return 0;
}
