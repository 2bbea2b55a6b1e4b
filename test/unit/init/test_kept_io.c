/*
 * Kept processes: the control channel and its order, terminals, input with
 * back-pressure, and signals with their scopes.
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
#include "poison.h"

static const struct offsets zero;

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* ---- control ----------------------------------------------------------- */

#define RECORDS      200
#define RECORD_BYTES 1048576

/* Each record must come after all that was written before it, on either channel. */
static void check_order(struct client *c, uint32_t id, bool in_small_steps)
{
	struct frame f;
	uint64_t out = 0, err = 0, owed = 0;
	unsigned control = 0;
	for (;;) {
		assert_true(client_next(c, &f));
		assert_int_equal(f.stream, id);
		assert_int_not_equal(f.kind, FRAME_FAIL);
		if (f.kind == FRAME_REPLY)
			break;
		if (f.kind != FRAME_DATA)
			continue;
		owed += f.body.n;
		if (f.type == 1)
			out += f.body.n;
		else if (f.type == 2)
			err += f.body.n;
		else
			control += (unsigned)f.body.n;
		assert_true(out >= (uint64_t)(control / 4) * RECORD_BYTES);
		assert_true(err >= control / 4 * 3);
		if (in_small_steps || owed > FRAME_WINDOW / 2) {
			client_credit(c, id, (uint32_t)owed);
			owed = 0;
		}
	}
	assert_int_equal(out, (uint64_t)RECORDS * RECORD_BYTES);
	assert_int_equal(err, RECORDS * 3);
	assert_int_equal(control, RECORDS * 4);
}

static const char *const records[] = {
	"bash", "-c",
	"for i in {1..200}; do head -c 1048576 /dev/zero; printf err >&2; printf '%03d\\n' $i >&251; done",
	NULL
};

static void test_control_comes_last(void **state)
{
	(void)state;
	uint32_t pid;
	uint32_t id = kept_start(&client, (struct run){ .argv = records, .control = true }, &pid);
	check_order(&client, id, true);
	/* A ring smaller than what is between two records, and credit in large steps. */
	id = kept_start(&client, (struct run){ .argv = records, .control = true, .ring = 65536 }, &pid);
	check_order(&client, id, false);
}

/* How much of `n` bytes on a terminal PID 1 takes from a program while its reader gives no credit. */
static uint64_t fill_terminal(struct client *reader, unsigned n, uint32_t *ret_id, uint32_t *ret_pid)
{
	static struct wire_pty terminal = { .cols = 80, .rows = 24 };
	const uint64_t until = clock_mono_ms() + 10000;
	char text[128];
	struct wire_process_info info;
	struct wire_exited x;
	struct frame f;
	uint64_t seen = 0, since = clock_mono_ms();

	snprintf(text, sizeof(text), "stty -onlcr; head -c %u /dev/zero; printf done >&251; read -r -u 250 l",
		 n);
	*ret_id = kept_start(
		reader,
		(struct run){
			.argv = ARGV("bash", "-c", text), .control = true, .pty = &terminal, .ring = 65536 },
		ret_pid);
	for (size_t out = 0; out < FRAME_WINDOW; out += f.body.n)
		assert_true(client_next(reader, &f) && f.type == 1);
	/* Until nothing has come for a while: either there is no room, or it was all. */
	while (clock_mono_ms() < since + 300) {
		assert_true(kept_info(*ret_pid, &info, &x) && info.running && clock_mono_ms() < until);
		since = info.stdout_end > seen ? clock_mono_ms() : since;
		seen = info.stdout_end;
	}
	return seen;
}

/* What was written to a terminal is all read when there is no room for more: the record behind it comes when
 * there is, although nothing else happens then. */
static void test_control_behind_a_full_terminal(void **state)
{
	(void)state;
	struct client reader;
	struct frame f;
	uint32_t id, pid;
	size_t out = FRAME_WINDOW;

	client_open(&reader, &box);
	const uint64_t most = fill_terminal(&reader, 2 * FRAME_WINDOW, &id, &pid);
	assert_true(most > FRAME_WINDOW && most < 2 * FRAME_WINDOW);
	client_close(&reader);
	client_open(&reader, &box);
	assert_int_equal(fill_terminal(&reader, (unsigned)most, &id, &pid), most);
	client_credit(&reader, id, FRAME_WINDOW);
	for (f.type = 1; f.type != 3; out += f.type == 1 ? f.body.n : 0)
		assert_true(client_next(&reader, &f));
	assert_int_equal(out, most);
	assert_int_equal(f.body.n, 4);
	client_close(&reader);
	assert_int_equal(kept_input(&client, pid, 3, VIEW_NONE, true), ERR_OK);
	kept_wait_ended(pid);
}

