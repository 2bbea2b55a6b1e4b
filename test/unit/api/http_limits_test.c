/*
 * The limits of the server: time, connections, file descriptors.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "clock.h"
#include "fd.h"
#include "http_rig.h"
#include "poison.h"

#define HOST  "Host: test\r\n"
#define LIMIT 150 /* ms */

static struct http_rig rig;
static struct buf head = BUF_INIT(1 << 20), body = BUF_INIT(1 << 20);

static const struct http_limits quick = { .idle_ms = LIMIT, .head_ms = LIMIT, .stall_ms = LIMIT };

static int stop(void **state)
{
	http_rig_stop(&rig);
	buf_done(&head);
	buf_done(&body);
	return 0;
}

static int start_quick(void **state)
{
	http_rig_start(&rig, &quick, NULL, NULL);
	return 0;
}

static void test_idle(void **state)
{
	int fd = http_rig_connect(&rig), fresh = http_rig_connect(&rig);
	assert_int_equal(http_rig_ask(fd, "GET /health HTTP/1.1\r\n" HOST "\r\n", &body), 200);
	uint64_t since = clock_mono_ms();
	buf_clear(&body);
	assert_true(http_rig_read_all(fd, &body));
	assert_true(clock_mono_ms() - since >= LIMIT - 20);
	assert_int_equal(buf_len(&body), 0);
	assert_true(http_rig_read_all(fresh, &body));
	fd_close(fd);
	fd_close(fresh);
}

/* A head that comes drop by drop does not get more time with each drop. */
static void test_slow_head(void **state)
{
	int fd = http_rig_connect(&rig);
	const char *text = "GET /health HTTP/1.1\r\n";
	uint64_t since = clock_mono_ms();
	struct pollfd p = { .fd = fd, .events = POLLIN };
	for (size_t i = 0; poll(&p, 1, LIMIT / 3) == 0 && i < strlen(text); i++)
		http_rig_send_bytes(fd, text + i, 1);
	assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 408);
	assert_non_null(strstr(body.p, "\"code\":\"timeout\""));
	assert_true(clock_mono_ms() - since < 10 * LIMIT);
	fd_close(fd);
}

static void test_stalled_body(void **state)
{
	int fd = http_rig_connect(&rig), before = rig.counts.aborts;
	http_rig_send(fd, "POST /hold HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nhalf");
	assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 408);
	http_rig_wait(&rig.counts.aborts, before + 1);
	fd_close(fd);
}

static void test_stalled_reader(void **state)
{
	int fd = http_rig_connect(&rig), before = rig.counts.aborts;
	http_rig_send(fd, "GET /big?n=100000000 HTTP/1.1\r\n" HOST "\r\n");
	http_rig_wait(&rig.counts.aborts, before + 1);
	fd_close(fd);
}

/* A dialect may take its time: no limit of the connection applies while it works. */
static void test_slow_dialect(void **state)
{
	int fd = http_rig_connect(&rig), before = rig.counts.aborts;
	http_rig_send(fd, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
	assert_int_equal(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 3 * LIMIT), 0);
	assert_int_equal(rig.counts.aborts, before);
	fd_close(fd);
}

/* A body that goes on while the answer does is a conversation: silence is no stall. */
static void test_conversation(void **state)
{
	char got[1];
	int fd = http_rig_connect(&rig);
	http_rig_send(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\na");
	do
		assert_int_equal(recv(fd, got, 1, 0), 1);
	while (got[0] != 'a' || recv(fd, got, 1, MSG_PEEK | MSG_DONTWAIT) > 0);
	assert_int_equal(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 3 * LIMIT), 0);
	http_rig_send(fd, "b");
	assert_int_equal(recv(fd, got, 1, 0), 1);
	assert_int_equal(got[0], 'b');
	fd_close(fd);
}

/* Nobody is useless as long as the test runs. */
static int start_sixteen(void **state)
{
	http_rig_start(&rig,
		       &(struct http_limits){
			       .connections = 16, .strangers = 16, .party = 16, .useless_ms = 3600000 },
		       NULL, NULL);
	return 0;
}

