/*
 * Usage from answers: the same figures and the same bytes however the answer is cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "meter.h"
#include "poison.h"

struct want {
	uint64_t input, cache_read, cache_write, output;
	bool estimated;
};

static void check(enum meter_api api, bool sse, bool swallow, const char *answer, const char *passed,
		  struct want w)
{
	for (size_t piece = 1; piece <= strlen(answer) + 1; piece++) {
		struct buf out = BUF_INIT(1 << 20);
		struct meter m;
		struct meter_usage u;

		meter_init(&m, api, sse, swallow);
		for (struct view v = view_of(answer); v.n; v = view_skip(v, piece))
			meter_feed(&m, view_head(v, piece), &out);
		meter_end(&m, &out);
		bool estimated = meter_result(&m, 100, &u);
		if (!view_is(buf_view(&out), passed ? passed : answer))
			fail_msg("in pieces of %zu: %.*s", piece, VIEW_ARG(buf_view(&out)));
		assert_int_equal(u.input, w.input);
		assert_int_equal(u.cache_read, w.cache_read);
		assert_int_equal(u.cache_write, w.cache_write);
		assert_int_equal(u.output, w.output);
		assert_int_equal(estimated, w.estimated);
		buf_done(&out);
		meter_done(&m);
	}
}

static void test_json(void **state)
{
	/* A "usage" deeper down, in a string or escaped is not the one. */
	check(METER_CHAT, false, false,
	      "{\"choices\":[{\"usage\":{\"prompt_tokens\":9999},\"m\":\"\\\"usage\\\":{\"}],"
	      "\"usage\" : "
	      "{\"prompt_tokens\":30,\"completion_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":10}"
	      ","
	      "\"completion_tokens_details\":{\"reasoning_tokens\":5}},\"id\":\"x\"}",
	      NULL, (struct want){ 20, 10, 0, 7, false });
	check(METER_RESPONSES, false, false,
	      "{\"output\":[],\"usage\":{\"input_tokens\":8,\"output_tokens\":4,\"input_tokens_details\":{"
	      "\"cached_tokens\":8}}}",
	      NULL, (struct want){ 0, 8, 0, 4, false });
	check(METER_EMBEDDINGS, false, false,
	      "{\"data\":[{\"embedding\":[0.1,-2e-3]}],\"usage\":{\"prompt_tokens\":5,\"total_tokens\":5}}",
	      NULL, (struct want){ 5, 0, 0, 0, false });
	check(METER_MESSAGES, false, false,
	      "{\"type\":\"message\",\"usage\":{\"input_tokens\":3,\"output_tokens\":4,\"cache_creation_"
	      "input_tokens\":5,"
	      "\"cache_read_input_tokens\":6}}",
	      NULL, (struct want){ 3, 6, 5, 4, false });
}

/* Nothing is not the same as not said. */
static void test_zero(void **state)
{
	check(METER_CHAT, false, false, "{\"usage\":{\"prompt_tokens\":0,\"completion_tokens\":0}}", NULL,
	      (struct want){ 0, 0, 0, 0, false });
	check(METER_CHAT, false, false, "{\"error\":{}}", NULL, (struct want){ 100, 0, 0, 0, true });
	check(METER_CHAT, false, false, "{\"usage\":null}", NULL, (struct want){ 100, 0, 0, 0, true });
}

#define CHUNK "data: {\"choices\":[{\"delta\":{\"content\":\"12345678\"}}],\"usage\":null}"
#define LAST  "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}"

static void test_chat_stream(void **state)
{
	check(METER_CHAT, true, false, CHUNK "\n\n" LAST "\n\ndata: [DONE]\n\n", NULL,
	      (struct want){ 3, 0, 0, 2, false });
	check(METER_CHAT, true, true, CHUNK "\n\n" LAST "\n\ndata: [DONE]\n\n", CHUNK "\n\ndata: [DONE]\n\n",
	      (struct want){ 3, 0, 0, 2, false });
	check(METER_CHAT, true, true, ": hello\r\n" CHUNK "\r\n\r\n" LAST "\r\n\r\ndata: [DONE]\r\n\r\n",
	      ": hello\r\n" CHUNK "\r\n\r\ndata: [DONE]\r\n\r\n", (struct want){ 3, 0, 0, 2, false });
	/* Cut off: what went by. */
	check(METER_CHAT, true, true, CHUNK "\n\n" CHUNK "\n\n", NULL, (struct want){ 100, 0, 0, 4, true });
	check(METER_CHAT, true, false, "data: {\"choices\":null,\ndata: \"usage\":{\"prompt_tokens\":1}}\n\n",
	      NULL, (struct want){ 1, 0, 0, 0, false });
}

static void test_responses_stream(void **state)
{
	check(METER_RESPONSES, true, false,
	      "event: response.output_text.delta\ndata: "
	      "{\"type\":\"response.output_text.delta\",\"delta\":\"abcd\"}\n\n"
	      "event: response.incomplete\ndata: "
	      "{\"type\":\"response.incomplete\",\"response\":{\"usage\":{\"input_tokens\":11,"
	      "\"output_tokens\":12,\"input_tokens_details\":{\"cached_tokens\":1}}}}\n\n",
	      NULL, (struct want){ 10, 1, 0, 12, false });
}

#define START                                                                                                \
	"event: message_start\ndata: "                                                                       \
	"{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1,"       \
	"\"cache_read_input_tokens\":2}}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n"
#define DELTA                                                                                                \
	"data: "                                                                                             \
	"{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"123456789\"}}\n\n"

static void test_messages_stream(void **state)
{
	/* Cumulative: the last one counts, nothing is added. */
	check(METER_MESSAGES, true, false,
	      START DELTA "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":10}}\n\n"
			  "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":15}}\n\n",
	      NULL, (struct want){ 25, 2, 0, 15, false });
	check(METER_MESSAGES, true, false, START DELTA DELTA, NULL, (struct want){ 25, 2, 0, 5, true });
}

/* A line without an end is not kept, and not lost either. */
static void test_long_line(void **state)
{
	struct buf out = BUF_INIT(16u << 20);
	char piece[65536];
	struct meter m;
	struct meter_usage u;

	memset(piece, 'x', sizeof(piece));
	meter_init(&m, METER_CHAT, true, true);
	for (int i = 0; i < 64; i++)
		meter_feed(&m, (struct view){ piece, sizeof(piece) }, &out);
	meter_feed(&m, view_of("\n\n" LAST "\n\n"), &out);
	meter_end(&m, &out);
	assert_int_equal(buf_len(&out), 64 * sizeof(piece) + 2);
	assert_false(meter_result(&m, 1, &u));
	assert_int_equal(u.output, 2);
	meter_done(&m);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_zero),
		cmocka_unit_test(test_chat_stream),
		cmocka_unit_test(test_responses_stream),
		cmocka_unit_test(test_messages_stream),
		cmocka_unit_test(test_long_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