/* Also for a process that is not kept, and whose output is cut. */
static void test_control_of_a_plain_one(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	struct run r = { .argv = ARGV("bash", "-c",
				      "head -c 1000000 /dev/zero; echo one >&251; read -r -u 250 l; echo $l "
				      ">&251; ls /proc/self/fd | tr '\\n' ' ' >&2"),
			 .control = true,
			 .limit = 1000 };
	uint32_t id = client_start(&client, &r);
	client_send(&client,
		    (struct frame){ .kind = FRAME_DATA, .type = 3, .stream = id, .body = VIEW("two\n") });
	client_finish(&client, id, &a);
	_cleanup_(arena_done) struct arena arena = ARENA_INIT(65536);
	answer_decode(&a, &a.last, &wire_exited_msg, &arena, &x);
	assert_true(x.stdout_truncated);
	assert_int_equal(buf_len(&a.data[1]), 1000);
	kept_assert_text(&a.data[3], "one\ntwo\n");
	kept_assert_text(&a.data[2], "0 1 2 250 251 3 ");
	answer_done(&a);
}

/* A loop as a stateful shell has it: resumed by another caller, in the middle. */
static void test_control_and_resume(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	struct offsets at;
	struct run r = { .argv = ARGV("bash", "-c",
				      "while IFS= read -r -d '' -u 250 c; do eval \"$c\"; printf 'R%d\\0' $? "
				      ">&251; done; exit 9"),
			 .control = true };
	uint32_t pid = kept_start_alone(r);
	assert_int_equal(kept_input(&client, pid, 3, (struct view){ "echo a; X=7", 12 }, false), ERR_OK);
	assert_int_equal(kept_input(&client, pid, 3, (struct view){ "(exit $X)", 10 }, false), ERR_OK);
	uint32_t id = kept_attach(&client, pid, zero, &at);
	struct frame f;
	char got[16];
	size_t n = 0;
	while (n < 6) {
		assert_true(client_next(&client, &f));
		if (f.kind == FRAME_DATA && f.type == 3) {
			memcpy(got + n, f.body.p, f.body.n);
			n += f.body.n;
		}
	}
	assert_memory_equal(got, "R0\0R7\0", 6);
	kept_cancel(&client, id);
	assert_int_equal(kept_input(&client, pid, 3, VIEW_NONE, true), ERR_OK); /* the end of its input */
	kept_read(pid, (struct offsets){ .control = 3 }, &a, &x);
	assert_int_equal(x.exit_code, 9);
	kept_assert_text(&a.data[1], "a\n");
	assert_int_equal(buf_len(&a.data[3]), 3);
	assert_memory_equal(buf_view(&a.data[3]).p, "R7", 3);
	answer_done(&a);
}

/* ---- terminals --------------------------------------------------------- */

static struct wire_pty size = { .cols = 80, .rows = 24 };

/* Reads from a stream until a text has come. */
static void expect(struct client *c, uint32_t id, struct buf *all, const char *text)
{
	struct frame f;
	while (!buf_len(all) || !memmem(buf_view(all).p, buf_len(all), text, strlen(text))) {
		assert_true(client_next(c, &f));
		if (f.stream != id)
			continue;
		if (f.kind != FRAME_DATA)
			fail_msg("'%s' did not come: '%.*s'", text, VIEW_ARG(buf_view(all)));
		assert_int_equal(f.type, 1);
		assert_int_equal(buf_add(all, f.body), 0);
		client_credit(c, id, (uint32_t)f.body.n);
	}
	buf_clear(all);
}

static void type(struct client *c, uint32_t id, const char *text)
{
	client_send(c, (struct frame){ .kind = FRAME_DATA, .stream = id, .body = view_of(text) });
}