static int start_shares(void **state)
{
	http_rig_start(
		&rig,
		&(struct http_limits){ .connections = 16, .strangers = 12, .party = 8, .useless_ms = LIMIT },
		NULL, NULL);
	return 0;
}

static int start_quickly_useless(void **state)
{
	http_rig_start(
		&rig,
		&(struct http_limits){ .connections = 16, .strangers = 16, .party = 16, .useless_ms = LIMIT },
		NULL, NULL);
	return 0;
}

/* Too few for guests: whoever comes waits for a place, for a time or for a short one. */
static int start_full(void **state)
{
	http_rig_start(
		&rig,
		&(struct http_limits){ .connections = 3, .strangers = 3, .party = 3, .useless_ms = 3600000 },
		NULL, NULL);
	return 0;
}

static int start_full_quick(void **state)
{
	http_rig_start(&rig,
		       &(struct http_limits){ .connections = 3,
					      .strangers = 3,
					      .party = 3,
					      .useless_ms = 3600000,
					      .head_ms = LIMIT },
		       NULL, NULL);
	return 0;
}

static int start_three(void **state)
{
	http_rig_start(&rig,
		       &(struct http_limits){ .connections = 3, .strangers = 2, .party = 2, .useless_ms = 1 },
		       NULL, NULL);
	return 0;
}

static bool is_closed(int fd)
{
	buf_clear(&body);
	return http_rig_read_all(fd, &body) && buf_len(&body) == 0;
}

static bool is_open(int fd)
{
	char c;
	return recv(fd, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fd_close(fds[i]);
}

/* At the limit nobody who works makes place. A newcomer is served once, in the place of one that has asked
 * for nothing yet. */
static void test_newcomers(void **state)
{
	const char *ask = "GET /health HTTP/1.1\r\n" HOST "\r\n";
	int work[14], silent[2];
	for (size_t i = 0; i < ELEMS(work); i++) {
		work[i] = http_rig_connect(&rig);
		assert_int_equal(http_rig_ask(work[i], ask, &body), 200);
	}
	for (size_t i = 0; i < ELEMS(silent); i++)
		silent[i] = http_rig_connect(&rig);
	for (int i = 0; i < 20; i++) {
		int newcomer = http_rig_connect(&rig);
		http_rig_send(newcomer, ask);
		assert_int_equal(http_rig_read_answer(newcomer, &head, &body, false), 200);
		assert_non_null(strstr(head.p, "onnection: close"));
		assert_true(is_closed(newcomer));
		fd_close(newcomer);
	}
	assert_true(is_closed(silent[0]));
	assert_true(is_open(silent[1])); /* only the first of the newcomers needed another's place */
	for (size_t i = 0; i < ELEMS(work); i++)
		assert_int_equal(http_rig_ask(work[i], ask, &body), 200);
	close_all(work, ELEMS(work));
	close_all(silent, ELEMS(silent));
}

/* The lobby has 64 places here, and who has left it leaves one. */
static void test_the_lobby_empties(void **state)
{
	const char *ask = "GET /health HTTP/1.1\r\n" HOST "\r\n";
	int work[14], silent[80];
	for (size_t i = 0; i < ELEMS(work); i++) {
		work[i] = http_rig_connect(&rig);
		assert_int_equal(http_rig_ask(work[i], ask, &body), 200);
	}
	/* Of three guests one waits, for the place of the first. */
	for (size_t i = 0; i < ELEMS(silent); i++) {
		silent[i] = http_rig_connect(&rig);
		int newcomer = http_rig_connect(&rig);
		http_rig_send(newcomer, ask);
		assert_int_equal(http_rig_read_answer(newcomer, &head, &body, false), 200);
		assert_true(is_closed(newcomer));
		fd_close(newcomer);
	}
	close_all(work, ELEMS(work));
	close_all(silent, ELEMS(silent));
}

static void fill(int *work, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		work[i] = http_rig_connect(&rig);
		http_rig_send(work[i], "GET /hold HTTP/1.1\r\n" HOST "\r\n");
		http_rig_wait(&rig.counts.live, (int)i + 1);
	}
}

