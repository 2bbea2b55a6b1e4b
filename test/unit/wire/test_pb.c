/*
 * The codec by hand: bytes that the specification gives, and everything that
 * must be refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sample_gen.h"
#include "wire_gen.h"
#include "poison.h"

static struct arena arena;

static int setup(void **state)
{
	(void)state;
	arena_init(&arena, 1u << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_done(&arena);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void assert_encodes(const struct pb_msg *m, const void *msg, struct view want)
{
	struct buf out = BUF_INIT(4096);
	assert_int_equal(pb_encode(m, msg, &out), 0);
	assert_int_equal(buf_len(&out), want.n);
	if (want.n)
		assert_memory_equal(buf_view(&out).p, want.p, want.n);
	buf_done(&out);
}

/* Vectors from the protobuf encoding document, and their like. */
static void test_vectors(void **state)
{
	(void)state;
	struct sample_scalars s = { .u32 = 150 };
	assert_encodes(&sample_scalars_msg, &s, VIEW("\x08\x96\x01"));
	s = (struct sample_scalars){ .i32 = -1 };
	assert_encodes(&sample_scalars_msg, &s, VIEW("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
	s = (struct sample_scalars){ .s32 = -1, .s64 = 1 };
	assert_encodes(&sample_scalars_msg, &s, VIEW("\x28\x01\x30\x02"));
	s = (struct sample_scalars){ .s32 = INT32_MIN };
	assert_encodes(&sample_scalars_msg, &s, VIEW("\x28\xff\xff\xff\xff\x0f"));
	s = (struct sample_scalars){ .flag = true, .colour = SAMPLE_COLOUR_RED };
	assert_encodes(&sample_scalars_msg, &s, VIEW("\x38\x01\x40\x01"));
	s = (struct sample_scalars){ .real = 1.0 };
	assert_encodes(&sample_scalars_msg, &s, VIEW("\x49\0\0\0\0\0\0\xf0\x3f"));
	s = (struct sample_scalars){ .text = VIEW("testing") };
	assert_encodes(&sample_scalars_msg, &s, VIEW("\x52\x07testing"));
	s = (struct sample_scalars){ 0 };
	assert_encodes(&sample_scalars_msg, &s, VIEW(""));
	uint32_t three[] = { 3, 270, 86942 };
	struct sample_lists l = { .u32 = { three, 3 } };
	assert_encodes(&sample_lists_msg, &l, VIEW("\x0a\x06\x03\x8e\x02\x9e\xa7\x05"));
	struct sample_all all = { .has_maybe = true, .scalars = &s };
	assert_encodes(&sample_all_msg, &all, VIEW("\x08\x00\x1a\x00"));
	assert_encodes(&sample_empty_msg, &(struct sample_empty){ 0 }, VIEW(""));
}

static void test_decodes(void **state)
{
	(void)state;
	struct sample_scalars s;
	struct sample_lists l;
	struct sample_all all;
	assert_int_equal(pb_decode(&sample_scalars_msg,
				   VIEW("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x28\x03"), 0, &arena,
				   &s),
			 0);
	assert_int_equal(s.i32, -1);
	assert_int_equal(s.s32, -2);
	/* The last of several scalars counts. */
	assert_int_equal(pb_decode(&sample_scalars_msg, VIEW("\x08\x01\x08\x02"), 0, &arena, &s), 0);
	assert_int_equal(s.u32, 2);
	/* Repeated numbers: packed, one by one, and mixed. */
	assert_int_equal(
		pb_decode(&sample_lists_msg, VIEW("\x08\x01\x0a\x02\x02\x03\x08\x04"), 0, &arena, &l), 0);
	assert_int_equal(l.u32.n, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(l.u32.items[i], i + 1);
	assert_int_equal(pb_decode(&sample_lists_msg, VIEW("\x0a\x00"), 0, &arena, &l), 0);
	assert_int_equal(l.u32.n, 0);
	/* Presence, and a oneof of which the last member counts. */
	assert_int_equal(
		pb_decode(&sample_all_msg, VIEW("\x08\x00\xa0\x01\x05\xaa\x01\x01x"), 0, &arena, &all), 0);
	assert_true(all.has_maybe && all.maybe == 0);
	assert_false(all.has_number || all.number);
	assert_true(all.has_words && view_is(all.words, "x"));
	assert_int_equal(
		pb_decode(&sample_all_msg, VIEW("\xaa\x01\x01x\xb2\x01\x02\x08\x05"), 0, &arena, &all), 0);
	assert_false(all.has_words);
	assert_int_equal(all.inner->kind, SAMPLE_KIND_SOME);
	/* Nothing is everything's default. */
	assert_int_equal(pb_decode(&sample_all_msg, VIEW(""), 0, &arena, &all), 0);
	assert_null(all.lists);
}

static void test_refused(void **state)
{
	(void)state;
	static const struct {
		const struct pb_msg *m;
		struct view in;
		const char *why;
	} bad[] = {
		{ &sample_scalars_msg, VIEW("\x08"), "a tag without a value" },
		{ &sample_scalars_msg, VIEW("\x08\x80"), "half a varint" },
		{ &sample_scalars_msg, VIEW("\x80"), "half a tag" },
		{ &sample_scalars_msg, VIEW("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "65 bits" },
		{ &sample_scalars_msg, VIEW("\x10\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
		  "eleven bytes" },
		{ &sample_scalars_msg, VIEW("\x08\x80\x80\x80\x80\x10"), "a uint32 of 33 bits" },
		{ &sample_scalars_msg, VIEW("\x18\x80\x80\x80\x80\x08"), "an int32 of 2^31" },
		{ &sample_scalars_msg, VIEW("\x28\x80\x80\x80\x80\x10"), "a sint32 of 33 bits" },
		{ &sample_scalars_msg, VIEW("\x38\x02"), "a bool of 2" },
		{ &sample_scalars_msg, VIEW("\x00\x01"), "field 0" },
		{ &sample_scalars_msg, VIEW("\x0a\x01x"), "bytes for a number" },
		{ &sample_scalars_msg, VIEW("\x50\x01"), "a number for a string" },
		{ &sample_scalars_msg, VIEW("\x52\x05test"), "a string past the end" },
		{ &sample_scalars_msg, VIEW("\x52\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
		  "a string of 2^64 - 1" },
		{ &sample_scalars_msg, VIEW("\x49\0\0\0\0"), "half a double" },
		{ &sample_scalars_msg, VIEW("\x0b\x0c"), "a group" },
		{ &sample_scalars_msg, VIEW("\xa0\x06\x01"), "an unknown field" },
		{ &sample_scalars_msg, VIEW("\x80\x80\x80\x80\x80\x01\x00"), "a tag of more than 32 bits" },
		{ &sample_lists_msg, VIEW("\x0a\x02\x01\x80"), "a packed list that ends in a varint" },
		{ &sample_lists_msg, VIEW("\x4a\x07\0\0\0\0\0\0\0"), "a packed list of seven eighths" },
		{ &sample_lists_msg, VIEW("\x0d\0\0\0\0"), "fixed32 for a varint" },
		{ &sample_all_msg, VIEW("\x1a\x00\x1a\x00"), "a sub-message twice" },
		{ &sample_all_msg, VIEW("\x1a\x02\x08"), "a sub-message past the end" },
		{ &sample_all_msg, VIEW("\x1a\x01\x08\x08\x01"), "a sub-message whose value lies outside" },
	};
	for (size_t i = 0; i < ELEMS(bad); i++) {
		union {
			struct sample_all all;
			struct sample_lists lists;
		} out;
		memset(&out, 0xa5, sizeof(out));
		int r = pb_decode(bad[i].m, bad[i].in, 0, &arena, &out);
		if (r != -EBADMSG)
			fail_msg("accepted: %s", bad[i].why);
		for (size_t k = 0; k < bad[i].m->size; k++)
			assert_int_equal(((char *)&out)[k], 0);
	}
}

static void test_unknown_fields(void **state)
{
	(void)state;
	struct sample_scalars s;
	struct view in = VIEW("\xa0\x06\x01\x08\x07\xa1\x06\0\0\0\0\0\0\0\0\xa5\x06\0\0\0\0\xa2\x06\x02xx");
	assert_int_equal(pb_decode(&sample_scalars_msg, in, 0, &arena, &s), -EBADMSG);
	assert_int_equal(pb_decode(&sample_scalars_msg, in, PB_SKIP_UNKNOWN, &arena, &s), 0);
	assert_int_equal(s.u32, 7);
	/* Skipped, not believed: groups and broken lengths are refused all the same. */
	assert_int_equal(pb_decode(&sample_scalars_msg, VIEW("\xa2\x06\x05x"), PB_SKIP_UNKNOWN, &arena, &s),
			 -EBADMSG);
	assert_int_equal(
		pb_decode(&sample_scalars_msg, VIEW("\xa3\x06\xa4\x06"), PB_SKIP_UNKNOWN, &arena, &s),
		-EBADMSG);
}

static void test_depth(void **state)
{
	(void)state;
	for (int depth = 1; depth < 30; depth++) {
		struct sample_all chain[30] = { 0 }, out;
		struct buf b = BUF_INIT(4096), nested = BUF_INIT(4096);
		for (int i = 0; i + 1 < depth; i++)
			chain[i].next = &chain[i + 1];
		assert_int_equal(pb_encode(&sample_all_msg, chain, &b), depth <= PB_DEPTH ? 0 : -EINVAL);
		/* The same by hand, which has no such limit. */
		for (int i = 1; i < depth; i++) {
			char head[3] = { (char)0xf2, 0x01, (char)buf_len(&nested) };
			struct buf outer = BUF_INIT(4096);
			buf_append(&outer, head, 3);
			buf_add(&outer, buf_view(&nested));
			buf_done(&nested);
			nested = outer;
		}
		assert_int_equal(pb_decode(&sample_all_msg, buf_view(&nested), 0, &arena, &out),
				 depth <= PB_DEPTH ? 0 : -EBADMSG);
		buf_done(&b);
		buf_done(&nested);
	}
}

/* Two bytes of input may ask for a hundred of memory: the arena's maximum holds. */
static void test_memory_is_bounded(void **state)
{
	(void)state;
	struct arena small = ARENA_INIT(4096);
	struct sample_lists l;
	char in[2000];
	for (size_t i = 0; i < sizeof(in); i += 2)
		memcpy(in + i, "\x62\x00", 2);
	assert_int_equal(pb_decode(&sample_lists_msg, (struct view){ in, sizeof(in) }, 0, &small, &l),
			 -ENOMEM);
	arena_done(&small);
	assert_int_equal(pb_decode(&sample_lists_msg, (struct view){ in, sizeof(in) }, 0, &arena, &l), 0);
	assert_int_equal(l.scalars.n, sizeof(in) / 2);

	struct buf tight = BUF_INIT(8);
	struct sample_scalars s = { .text = VIEW("does not fit") };
	assert_int_equal(pb_encode(&sample_scalars_msg, &s, &tight), -ENOBUFS);
	buf_done(&tight);
}

/* Lengths of one, two and three bytes are patched in front of what they measure. */
static void test_long_submessages(void **state)
{
	(void)state;
	static char text[70000];
	memset(text, 'x', sizeof(text));
	static const size_t sizes[] = { 0,   1,   120,   124,   125,   126,   127,
					128, 129, 16378, 16379, 16380, 16384, 70000 };
	for (size_t i = 0; i < ELEMS(sizes); i++) {
		struct sample_scalars s = { .text = { text, sizes[i] }, .u32 = 5 };
		struct sample_all all = { .scalars = &s, .stdin_ = true }, out;
		struct buf b = BUF_INIT(1u << 20);
		assert_int_equal(pb_encode(&sample_all_msg, &all, &b), 0);
		assert_int_equal(pb_decode(&sample_all_msg, buf_view(&b), 0, &arena, &out), 0);
		assert_int_equal(out.scalars->text.n, sizes[i]);
		assert_true(view_eq(out.scalars->text, s.text));
		assert_int_equal(out.scalars->u32, 5);
		assert_true(out.stdin_);
		buf_done(&b);
	}
}

/* Every table is in order: the decoder searches it, and offsets are sixteen bits. */
static void check_table(const struct pb_msg *m)
{
	uint32_t last = 0;
	for (size_t i = 0; i < m->n_fields; i++) {
		assert_true(m->fields[i].number > last);
		last = m->fields[i].number;
		assert_true(m->fields[i].offset < m->size);
		assert_true((m->fields[i].kind == PB_MSG) == (m->fields[i].sub != NULL));
	}
}

static void test_tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLE_MESSAGES; i++)
		check_table(sample_messages[i]);
	for (size_t i = 0; i < WIRE_MESSAGES; i++)
		check_table(wire_messages[i]);
	assert_int_equal(SAMPLE_COLOUR_MINUS, -3);
	assert_string_equal(wire_box_spec_msg.name, "paddock.wire.BoxSpec");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_vectors),          TEST(test_decodes), TEST(test_refused),
		TEST(test_unknown_fields),   TEST(test_depth),   TEST(test_memory_is_bounded),
		TEST(test_long_submessages), TEST(test_tables),
	};
	return cmocka_run_group_tests_name("pb", tests, NULL, NULL);
}
