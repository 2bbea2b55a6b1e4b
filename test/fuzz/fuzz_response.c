/*
 * HTTP answers, as the command line reads them: where the network cuts must not
 * matter, neither to the head nor to the body.
 */
#include <string.h>

#include "buf.h"
#include "fuzz.h"
#include "response.h"

#include "poison.h"

struct outcome {
	int head; /* of response_head, fed all */
	struct response response;
	int body; /* 1: ended, 0: wants more, -1: refused */
	size_t used;
	struct buf data;
};

/* Feeds the input in steps, as a connection would. */
static void feed(struct view in, size_t step, struct outcome *o)
{
	struct response_body body;
	size_t to = 0, from = 0;
	struct err e = { 0 };

	*o = (struct outcome){ .data = BUF_INIT(1u << 24) };
	while ((o->head = response_head(view_head(in, to), false, &o->response, &from, &e)) == 0 && to < in.n)
		to = MIN(to + step, in.n);
	if (o->head <= 0)
		return;
	FUZZ_CHECK(from <= to);
	response_body_init(&body, &o->response);
	while (!body.done && o->body == 0) {
		struct view data;
		ssize_t n = response_body_next(&body, (struct view){ in.p + from, to - from }, &data);

		if (n < 0) {
			o->body = -1;
			break;
		}
		FUZZ_CHECK((size_t)n <= to - from && data.n <= (size_t)n);
		FUZZ_CHECK(buf_add(&o->data, data) == 0);
		from += (size_t)n;
		if (n == 0 && !body.done) {
			if (to == in.n)
				break;
			to = MIN(to + step, in.n);
		}
	}
	if (body.done)
		o->body = 1;
	o->used = from;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view in = { (const char *)data, size };
	struct outcome whole, bytes;

	if (size > 4096)
		return 0;
	feed(in, SIZE_MAX / 2, &whole);
	feed(in, 1, &bytes);
	FUZZ_CHECK(whole.head == bytes.head && whole.body == bytes.body);
	if (whole.head > 0) {
		FUZZ_CHECK(whole.response.status == bytes.response.status);
		FUZZ_CHECK(whole.response.framing == bytes.response.framing);
		FUZZ_CHECK(whole.body < 0 || whole.used == bytes.used);
		FUZZ_CHECK(whole.body < 0 || view_eq(buf_view(&whole.data), buf_view(&bytes.data)));
	}
	buf_done(&whole.data);
	buf_done(&bytes.data);
	return 0;
}