static void test_terminal(void **state)
{
	(void)state;
	_cleanup_(buf_done) struct buf all = BUF_INIT(1u << 20);
	_cleanup_(arena_done) struct arena arena = ARENA_INIT(65536);
	struct wire_process_info info;
	struct wire_exited x;
	struct answer a;
	struct client other;
	uint32_t pid;
	client_open(&other, &box);
	struct run r = { .user = "user", .argv = ARGV("sh"), .env = ARGV("PS1", "prompt> "), .pty = &size };
	uint32_t id = kept_start(&other, r, &pid);
	expect(&other, id, &all, "prompt> ");
	type(&other, id, "stty size; tty\n");
	expect(&other, id, &all, "24 80\r\n/dev/pts/");
	/* It is the user's own, it is the controlling terminal, and nothing else is open. */
	type(&other, id,
	     "test -O \"$(tty)\" && echo x > /dev/tty && echo owner-$?; ls /proc/self/fd | tr '\\n' ' '\n");
	expect(&other, id, &all, "x\r\nowner-0\r\n0 1 2 3 ");
	type(&other, id, "trap 'echo changed $(stty size)' WINCH; echo trap-$((40+2))\n");
	expect(&other, id, &all, "trap-42\r\n");
	assert_int_equal(kept_resize(pid, 132, 50), ERR_OK);
	type(&other, id, "\n");
	expect(&other, id, &all, "changed 50 132");
	/* Ctrl-C ends what runs, not the shell; as bytes of another caller. */
	type(&other, id, "sleep 9001\n");
	expect(&other, id, &all, "sleep 9001\r\n");
	sleep_ms(100);
	assert_int_equal(kept_input(&client, pid, 0, VIEW("\x03"), false), ERR_OK);
	expect(&other, id, &all, "^C");
	type(&other, id, "echo code $?\n");
	expect(&other, id, &all, "code 130\r\n");
	/* Lost and found again: the shell is still there. */
	client_close(&other);
	sleep_ms(50);
	assert_true(kept_info(pid, &info, NULL));
	assert_true(info.running && info.pty);
	client_open(&other, &box);
	id = kept_attach(&other, pid, (struct offsets){ .out = info.stdout_end }, NULL);
	assert_int_equal(kept_input(&client, pid, 0, VIEW_NONE, true), ERR_INVALID);
	type(&other, id, "stty -echo; echo bye; exit 6\n");
	client_finish(&other, id, &a);
	answer_decode(&a, &a.last, &wire_exited_msg, &arena, &x);
	assert_int_equal(x.exit_code, 6);
	assert_true(memmem(buf_view(&a.data[1]).p, buf_len(&a.data[1]), "bye\r\n", 5) != NULL);
	answer_done(&a);
	client_close(&other);
	assert_int_equal(kept_resize(pid, 80, 24), ERR_STATE);
}

static void test_terminal_details(void **state)
{
	(void)state;
	struct answer a;
	struct wire_exited x;
	/* Not kept; Ctrl-C straight to a program; all that it wrote comes before its end. */
	struct run r = { .argv = ARGV("sleep", "9002"), .pty = &size };
	uint32_t id = client_start(&client, &r);
	sleep_ms(100);
	type(&client, id, "\x03");
	client_finish(&client, id, &a);
	_cleanup_(arena_done) struct arena arena = ARENA_INIT(65536);
	answer_decode(&a, &a.last, &wire_exited_msg, &arena, &x);
	assert_int_equal(x.signal, SIGINT);
	answer_done(&a);
	r.argv = ARGV("sh", "-c", "stty -onlcr; seq 20000");
	client_run(&client, &r, &a, &x);
	assert_int_equal(buf_len(&a.data[1]), 9 * 2 + 90 * 3 + 900 * 4 + 9000 * 5 + 10001 * 6);
	answer_done(&a);
	/* A child in the background keeps the terminal open: no reason to wait. */
	r.argv = ARGV("sh", "-c", "trap '' HUP; (sleep 1; echo late) & echo now");
	uint64_t t = clock_mono_ms();
	client_run(&client, &r, &a, &x);
	assert_true(clock_mono_ms() - t < 900);
	kept_assert_text(&a.data[1], "now\r\n");
	answer_done(&a);
	struct wire_pty huge = { .cols = 70000, .rows = 1 };
	r.pty = &huge;
	client_run(&client, &r, &a, &x);
	assert_int_equal(a.error.code, ERR_INVALID);
	answer_done(&a);
	uint32_t pid = kept_start_alone((struct run){ .argv = ARGV("sleep", "9003") });
	assert_int_equal(kept_resize(pid, 80, 24), ERR_STATE);
	kept_signal(&(struct wire_signal){ .pid = pid, .signo = SIGKILL });
	/* A reader that is slow: the terminal waits for it, and nothing is lost. */
	r.pty = &size;
	r.argv = ARGV("sh", "-c", "stty -onlcr; seq 400000");
	id = client_start(&client, &r);
	sleep_ms(200);
	client_finish(&client, id, &a);
	assert_int_equal(buf_len(&a.data[1]), 9 * 2 + 90 * 3 + 900 * 4 + 9000 * 5 + 90000 * 6 + 300001 * 7);
	answer_done(&a);
}

