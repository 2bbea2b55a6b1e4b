/*
 * PID 1 and processes: what a caller sees of start, output, limits and exit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "box.h"
#include "clock.h"
#include "conn.h"
#include "fd.h"
#include "poison.h"

static struct box box;
static struct client client;

static int start_box(void **state)
{
	(void)state;
	box_start(&box);
	return 0;
}

static int stop_box(void **state)
{
	(void)state;
	box_stop(&box);
	return 0;
}

static int connect_client(void **state)
{
	(void)state;
	client_open(&client, &box);
	return 0;
}

static int close_client(void **state)
{
	(void)state;
	client_close(&client);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, connect_client, close_client)

static void run_as(const char *user, const char *const *argv, struct answer *a, struct wire_exited *x)
{
	client_run(&client, &(struct run){ .user = user, .argv = argv }, a, x);
}

static void assert_text(const struct buf *b, const char *text)
{
	if (!view_is(buf_view(b), text))
		fail_msg("'%.*s' is not '%s'", VIEW_ARG(view_head(buf_view(b), 500)), text);
}

static void assert_fails(const struct run *r, enum err_code code, const char *part)
{
	struct answer a;
	struct wire_exited x;
	client_run(&client, r, &a, &x);
	assert_true(a.failed);
	assert_string_equal(err_name(a.error.code), err_name(code));
	if (!strstr(a.error.msg, part))
		fail_msg("'%s' does not say '%s'", a.error.msg, part);
	answer_done(&a);
}

static bool alive(const char *mark)
{
	struct answer a;
	struct wire_exited x;
	run_as("root", ARGV("pgrep", "-f", mark), &a, &x);
	bool found = x.exit_code == 0;
	answer_done(&a);
	return found;
}

/* In the moment of its exec a process has no command line to be found by. */
static void assert_alive(const char *mark)
{
	uint64_t until = clock_mono_ms() + 30000;
	while (!alive(mark))
		if (clock_mono_ms() > until)
			fail_msg("'%s' is not running", mark);
}

/* Killing is at once, dying takes the kernel a moment. */
static void assert_gone(const char *mark)
{
	uint64_t until = clock_mono_ms() + 30000;
	while (alive(mark))
		if (clock_mono_ms() > until)
			fail_msg("'%s' is still running", mark);
}

static void test_hello(void **state)
{
	(void)state;
	_cleanup_(arena_done) struct arena arena = ARENA_INIT(65536);
	struct wire_hello_reply r;
	struct answer a;
	uint32_t id = client_call(&client, WIRE_TYPE_HELLO, 0, &wire_hello_msg,
				  &(struct wire_hello){ .protocol = 1 });
	client_finish(&client, id, &a);
	answer_decode(&a, &a.last, &wire_hello_reply_msg, &arena, &r);
	assert_int_equal(r.protocol, WIRE_PROTOCOL_CURRENT);
	assert_true(view_is(r.build, PADDOCK_VERSION));
	answer_done(&a);
	id = client_call(&client, 99, 0, &wire_hello_msg, &(struct wire_hello){ 0 });
	client_finish(&client, id, &a);
	assert_true(a.failed);
	assert_int_equal(a.error.code, ERR_UNSUPPORTED);
	answer_done(&a);
}

static void test_true_false_signal(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	run_as("user", ARGV("/bin/true"), &a, &x);
	assert_false(a.failed);
	assert_int_equal(x.exit_code, 0);
	assert_true(x.duration_us > 0 && x.duration_us < 5000000);
	answer_done(&a);
	run_as("user", ARGV("sh", "-c", "exit 7"), &a, &x);
	assert_int_equal(x.exit_code, 7);
	assert_int_equal(x.signal, 0);
	answer_done(&a);
	run_as("user", ARGV("sh", "-c", "kill -SEGV $$"), &a, &x);
	assert_int_equal(x.exit_code, 128 + SIGSEGV);
	assert_int_equal(x.signal, SIGSEGV);
	assert_false(x.timed_out);
	answer_done(&a);
}

