/*
 * Answers of servers in boxes, head and body as the proxy reads them: where the
 * network cuts must not matter. The first byte chooses how they are cut.
 */
#include <string.h>

#include "buf.h"
#include "fuzz.h"
#include "http1.h"
#include "http1_response.h"

#include "poison.h"

#define ROOM 8192

struct outcome {
	int head, body; /* body: of http1_body_next */
	int status;
	size_t n_headers;
	enum http1_framing framing;
	struct buf data;
};

static void feed(struct view in, size_t step, struct outcome *o)
{
	struct http_header headers[32];
	struct http1_response r;
	struct http1_body body;
	static char room[ROOM];
	size_t n = 0;

	*o = (struct outcome){ .data = BUF_INIT(ROOM) };
	http1_response_init(&r, headers, ELEMS(headers), ROOM / 2);
	while (o->head == 0 && n < in.n) {
		size_t k = MIN(step, in.n - n);
		memcpy(room + n, in.p + n, k);
		n += k;
		o->head = http1_response_parse(&r, room, n);
	}
	if (o->head <= 0)
		return;
	FUZZ_CHECK((size_t)o->head <= n && r.status >= 100 && r.status <= 599 &&
		   r.n_headers <= ELEMS(headers));
	FUZZ_CHECK(!(r.chunked && r.content_length >= 0));
	for (size_t i = 0; i < r.n_headers; i++)
		FUZZ_CHECK(http1_is_header(headers[i]));
	o->status = r.status;
	o->n_headers = r.n_headers;
	o->framing = http1_response_framing(&r, false);
	if (o->framing != HTTP1_CHUNKED && o->framing != HTTP1_LENGTH)
		return;
	http1_body_init(&body, o->framing == HTTP1_CHUNKED ? -1 : r.content_length);
	for (size_t from = (size_t)o->head;;) {
		struct view data, piece = { in.p + from, MIN(step, in.n - from) };
		size_t had = piece.n;
		o->body = http1_body_next(&body, &piece, &data);
		FUZZ_CHECK(piece.n <= had);
		from += had - piece.n;
		if (o->body == HTTP1_DATA)
			FUZZ_CHECK(buf_add(&o->data, data) == 0);
		else if (o->body != HTTP1_MORE || from == in.n)
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole, pieces;

	if (size < 1 || size > ROOM)
		return 0;
	struct view in = { (const char *)data + 1, size - 1 };
	feed(in, SIZE_MAX / 2, &whole);
	feed(in, data[0] % 64 + 1, &pieces);
	FUZZ_CHECK((whole.head > 0) == (pieces.head > 0));
	if (whole.head > 0) {
		FUZZ_CHECK(whole.head == pieces.head && whole.status == pieces.status);
		FUZZ_CHECK(whole.n_headers == pieces.n_headers && whole.framing == pieces.framing);
		FUZZ_CHECK(whole.body == pieces.body);
		FUZZ_CHECK(whole.body < 0 || view_eq(buf_view(&whole.data), buf_view(&pieces.data)));
	}
	buf_done(&whole.data);
	buf_done(&pieces.data);
	return 0;
}
