/*
 * Links over a socketpair: framing, order, fds, back-pressure, bad peers.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fd.h"
#include "link.h"
#include "wire_gen.h"
#include "poison.h"

#define SEEN 64

struct end {
	struct link link;
	unsigned frames, drained, closed;
	int error;
	struct frame seen[SEEN]; /* without bodies */
	struct buf bodies;
	int fd;              /* the last that came */
	unsigned stop_after; /* frames until on_frame calls link_stop, 0: never */
	unsigned quit_after; /* frames until the loop ends */
	bool quit_drained;
	size_t answer; /* bytes of the answer to each frame, 0: none */
};

static struct loop *loop;
static struct end here, there;
static struct loop_timer patience;

static struct end *end_of(struct link *l)
{
	return CONTAINER(l, struct end, link);
}

static void on_frame(struct link *l, const struct frame *f, int fd)
{
	struct end *e = end_of(l);
	if (e->frames < SEEN) {
		e->seen[e->frames] = *f;
		buf_add(&e->bodies, f->body);
	}
	e->frames++;
	if (fd >= 0) {
		fd_close(e->fd);
		e->fd = fd;
	}
	if (e->answer) {
		static char block[FRAME_DATA_MAX];
		assert_int_equal(link_send(l, &(struct frame){ .kind = FRAME_DATA,
							       .stream = f->stream,
							       .body = { block, e->answer } }),
				 0);
	}
	if (e->frames == e->stop_after)
		link_stop(l);
	if (e->frames == e->quit_after)
		loop_stop(loop, 0);
}

static void on_closed(struct link *l, int error)
{
	struct end *e = end_of(l);
	e->closed++;
	e->error = error;
	loop_stop(loop, 0);
}

static void on_drained(struct link *l)
{
	struct end *e = end_of(l);
	e->drained++;
	if (e->quit_drained)
		loop_stop(loop, 0);
}

static void on_impatient(struct loop_timer *t)
{
	(void)t;
	loop_stop(loop, -ETIMEDOUT);
}

static void run(void)
{
	loop_timer_start(loop, &patience, 5000, on_impatient);
	assert_int_equal(loop_run(loop), 0);
	loop_timer_stop(&patience);
}

static const struct link_ops ops = { on_frame, on_closed, on_drained };

static int setup_with(bool pass_fds)
{
	int fds[2];
	loop = loop_new(NULL);
	assert_non_null(loop);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	here = (struct end){ .fd = -1, .bodies = BUF_INIT(8u << 20) };
	there = (struct end){ .fd = -1, .bodies = BUF_INIT(8u << 20) };
	assert_int_equal(link_start(&here.link, loop, fds[0], pass_fds, &ops), 0);
	assert_int_equal(link_start(&there.link, loop, fds[1], pass_fds, &ops), 0);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return setup_with(false);
}

static int setup_fds(void **state)
{
	(void)state;
	return setup_with(true);
}

static int teardown(void **state)
{
	(void)state;
	link_stop(&here.link);
	link_stop(&there.link);
	link_stop(&there.link); /* harmless */
	buf_done(&here.bodies);
	buf_done(&there.bodies);
	fd_close(here.fd);
	fd_close(there.fd);
	loop_timer_stop(&patience);
	loop_free(loop);
	return 0;
}

/* A bare socket instead of `here`, to write what a link would not. */
static int bare_end(void)
{
	int fd = dup(here.link.io.fd);
	assert_true(fd >= 0);
	link_stop(&here.link);
	assert_int_equal(fd_nonblock(fd, false), 0);
	return fd;
}

static struct frame data(uint32_t stream, struct view body)
{
	return (struct frame){ .kind = FRAME_DATA, .stream = stream, .body = body };
}