static void test_output_apart_and_binary(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	run_as("user", ARGV("sh", "-c", "printf 'a\\0b\\377'; printf err >&2; printf c"), &a, &x);
	assert_int_equal(x.exit_code, 0);
	assert_int_equal(buf_len(&a.data[1]), 5);
	assert_memory_equal(buf_view(&a.data[1]).p, "a\0b\377c", 5);
	assert_text(&a.data[2], "err");
	answer_done(&a);
}

static void test_stdin(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	size_t n = 200000;
	char *p = malloc(n);
	for (size_t i = 0; i < n; i++)
		p[i] = (char)(i * 7 >> 3);
	struct run r = { .argv = ARGV("cat"), .open_stdin = true, .input = { p, n } };
	client_run(&client, &r, &a, &x);
	assert_int_equal(x.exit_code, 0);
	assert_int_equal(buf_len(&a.data[1]), n);
	assert_memory_equal(buf_view(&a.data[1]).p, p, n);
	answer_done(&a);
	/* Not asked for: /dev/null. */
	run_as("user", ARGV("cat"), &a, &x);
	assert_int_equal(x.exit_code, 0);
	assert_int_equal(buf_len(&a.data[1]), 0);
	answer_done(&a);
	/* Nobody reads it: neither a hang nor a signal. */
	r.argv = ARGV("sh", "-c", "exec <&-; sleep 0.1; echo done");
	client_run(&client, &r, &a, &x);
	assert_int_equal(x.exit_code, 0);
	assert_text(&a.data[1], "done\n");
	answer_done(&a);
	free(p);
}

/* More than a window of stdin: credit comes only as the program reads. */
static void test_stdin_window(void **state)
{
	(void)state;
	struct view argv[] = { VIEW("sh"), VIEW("-c"), VIEW("wc -c") };
	struct wire_start s = {
		.argv = { argv, 3 }, .user = VIEW("user"), .stdin_ = true, .stdout_limit = 100
	};
	uint32_t id = client_call(&client, WIRE_TYPE_START, 0, &wire_start_msg, &s);
	size_t left = 3u << 20, credit = FRAME_WINDOW;
	static char block[FRAME_DATA_MAX];
	while (left) {
		size_t n = MIN(MIN(left, sizeof(block)), credit);
		if (n) {
			client_send(&client,
				    (struct frame){ .kind = FRAME_DATA, .stream = id, .body = { block, n } });
			left -= n;
			credit -= n;
			continue;
		}
		struct frame f;
		assert_true(client_next(&client, &f));
		if (f.kind == FRAME_WINDOW_ADD)
			for (int i = 0; i < 4; i++)
				credit += (size_t)(uint8_t)f.body.p[i] << 8 * i;
	}
	client_send(&client, (struct frame){ .kind = FRAME_END, .stream = id });
	struct answer a;
	client_finish(&client, id, &a);
	assert_text(&a.data[1], "3145728\n");
	answer_done(&a);
}

/* A program that writes without end and a caller that is slow: PID 1 holds the program back. */
static void test_flood(void **state)
{
	(void)state;
	size_t before = box_rss_kb(&box);
	uint32_t id =
		client_start(&client, &(struct run){ .argv = ARGV("head", "-c", "100000000", "/dev/zero") });
	size_t got = 0;
	struct frame f;
	/* No credit for now: exactly one window comes. */
	while (got < FRAME_WINDOW) {
		assert_true(client_next(&client, &f));
		got += f.kind == FRAME_DATA ? f.body.n : 0;
	}
	assert_int_equal(got, FRAME_WINDOW);
	assert_alive("[h]ead -c 100000000");
	size_t held = box_rss_kb(&box);
#ifndef INIT_IN_PROCESS
	assert_true(held < before + 1024);
#endif
	(void)before, (void)held;
	struct answer a;
	client_credit(&client, id, FRAME_WINDOW);
	client_finish(&client, id, &a);
	assert_int_equal(got + buf_len(&a.data[1]), 100000000);
	answer_done(&a);
}

