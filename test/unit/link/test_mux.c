/*
 * Calls over a link, against a peer that the test plays itself: what is right,
 * and everything that a hostile PID 1 could send instead.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "fd.h"
#include "mux.h"
#include "wire_gen.h"
#include "poison.h"

/* One mux with one call, and the peer's end of the socket. */
struct rig {
	struct loop *loop;
	struct mux mux;
	struct call call;
	int peer;
	struct buf in; /* what the peer has received */
	/* what happened */
	unsigned replies, rooms, closed;
	bool last;
	struct buf data;
	struct err failed, why;
	int answer; /* of on_reply and on_data */
	bool keep;  /* on_data does not give back */
};

static struct rig *rig_of(struct call *c)
{
	return CONTAINER(c, struct rig, call);
}

static int on_reply(struct call *c, const struct frame *f, int fd)
{
	rig_of(c)->replies++;
	rig_of(c)->last = f->flags & FRAME_LAST;
	fd_close(fd);
	return rig_of(c)->answer;
}

static int on_data(struct call *c, unsigned channel, struct view data)
{
	struct rig *r = rig_of(c);
	assert_int_equal(buf_add(&r->data, data), 0);
	if (r->answer >= 0 && !r->keep)
		mux_consumed(c, data.n);
	return r->answer;
}

static void on_room(struct call *c)
{
	rig_of(c)->rooms++;
}

static void on_fail(struct call *c, const struct err *e)
{
	assert_int_equal(rig_of(c)->failed.code, ERR_OK);
	rig_of(c)->failed = *e;
}

static const struct call_ops ops = { on_reply, on_data, on_room, on_fail };

static void on_closed(struct mux *m, const struct err *why)
{
	struct rig *r = CONTAINER(m, struct rig, mux);
	r->closed++;
	r->why = *why;
	mux_stop(m, why);
}

static const struct mux_ops mux_ops = { .on_closed = on_closed };

static void stop(struct loop_timer *t)
{
	loop_stop(t->loop, 0);
}

static void run_for(struct rig *r, unsigned ms)
{
	struct loop_timer t = { 0 };
	loop_timer_start(r->loop, &t, ms, stop);
	assert_int_equal(loop_run(r->loop), 0);
	loop_timer_stop(&t);
}

/* Delivers all that lies in the sockets; nothing here takes time. */
static void pump(struct rig *r)
{
	for (int i = 0; i < 32; i++)
		run_for(r, 0);
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	int fds[2];
	struct err e = { 0 };
	assert_non_null(r);
	r->loop = loop_new(&e);
	assert_non_null(r->loop);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	r->peer = fds[1];
	assert_int_equal(fd_nonblock(r->peer, true), 0);
	r->in = BUF_INIT(64u << 20);
	r->data = BUF_INIT(64u << 20);
	r->call.ops = &ops;
	assert_int_equal(mux_start(&r->mux, r->loop, fds[0], false, &mux_ops), 0);
	struct wire_file_stat msg = { .path = VIEW("/x"), .user = VIEW("u") };
	assert_int_equal(mux_call(&r->mux, &r->call, WIRE_TYPE_FILE_STAT, 0, 0, &wire_file_stat_msg, &msg),
			 0);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;
	struct err e = { .code = ERR_CANCELLED };
	r->failed.code = ERR_OK;
	mux_stop(&r->mux, &e);
	fd_close(r->peer);
	buf_done(&r->in);
	buf_done(&r->data);
	loop_free(r->loop);
	free(r);
	return 0;
}

static void say(struct rig *r, struct frame f)
{
	struct buf b = BUF_INIT(16u << 20);
	if (!f.stream)
		f.stream = r->call.stream;
	assert_int_equal(frame_put(&b, &f), 0);
	struct view v = buf_view(&b);
	while (v.n) {
		ssize_t n = write(r->peer, v.p, v.n);
		if (n < 0 && errno == EAGAIN) {
			pump(r);
			continue;
		}
		assert_true(n > 0);
		v = view_skip(v, (size_t)n);
	}
	buf_done(&b);
}