static void test_both_ways(void **state)
{
	(void)state;
	struct wire_start s = { .cwd = VIEW("/workspace"), .user = VIEW("user") };
	assert_int_equal(
		link_send_msg(&here.link, WIRE_TYPE_START, FRAME_CALL, 0, 1, 500, &wire_start_msg, &s), 0);
	assert_int_equal(link_send(&here.link, &(struct frame){ .kind = FRAME_END, .stream = 1 }), 0);
	there.quit_after = 2;
	run();
	assert_int_equal(there.seen[0].type, WIRE_TYPE_START);
	assert_int_equal(there.seen[0].deadline_ms, 500);
	assert_int_equal(there.seen[1].kind, FRAME_END);
	_cleanup_(arena_done) struct arena a = ARENA_INIT(65536);
	struct wire_start back;
	assert_int_equal(pb_decode(&wire_start_msg, buf_view(&there.bodies), 0, &a, &back), 0);
	assert_true(view_is(back.cwd, "/workspace"));
	here.quit_after = 1;
	assert_int_equal(
		link_send(
			&there.link,
			&(struct frame){ .kind = FRAME_REPLY, .type = 2, .flags = FRAME_LAST, .stream = 1 }),
		0);
	run();
	assert_int_equal(here.seen[0].flags, FRAME_LAST);
	assert_int_equal(link_backlog(&here.link), 0);
}

/* A frame that comes byte by byte is one frame; two in one piece are two. */
static void test_pieces(void **state)
{
	(void)state;
	struct buf b = BUF_INIT(4096);
	int fd = bare_end();
	assert_int_equal(
		frame_put(
			&b,
			&(struct frame){ .kind = FRAME_CALL, .type = 7, .stream = 3, .body = VIEW("hello") }),
		0);
	there.quit_after = 1;
	for (size_t i = 0; i < buf_len(&b); i++) {
		assert_int_equal(there.frames, 0);
		assert_int_equal(write(fd, buf_view(&b).p + i, 1), 1);
		if (i + 1 < buf_len(&b)) {
			/* One round of the loop. */
			loop_timer_start(loop, &patience, 0, on_impatient);
			assert_int_equal(loop_run(loop), -ETIMEDOUT);
		}
	}
	run();
	assert_true(view_is(buf_view(&there.bodies), "hello"));
	assert_int_equal(frame_put(&b, &(struct frame){ .kind = FRAME_CANCEL, .stream = 3 }), 0);
	assert_int_equal(fd_write_all(fd, buf_view(&b).p, buf_len(&b)), 0);
	there.quit_after = 3;
	run();
	assert_int_equal(there.seen[2].kind, FRAME_CANCEL);
	buf_done(&b);
	close(fd);
}

/* More than the socket holds: queued, in order, and told when it is out. */
static void test_back_pressure(void **state)
{
	(void)state;
	static char block[FRAME_DATA_MAX];
	for (size_t i = 0; i < 40; i++) {
		memset(block, (int)i, sizeof(block));
		assert_int_equal(
			link_send(&here.link, &(struct frame){ .kind = FRAME_DATA,
							       .type = (uint16_t)i,
							       .stream = 1,
							       .body = { block, sizeof(block) - i } }),
			0);
	}
	assert_true(link_backlog(&here.link) > 1 << 20);
	assert_int_equal(here.drained, 0);
	here.quit_drained = true;
	run();
	assert_int_equal(link_backlog(&here.link), 0);
	assert_int_equal(here.drained, 1);
	there.quit_after = 40;
	if (there.frames < 40)
		run();
	const char *p = buf_view(&there.bodies).p;
	for (size_t i = 0; i < 40; i++) {
		assert_int_equal(there.seen[i].type, i);
		assert_int_equal(there.seen[i].body.n, sizeof(block) - i);
		for (size_t k = 0; k < sizeof(block) - i; k++)
			if (*p++ != (char)i)
				fail_msg("frame %zu is mixed up", i);
	}
}

static void test_peer_that_never_reads(void **state)
{
	(void)state;
	int fd = bare_end();
	static char block[FRAME_DATA_MAX];
	struct frame f = data(1, (struct view){ block, sizeof(block) });
	int r = 0;
	size_t sent = 0;
	for (; r == 0 && sent < 4 * LINK_QUEUE_MAX; sent += sizeof(block))
		r = link_send(&there.link, &f);
	assert_int_equal(r, -ENOBUFS);
	assert_true(sent >= LINK_QUEUE_MAX);
	assert_int_equal(there.closed, 0); /* not from within link_send */
	assert_false(link_open(&there.link));
	assert_int_equal(link_send(&there.link, &f), -ENOTCONN);
	run();
	assert_int_equal(there.closed, 1);
	assert_int_equal(there.error, -ENOBUFS);
	close(fd);
}

#define ASKED 500

