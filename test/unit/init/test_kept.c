/*
 * Processes that outlive their caller: offsets, rings, several readers at once,
 * the table, and what is remembered of those that have ended.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "clock.h"
#include "fd.h"
#include "kept.h"
#include "num.h"
#include "proc.h"
#include "rnd.h"
#include "poison.h"

static const struct offsets zero;

static void test_survives_its_stream(void **state)
{
	(void)state;
	struct wire_process_info info;
	struct wire_exited x;
	struct answer a;
	struct client other;
	uint32_t pid;
	client_open(&other, &box);
	kept_start(&other,
		   (struct run){ .argv = ARGV("sh", "-c", "echo one; echo e >&2; read x; echo $x; exit 5"),
				 .open_stdin = true },
		   &pid);
	client_close(&other);
	assert_true(kept_info(pid, &info, &x));
	assert_true(info.running);
	assert_null(info.exited);
	assert_int_equal(info.argv.n, 3);
	assert_true(info.started_ms > clock_wall_ms() - 10000 && info.started_ms <= clock_wall_ms());
	assert_int_equal(kept_input(&client, pid, 0, VIEW("two\n"), false), ERR_OK);
	kept_read(pid, zero, &a, &x);
	kept_assert_text(&a.data[1], "one\ntwo\n");
	kept_assert_text(&a.data[2], "e\n");
	assert_int_equal(x.exit_code, 5);
	answer_done(&a);
	/* Again after the end, from the middle, and past it. */
	kept_read(pid, (struct offsets){ .out = 4, .err = 1 }, &a, &x);
	kept_assert_text(&a.data[1], "two\n");
	kept_assert_text(&a.data[2], "\n");
	assert_int_equal(x.exit_code, 5);
	answer_done(&a);
	struct offsets at;
	uint32_t id = kept_attach(&client, pid, (struct offsets){ .out = 1000 }, &at);
	assert_int_equal(at.out, 8);
	client_finish(&client, id, &a);
	kept_assert_text(&a.data[1], "");
	answer_done(&a);
	assert_int_equal(kept_input(&client, pid, 0, VIEW("x"), false), ERR_STATE);
}

static enum err_code try_start(struct run r)
{
	struct answer a;
	uint32_t id = client_start(&client, &r);
	client_finish(&client, id, &a);
	enum err_code code = a.failed ? a.error.code : ERR_OK;
	answer_done(&a);
	return code;
}

static uint32_t find_tag(const char *tag)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT(65536);
	struct wire_process_selector who = { .tag = view_of(tag) };
	struct wire_attach msg = { .process = &who, .from_end = true };
	struct wire_attached r;
	struct frame f;
	uint32_t id = client_call(&client, WIRE_TYPE_ATTACH, 0, &wire_attach_msg, &msg), pid = 0;
	assert_true(client_next(&client, &f));
	assert_int_equal(f.stream, id);
	if (f.kind == FRAME_FAIL)
		return 0;
	assert_int_equal(pb_decode(&wire_attached_msg, f.body, 0, &arena, &r), 0);
	assert_true(view_is(r.info->tag, tag));
	pid = r.info->pid;
	kept_cancel(&client, id);
	return pid;
}

static void test_tags(void **state)
{
	(void)state;
	uint32_t first = kept_start_alone((struct run){ .argv = ARGV("sleep", "8001"), .tag = "web" });
	assert_int_equal(try_start((struct run){ .argv = ARGV("true"), .keep = true, .tag = "web" }),
			 ERR_CONFLICT);
	assert_int_equal(find_tag("web"), first);
	assert_int_equal(find_tag("other"), 0);
	assert_int_equal(kept_signal(&(struct wire_signal){ .tag = VIEW("web"), .signo = SIGKILL }), 1);
	kept_wait_ended(first);
	assert_int_equal(kept_signal(&(struct wire_signal){ .tag = VIEW("web"), .signo = SIGKILL }),
			 -ERR_NOT_FOUND);
	assert_int_equal(find_tag("web"), first);
	/* Of two that have ended the later one, of a dead and a living the living. */
	uint32_t second = kept_start_alone((struct run){ .argv = ARGV("sleep", "8002"), .tag = "web" });
	assert_int_equal(find_tag("web"), second);
	kept_signal(&(struct wire_signal){ .pid = second, .signo = SIGKILL });
	kept_wait_ended(second);
	assert_int_equal(find_tag("web"), second);
	assert_int_equal(try_start((struct run){ .argv = ARGV("true"), .tag = "web" }), ERR_INVALID);
	char longest[PROC_TAG + 2] = { 0 };
	memset(longest, 't', PROC_TAG + 1);
	assert_int_equal(try_start((struct run){ .argv = ARGV("true"), .keep = true, .tag = longest }),
			 ERR_INVALID);
	/* Starting fails: the tag stays free. */
	assert_int_equal(try_start((struct run){ .argv = ARGV("nope"), .keep = true, .tag = "free" }),
			 ERR_NOT_FOUND);
	assert_int_equal(try_start((struct run){ .argv = ARGV("true"), .keep = true, .tag = "free" }),
			 ERR_OK);
}

