/*
 * A caller that does everything at once and in the wrong order: random calls,
 * DATA, END, CANCEL and credit for streams that live, end or never were, broken
 * frames, and connections that vanish in the middle. PID 1 must answer after
 * it, and must have kept nothing.
 */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "box.h"
#include "clock.h"
#include "fd.h"
#include "num.h"
#include "proc.h"
#include "rnd.h"
#include "poison.h"

#define DURATION_MS   1500
#define DEADLINE_AT   12 /* in the header: frame.h */
#define DEADLINE_SIZE 4

static struct box box;
static uint64_t seed;
static char paths[6][64];
static struct view tags[] = { VIEW("one"), VIEW("two"), VIEW("three") };

static uint32_t below(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 11) % n;
}

static int start_box(void **state)
{
	(void)state;
	static const char *const names[ELEMS(paths)] = { "a", "b", "a/c", "a/d/e", "b/x", "a/../f" };
	box_start(&box);
	for (size_t i = 0; i < ELEMS(paths); i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", box.dir, names[i]);
	const char *given = getenv("HAMMER_SEED"); /* as printed by the run that failed */
	rnd_bytes(&seed, sizeof(seed));
	seed |= 1;
	if (given && num_u64(view_of(given), &seed) < 0)
		fail_msg("HAMMER_SEED is not a number");
	print_message("# seed %llu\n", (unsigned long long)seed);
	return 0;
}

static int stop_box(void **state)
{
	(void)state;
	box_stop(&box);
	return 0;
}

static void put_start(struct buf *o, uint32_t id)
{
	static struct view commands[][3] = {
		{ VIEW("true") },
		{ VIEW("sh"), VIEW("-c"), VIEW("head -c 400000 /dev/zero; echo x >&2") },
		{ VIEW("cat") },
		{ VIEW("sh"), VIEW("-c"), VIEW("sleep 0.05 & echo hi") },
		{ VIEW("no-such-program") },
		{ VIEW("yes") },
	};
	struct view *argv = commands[below(ELEMS(commands))];
	struct wire_start m = {
		.argv = { argv, argv[1].n ? 3 : 1 },
		.user = below(20) ? VIEW("user") : VIEW("nobody-here"),
		.stdin_ = below(2),
		.stdout_limit = below(2) ? 1000000 : 100,
		.stderr_limit = below(100),
		.keep = below(2),
		.control = below(4) == 0,
	};
	struct wire_pty pty = { .cols = below(200), .rows = below(200) };
	if (below(4) == 0)
		m.pty = &pty;
	if (m.keep) {
		m.tag = below(2) ? tags[below(ELEMS(tags))] : VIEW_NONE;
		m.wait_reader = below(2);
		m.ring_bytes = below(2) * 70000;
		m.kill = below(4) == 0;
	}
	assert_int_equal(
		frame_put_msg(o, WIRE_TYPE_START, FRAME_CALL, 0, id, 1 + below(100), &wire_start_msg, &m), 0);
}

/* About a process that may or may not be there. */
static void put_kept_call(struct buf *o, uint32_t id)
{
	static char block[60000];
	/* None that stops: who is killed alone would leave a stopped child behind. */
	static const uint32_t signals[] = { 0, SIGHUP, SIGINT, SIGKILL, SIGUSR1, SIGTERM, SIGCONT, 64, 65 };
	struct wire_process_selector who = { .pid = below(2) * below(4000), .tag = tags[below(ELEMS(tags))] };
	struct wire_attach at = { .process = below(50) ? &who : NULL,
				  .stdout_offset = below(2) * below(400000),
				  .control_offset = below(2),
				  .from_end = below(2),
				  .kill = below(4) == 0 };
	struct wire_input input = { .process = &who,
				    .channel = below(5),
				    .data = { block, below(sizeof(block)) },
				    .close = below(3) == 0 };
	struct wire_resize size = { .process = &who, .cols = below(300), .rows = below(300) };
	struct wire_signal sig = { .pid = who.pid,
				   .tag = who.tag,
				   .signo = signals[below(ELEMS(signals))],
				   .scope = (int32_t)below(5),
				   .since_ms = below(2) };
	struct wire_processes list = { 0 };
	const struct {
		uint16_t type;
		const struct pb_msg *m;
		const void *msg;
	} calls[] = {
		{ WIRE_TYPE_ATTACH, &wire_attach_msg, &at },
		{ WIRE_TYPE_ATTACH, &wire_attach_msg, &at },
		{ WIRE_TYPE_INPUT, &wire_input_msg, &input },
		{ WIRE_TYPE_RESIZE, &wire_resize_msg, &size },
		{ WIRE_TYPE_SIGNAL, &wire_signal_msg, &sig },
		{ WIRE_TYPE_PROCESSES, &wire_processes_msg, &list },
	};
	size_t i = below(ELEMS(calls));
	assert_int_equal(frame_put_msg(o, calls[i].type, FRAME_CALL, 0, id, 0, calls[i].m, calls[i].msg), 0);
}

static void put_file_call(struct buf *o, uint32_t id)
{
	struct view path = view_of(paths[below(ELEMS(paths))]), user = VIEW("user");
	struct wire_file_read rd = { .path = path, .user = user, .offset = below(100) };
	struct wire_file_write wr = {
		.path = path, .user = user, .mode = below(2) * 0600, .parents = below(2)
	};
	struct wire_file_list ls = { .path = path, .user = user };
	struct wire_file_remove rm = { .path = path, .user = user, .recursive = below(2) };
	struct wire_file_mkdir md = { .path = path, .user = user, .parents = below(2) };
	const struct {
		uint16_t type;
		const struct pb_msg *m;
		const void *msg;
	} calls[] = {
		{ WIRE_TYPE_FILE_READ, &wire_file_read_msg, &rd },
		{ WIRE_TYPE_FILE_WRITE, &wire_file_write_msg, &wr },
		{ WIRE_TYPE_FILE_LIST, &wire_file_list_msg, &ls },
		{ WIRE_TYPE_FILE_REMOVE, &wire_file_remove_msg, &rm },
		{ WIRE_TYPE_FILE_MKDIR, &wire_file_mkdir_msg, &md },
	};
	size_t i = below(ELEMS(calls));
	assert_int_equal(frame_put_msg(o, calls[i].type, FRAME_CALL, 0, id, 0, calls[i].m, calls[i].msg), 0);
}

/* For a stream that may or may not be there. */
static void put_other(struct buf *o, uint32_t stream)
{
	static char block[60000];
	uint32_t credit = below(300000);
	struct frame frames[] = {
		{ .kind = FRAME_DATA, .stream = stream, .body = { block, below(sizeof(block)) } },
		{ .kind = FRAME_DATA, .type = 3, .stream = stream, .body = { block, below(sizeof(block)) } },
		{ .kind = FRAME_END, .stream = stream },
		{ .kind = FRAME_CANCEL, .stream = stream },
		{ .kind = FRAME_WINDOW_ADD, .stream = stream, .body = { (const char *)&credit, 4 } },
	};
	assert_int_equal(frame_put(o, &frames[below(ELEMS(frames))]), 0);
}

/* Any bit but those of the deadline: a kept process that was given years outlives the wait, and rightly so.
 */
static void break_frame(struct buf *o)
{
	uint32_t at = below(FRAME_HEADER - DEADLINE_SIZE);
	o->p[at < DEADLINE_AT ? at : at + DEADLINE_SIZE] ^= (char)(1 << below(8));
}

static void hammer_once(void)
{
	struct client c;
	uint32_t id = 0;
	client_open(&c, &box);
	for (uint32_t i = 0, n = below(60); i < n; i++) {
		struct buf o = BUF_INIT(1u << 20);
		switch (below(4)) {
		case 0:
			put_start(&o, ++id);
			break;
		case 1:
			put_file_call(&o, ++id);
			break;
		case 2:
			put_kept_call(&o, ++id);
			break;
		default:
			put_other(&o, 1 + below(id + 1));
		}
		if (below(400) == 0)
			break_frame(&o);
		/* What does not fit is cut: a broken frame is as good. */
		(void)send(c.fd, buf_view(&o).p, buf_len(&o), MSG_NOSIGNAL | MSG_DONTWAIT);
		buf_done(&o);
		char sink[65536];
		while (below(3) == 0 && recv(c.fd, sink, sizeof(sink), MSG_DONTWAIT) > 0)
			;
	}
	client_close(&c);
}

static unsigned count_fds(void)
{
	char path[64];
	unsigned n = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)box.pid);
	DIR *dir = opendir(path);
	assert_non_null(dir);
	for (struct dirent *d; (d = readdir(dir));)
		n += d->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void test_hammer(void **state)
{
	(void)state;
	struct client c;
	struct answer a;
	struct wire_exited x;
	client_open(&c, &box);
	client_run(&c, &(struct run){ .argv = ARGV("true") }, &a, &x);
	answer_done(&a);
	unsigned before = count_fds(); /* perhaps with a pipe of it that is about to be closed */
	for (uint64_t until = clock_mono_ms() + DURATION_MS; clock_mono_ms() < until;)
		hammer_once();
	/* Everything that ran has been killed and collected, every descriptor is closed. */
	uint64_t until = clock_mono_ms() + 30000;
	for (bool clean = false; !clean;) {
		assert_true(clock_mono_ms() < until);
		/* Those that were kept are forgotten for others, also with output that waited for a reader.
		 */
		for (int i = 0; i < PROC_ENDED; i++) {
			client_run(&c, &(struct run){ .argv = ARGV("true"), .keep = true }, &a, &x);
			answer_done(&a);
		}
		client_run(&c, &(struct run){ .argv = ARGV("sh", "-c", "ls -d /proc/[0-9]* | wc -l") }, &a,
			   &x);
		assert_false(a.failed);
		/* PID 1, the shell, ls and wc. */
		clean = view_is(buf_view(&a.data[1]), "4\n") && count_fds() <= before;
		answer_done(&a);
	}
	client_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_hammer) };
	return cmocka_run_group_tests_name("init_hammer", tests, start_box, stop_box);
}