/* The next frame that the mux sent; false when there is none. */
static bool hear(struct rig *r, struct frame *ret)
{
	for (;;) {
		size_t size;
		int got = frame_parse(buf_view(&r->in), ret, &size);
		assert_true(got >= 0);
		if (got > 0) {
			static char body[FRAME_BODY_MAX];
			memcpy(body, ret->body.p, ret->body.n);
			ret->body.p = body;
			buf_consume(&r->in, size);
			return true;
		}
		char *p = buf_reserve(&r->in, 65536);
		ssize_t n = read(r->peer, p, 65536);
		if (n <= 0)
			return false;
		buf_commit(&r->in, (size_t)n);
	}
}

static const char credit_64k[4] = { 0, 0, 1, 0 };

static void test_reply(void **state)
{
	struct rig *r = *state;
	struct frame f;
	assert_true(hear(r, &f));
	assert_int_equal(f.kind, FRAME_CALL);
	assert_int_equal(f.type, WIRE_TYPE_FILE_STAT);
	assert_int_not_equal(f.stream, 0);
	say(r, (struct frame){ .kind = FRAME_REPLY, .type = WIRE_TYPE_FILE_STAT });
	say(r, (struct frame){ .kind = FRAME_REPLY, .type = WIRE_TYPE_FILE_STAT, .flags = FRAME_LAST });
	/* After the last one nothing more reaches the call. */
	say(r, (struct frame){ .kind = FRAME_REPLY, .type = WIRE_TYPE_FILE_STAT, .flags = FRAME_LAST });
	say(r, (struct frame){ .kind = FRAME_DATA, .body = VIEW("late") });
	pump(r);
	assert_int_equal(r->replies, 2);
	assert_true(r->last);
	assert_false(mux_is_open(&r->call));
	assert_int_equal(r->closed, 0);
	assert_int_equal(buf_len(&r->data), 0);
}

static void test_fail(void **state)
{
	struct rig *r = *state;
	struct buf b = BUF_INIT(1024);
	struct wire_fail said = { .code = VIEW("not_found"), .message = VIEW("no such file"), .sys = ENOENT };
	assert_int_equal(pb_encode(&wire_fail_msg, &said, &b), 0);
	say(r, (struct frame){ .kind = FRAME_FAIL, .type = WIRE_TYPE_FILE_STAT, .body = buf_view(&b) });
	buf_done(&b);
	pump(r);
	assert_int_equal(r->failed.code, ERR_NOT_FOUND);
	assert_string_equal(r->failed.msg, "no such file");
	assert_false(mux_is_open(&r->call));
	assert_int_equal(r->closed, 0);
}

static void test_window_is_given_back(void **state)
{
	struct rig *r = *state;
	static char piece[FRAME_DATA_MAX];
	struct frame f;
	size_t credit = FRAME_WINDOW, sent = 0;
	hear(r, &f);
	while (sent < 4 * FRAME_WINDOW) {
		if (credit >= sizeof(piece)) {
			say(r, (struct frame){
				       .kind = FRAME_DATA, .type = 1, .body = { piece, sizeof(piece) } });
			credit -= sizeof(piece);
			sent += sizeof(piece);
			continue;
		}
		pump(r);
		assert_true(hear(r, &f));
		assert_int_equal(f.kind, FRAME_WINDOW_ADD);
		const unsigned char *b = (const unsigned char *)f.body.p;
		credit += b[0] | b[1] << 8 | b[2] << 16 | (uint32_t)b[3] << 24;
		assert_true(credit <= FRAME_WINDOW);
	}
	pump(r);
	assert_int_equal(buf_len(&r->data), sent);
	assert_int_equal(r->closed, 0);
}