/* ---- a known pattern: "1\n2\n3\n…" ------------------------------------- */

struct pattern {
	uint64_t number, offset;
	char line[24];
	size_t at, n;
};

static void pattern_check(struct pattern *p, struct view v)
{
	while (v.n) {
		if (p->at == p->n) {
			p->n = (size_t)snprintf(p->line, sizeof(p->line), "%llu\n",
						(unsigned long long)++p->number);
			p->at = 0;
		}
		size_t n = MIN(v.n, p->n - p->at);
		if (memcmp(p->line + p->at, v.p, n) != 0)
			fail_msg("wrong byte at offset %llu", (unsigned long long)p->offset);
		p->at += n;
		p->offset += n;
		v = view_skip(v, n);
	}
}

#define LINES      "6500000"
#define LINES_SIZE (9 * 2 + 90 * 3 + 900 * 4 + 9000 * 5 + 90000 * 6 + 900000 * 7 + 5500001ull * 8)

/* Whether it was read to its end. At a random moment it is left, in a random way. */
static bool read_a_while(struct pattern *out, struct pattern *err, uint32_t pid)
{
	uint32_t dice[2];
	struct client c;
	struct offsets at;
	struct frame f;
	rnd_bytes(dice, sizeof(dice));
	uint64_t left = 1 + dice[0] % (2u << 20);
	client_open(&c, &box);
	uint32_t id = kept_attach(&c, pid, (struct offsets){ out->offset, err->offset, 0 }, &at);
	assert_int_equal(at.out, out->offset);
	assert_int_equal(at.err, err->offset);
	bool end = false;
	while (!end && left) {
		assert_true(client_next(&c, &f));
		if (f.kind == FRAME_DATA) {
			pattern_check(f.type == 1 ? out : err, f.body);
			client_credit(&c, id, (uint32_t)f.body.n);
			left -= MIN(left, f.body.n);
		}
		end = f.kind == FRAME_REPLY && (f.flags & FRAME_LAST);
		assert_int_not_equal(f.kind, FRAME_FAIL);
	}
	if (!end && dice[1] % 2)
		client_send(&c, (struct frame){ .kind = FRAME_CANCEL, .stream = id });
	client_close(&c);
	return end;
}

static void test_resume_under_load(void **state)
{
	(void)state;
	uint32_t pid = kept_start_alone((struct run){
		.argv = ARGV("sh", "-c", "seq 200000 >&2 & seq " LINES "; wait"), .wait_reader = true });
	struct pattern out = { 0 }, err = { 0 };
	unsigned rounds = 0;
	while (!read_a_while(&out, &err, pid))
		rounds++;
	print_message("# %u disconnects\n", rounds);
	assert_true(rounds > 10);
	assert_int_equal(out.offset, LINES_SIZE);
	assert_int_equal(err.offset, 9 * 2 + 90 * 3 + 900 * 4 + 9000 * 5 + 90000 * 6 + 100001 * 7);
}

/* ---- back-pressure ----------------------------------------------------- */

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* Reads what comes within a while, with credit. */
static uint64_t read_for(struct client *c, uint32_t stream, uint64_t want)
{
	struct frame f;
	uint64_t got = 0;
	while (got < want) {
		assert_true(client_next(c, &f));
		assert_int_equal(f.kind, FRAME_DATA);
		got += f.body.n;
		client_credit(c, stream, (uint32_t)f.body.n);
	}
	return got;
}