/* Of the lobby one address has half: the seventh of twelve is refused at once. */
static void test_half_a_lobby(void **state)
{
	int work[3], many[7];
	fill(work, ELEMS(work));
	for (size_t i = 0; i < ELEMS(many); i++)
		many[i] = http_rig_connect(&rig);
	assert_int_equal(poll(&(struct pollfd){ .fd = many[6], .events = POLLIN }, 1, 5000), 1);
	assert_int_equal(http_rig_read_answer(many[6], &head, &body, false), 503);
	for (size_t i = 0; i + 1 < ELEMS(many); i++)
		assert_true(is_open(many[i]));
	close_all(work, ELEMS(work));
	close_all(many, ELEMS(many));
}

/* Who waits in the lobby for as long as a head may take is refused. */
static void test_the_lobby_ends(void **state)
{
	int work[3];
	fill(work, ELEMS(work));
	uint64_t since = clock_mono_ms();
	int newcomer = http_rig_connect(&rig);
	assert_int_equal(poll(&(struct pollfd){ .fd = newcomer, .events = POLLIN }, 1, 20 * LIMIT), 1);
	assert_int_equal(http_rig_read_answer(newcomer, &head, &body, false), 503);
	assert_true(clock_mono_ms() - since >= LIMIT - 20);
	close_all(work, ELEMS(work));
	fd_close(newcomer);
}

/* Who was of no use for a while makes place for a newcomer that stays. */
static void test_useless(void **state)
{
	const char *ask = "GET /health HTTP/1.1\r\n" HOST "\r\n";
	int work[14];
	for (size_t i = 0; i < ELEMS(work); i++) {
		work[i] = http_rig_connect(&rig);
		assert_int_equal(http_rig_ask(work[i], ask, &body), 200);
	}
	assert_int_equal(poll(&(struct pollfd){ .fd = work[0], .events = POLLIN }, 1, LIMIT + 20), 0);
	int newcomer = http_rig_connect(&rig);
	assert_int_equal(http_rig_ask(newcomer, ask, &body), 200);
	assert_int_equal(http_rig_ask(newcomer, ask, &body), 200);
	assert_true(is_closed(work[0]));
	assert_int_equal(http_rig_ask(work[1], ask, &body), 200);
	close_all(work, ELEMS(work));
	fd_close(newcomer);
}

/* The party with the most connections makes place, at work or not, and not those who have few: neither their
 * idle connections nor, where strangers have more than any key, anybody's who has shown one. */
static void test_shares(void **state)
{
	const char *idle = "GET /health HTTP/1.1\r\n" HOST "X-Key: m\r\n\r\n",
		   *hold = "GET /hold HTTP/1.1\r\n" HOST "X-Key: k\r\n\r\n",
		   *ask = "GET /health HTTP/1.1\r\n" HOST "\r\n";
	int few[2], many[8], silent[6];
	for (size_t i = 0; i < ELEMS(few); i++) {
		few[i] = http_rig_connect(&rig);
		assert_int_equal(http_rig_ask(few[i], idle, &body), 200);
	}
	for (size_t i = 0; i < ELEMS(many); i++) {
		many[i] = http_rig_connect(&rig);
		http_rig_send(many[i], hold);
		http_rig_wait(&rig.counts.live, (int)i + 1);
	}
	for (size_t i = 0; i < ELEMS(silent); i++)
		silent[i] = http_rig_connect(&rig);
	assert_int_equal(poll(&(struct pollfd){ .fd = few[0], .events = POLLIN }, 1, LIMIT + 20), 0);
	int newcomers[4];
	for (size_t i = 0; i < ELEMS(newcomers); i++) {
		newcomers[i] = http_rig_connect(&rig);
		assert_int_equal(http_rig_ask(newcomers[i], ask, &body), 200);
		assert_int_equal(rig.counts.live, 7); /* for the first of them one of eight gave way */
	}
	for (size_t i = 0; i < ELEMS(few); i++)
		assert_int_equal(http_rig_ask(few[i], idle, &body), 200);
	close_all(few, ELEMS(few));
	close_all(many, ELEMS(many));
	close_all(silent, ELEMS(silent));
	close_all(newcomers, ELEMS(newcomers));
}