static void test_limits(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	struct run r = { .argv = ARGV("sh", "-c",
				      "head -c 3000000 /dev/zero; printf 1234567890 >&2; echo x >&2"),
			 .limit = 10 };
	client_run(&client, &r, &a, &x);
	assert_int_equal(x.exit_code, 0);
	assert_int_equal(buf_len(&a.data[1]), 10);
	assert_text(&a.data[2], "1234567890");
	assert_true(x.stdout_truncated && x.stderr_truncated);
	answer_done(&a);
	r.argv = ARGV("printf", "1234567890");
	client_run(&client, &r, &a, &x);
	assert_text(&a.data[1], "1234567890");
	assert_false(x.stdout_truncated || x.stderr_truncated);
	answer_done(&a);
}

static void test_timeout_kills_all(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	const char *script = "sleep 7101 & setsid sleep 7102 & (setsid sh -c 'sleep 7103 & sleep 7104' &); "
			     "trap '' TERM INT HUP; echo on; sleep 7105";
	struct run r = { .user = "user", .argv = ARGV("sh", "-c", script), .deadline_ms = 250 };
	uint64_t t = clock_mono_ms();
	client_run(&client, &r, &a, &x);
	t = clock_mono_ms() - t;
	assert_true(t >= 250 && t < 3000);
	assert_true(x.timed_out);
	assert_int_equal(x.exit_code, 137);
	assert_int_equal(x.signal, 9);
	assert_text(&a.data[1], "on\n");
	answer_done(&a);
	assert_gone("[s]leep 710[125]");
	/* The double fork with a session of its own had left the tree before. */
	run_as("root", ARGV("pkill", "-f", "sleep 710"), &a, &x);
	answer_done(&a);
}

static void test_background_child_does_not_hang(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	uint64_t t = clock_mono_ms();
	run_as("user", ARGV("sh", "-c", "sleep 7201 & echo started"), &a, &x);
	assert_true(clock_mono_ms() - t < 3000);
	assert_int_equal(x.exit_code, 0);
	assert_text(&a.data[1], "started\n");
	answer_done(&a);
	assert_alive("[s]leep 7201");
	/* One that goes on writing is not killed by that. */
	run_as("user", ARGV("sh", "-c", "(while echo 7202; do sleep 0.01; done) & exit 3"), &a, &x);
	assert_int_equal(x.exit_code, 3);
	answer_done(&a);
	run_as("user", ARGV("sh", "-c", "sleep 0.2; pgrep -f 'echo [7]202' > /dev/null && echo on"), &a, &x);
	assert_text(&a.data[1], "on\n");
	answer_done(&a);
	run_as("root", ARGV("pkill", "-f", "720[12]"), &a, &x);
	answer_done(&a);
}

static void test_environment(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	struct run r = { .user = "user",
			 .cwd = box.dir,
			 .argv = ARGV("env"),
			 .env = ARGV("PATH", "/usr/bin:/bin", "B", "2 = two", "A", "") };
	client_run(&client, &r, &a, &x);
	assert_text(&a.data[1], "PATH=/usr/bin:/bin\nB=2 = two\nA=\n");
	answer_done(&a);
	r.argv = ARGV("/bin/pwd");
	client_run(&client, &r, &a, &x);
	assert_true(view_starts(buf_view(&a.data[1]), box.dir));
	answer_done(&a);
	r.cwd = ""; /* home */
	client_run(&client, &r, &a, &x);
	assert_true(view_starts(buf_view(&a.data[1]), box.dir));
	answer_done(&a);
	/* No descriptors but the three, no signals blocked or ignored, a session of its own. */
	r.argv = ARGV("sh", "-c",
		      "ls /proc/self/fd | tr '\\n' ' '; grep -E 'SigBlk|SigIgn|CapEff|CapInh' "
		      "/proc/self/status | tr -d '\\t'; "
		      "test $(ps -o sid= -p $$) = $$ && umask");
	client_run(&client, &r, &a, &x);
	assert_text(&a.data[1], "0 1 2 3 SigBlk:0000000000000000\nSigIgn:0000000000000000\n"
				"CapInh:0000000000000000\nCapEff:0000000000000000\n0022\n");
	answer_done(&a);
}

