/*
 * What a name server answers. The first byte chooses the question; the rest is the
 * answer, with the question put in its place where the byte says so (nothing would
 * get past the comparison otherwise).
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "resolve.h"
#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct resolve_question q = { .id = 0x1234, .host = VIEW("hook.example") };
	struct sockaddr_storage found;
	socklen_t len = 0;
	uint8_t question[RESOLVE_MESSAGE];

	if (size == 0 || size > RESOLVE_MESSAGE)
		return 0;
	q.v6 = data[0] & 1;
	size_t asked = resolve_ask(&q, question), n = size - 1;
	uint8_t *m = malloc(n ? n : 1); /* so that a byte too many is noticed */
	FUZZ_CHECK(m);
	memcpy(m, data + 1, n);
	if ((data[0] & 2) && n >= asked) {
		memcpy(m, question, 2);
		m[2] |= 0x80;
		memcpy(m + 4, question + 4, 2);
		memcpy(m + 12, question + 12, asked - 12);
	}
	int r = resolve_read(&q, m, n, &found, &len);
	FUZZ_CHECK(r < 1 || len == (q.v6 ? 28 : 16));
	free(m);
	return 0;
}