/* To whom nobody gives way, hears it. */
static void test_refused(void **state)
{
	const char *hold = "GET /hold HTTP/1.1\r\n" HOST "X-Key: a\r\n\r\n";
	int one[16];
	for (size_t i = 0; i < ELEMS(one); i++) {
		char text[64];
		snprintf(text, sizeof(text), "%s", hold);
		*strstr(text, "a\r\n\r\n") = (char)('a' + i);
		one[i] = http_rig_connect(&rig);
		http_rig_send(one[i], text);
		http_rig_wait(&rig.counts.live, (int)i + 1);
	}
	int newcomer = http_rig_connect(&rig);
	assert_int_equal(http_rig_read_answer(newcomer, &head, &body, false), 503);
	assert_non_null(strstr(body.p, "too many connections"));
	assert_true(is_closed(newcomer));
	assert_int_equal(rig.counts.live, 16);
	close_all(one, ELEMS(one));
	fd_close(newcomer);
}

/* Who has shown no key makes place, even at work; and the one first who was of use longest ago. */
static void test_strangers(void **state)
{
	const char *ask = "GET /health HTTP/1.1\r\n" HOST "\r\n",
		   *hold = "GET /hold HTTP/1.1\r\n" HOST "X-Key: k\r\n\r\n";
	int known = http_rig_connect(&rig);
	http_rig_send(known, hold);
	http_rig_wait(&rig.counts.live, 1);
	int slow = http_rig_connect(&rig), busy = http_rig_connect(&rig);
	http_rig_send(slow, "GET /health HTTP/1.1\r\n");
	http_rig_send(busy, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
	http_rig_wait(&rig.counts.live, 2);
	http_rig_send(slow, "X-A: b\r\n"); /* a byte of a head is no use */
	int d = http_rig_connect(&rig);
	assert_int_equal(http_rig_ask(d, ask, &body), 200);
	assert_true(is_closed(slow));
	poll(NULL, 0, 5); /* what "useless" means here */
	int f = http_rig_connect(&rig);
	assert_int_equal(http_rig_ask(f, ask, &body), 200);
	assert_true(is_closed(busy));
	assert_int_equal(http_rig_ask(d, ask, &body), 200);
	assert_int_equal(rig.counts.live, 1);
	/* More than its number of connections a key has at the cost of its own oldest. */
	poll(NULL, 0, 5);
	int second = http_rig_connect(&rig);
	http_rig_send(second, hold);
	http_rig_wait(&rig.counts.live, 2);
	poll(NULL, 0, 5);
	int third = http_rig_connect(&rig);
	http_rig_send(third, hold);
	assert_true(is_closed(known));
	http_rig_wait(&rig.counts.live, 2);
	int all[] = { known, slow, busy, d, f, second, third };
	for (size_t i = 0; i < ELEMS(all); i++)
		fd_close(all[i]);
}

/* A body that comes drop by drop does not get more time with each drop, wanted or not. */
static void test_slow_body(void **state)
{
	const char *const heads[] = { "POST /hold HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n",
				      "POST /health HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n" };
	for (size_t k = 0; k < ELEMS(heads); k++) {
		int fd = http_rig_connect(&rig);
		uint64_t since = clock_mono_ms();
		http_rig_send(fd, heads[k]);
		if (k == 1)
			assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 200);
		struct pollfd p = { .fd = fd, .events = POLLIN };
		for (int i = 0; poll(&p, 1, LIMIT / 5) == 0 && i < 400; i++)
			http_rig_send_bytes(fd, "x", 1);
		assert_true(clock_mono_ms() - since < 60 * LIMIT); /* not cut off, it would be 80 */
		if (k == 0)
			assert_int_equal(http_rig_read_answer(fd, &head, &body, false), 408);
		fd_close(fd);
	}
}

static int start_plain(void **state)
{
	http_rig_start(&rig, NULL, NULL, NULL);
	return 0;
}