static void test_user(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	const char *const *argv = ARGV("sh", "-c", "id -u; id -g; id -G");
	run_as("user", argv, &a, &x);
	assert_text(&a.data[1], "1000\n1000\n1000 1234\n");
	answer_done(&a);
	run_as("1000", argv, &a, &x);
	assert_text(&a.data[1], "1000\n1000\n1000 1234\n");
	answer_done(&a);
	run_as("root", argv, &a, &x);
	assert_text(&a.data[1], "0\n0\n0\n");
	answer_done(&a);
	assert_fails(&(struct run){ .user = "nobody-here", .argv = argv }, ERR_INVALID, "nobody-here");
	assert_fails(&(struct run){ .user = "4242", .argv = argv }, ERR_INVALID, "4242");
	assert_fails(&(struct run){ .user = "", .argv = argv }, ERR_INVALID, "empty");
}

static void test_start_errors(void **state)
{
	(void)state;
	assert_fails(&(struct run){ .argv = ARGV("no-such-program") }, ERR_NOT_FOUND, "no-such-program");
	assert_fails(&(struct run){ .argv = ARGV("/no/such/program") }, ERR_NOT_FOUND, "/no/such/program");
	assert_fails(&(struct run){ .argv = ARGV("/etc/passwd") }, ERR_FORBIDDEN, "ermission");
	assert_fails(&(struct run){ .argv = ARGV("/tmp") }, ERR_FORBIDDEN, "ermission");
	assert_fails(&(struct run){ .argv = ARGV("") }, ERR_INVALID, "argv");
	assert_fails(&(struct run){ .argv = ARGV("true"), .cwd = "/nowhere" }, ERR_INVALID,
		     "cwd '/nowhere' does not exist");
	assert_fails(&(struct run){ .argv = ARGV("true"), .cwd = "/etc/passwd" }, ERR_INVALID,
		     "not a directory");
	assert_fails(&(struct run){ .argv = ARGV("true"), .env = ARGV("A=B", "C") }, ERR_INVALID, "bad name");
	/* A script without "#!" is for sh, as execvp has it. */
	char path[64];
	struct answer a;
	struct wire_exited x;
	snprintf(path, sizeof(path), "%s/script", box.dir);
	int fd = creat(path, 0755);
	assert_true(fd >= 0 && fd_write_all(fd, "echo \"$0 $1\"\n", 13) == 0);
	fchmod(fd, 0755);
	close(fd);
	run_as("user", ARGV(path, "arg"), &a, &x);
	assert_false(a.failed);
	assert_true(view_starts(buf_view(&a.data[1]), path));
	answer_done(&a);
}

static void test_signal_and_cancel(void **state)
{
	(void)state;
	_cleanup_(arena_done) struct arena arena = ARENA_INIT(65536);
	struct frame f;
	struct answer a;
	struct wire_started st;
	uint32_t id = client_start(&client, &(struct run){ .argv = ARGV("sh", "-c", "sleep 7301; echo no") });
	assert_true(client_next(&client, &f));
	assert_int_equal(pb_decode(&wire_started_msg, f.body, 0, &arena, &st), 0);
	uint32_t sig = client_call(&client, WIRE_TYPE_SIGNAL, 0, &wire_signal_msg,
				   &(struct wire_signal){ .pid = st.pid, .signo = SIGTERM });
	client_finish(&client, sig, &a);
	assert_false(a.failed);
	answer_done(&a);
	client_finish(&client, id, &a);
	struct wire_exited x;
	answer_decode(&a, &a.last, &wire_exited_msg, &arena, &x);
	assert_int_equal(x.signal, SIGTERM);
	answer_done(&a);
	sig = client_call(&client, WIRE_TYPE_SIGNAL, 0, &wire_signal_msg,
			  &(struct wire_signal){ .pid = st.pid, .signo = SIGTERM });
	client_finish(&client, sig, &a);
	assert_int_equal(a.error.code, ERR_NOT_FOUND);
	answer_done(&a);

	id = client_start(&client, &(struct run){ .argv = ARGV("sleep", "7302") });
	client_send(&client, (struct frame){ .kind = FRAME_CANCEL, .stream = id });
	client_finish(&client, id, &a);
	assert_int_equal(a.error.code, ERR_CANCELLED);
	answer_done(&a);
	assert_gone("[s]leep 7302");
	/* Frames for a stream that is over are nobody's fault. */
	client_send(&client, (struct frame){ .kind = FRAME_CANCEL, .stream = id });
	client_credit(&client, id, 1);
}