/* ---- input ------------------------------------------------------------- */

static uint32_t send_input(struct client *c, uint32_t pid, struct view data, bool close)
{
	struct wire_process_selector who = { .pid = pid };
	struct wire_input msg = { .process = &who, .data = data, .close = close };
	return client_call(c, WIRE_TYPE_INPUT, 0, &wire_input_msg, &msg);
}

static void test_input_waits(void **state)
{
	(void)state;
	static char block[65536];
	struct client many[3];
	struct wire_exited x;
	struct answer a;
	struct run r = { .argv = ARGV("sh", "-c", "read x < /proc/self/fd/250; md5sum; exit 2"),
			 .open_stdin = true,
			 .control = true };
	uint32_t pid = kept_start_alone(r), ids[12];
	for (size_t i = 0; i < ELEMS(many); i++)
		client_open(&many[i], &box);
	/* Each is a letter, from callers by turns; the order among them is that of arrival, which a
	 * call that is answered at once makes certain. */
	for (size_t i = 0; i < ELEMS(ids); i++) {
		struct client *c = &many[i % ELEMS(many)];
		struct wire_process_info info;
		memset(block, 'a' + (int)i, sizeof(block));
		ids[i] = send_input(c, pid, (struct view){ block, sizeof(block) }, i + 1 == ELEMS(ids));
		uint32_t hello =
			client_call(c, WIRE_TYPE_HELLO, 0, &wire_hello_msg, &(struct wire_hello){ 0 });
		struct frame f;
		bool answered = false;
		do {
			assert_true(client_next(c, &f));
			answered |= f.stream == ids[i];
		} while (f.stream != hello);
		/* The pipe takes the first. */
		assert_int_equal(answered, i == 0);
		assert_true(kept_info(pid, &info, NULL));
	}
	/* One that was sent and is taken back before its turn. */
	kept_cancel(&many[1], send_input(&many[1], pid, VIEW("never"), false));
	assert_int_equal(kept_input(&client, pid, 3, VIEW("go\n"), false), ERR_OK);
	for (size_t i = 1; i < ELEMS(ids); i++) {
		client_finish(&many[i % ELEMS(many)], ids[i], &a);
		assert_false(a.failed);
		answer_done(&a);
	}
	kept_read(pid, zero, &a, &x);
	assert_int_equal(x.exit_code, 2);
	struct answer expected;
	client_run(
		&client,
		&(struct run){ .argv = ARGV("sh", "-c",
					    "for c in a b c d e f g h i j k l; do head -c 65536 /dev/zero | "
					    "tr '\\0' $c; done | md5sum") },
		&expected, &x);
	assert_true(view_eq(buf_view(&a.data[1]), buf_view(&expected.data[1])));
	answer_done(&a);
	answer_done(&expected);
	for (size_t i = 0; i < ELEMS(many); i++)
		client_close(&many[i]);
}

