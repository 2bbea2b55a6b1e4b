/*
 * The codec against the official implementation (oracle.py), both ways: what
 * that one encodes we decode and encode to the same bytes, and the reverse.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "fd.h"
#include "rnd.h"
#include "sample_gen.h"
#include "poison.h"

#define COUNT 400

static pid_t oracle;
static int to_oracle, from_oracle;
static uint64_t seed;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static int start_oracle(void **state)
{
	(void)state;
	int in[2], out[2];
	rnd_bytes(&seed, 4);
	seed |= 1;
	char count[16], text[32];
	snprintf(count, sizeof(count), "%d", COUNT);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)seed);
	print_message("# seed %s\n", text);
	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	oracle = fork();
	if (oracle == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl("/usr/bin/python3", "/usr/bin/python3", ORACLE_DIR "/oracle.py",
		      ORACLE_DIR "/sample.proto", count, text, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	to_oracle = in[1];
	from_oracle = out[0];
	return 0;
}

static void send_bytes(struct view v)
{
	uint32_t n = (uint32_t)v.n;
	assert_int_equal(fd_write_all(to_oracle, &n, 4), 0);
	assert_int_equal(fd_write_all(to_oracle, v.p, v.n), 0);
}

static void receive_bytes(struct buf *b)
{
	uint32_t n;
	buf_clear(b);
	assert_int_equal(fd_read_all(from_oracle, &n, 4), 0);
	char *p = n ? buf_reserve(b, n) : NULL;
	assert_true(n == 0 || p);
	assert_int_equal(fd_read_all(from_oracle, p, n), 0);
	if (n)
		buf_commit(b, n);
}

static void test_from_oracle(void **state)
{
	(void)state;
	struct buf in = BUF_INIT(64u << 20), out = BUF_INIT(64u << 20);
	struct arena a = ARENA_INIT(256u << 20);
	for (int i = 0; i < COUNT; i++) {
		struct sample_all msg;
		receive_bytes(&in);
		assert_int_equal(pb_decode(&sample_all_msg, buf_view(&in), 0, &a, &msg), 0);
		buf_clear(&out);
		assert_int_equal(pb_encode(&sample_all_msg, &msg, &out), 0);
		send_bytes(buf_view(&out));
		arena_reset(&a);
	}
	arena_done(&a);
	buf_done(&in);
	buf_done(&out);
}

/* ---- random messages, made by walking the same tables ------------------ */

static uint64_t random_number(void)
{
	switch (next_random() % 4) {
	case 0:
		return 0;
	case 1:
		return next_random() % 300;
	case 2:
		return -(next_random() % 300);
	default:
		return next_random();
	}
}

static void fill_msg(const struct pb_msg *m, void *out, struct arena *a, int depth);

static void fill_one(const struct pb_field *f, void *dst, struct arena *a, int depth)
{
	static const char text[] =
		"the quick brown fox jumps over the lazy dog and runs away from the tests of paddock, "
		"which go on for a while so that the length needs two bytes and then some more";
	uint64_t v = random_number();
	switch ((enum pb_kind)f->kind) {
	case PB_U32:
	case PB_I32:
	case PB_S32:
		*(uint32_t *)dst = (uint32_t)v;
		break;
	case PB_ENUM: /* proto3 enums are open: any number */
		*(int32_t *)dst = (int32_t)v;
		break;
	case PB_U64:
	case PB_I64:
	case PB_S64:
		*(uint64_t *)dst = v;
		break;
	case PB_BOOL:
		*(bool *)dst = v & 1;
		break;
	case PB_DOUBLE:
		*(double *)dst = (double)(int64_t)v / 7;
		break;
	case PB_STRING:
	case PB_BYTES:
		*(struct view *)dst = (struct view){ text, v % sizeof(text) };
		break;
	case PB_MSG:
		fill_msg(f->sub, dst, a, depth + 1);
		break;
	}
}

static size_t size_of(const struct pb_field *f)
{
	static const size_t sizes[] = {
		[PB_U32] = 4,
		[PB_U64] = 8,
		[PB_I32] = 4,
		[PB_I64] = 8,
		[PB_S32] = 4,
		[PB_S64] = 8,
		[PB_BOOL] = 1,
		[PB_ENUM] = 4,
		[PB_DOUBLE] = 8,
		[PB_STRING] = sizeof(struct view),
		[PB_BYTES] = sizeof(struct view),
	};
	return f->kind == PB_MSG ? f->sub->size : sizes[f->kind];
}

static void fill_msg(const struct pb_msg *m, void *out, struct arena *a, int depth)
{
	unsigned taken = 0; /* oneofs that have a member */
	for (size_t i = 0; i < m->n_fields; i++) {
		const struct pb_field *f = &m->fields[i];
		char *slot = (char *)out + f->offset;
		if (next_random() % 3 == 0 || (f->kind == PB_MSG && depth > 5) ||
		    (f->oneof && taken & 1u << f->oneof))
			continue;
		taken |= f->oneof ? 1u << f->oneof : 0;
		if (f->has)
			*(bool *)((char *)out + f->has) = true;
		if (f->repeated) {
			struct pb_list *l = (struct pb_list *)(void *)slot;
			bool map = strstr(f->sub ? f->sub->name : "",
					  "Entry"); /* order and doubles are not defined */
			l->n = map ? 0 : next_random() % 20;
			l->items = arena_array(a, l->n, size_of(f));
			for (size_t k = 0; k < l->n; k++)
				fill_one(f, (char *)l->items + k * size_of(f), a, depth);
		} else if (f->kind == PB_MSG) {
			*(void **)(void *)slot = arena_alloc(a, f->sub->size);
			fill_one(f, *(void **)(void *)slot, a, depth);
		} else {
			fill_one(f, slot, a, depth);
		}
	}
}

static void test_to_oracle(void **state)
{
	(void)state;
	struct buf in = BUF_INIT(64u << 20), out = BUF_INIT(64u << 20);
	struct arena a = ARENA_INIT(256u << 20);
	for (int i = 0; i < COUNT; i++) {
		struct sample_all *msg = arena_alloc(&a, sizeof(*msg));
		fill_msg(&sample_all_msg, msg, &a, 0);
		buf_clear(&out);
		assert_int_equal(pb_encode(&sample_all_msg, msg, &out), 0);
		send_bytes(buf_view(&out));
		receive_bytes(&in);
		assert_int_equal(buf_len(&in), buf_len(&out));
		assert_memory_equal(in.p, out.p, buf_len(&in));
		arena_reset(&a);
	}
	arena_done(&a);
	buf_done(&in);
	buf_done(&out);
	int status;
	close(to_oracle);
	waitpid(oracle, &status, 0);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_from_oracle),
		cmocka_unit_test(test_to_oracle),
	};
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigaction(SIGPIPE, &ignore, NULL);
	return cmocka_run_group_tests_name("pb_oracle", tests, start_oracle, NULL);
}