static void test_slowest_reader_holds_back(void **state)
{
	(void)state;
	struct client slow;
	struct wire_process_info info;
	struct wire_exited x;
	struct answer a;
	uint32_t pid;
	client_open(&slow, &box);
	kept_start(&slow, (struct run){ .argv = ARGV("head", "-c", "10000000", "/dev/zero") }, &pid);
	/* The one that started it reads nothing: a window is on its way to it, the ring is full. */
	uint32_t id = kept_attach(&client, pid, zero, NULL);
	uint64_t got = read_for(&client, id, PROC_RING / 2);
	sleep_ms(100);
	struct client asks;
	client_open(&asks, &box);
	struct client kept = client;
	client = asks;
	assert_true(kept_info(pid, &info, &x));
	asks = client;
	client = kept;
	assert_true(info.running);
	assert_true(info.stdout_end >= PROC_RING / 2);
	assert_true(info.stdout_end <= PROC_RING + FRAME_WINDOW);
	client_close(&asks);
	/* Without it, the other one gets everything. */
	client_close(&slow);
	client_finish(&client, id, &a);
	assert_false(a.failed);
	assert_int_equal(got + buf_len(&a.data[1]), 10000000);
	answer_done(&a);
}

static void test_nobody_reads(void **state)
{
	(void)state;
	struct answer a;
	struct offsets at;
	uint32_t pid = kept_start_alone((struct run){ .argv = ARGV("sh", "-c", "sleep 0.1; seq 1000000") });
	kept_wait_ended(pid);
	uint64_t size = 9 * 2 + 90 * 3 + 900 * 4 + 9000 * 5 + 90000 * 6 + 900000 * 7 + 8;
	uint32_t id = kept_attach(&client, pid, zero, &at);
	assert_int_equal(at.out, size - PROC_RING);
	client_finish(&client, id, &a);
	assert_false(a.failed);
	assert_int_equal(buf_len(&a.data[1]), PROC_RING);
	struct view tail = view_skip(buf_view(&a.data[1]), PROC_RING - 16);
	assert_memory_equal(tail.p, "\n999999\n1000000\n", 16);
	answer_done(&a);
	/* A smaller ring, as asked for. */
	pid = kept_start_alone(
		(struct run){ .argv = ARGV("sh", "-c", "sleep 0.1; seq 1000000"), .ring = 100000 });
	kept_wait_ended(pid);
	id = kept_attach(&client, pid, zero, &at);
	assert_int_equal(at.out, size - 102400);
	client_finish(&client, id, &a);
	answer_done(&a);
	assert_int_equal(try_start((struct run){ .argv = ARGV("true"), .keep = true, .ring = 1u << 30 }),
			 ERR_INVALID);
}

static void test_wait_reader(void **state)
{
	(void)state;
	struct wire_process_info info;
	struct wire_exited x;
	struct answer a;
	uint32_t pid = kept_start_alone(
		(struct run){ .argv = ARGV("head", "-c", "5000000", "/dev/zero"), .wait_reader = true });
	uint64_t before = 0;
	for (int i = 0; i < 20; i++) {
		sleep_ms(10);
		assert_true(kept_info(pid, &info, &x));
		assert_true(info.running);
		assert_true(info.stdout_end >= before && info.stdout_end <= PROC_RING);
		before = info.stdout_end;
	}
	assert_int_equal(before, PROC_RING);
	kept_read(pid, zero, &a, &x);
	assert_int_equal(buf_len(&a.data[1]), 5000000);
	answer_done(&a);
}

/* ---- ends -------------------------------------------------------------- */

static void test_losing_kills_only_where_asked(void **state)
{
	(void)state;
	struct wire_process_info info;
	struct wire_exited x;
	struct frame f;
	uint32_t pid = kept_start_alone((struct run){ .argv = ARGV("sleep", "8101") });
	struct client other;
	client_open(&other, &box);
	kept_attach(&other, pid, zero, NULL);
	client_close(&other);
	sleep_ms(50);
	assert_true(kept_info(pid, &info, &x));
	assert_true(info.running);
	client_open(&other, &box);
	struct wire_process_selector who = { .pid = pid };
	client_call(&other, WIRE_TYPE_ATTACH, 0, &wire_attach_msg,
		    &(struct wire_attach){ .process = &who, .kill = true });
	assert_true(client_next(&other, &f));
	client_close(&other);
	kept_wait_ended(pid);
	assert_true(kept_info(pid, &info, &x));
	assert_int_equal(x.signal, SIGHUP); /* SIGKILL for one that does not listen */
}