static void test_no_credit_while_bytes_are_held(void **state)
{
	struct rig *r = *state;
	static char piece[FRAME_DATA_MAX];
	struct frame f;
	hear(r, &f);
	r->keep = true;
	for (size_t n = 0; n < FRAME_WINDOW; n += sizeof(piece))
		say(r, (struct frame){ .kind = FRAME_DATA, .type = 1, .body = { piece, sizeof(piece) } });
	pump(r);
	assert_false(hear(r, &f));
	mux_consumed(&r->call, FRAME_WINDOW);
	assert_true(hear(r, &f));
	assert_int_equal(f.kind, FRAME_WINDOW_ADD);
	assert_int_equal(r->closed, 0);
}

static void broken(struct rig *r)
{
	pump(r);
	assert_int_equal(r->closed, 1);
	assert_int_equal(r->why.code, ERR_UNAVAILABLE);
	assert_int_equal(r->failed.code, ERR_UNAVAILABLE);
	assert_false(mux_is_open(&r->call));
	char c;
	for (ssize_t n; (n = read(r->peer, &c, 1)) != 0;)
		if (n < 0)
			assert_int_equal(errno, ECONNRESET); /* either way: closed */
}

static void test_more_than_the_window(void **state)
{
	struct rig *r = *state;
	static char piece[FRAME_DATA_MAX];
	r->keep = true;
	for (size_t n = 0; n < FRAME_WINDOW; n += sizeof(piece))
		say(r, (struct frame){ .kind = FRAME_DATA, .type = 1, .body = { piece, sizeof(piece) } });
	pump(r);
	say(r, (struct frame){ .kind = FRAME_DATA, .type = 1, .body = VIEW("!") });
	broken(r);
}

static void test_reply_of_another_type(void **state)
{
	say(*state, (struct frame){ .kind = FRAME_REPLY, .type = WIRE_TYPE_START, .flags = FRAME_LAST });
	broken(*state);
}

static void test_endless_credit(void **state)
{
	struct rig *r = *state;
	static const char much[4] = { -1, -1, -1, -1 };
	say(r, (struct frame){ .kind = FRAME_WINDOW_ADD, .body = { credit_64k, 4 } });
	pump(r);
	assert_int_equal(r->closed, 0);
	say(r, (struct frame){ .kind = FRAME_WINDOW_ADD, .body = { much, 4 } });
	broken(r);
}

static void test_malformed_reply(void **state)
{
	struct rig *r = *state;
	r->answer = -EBADMSG;
	say(r, (struct frame){ .kind = FRAME_REPLY, .type = WIRE_TYPE_FILE_STAT, .flags = FRAME_LAST });
	broken(r);
}

static void test_malformed_data(void **state)
{
	struct rig *r = *state;
	r->answer = -EBADMSG;
	say(r, (struct frame){ .kind = FRAME_DATA, .type = 1, .body = VIEW("x") });
	broken(r);
}

static void test_call_from_the_other_side(void **state)
{
	say(*state, (struct frame){ .kind = FRAME_CALL, .type = WIRE_TYPE_FILE_STAT });
	broken(*state);
}

static void test_event_from_a_box(void **state)
{
	struct rig *r = *state;
	struct buf b = BUF_INIT(1024);
	struct frame f = { .kind = FRAME_EVENT, .type = WIRE_TYPE_BOX_EXITED };
	assert_int_equal(frame_put(&b, &f), 0);
	assert_int_equal(write(r->peer, b.p, b.n), (ssize_t)b.n);
	buf_done(&b);
	broken(r);
}

static void test_garbage(void **state)
{
	struct rig *r = *state;
	char noise[64];
	memset(noise, 0xff, sizeof(noise));
	assert_int_equal(write(r->peer, noise, sizeof(noise)), (ssize_t)sizeof(noise));
	broken(r);
}