static void test_lost_connection_kills(void **state)
{
	(void)state;
	struct client other;
	struct frame f;
	client_open(&other, &box);
	client_start(&other, &(struct run){ .argv = ARGV("sh", "-c", "setsid sleep 7401 & sleep 7402") });
	assert_true(client_next(&other, &f));
	assert_int_equal(f.type, WIRE_TYPE_START);
	while (!alive("[s]leep 7401"))
		;
	client_close(&other);
	assert_gone("[s]leep 740");
}

static void assert_closed(struct client *c)
{
	struct frame f;
	while (client_next(c, &f))
		;
	client_close(c);
}

static void test_garbage_closes_only_that_connection(void **state)
{
	(void)state;
	uint32_t id = client_start(&client,
				   &(struct run){ .argv = ARGV("sh", "-c", "sleep 0.3; echo still here") });
	struct client bad;
	char noise[4096];
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(i * 37 + 11);
	client_open(&bad, &box);
	assert_true(send(bad.fd, noise, sizeof(noise), MSG_NOSIGNAL) > 0);
	assert_closed(&bad);
	/* A stream number that goes back; DATA past the credit; DATA after END. */
	client_open(&bad, &box);
	client_call(&bad, WIRE_TYPE_HELLO, 0, &wire_hello_msg, &(struct wire_hello){ 0 });
	bad.last = 0;
	client_call(&bad, WIRE_TYPE_HELLO, 0, &wire_hello_msg, &(struct wire_hello){ 0 });
	assert_closed(&bad);
	client_open(&bad, &box);
	uint32_t s = client_start(&bad, &(struct run){ .argv = ARGV("sleep", "7501"), .open_stdin = true });
	client_send(&bad, (struct frame){ .kind = FRAME_DATA, .stream = s, .body = VIEW("x") });
	assert_closed(&bad);
	/* A body that is no message is only that request's fault. */
	client_send(&client, (struct frame){ .kind = FRAME_CALL,
					     .type = WIRE_TYPE_START,
					     .stream = ++client.last,
					     .body = VIEW("\xff\xff") });
	struct answer a;
	client_finish(&client, client.last, &a);
	assert_int_equal(a.error.code, ERR_BAD_REQUEST);
	answer_done(&a);
	client_finish(&client, id, &a);
	assert_text(&a.data[1], "still here\n");
	answer_done(&a);
	assert_gone("[s]leep 7501");
}

static void test_connections_are_bounded(void **state)
{
	(void)state;
	struct client many[20];
	struct frame f;
	for (size_t i = 0; i < ELEMS(many); i++)
		client_open(&many[i], &box);
	/* One is ours: the last five are turned away. */
	for (size_t i = 15; i < ELEMS(many); i++)
		assert_false(client_next(&many[i], &f));
	for (size_t i = 0; i < ELEMS(many); i++)
		client_close(&many[i]);
	/* They are gone when a new one is let in and answered. */
	uint64_t until = clock_mono_ms() + 30000;
	for (bool answered = false; !answered;) {
		assert_true(clock_mono_ms() < until);
		client_open(&many[0], &box);
		client_call(&many[0], WIRE_TYPE_HELLO, 0, &wire_hello_msg, &(struct wire_hello){ 0 });
		answered = client_next(&many[0], &f);
		client_close(&many[0]);
	}
}