static void test_deadline(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	uint32_t pid;
	struct run r = { .argv = ARGV("sh", "-c", "echo on; sleep 8201"), .deadline_ms = 200 };
	kept_cancel(&client, kept_start(&client, r, &pid));
	kept_read(pid, zero, &a, &x);
	assert_true(x.timed_out);
	assert_int_equal(x.exit_code, 137);
	kept_assert_text(&a.data[1], "on\n");
	answer_done(&a);
}

static void test_background_children(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	uint32_t pid = kept_start_alone((struct run){
		.argv = ARGV("sh", "-c", "(while echo 8301; do sleep 0.01; done) & echo first; exit 4") });
	kept_read(pid, zero, &a, &x);
	assert_int_equal(x.exit_code, 4);
	assert_true(memmem(buf_view(&a.data[1]).p, buf_len(&a.data[1]), "first\n", 6) != NULL);
	answer_done(&a);
	client_run(&client, &(struct run){ .argv = ARGV("sh", "-c", "sleep 0.1; pkill -f 'echo [8]301'") },
		   &a, &x);
	assert_int_equal(x.exit_code, 0);
	answer_done(&a);
}

static void test_ends_are_remembered(void **state)
{
	(void)state;
	struct wire_process_info info;
	struct wire_exited x;
	struct answer a;
	uint32_t pids[PROC_ENDED + 10];
	for (size_t i = 0; i < ELEMS(pids); i++) {
		char code[32];
		snprintf(code, sizeof(code), "echo %zu; exit %zu", i, i);
		pids[i] = kept_start_alone((struct run){ .argv = ARGV("sh", "-c", code) });
		kept_wait_ended(pids[i]);
	}
	for (size_t i = 0; i < ELEMS(pids); i++) {
		bool there = kept_info(pids[i], &info, &x);
		assert_int_equal(there, i >= 10);
		if (!there)
			continue;
		assert_int_equal(x.exit_code, i);
		char text[8];
		snprintf(text, sizeof(text), "%zu\n", i);
		kept_read(pids[i], zero, &a, &x);
		kept_assert_text(&a.data[1], text);
		assert_int_equal(x.exit_code, i);
		answer_done(&a);
	}
}

/* One that is being read is not taken away from its reader. */
static void test_eviction_spares_readers(void **state)
{
	(void)state;
	struct answer a;
	struct client reader;
	struct offsets at;
	client_open(&reader, &box);
	uint32_t pid = kept_start_alone((struct run){ .argv = ARGV("sh", "-c", "seq 100000") });
	kept_wait_ended(pid);
	uint32_t id = kept_attach(&reader, pid, zero, &at);
	for (size_t i = 0; i <= PROC_ENDED; i++)
		kept_wait_ended(kept_start_alone((struct run){ .argv = ARGV("true") }));
	struct wire_process_info info;
	assert_false(kept_info(pid, &info, NULL));
	client_finish(&reader, id, &a);
	assert_false(a.failed);
	assert_int_equal(buf_len(&a.data[1]), 588895);
	answer_done(&a);
	client_close(&reader);
}

static void test_living_are_bounded(void **state)
{
	(void)state;
	struct wire_exited x;
	struct answer a;
	for (int i = 0; i < PROC_LIVING; i++)
		kept_start_alone((struct run){ .argv = ARGV("sleep", "8401") });
	assert_int_equal(try_start((struct run){ .argv = ARGV("true"), .keep = true }), ERR_UNAVAILABLE);
	client_run(&client, &(struct run){ .argv = ARGV("pkill", "-f", "[s]leep 8401") }, &a, &x);
	assert_int_equal(x.exit_code, 0);
	answer_done(&a);
	uint64_t until = clock_mono_ms() + 30000;
	while (try_start((struct run){ .argv = ARGV("true"), .keep = true }) != ERR_OK)
		assert_true(clock_mono_ms() < until);
}

#ifndef INIT_IN_PROCESS
#define MEMORY_MOST_KB 1024