static double cpu_seconds(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Without file descriptors the server waits, without spinning, and comes back. */
static void test_no_fds(void **state)
{
	struct rlimit was, now;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fd_close(client);
	now = was;
	now.rlim_cur = (rlim_t)client + 1; /* one fd for the client below, none for accept */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	int third = http_rig_connect(&rig);
	double cpu = cpu_seconds();
	http_rig_send(third, "GET /health HTTP/1.1\r\n" HOST "\r\n");
	int came = poll(&(struct pollfd){ .fd = third, .events = POLLIN }, 1, 350);
	cpu = cpu_seconds() - cpu;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(came, 0);
	assert_true(cpu < 0.15);
	assert_int_equal(http_rig_read_answer(third, &head, &body, false), 200);
	fd_close(third);
}

/* Boxes that come by the gate leave room for everybody else, however many they are: of eight connections four
 * are served and two are told that they are too many. */
struct crowd {
	struct loop *loop;
	int n;
	char seen[9];
};

static void note_crowded(struct http_exchange *x, void *arg)
{
	struct crowd *crowd = arg;

	crowd->seen[x->origin.p[0] - 'a'] = x->crowded ? 'c' : 's';
	if (++crowd->n == 6)
		loop_stop(crowd->loop, 0);
	http_reply(x, x->crowded ? 429 : 200, NULL, VIEW_NONE, NULL, 0);
}

static void test_adopted(void **state)
{
	struct crowd crowd = { .seen = "--------" };
	char answer[512] = "";
	struct http_config config = { .limits = { .connections = 8 },
				      .on_request = note_crowded,
				      .arg = &crowd };
	struct err e = { 0 };
	struct loop *loop = loop_new(&e);
	assert_non_null(loop);
	struct http_server *s = http_server_new(loop, &config, &e);
	assert_non_null(s);
	int pairs[8][2];
	for (int i = 0; i < 8; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]), 0);
		http_server_adopt(s, pairs[i][1], (char[]){ (char)('a' + i), 0 });
	}
	for (int i = 0; i < 8; i++) {
		assert_int_equal(is_open(pairs[i][0]), i < 6);
		(void)!send(pairs[i][0], "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, MSG_NOSIGNAL);
	}
	crowd.loop = loop;
	assert_int_equal(loop_run(loop), 0);
	assert_string_equal(crowd.seen, "sssscc--");
	assert_true(recv(pairs[5][0], answer, sizeof(answer) - 1, 0) > 0);
	assert_true(strncmp(answer, "HTTP/1.1 429", 12) == 0 && strstr(answer, "onnection: close"));
	http_server_free(s);
	loop_free(loop);
	for (int i = 0; i < 8; i++)
		fd_close(pairs[i][0]);
}

/* ---- turns ---- */

struct order {
	struct loop *loop;
	char seen[128];
	size_t n;
};

static void note_order(struct http_exchange *x, void *arg)
{
	struct order *o = arg;

	o->seen[o->n++] = x->origin.p[0];
	if (o->n == 102)
		loop_stop(o->loop, 0);
	http_reply(x, 200, NULL, VIEW_NONE, NULL, 0);
}

/* A hundred requests of one party, then two of another: those come second and fourth. */
static void test_turns(void **state)
{
	struct order order = { .n = 0 };
	struct http_config config = { .on_request = note_order, .arg = &order };
	struct err e = { 0 };
	struct loop *loop = order.loop = loop_new(&e);
	assert_non_null(loop);
	struct http_server *s = http_server_new(loop, &config, &e);
	assert_non_null(s);
	int pairs[102][2];
	for (size_t i = 0; i < ELEMS(pairs); i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]), 0);
		http_server_adopt(s, pairs[i][1], i < 100 ? "a" : "b");
		http_rig_send(pairs[i][0], "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	}
	assert_int_equal(loop_run(loop), 0);
	assert_memory_equal(order.seen, "ababaaaaaa", 10);
	http_server_free(s);
	loop_free(loop);
	for (size_t i = 0; i < ELEMS(pairs); i++)
		fd_close(pairs[i][0]);
}

/* ---- answers that end with the last round of on_writable ---- */