static void ask(int fd)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(1u << 20);

	for (uint32_t i = 1; i <= ASKED; i++)
		assert_int_equal(frame_put(&b, &(struct frame){ .kind = FRAME_CALL, .type = 7, .stream = i }),
				 0);
	assert_int_equal(fd_write_all(fd, buf_view(&b).p, buf_len(&b)), 0);
}

static void some_rounds(void)
{
	for (int i = 0; i < 20; i++) {
		loop_timer_start(loop, &patience, 0, on_impatient);
		assert_int_equal(loop_run(loop), -ETIMEDOUT);
	}
}

/* Who does not take its answers is not read from, and is answered in order as it takes them. */
static void test_held(void **state)
{
	(void)state;
	int fd = bare_end();
	size_t got = 0, whole = (size_t)ASKED * (FRAME_HEADER + FRAME_DATA_MAX);
	static char block[256 * 1024];

	assert_true(whole > 2 * (size_t)LINK_QUEUE_MAX);
	there.answer = FRAME_DATA_MAX;
	there.link.hold = 1u << 20;
	ask(fd);
	some_rounds();
	const unsigned first = there.frames;
	assert_true(first > 0 && first < ASKED && there.closed == 0);
	assert_in_range(link_backlog(&there.link), there.link.hold,
			there.link.hold + FRAME_HEADER + FRAME_DATA_MAX);
	ask(fd); /* these are not read meanwhile */
	some_rounds();
	assert_int_equal(there.frames, first);
	assert_int_equal(fd_nonblock(fd, true), 0);
	while (got < 2 * whole) {
		const ssize_t n = read(fd, block, sizeof(block));
		if (n > 0) {
			got += (size_t)n;
			continue;
		}
		assert_true(n < 0 && errno == EAGAIN);
		some_rounds();
		assert_int_equal(there.closed, 0);
	}
	assert_int_equal(got, 2 * whole);
	assert_int_equal(there.frames, 2 * ASKED);
	assert_int_equal(link_backlog(&there.link), 0);
	close(fd);
}

static void test_held_and_gone(void **state)
{
	(void)state;
	int fd = bare_end();

	there.answer = FRAME_DATA_MAX;
	there.link.hold = 1u << 20;
	ask(fd);
	some_rounds();
	close(fd);
	run();
	assert_int_equal(there.closed, 1);
	assert_true(there.frames < ASKED && there.error < 0);
}

static void test_orderly_end(void **state)
{
	(void)state;
	struct frame f = data(1, VIEW("bye"));
	assert_int_equal(link_send(&here.link, &f), 0);
	link_stop(&here.link);
	run();
	assert_int_equal(there.frames, 1);
	assert_int_equal(there.closed, 1);
	assert_int_equal(there.error, 0);
	assert_int_equal(here.closed, 0); /* whoever stops is not told */
}

static void test_end_in_a_frame(void **state)
{
	(void)state;
	int fd = bare_end();
	assert_int_equal(write(fd, "\x05\0\0\0", 4), 4);
	close(fd);
	run();
	assert_int_equal(there.error, -ECONNRESET);
}

static void test_garbage(void **state)
{
	(void)state;
	int fd = bare_end();
	char good[FRAME_HEADER], noise[100];
	frame_header(good, &(struct frame){ .kind = FRAME_END, .stream = 1 }, 0);
	memset(noise, 0xee, sizeof(noise));
	assert_int_equal(fd_write_all(fd, good, sizeof(good)), 0);
	assert_int_equal(fd_write_all(fd, noise, sizeof(noise)), 0);
	run();
	assert_int_equal(there.frames, 1); /* what was right before it counts */
	assert_int_equal(there.closed, 1);
	assert_int_equal(there.error, -EBADMSG);
	close(fd);
}

/* A handler may stop the link while more frames wait in its buffer. */
static void test_stop_in_handler(void **state)
{
	(void)state;
	struct frame f = data(1, VIEW("x"));
	for (int i = 0; i < 5; i++)
		assert_int_equal(link_send(&here.link, &f), 0);
	there.stop_after = there.quit_after = 2;
	run();
	assert_int_equal(there.frames, 2);
	assert_int_equal(there.closed, 0);
	run(); /* `here` learns of it; with its own bytes unread over there that is a reset */
	assert_int_equal(here.closed, 1);
}

static void assert_same_file(int a, int b)
{
	struct stat sa, sb;
	assert_int_equal(fstat(a, &sa), 0);
	assert_int_equal(fstat(b, &sb), 0);
	assert_int_equal(sa.st_ino, sb.st_ino);
	assert_true(fcntl(b, F_GETFD) & FD_CLOEXEC);
}