static void test_streams_are_bounded(void **state)
{
	(void)state;
	struct answer a;
	for (int i = 0; i < CONN_STREAMS; i++) {
		struct wire_file_write w = { .path = VIEW("/mnt/x"), .user = VIEW("root") };
		client_call(&client, WIRE_TYPE_FILE_WRITE, 0, &wire_file_write_msg, &w);
	}
	uint32_t id = client_start(&client, &(struct run){ .argv = ARGV("true") });
	client_finish(&client, id, &a);
	assert_int_equal(a.error.code, ERR_UNAVAILABLE);
	answer_done(&a);
	client_close(&client);
	client_open(&client, &box);
	/* A lost connection leaves no half-written file. */
	struct wire_exited x;
	run_as("root", ARGV("sh", "-c", "ls -A /mnt | grep paddock"), &a, &x);
	assert_int_equal(x.exit_code, 1);
	answer_done(&a);
}

static void test_zombies_are_reaped(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	/* Orphans: each is left to PID 1. */
	run_as("user", ARGV("sh", "-c", "for i in $(seq 500); do (true &) ; done"), &a, &x);
	assert_int_equal(x.exit_code, 0);
	answer_done(&a);
	uint64_t until = clock_mono_ms() + 30000;
	for (bool clean = false; !clean;) {
		assert_true(clock_mono_ms() < until);
		run_as("root", ARGV("sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '"), &a,
		       &x);
		clean = view_is(buf_view(&a.data[1]), "0\n");
		answer_done(&a);
	}
}

static void test_many_at_once(void **state)
{
	(void)state;
	uint32_t ids[50];
	struct frame f;
	size_t open = ELEMS(ids), bytes = 0;
	for (size_t i = 0; i < ELEMS(ids); i++)
		ids[i] = client_start(
			&client,
			&(struct run){ .user = "user", .argv = ARGV("head", "-c", "300000", "/dev/zero") });
	while (open) {
		assert_true(client_next(&client, &f));
		if (f.kind == FRAME_DATA) {
			bytes += f.body.n;
			client_credit(&client, f.stream, (uint32_t)f.body.n);
		}
		assert_int_not_equal(f.kind, FRAME_FAIL);
		open -= f.kind == FRAME_REPLY && (f.flags & FRAME_LAST);
	}
	assert_int_equal(bytes, 300000 * ELEMS(ids));
}

#ifndef INIT_IN_PROCESS
/* What a thousand idle boxes cost. */
static void test_idle_memory(void **state)
{
	(void)state;
	struct box fresh;
	struct client c;
	struct answer a;
	struct wire_exited x;
	box_start(&fresh);
	client_open(&c, &fresh);
	client_run(&c, &(struct run){ .argv = ARGV("head", "-c", "5000000", "/dev/zero") }, &a, &x);
	assert_int_equal(buf_len(&a.data[1]), 5000000);
	answer_done(&a);
	client_run(&c, &(struct run){ .argv = ARGV("true") }, &a, &x);
	answer_done(&a);
	pid_t kept = box.pid;
	box.pid = fresh.pid;
	size_t kb = box_rss_kb(&box);
	box.pid = kept;
	print_message("# idle PID 1: %zu kB resident\n", kb);
	assert_true(kb < 400);
	client_close(&c);
	box_stop(&fresh);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_hello),
		TEST(test_true_false_signal),
		TEST(test_output_apart_and_binary),
		TEST(test_stdin),
		TEST(test_stdin_window),
		TEST(test_flood),
		TEST(test_limits),
		TEST(test_timeout_kills_all),
		TEST(test_background_child_does_not_hang),
		TEST(test_environment),
		TEST(test_user),
		TEST(test_start_errors),
		TEST(test_signal_and_cancel),
		TEST(test_lost_connection_kills),
		TEST(test_garbage_closes_only_that_connection),
		TEST(test_connections_are_bounded),
		TEST(test_streams_are_bounded),
		TEST(test_zombies_are_reaped),
		TEST(test_many_at_once),
#ifndef INIT_IN_PROCESS
		TEST(test_idle_memory),
#endif
	};
	return cmocka_run_group_tests_name("init_proc", tests, start_box, stop_box);
}