static void test_input_refused(void **state)
{
	(void)state;
	static char block[65537];
	struct wire_exited x;
	struct answer a;
	uint32_t pid = kept_start_alone((struct run){ .argv = ARGV("sleep", "9101") });
	assert_int_equal(kept_input(&client, pid, 0, VIEW("x"), false), ERR_STATE); /* /dev/null */
	assert_int_equal(kept_input(&client, pid, 3, VIEW("x"), false), ERR_STATE);
	assert_int_equal(kept_input(&client, pid, 1, VIEW("x"), false), ERR_INVALID);
	assert_int_equal(kept_input(&client, pid, 0, (struct view){ block, sizeof(block) }, false),
			 ERR_TOO_LARGE);
	assert_int_equal(kept_input(&client, 99999, 0, VIEW("x"), false), ERR_NOT_FOUND);
	kept_signal(&(struct wire_signal){ .pid = pid, .signo = SIGKILL });

	/* Closed by the program: those that wait, and those that come. */
	pid = kept_start_alone(
		(struct run){ .argv = ARGV("sh", "-c", "read x < /proc/self/fd/250; exec <&-; sleep 9102"),
			      .open_stdin = true,
			      .control = true });
	uint32_t ids[3];
	for (size_t i = 0; i < ELEMS(ids); i++)
		ids[i] = send_input(&client, pid, (struct view){ block, 65536 }, false);
	struct client other;
	client_open(&other, &box);
	assert_int_equal(kept_input(&other, pid, 3, VIEW("go\n"), false), ERR_OK);
	client_finish(&client, ids[0], &a);
	assert_false(a.failed);
	answer_done(&a);
	for (size_t i = 1; i < ELEMS(ids); i++) {
		client_finish(&client, ids[i], &a);
		assert_true(a.failed);
		assert_int_equal(a.error.code, ERR_STATE);
		answer_done(&a);
	}
	assert_int_equal(kept_input(&client, pid, 0, VIEW("x"), false), ERR_STATE);
	kept_signal(&(struct wire_signal){ .pid = pid, .signo = SIGKILL });

	/* Bounded. */
	pid = kept_start_alone((struct run){ .argv = ARGV("sleep", "9103"), .open_stdin = true });
	for (int i = 0; i < 40; i++)
		send_input(&client, pid, (struct view){ block, 65536 }, false);
	assert_int_equal(kept_input(&other, pid, 0, (struct view){ block, 65536 }, false), ERR_UNAVAILABLE);
	client_close(&other);
	client_close(&client);
	client_open(&client, &box);
	kept_signal(&(struct wire_signal){ .pid = pid, .signo = SIGKILL });
	kept_wait_ended(pid);

	/* What a caller sent before it was cut off is the program's. */
	client_open(&other, &box);
	pid = 0;
	uint32_t id = kept_start(
		&other, (struct run){ .argv = ARGV("sh", "-c", "sleep 0.2; wc -c"), .open_stdin = true },
		&pid);
	for (int i = 0; i < 4; i++)
		client_send(&other,
			    (struct frame){ .kind = FRAME_DATA, .stream = id, .body = { block, 60000 } });
	client_send(&other, (struct frame){ .kind = FRAME_END, .stream = id });
	client_close(&other);
	kept_read(pid, zero, &a, &x);
	kept_assert_text(&a.data[1], "240000\n");
	answer_done(&a);
}

/* ---- signals ----------------------------------------------------------- */

static unsigned running(const char *mark)
{
	struct answer a;
	struct wire_exited x;
	unsigned n = 0;
	client_run(&client, &(struct run){ .argv = ARGV("pgrep", "-f", mark) }, &a, &x);
	struct view v = buf_view(&a.data[1]);
	for (size_t i = 0; i < v.n; i++)
		n += v.p[i] == '\n';
	answer_done(&a);
	return n;
}

static void wait_running(const char *mark, unsigned want)
{
	uint64_t until = clock_mono_ms() + 30000;
	while (running(mark) != want) {
		if (clock_mono_ms() > until)
			fail_msg("%u of '%s' are running, not %u", running(mark), mark, want);
		sleep_ms(5);
	}
}

/* What was killed counts until its parent has taken note. */
static void wait_tree(const char *tag, int want)
{
	const struct wire_signal s = { .tag = view_of(tag),
				       .signo = SIGCONT,
				       .scope = WIRE_SIGNAL_SCOPE_TREE };
	uint64_t until = clock_mono_ms() + 30000;
	int n;

	while ((n = kept_signal(&s)) != want) {
		if (clock_mono_ms() > until)
			fail_msg("%d processes are in the tree, not %d", n, want);
		sleep_ms(5);
	}
}