static void test_fds(void **state)
{
	(void)state;
	struct wire_box_created m = { 0 };
	int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	there.quit_after = 1;
	assert_int_equal(link_send_msg_fd(&here.link, WIRE_TYPE_BOX_CREATE, FRAME_REPLY, FRAME_LAST, 1,
					  &wire_box_created_msg, &m, dup(file)),
			 0);
	run();
	assert_int_equal(there.seen[0].flags, FRAME_LAST | FRAME_FD);
	assert_same_file(file, there.fd);
	close(file);
}

/* Several fds wait in the queue among other frames: each goes with its own. */
static void test_fds_in_queue(void **state)
{
	(void)state;
	static char block[FRAME_DATA_MAX];
	struct wire_box_created m = { 0 };
	struct frame f = data(1, (struct view){ block, sizeof(block) });
	int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC),
	    group = open("/etc/group", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 10; i++)
		assert_int_equal(link_send(&here.link, &f), 0);
	for (int i = 0; i < LINK_FDS; i++) {
		int fd = dup(i == LINK_FDS - 1 ? group : file);
		assert_int_equal(link_send_msg_fd(&here.link, WIRE_TYPE_BOX_OPEN, FRAME_REPLY, FRAME_LAST, 2,
						  &wire_box_created_msg, &m, fd),
				 0);
		assert_int_equal(link_send(&here.link, &f), 0);
	}
	there.quit_after = 10 + 2 * LINK_FDS - 2;
	run();
	assert_same_file(file, there.fd);
	there.quit_after = 10 + 2 * LINK_FDS;
	run();
	assert_same_file(group, there.fd);
	close(file);
	close(group);
}

static void send_fds(int file, unsigned n, int last)
{
	struct wire_box_created m = { 0 };

	for (unsigned i = 0; i < n; i++)
		assert_int_equal(link_send_msg_fd(&here.link, 1, FRAME_REPLY, 0, 2, &wire_box_created_msg, &m,
						  dup(file)),
				 i + 1 == n ? last : 0);
}

/* Very many, for a peer that is busy: none is lost, and there is an end to them. */
static void test_many_fds_in_queue(void **state)
{
	(void)state;
	static char block[FRAME_DATA_MAX];
	struct frame f = data(1, (struct view){ block, sizeof(block) });
	struct rlimit old, high = { LINK_FDS_OUT + 256, LINK_FDS_OUT + 256 };
	int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	high.rlim_max = old.rlim_max;
	if (old.rlim_cur < high.rlim_cur)
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &high), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(link_send(&here.link, &f), 0);
	send_fds(file, 1000, 0);
	there.quit_after = 1010;
	run();
	assert_same_file(file, there.fd);
	assert_null(here.link.out_fds);
	/* One more than the queue has places for. */
	for (int i = 0; i < 10; i++)
		assert_int_equal(link_send(&here.link, &f), 0);
	send_fds(file, LINK_FDS_OUT + 1, -ENOBUFS);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	close(file);
}

static void send_with_fd(int sock, int fd, const char *bytes, size_t n)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)bytes, n };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.room,
			      .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	assert_int_equal(sendmsg(sock, &msg, 0), n);
}