static void test_memory(void **state)
{
	(void)state;
	size_t before = box_rss_kb(&box);
	for (int i = 0; i < 200; i++)
		kept_start_alone((struct run){ .argv = ARGV("head", "-c", "300000", "/dev/zero") });
	for (int i = 0; i <= PROC_ENDED; i++)
		kept_wait_ended(kept_start_alone((struct run){ .argv = ARGV("true") }));
	uint64_t until = clock_mono_ms() + 10000;
	size_t after;
	/* Kept wrongly, the output alone were 60 MB. What is between the pieces of the heap varies by 300 kB.
	 */
	while ((after = box_rss_kb(&box)) > MEMORY_MOST_KB && clock_mono_ms() < until)
		kept_wait_ended(kept_start_alone((struct run){ .argv = ARGV("true") }));
	print_message("# PID 1: %zu kB before, %zu kB after\n", before, after);
	assert_true(after <= MEMORY_MOST_KB);
	/* What an idle shell costs. */
	for (int i = 0; i < 10; i++)
		kept_start_alone((struct run){ .argv = ARGV("sh"), .open_stdin = true, .control = true });
	size_t shells = box_rss_kb(&box);
	print_message("# with ten idle shells: %zu kB\n", shells);
	assert_true(shells < after + 200);
}

/* The processor time that PID 1 has had: "pid (comm) state …", the 14th and 15th field, in ticks. */
static double init_cpu_seconds(void)
{
	char path[64], text[512];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)box.pid);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	struct view rest = { text, n };
	uint64_t ticks = 0, v;
	for (int i = 1; i <= 15; i++) {
		struct view field = view_split(rest, ' ', &rest);
		if (i >= 14) {
			assert_int_equal(num_u64(field, &v), 0);
			ticks += v;
		}
	}
	return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* As fast as PID 1 can: by its own processor time, whatever else the machine does. */
static void test_throughput(void **state)
{
	(void)state;
	const uint64_t size = getenv("PADDOCK_BENCH") ? 4000000000 : 1000000000;
	char bytes[32];
	struct frame f;
	uint32_t pid;
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)size);
	uint64_t t = clock_mono_ns(), got = 0, owed = 0;
	double cpu = init_cpu_seconds();
	uint32_t id =
		kept_start(&client, (struct run){ .argv = ARGV("head", "-c", bytes, "/dev/zero") }, &pid);
	while (got < size) {
		assert_true(client_next(&client, &f));
		assert_int_equal(f.kind, FRAME_DATA);
		got += f.body.n;
		owed += f.body.n;
		if (owed > FRAME_WINDOW / 4) {
			client_credit(&client, id, (uint32_t)owed);
			owed = 0;
		}
	}
	cpu = init_cpu_seconds() - cpu;
	print_message("# %.0f MB/s, %.0f MB for each second of PID 1\n",
		      (double)size * 1000 / (double)(clock_mono_ns() - t), (double)size / 1000000 / cpu);
	assert_true((double)size / 1000000 / cpu > 300); /* on a quiet machine 1500 */
}

/* From the program's write to the caller: the program's own clock is in what it writes. */
static void test_first_byte(void **state)
{
	(void)state;
	struct frame f;
	uint32_t pid;
	uint64_t best = UINT64_MAX;
	struct run r = { .argv = ARGV("python3", "-uc",
				      "import time\nfor i in range(50):\n time.sleep(0.005)\n "
				      "print(time.monotonic_ns(), flush=True)") };
	kept_start(&client, r, &pid);
	/* On a busy machine several writes come in one frame, or one in two: whole single lines count. */
	while (client_next(&client, &f) && f.kind == FRAME_DATA) {
		uint64_t now = clock_mono_ns(), then = 0;
		struct view rest, line = view_split(f.body, '\n', &rest);
		if (rest.p && rest.n == 0 && num_u64(line, &then) == 0 && then < now)
			best = MIN(best, now - then);
	}
	assert_int_equal(f.kind, FRAME_REPLY);
	print_message("# first byte after %llu us\n", (unsigned long long)best / 1000);
	assert_true(best < 1000000);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		KEPT_TEST(test_survives_its_stream),
		KEPT_TEST(test_tags),
		KEPT_TEST(test_resume_under_load),
		KEPT_TEST(test_slowest_reader_holds_back),
		KEPT_TEST(test_nobody_reads),
		KEPT_TEST(test_wait_reader),
		KEPT_TEST(test_losing_kills_only_where_asked),
		KEPT_TEST(test_deadline),
		KEPT_TEST(test_background_children),
		KEPT_TEST(test_ends_are_remembered),
		KEPT_TEST(test_eviction_spares_readers),
		KEPT_TEST(test_living_are_bounded),
#ifndef INIT_IN_PROCESS
		KEPT_TEST(test_memory),
		KEPT_TEST(test_throughput),
		KEPT_TEST(test_first_byte),
#endif
	};
	return cmocka_run_group_tests_name("init_kept", tests, kept_start_box, kept_stop_box);
}
