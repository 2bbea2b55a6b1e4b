/*
 * The syntax of frames.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "frame.h"
#include "wire_gen.h"
#include "poison.h"

static void test_layout(void **state)
{
	(void)state;
	struct buf b = BUF_INIT(4096);
	struct frame f = { .type = 0x0102,
			   .kind = FRAME_CALL,
			   .stream = 0x04050607,
			   .deadline_ms = 0x08090a0b,
			   .body = VIEW("xyz") };
	assert_int_equal(frame_put(&b, &f), 0);
	assert_int_equal(buf_len(&b), 19);
	assert_memory_equal(buf_view(&b).p, "\x03\0\0\0\x02\x01\x01\0\x07\x06\x05\x04\x0b\x0a\x09\x08xyz",
			    19);
	struct frame back;
	size_t size;
	assert_int_equal(frame_parse(buf_view(&b), &back, &size), 1);
	assert_int_equal(size, 19);
	assert_int_equal(back.type, f.type);
	assert_int_equal(back.kind, f.kind);
	assert_int_equal(back.stream, f.stream);
	assert_int_equal(back.deadline_ms, f.deadline_ms);
	assert_true(view_is(back.body, "xyz"));
	buf_done(&b);
}

/* Any prefix of a frame asks for more, and says for how much. */
static void test_prefixes(void **state)
{
	(void)state;
	struct buf b = BUF_INIT(4096);
	struct wire_start s = { .cwd = VIEW("/workspace"), .user = VIEW("user") };
	assert_int_equal(frame_put_msg(&b, WIRE_TYPE_START, FRAME_CALL, 0, 9, 100, &wire_start_msg, &s), 0);
	for (size_t n = 0; n < buf_len(&b); n++) {
		struct frame f = { .stream = 77 };
		size_t size;
		char *copy = malloc(n ? n : 1); /* so that a sanitizer sees a read past it */
		memcpy(copy, buf_view(&b).p, n);
		assert_int_equal(frame_parse((struct view){ copy, n }, &f, &size), 0);
		assert_int_equal(size, n < FRAME_HEADER ? FRAME_HEADER : buf_len(&b));
		assert_int_equal(f.stream, 77);
		free(copy);
	}
	buf_done(&b);
}

static void put_header(char *p, uint32_t len, uint16_t type, uint8_t kind, uint8_t flags, uint32_t stream,
		       uint32_t deadline)
{
	struct frame f = {
		.type = type, .kind = kind, .flags = flags, .stream = stream, .deadline_ms = deadline
	};
	frame_header(p, &f, len);
}

static void test_refused(void **state)
{
	(void)state;
	static const struct {
		uint32_t len;
		uint16_t type;
		uint8_t kind, flags;
		uint32_t stream, deadline;
		const char *why;
	} bad[] = {
		{ 0, 1, 0, 0, 1, 0, "kind 0" },
		{ 0, 1, FRAME_EVENT + 1, 0, 1, 0, "kind 9" },
		{ 0, 0, FRAME_CALL, 0, 1, 0, "a call of no type" },
		{ 0, 1, FRAME_CALL, 0, 0, 0, "a call on stream 0" },
		{ 0, 1, FRAME_EVENT, 0, 1, 0, "an event on a stream" },
		{ 0, 1, FRAME_CALL, FRAME_LAST, 1, 0, "a call that is the last" },
		{ 0, 1, FRAME_REPLY, 0, 1, 5, "a reply with a deadline" },
		{ 0, 1, FRAME_CALL, 4, 1, 0, "an unknown flag" },
		{ 0, 1, FRAME_DATA, FRAME_FD, 1, 0, "data with an fd" },
		{ FRAME_DATA_MAX + 1, 1, FRAME_DATA, 0, 1, 0, "too much data" },
		{ FRAME_BODY_MAX + 1, 1, FRAME_CALL, 0, 1, 0, "too long a body" },
		{ UINT32_MAX, 1, FRAME_CALL, 0, 1, 0, "a body of 4 GiB" },
		{ 1, 1, FRAME_END, 0, 1, 0, "an end with a body" },
		{ 1, 1, FRAME_CANCEL, 0, 1, 0, "a cancel with a body" },
		{ 3, 1, FRAME_WINDOW_ADD, 0, 1, 0, "credit of three bytes" },
		{ 5, 1, FRAME_WINDOW_ADD, 0, 1, 0, "credit of five bytes" },
	};
	for (size_t i = 0; i < ELEMS(bad); i++) {
		char head[FRAME_HEADER];
		struct frame f;
		size_t size;
		put_header(head, bad[i].len, bad[i].type, bad[i].kind, bad[i].flags, bad[i].stream,
			   bad[i].deadline);
		/* From the header alone: nobody waits for such a body. */
		if (frame_parse((struct view){ head, sizeof(head) }, &f, &size) != -EBADMSG)
			fail_msg("accepted: %s", bad[i].why);
	}
}

/* What does not fit leaves the buffer as it was, without half a frame. */
static void test_no_half_frames(void **state)
{
	(void)state;
	struct buf b = BUF_INIT(40);
	struct frame f = { .type = 1, .kind = FRAME_DATA, .stream = 1, .body = VIEW("0123456789") };
	struct wire_start s = { .cwd = VIEW("0123456789") };
	assert_int_equal(frame_put(&b, &f), 0);
	assert_int_equal(frame_put(&b, &f), -ENOBUFS);
	assert_int_equal(buf_len(&b), 26);
	b.bad = 0;
	assert_int_equal(frame_put_msg(&b, 1, FRAME_CALL, 0, 1, 0, &wire_start_msg, &s), -ENOBUFS);
	assert_int_equal(buf_len(&b), 26);
	b.bad = 0;
	f.kind = 77;
	assert_int_equal(frame_put(&b, &f), -EINVAL);
	assert_int_equal(buf_len(&b), 26);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_half_frames),
	};
	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