static unsigned open_fds(void)
{
	unsigned n = 0;
	for (int fd = 0; fd < 200; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* A box sends us an fd: closed at once, and so is the link. */
static void test_unwanted_fd(void **state)
{
	(void)state;
	int sock = bare_end();
	char head[FRAME_HEADER];
	frame_header(head, &(struct frame){ .kind = FRAME_END, .stream = 1 }, 0);
	unsigned before = open_fds();
	send_with_fd(sock, sock, head, sizeof(head));
	run();
	assert_int_equal(there.error, -EBADMSG);
	assert_int_equal(there.frames, 0);
	assert_int_equal(open_fds(), before - 1); /* the link's own */
	close(sock);
}

/* The flag without the fd; and fds without frames to claim them, which pile up. */
static void test_fd_mismatch(void **state)
{
	(void)state;
	int sock = bare_end();
	char head[FRAME_HEADER];
	frame_header(head, &(struct frame){ .kind = FRAME_REPLY, .type = 1, .flags = FRAME_FD, .stream = 1 },
		     0);
	assert_int_equal(fd_write_all(sock, head, sizeof(head)), 0);
	run();
	assert_int_equal(there.error, -EBADMSG);
	close(sock);
}

static void test_fd_hoard(void **state)
{
	(void)state;
	int sock = bare_end();
	char head[FRAME_HEADER];
	frame_header(head, &(struct frame){ .kind = FRAME_END, .stream = 1 }, 0);
	unsigned before = open_fds();
	for (int i = 0; i <= LINK_FDS; i++)
		send_with_fd(sock, sock, head, sizeof(head));
	run();
	assert_int_equal(there.error, -EBADMSG);
	assert_int_equal(open_fds(), before - 1);
	close(sock);
}

static void test_errors_travel(void **state)
{
	(void)state;
	struct err e, back;
	struct buf b = BUF_INIT(4096);
	err_sys(&e, ERR_NOT_FOUND, ENOENT, "'%s'", "/x");
	there.quit_after = 1;
	assert_int_equal(link_fail(&here.link, 5, 9, &e), 0);
	run();
	struct frame f = { .kind = FRAME_FAIL, .body = buf_view(&there.bodies) };
	link_read_fail(&f, &back);
	assert_int_equal(back.code, ERR_NOT_FOUND);
	assert_int_equal(back.sys, ENOENT);
	assert_string_equal(back.msg, e.msg);
	/* From a hostile peer: no control characters, no broken text, no unknown codes. */
	struct wire_fail w = { .code = VIEW("no_such_code"),
			       .sys = 99999,
			       .message = VIEW("a\x1b[31m\xff\n\0b") };
	assert_int_equal(pb_encode(&wire_fail_msg, &w, &b), 0);
	f.body = buf_view(&b);
	link_read_fail(&f, &back);
	assert_int_equal(back.code, ERR_INTERNAL);
	assert_int_equal(back.sys, 0);
	assert_string_equal(back.msg, "a?[31m??");
	f.body = VIEW("\xff");
	link_read_fail(&f, &back);
	assert_int_equal(back.code, ERR_INTERNAL);
	/* A long text is cut between characters. */
	char text[400];
	memset(text, 'x', sizeof(text));
	for (size_t i = 1; i + 1 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	buf_clear(&b);
	w = (struct wire_fail){ .code = VIEW("conflict"), .message = { text, sizeof(text) } };
	assert_int_equal(pb_encode(&wire_fail_msg, &w, &b), 0);
	f.body = buf_view(&b);
	link_read_fail(&f, &back);
	assert_int_equal(back.code, ERR_CONFLICT);
	assert_null(strchr(back.msg, '?'));
	assert_true(strlen(back.msg) >= sizeof(back.msg) - 3);
	buf_done(&b);
}

static void test_bad_use(void **state)
{
	(void)state;
	struct link never = { 0 };
	link_stop(&never);
	assert_false(link_open(&never));
	assert_int_equal(link_send(&never, &(struct frame){ .kind = FRAME_END, .stream = 1 }), -ENOTCONN);
	assert_int_equal(link_send(&here.link, &(struct frame){ .kind = FRAME_CALL, .stream = 1 }), -EINVAL);
	struct wire_box_created m = { 0 };
	assert_int_equal(
		link_send_msg_fd(&here.link, 1, FRAME_REPLY, 0, 2, &wire_box_created_msg, &m, dup(0)),
		-EINVAL);
	assert_true(link_open(&here.link));
}

#define TEST(f)     cmocka_unit_test_setup_teardown(f, setup, teardown)
#define TEST_FDS(f) cmocka_unit_test_setup_teardown(f, setup_fds, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_both_ways),
		TEST(test_pieces),
		TEST(test_back_pressure),
		TEST(test_peer_that_never_reads),
		TEST(test_held),
		TEST(test_held_and_gone),
		TEST(test_orderly_end),
		TEST(test_end_in_a_frame),
		TEST(test_garbage),
		TEST(test_stop_in_handler),
		TEST_FDS(test_fds),
		TEST_FDS(test_fds_in_queue),
		TEST_FDS(test_many_fds_in_queue),
		TEST(test_unwanted_fd),
		TEST_FDS(test_fd_mismatch),
		TEST_FDS(test_fd_hoard),
		TEST(test_errors_travel),
		TEST(test_bad_use),
	};
	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