static void test_signal_scopes(void **state)
{
	(void)state;
	struct wire_process_info info;
	/* In the group; in another group of the session; in a session of its own. */
	uint32_t pid =
		kept_start_alone((struct run){ .argv = ARGV("bash", "-c",
							    "trap : TERM; sleep 9201 & set -m; sleep 9202 & "
							    "set +m; setsid sleep 9203 & while :; do "
							    "read x; done"),
					       .open_stdin = true,
					       .tag = "scopes" });
	wait_running("^sleep 920[123]", 3);
	struct wire_signal s = { .pid = pid, .signo = SIGTERM };
	assert_int_equal(kept_signal(&s), 1);
	wait_running("^sleep 920[123]", 2); /* the group's own is gone, the shell has its trap */
	assert_true(kept_info(pid, &info, NULL) && info.running);
	wait_tree("scopes", 3);
	s = (struct wire_signal){ .tag = VIEW("scopes"), .signo = SIGSTOP, .scope = WIRE_SIGNAL_SCOPE_TREE };
	assert_int_equal(kept_signal(&s), 3);
	s.signo = SIGCONT;
	assert_int_equal(kept_signal(&s), 3);
	s.scope = WIRE_SIGNAL_SCOPE_BELOW;
	s.signo = SIGKILL;
	assert_int_equal(kept_signal(&s), 2);
	wait_running("^sleep 920[123]", 0);
	assert_true(kept_info(pid, &info, NULL) && info.running);
	wait_tree("scopes", 1);
	s.scope = WIRE_SIGNAL_SCOPE_TREE;
	assert_int_equal(kept_signal(&s), 1);
	kept_wait_ended(pid);
	s.scope = 9;
	assert_int_equal(kept_signal(&s), -ERR_INVALID);
}

/* What an earlier command left in the background is spared, with what it starts now. */
static void test_signal_since(void **state)
{
	(void)state;
	struct wire_process_info info;
	struct run r = { .argv = ARGV(
				 "bash", "-c",
				 "while IFS= read -r -d '' -u 250 c; do eval \"$c\"; printf 'R' >&251; done"),
			 .control = true };
	uint32_t pid = kept_start_alone(r);
	static const char first[] = "(while :; do sleep 0.031; done) & sleep 9301 & setsid sleep 9302 &";
	static const char second[] = "setsid sleep 9303 & (sleep 9304; echo no) | sleep 9305";
	assert_int_equal(kept_input(&client, pid, 3, (struct view){ first, sizeof(first) }, false), ERR_OK);
	wait_running("^sleep 930", 2);
	sleep_ms(50);
	int64_t since = clock_wall_ms();
	assert_int_equal(kept_input(&client, pid, 3, (struct view){ second, sizeof(second) }, false), ERR_OK);
	wait_running("^sleep 930", 5);
	struct wire_signal s = {
		.pid = pid, .signo = SIGKILL, .scope = WIRE_SIGNAL_SCOPE_BELOW, .since_ms = since
	};
	assert_int_equal(kept_signal(&s), 4); /* three sleeps, the subshell */
	wait_running("^sleep 930[345]", 0);
	assert_int_equal(running("^sleep 930[12]"), 2);
	wait_running("^sleep 0.031", 1);
	/* The shell took it as the end of a command. */
	struct frame f;
	unsigned n = 0;
	uint32_t id = kept_attach(&client, pid, zero, NULL);
	while (n < 2) {
		assert_true(client_next(&client, &f));
		n += f.kind == FRAME_DATA && f.type == 3 ? (unsigned)f.body.n : 0;
	}
	kept_cancel(&client, id);
	assert_true(kept_info(pid, &info, NULL) && info.running);
	s.since_ms = 0;
	assert_true(kept_signal(&s) >= 3); /* two sleeps and the loop, which may be between two of its own */
	wait_running("^sleep 930", 0);
	s.scope = WIRE_SIGNAL_SCOPE_TREE;
	kept_signal(&s);
	kept_wait_ended(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KEPT_TEST(test_control_comes_last),
		KEPT_TEST(test_control_behind_a_full_terminal),
		KEPT_TEST(test_control_of_a_plain_one),
		KEPT_TEST(test_control_and_resume),
		KEPT_TEST(test_terminal),
		KEPT_TEST(test_terminal_details),
		KEPT_TEST(test_input_waits),
		KEPT_TEST(test_input_refused),
		KEPT_TEST(test_signal_scopes),
		KEPT_TEST(test_signal_since),
	};
	return cmocka_run_group_tests_name("init_kept_io", tests, kept_start_box, kept_stop_box);
}