static void test_peer_goes(void **state)
{
	struct rig *r = *state;
	fd_close(TAKE_FD(r->peer));
	pump(r);
	assert_int_equal(r->closed, 1);
	assert_int_equal(r->why.code, ERR_STATE);
	assert_int_equal(r->failed.code, ERR_STATE);
}

static void test_cancel(void **state)
{
	struct rig *r = *state;
	struct frame f;
	uint32_t stream = r->call.stream;
	hear(r, &f);
	mux_cancel(&r->call);
	mux_cancel(&r->call);
	assert_true(hear(r, &f));
	assert_int_equal(f.kind, FRAME_CANCEL);
	assert_int_equal(f.stream, stream);
	assert_false(hear(r, &f));
	say(r, (struct frame){ .kind = FRAME_REPLY,
			       .type = WIRE_TYPE_FILE_STAT,
			       .flags = FRAME_LAST,
			       .stream = stream });
	pump(r);
	assert_int_equal(r->replies, 0);
	assert_int_equal(r->closed, 0);
}

static void test_sending_waits_for_credit(void **state)
{
	struct rig *r = *state;
	static char much[2 * FRAME_WINDOW];
	struct frame f;
	size_t got = 0;
	r->call.sends = true;
	hear(r, &f);
	size_t sent = mux_send(&r->call, (struct view){ much, sizeof(much) });
	assert_int_equal(sent, FRAME_WINDOW);
	for (int i = 0; i < 50 && got < sent; i++) {
		pump(r);
		while (hear(r, &f)) {
			assert_int_equal(f.kind, FRAME_DATA);
			assert_true(f.body.n <= FRAME_DATA_MAX);
			got += f.body.n;
		}
	}
	assert_int_equal(got, sent);
	assert_int_equal(r->rooms, 0);
	say(r, (struct frame){ .kind = FRAME_WINDOW_ADD, .body = { credit_64k, 4 } });
	pump(r);
	assert_int_equal(r->rooms, 1);
	assert_int_equal(mux_send(&r->call, (struct view){ much, sizeof(much) }), 65536);
	mux_end(&r->call);
	pump(r);
	bool ended = false;
	while (hear(r, &f))
		ended = f.kind == FRAME_END;
	assert_true(ended);
}

static void test_patience(void **state)
{
	struct rig *r = *state;
	struct call *c = &r->call;
	struct frame f;
	struct wire_file_stat msg = { .path = VIEW("/x"), .user = VIEW("u") };
	mux_cancel(c);
	assert_int_equal(mux_call(&r->mux, c, WIRE_TYPE_FILE_STAT, 0, 30, &wire_file_stat_msg, &msg), 0);
	/* While we hold its bytes it is not the peer that is slow. */
	r->keep = true;
	say(r, (struct frame){ .kind = FRAME_DATA, .type = 1, .body = VIEW("x") });
	run_for(r, 100);
	assert_int_equal(r->failed.code, ERR_OK);
	mux_consumed(c, 1);
	for (int i = 0; i < 100 && !r->failed.code; i++)
		run_for(r, 30);
	assert_int_equal(r->failed.code, ERR_TIMEOUT);
	assert_int_equal(r->closed, 0);
	bool cancelled = false;
	while (hear(r, &f))
		cancelled = f.kind == FRAME_CANCEL;
	assert_true(cancelled);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_reply),
		TEST(test_fail),
		TEST(test_window_is_given_back),
		TEST(test_no_credit_while_bytes_are_held),
		TEST(test_more_than_the_window),
		TEST(test_reply_of_another_type),
		TEST(test_endless_credit),
		TEST(test_malformed_reply),
		TEST(test_malformed_data),
		TEST(test_call_from_the_other_side),
		TEST(test_event_from_a_box),
		TEST(test_garbage),
		TEST(test_peer_goes),
		TEST(test_cancel),
		TEST(test_sending_waits_for_credit),
		TEST(test_patience),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