static size_t to_write;

static void write_more(struct http_exchange *x)
{
	static const char block[16384];
	bool go = true;
	while (go && to_write) {
		size_t n = MIN(to_write, sizeof(block));
		to_write -= n;
		go = http_write(x, (struct view){ block, n });
	}
	if (to_write == 0)
		http_end(x);
}

static void write_on_abort(struct http_exchange *x)
{
}

static void write_on_request(struct http_exchange *x, void *arg)
{
	static const struct http_ops ops = { .on_abort = write_on_abort, .on_writable = write_more };
	x->ops = &ops;
	http_begin(x, 200, "application/octet-stream", -1, NULL, 0);
	write_more(x);
}

static void stop_loop(struct loop_timer *t)
{
	loop_stop(t->loop, 0);
}

static bool ask_on(struct loop *loop, int fd)
{
	static const char ask[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
	const struct view end = VIEW("\r\n0\r\n\r\n");
	struct buf answer = BUF_INIT(4 << 20);
	struct loop_timer t = { 0 };
	bool ended = false;
	ssize_t n;
	assert_int_equal(send(fd, ask, sizeof(ask) - 1, 0), sizeof(ask) - 1);
	for (int i = 0; i < 1000 && !ended; i++) {
		loop_timer_start(loop, &t, 1, stop_loop);
		assert_int_equal(loop_run(loop), 0);
		while ((n = recv(fd, buf_reserve(&answer, 65536), 65536, MSG_DONTWAIT)) > 0)
			buf_commit(&answer, (size_t)n);
		ended = view_eq(view_skip(buf_view(&answer), buf_len(&answer) - MIN(buf_len(&answer), end.n)),
				end);
	}
	buf_done(&answer);
	return ended;
}

/* The whole answer leaves, in as many rounds as one connection has in its turn: the next request is read. */
static void test_the_last_round(void **state)
{
	struct http_config config = {
		.limits = { .connections = 8, .stall_ms = 60000, .head_ms = 60000, .idle_ms = 60000 },
		.on_request = write_on_request
	};
	struct err e = { 0 };
	struct loop *loop = loop_new(&e);
	assert_non_null(loop);
	struct http_server *s = http_server_new(loop, &config, &e);
	assert_non_null(s);
	int pair[2], room = 64 << 20;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)), 0);
	http_server_adopt(s, pair[1], "box");
	for (size_t n = 1 << 20; n < 3 << 20; n += 64 * 1024) {
		to_write = n;
		if (!ask_on(loop, pair[0]))
			fail_msg("no answer before one of %zu bytes", n);
	}
	http_server_free(s);
	loop_free(loop);
	fd_close(pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_idle, start_quick, stop),
		cmocka_unit_test_setup_teardown(test_slow_head, start_quick, stop),
		cmocka_unit_test_setup_teardown(test_stalled_body, start_quick, stop),
		cmocka_unit_test_setup_teardown(test_stalled_reader, start_quick, stop),
		cmocka_unit_test_setup_teardown(test_slow_dialect, start_quick, stop),
		cmocka_unit_test_setup_teardown(test_conversation, start_quick, stop),
		cmocka_unit_test_setup_teardown(test_newcomers, start_sixteen, stop),
		cmocka_unit_test_setup_teardown(test_the_lobby_empties, start_sixteen, stop),
		cmocka_unit_test_setup_teardown(test_half_a_lobby, start_full, stop),
		cmocka_unit_test_setup_teardown(test_the_lobby_ends, start_full_quick, stop),
		cmocka_unit_test_setup_teardown(test_useless, start_quickly_useless, stop),
		cmocka_unit_test_setup_teardown(test_shares, start_shares, stop),
		cmocka_unit_test_setup_teardown(test_refused, start_sixteen, stop),
		cmocka_unit_test_setup_teardown(test_strangers, start_three, stop),
		cmocka_unit_test_setup_teardown(test_slow_body, start_quick, stop),
		cmocka_unit_test_setup_teardown(test_no_fds, start_plain, stop),
		cmocka_unit_test(test_adopted),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_the_last_round),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
