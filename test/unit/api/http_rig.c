/*
 * The rig of the HTTP tests: see http_rig.h.
 */
#include "http_rig.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "clock.h"
#include "fd.h"
#include "num.h"
#include "tls.h"
#include "poison.h"

/* ---- the dialect ---- */

struct page {
	struct http_exchange *x;
	struct http_rig *rig;
	struct loop_timer timer;
	uint64_t left;
	char i[24];
};

static void page_done(struct http_exchange *x)
{
	struct page *p = x->ctx;
	p->rig->counts.live--;
	loop_timer_stop(&p->timer);
	free(p);
}

static void on_abort(struct http_exchange *x)
{
	((struct page *)x->ctx)->rig->counts.aborts++;
	page_done(x);
}

static void hold_body(struct http_exchange *x, struct view data, bool last)
{
	struct page *p = x->ctx;
	p->rig->counts.body_bytes += (long long)data.n;
	p->rig->counts.lasts += last;
}

static void echo_body(struct http_exchange *x, struct view data, bool last)
{
	struct page *p = x->ctx;
	hold_body(x, data, last);
	if (!http_write(x, data)) {
		p->rig->counts.blocked++;
		http_body_pause(x);
	}
	if (last) {
		page_done(x);
		http_end(x);
	}
}

static void big_more(struct http_exchange *x)
{
	static const char block[16384];
	struct page *p = x->ctx;
	bool go = true;
	while (go && p->left) {
		size_t n = MIN(p->left, sizeof(block));
		p->left -= n;
		p->rig->counts.written += (long long)n;
		go = http_write(x, (struct view){ block, n });
	}
	p->rig->counts.blocked += !go;
	if (p->left == 0) {
		page_done(x);
		http_end(x);
	}
}

/* Bytes come in their own time, as from a box, also after http_write has said stop. The answer ends when
 * on_writable comes: were it forgotten, it would never end. */
static void trickle_time(struct loop_timer *t)
{
	struct page *p = CONTAINER(t, struct page, timer);
	(void)http_write(p->x, VIEW("x"));
	loop_timer_start(p->x->loop, t, 1, trickle_time);
}

static void trickle_room(struct http_exchange *x)
{
	page_done(x);
	http_end(x);
}

static void later_time(struct loop_timer *t)
{
	struct page *p = CONTAINER(t, struct page, timer);
	struct http_exchange *x = p->x;
	struct view body = arena_view(x->arena, view_of(p->i));
	page_done(x);
	http_reply(x, 200, "text/plain", body, NULL, 0);
}

static void later_body(struct http_exchange *x, struct view data, bool last)
{
	struct page *p = x->ctx;
	if (last)
		loop_timer_start(x->loop, &p->timer, 3, later_time);
}

static const struct http_ops hold = { .on_body = hold_body, .on_abort = on_abort };
static const struct http_ops echo = { .on_body = echo_body,
				      .on_abort = on_abort,
				      .on_writable = http_body_resume };
static const struct http_ops big = { .on_abort = on_abort, .on_writable = big_more };
static const struct http_ops trickle = { .on_abort = on_abort, .on_writable = trickle_room };
static const struct http_ops later = { .on_body = later_body, .on_abort = on_abort };

static struct page *take(struct http_rig *r, struct http_exchange *x, const struct http_ops *ops)
{
	struct page *p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	p->x = x;
	p->rig = r;
	x->ops = ops;
	x->ctx = p;
	r->counts.live++;
	return p;
}

static void serve_big(struct http_rig *r, struct http_exchange *x)
{
	struct page *p = take(r, x, &big);
	if (num_u64(http_get_query(x, "n"), &p->left) < 0)
		p->left = 0;
	http_begin(x, 200, "application/octet-stream", -1, NULL, 0);
	big_more(x);
}

static void serve_trickle(struct http_rig *r, struct http_exchange *x)
{
	static const char block[512 * 1024];
	struct page *p = take(r, x, &trickle);
	http_begin(x, 200, "application/octet-stream", -1, NULL, 0);
	r->counts.blocked += !http_write(x, (struct view){ block, sizeof(block) });
	loop_timer_start(x->loop, &p->timer, 1, trickle_time);
}

static void serve_trailers(struct http_exchange *x)
{
	const struct http_header t[] = { { VIEW("grpc-status"), VIEW("0") } };
	http_begin(x, 200, "application/grpc", -1, NULL, 0);
	http_write(x, VIEW("data"));
	http_trailers(x, t, ELEMS(t));
	http_end(x);
}

static void on_request(struct http_exchange *x, void *arg)
{
	struct http_rig *r = arg;
	struct view i = http_get_query(x, "i");
	const struct http_header extra[] = { { VIEW("x-extra"), VIEW("yes") } };
	struct view key = http_get_header(x, "x-key");
	if (key.n)
		http_vouch(x, (uint8_t)key.p[0]);
	if (view_is(x->path, "/health")) {
		http_reply(x, 200, "text/plain", VIEW("ok"), extra, 1);
	} else if (view_is(x->path, "/n")) {
		http_reply(x, 200, "text/plain", i, NULL, 0);
	} else if (view_is(x->path, "/later")) {
		if (view_to_str(i, take(r, x, &later)->i, sizeof(((struct page *)0)->i)) < 0)
			abort();
	} else if (view_is(x->path, "/echo")) {
		take(r, x, &echo);
		http_begin(x, 200, "application/octet-stream", x->content_length, NULL, 0);
	} else if (view_is(x->path, "/big")) {
		serve_big(r, x);
	} else if (view_is(x->path, "/trickle")) {
		serve_trickle(r, x);
	} else if (view_is(x->path, "/hold")) {
		take(r, x, &hold);
	} else if (view_is(x->path, "/full")) {
		take(r, x, &hold);
		http_body_pause(x);
	} else if (view_is(x->path, "/break")) {
		http_begin(x, 200, NULL, -1, NULL, 0);
		http_write(x, VIEW("half of"));
		http_break(x);
	} else if (view_is(x->path, "/short")) {
		http_begin(x, 200, NULL, 100, NULL, 0);
		http_write(x, VIEW("half of"));
		http_end(x);
	} else if (view_is(x->path, "/trailers")) {
		serve_trailers(x);
	} else if (!view_is(x->path, "/nobody")) {
		http_reply(x, 404, "text/plain", VIEW("none"), NULL, 0);
	}
}

/* ---- the server ---- */

static void on_stop(struct loop_task *t)
{
	loop_stop(CONTAINER(t, struct http_rig, stop)->loop, 0);
}

static void *run(void *arg)
{
	struct http_rig *r = arg;
	int rc = loop_run(r->loop);
	http_server_free(r->server);
	return (void *)(intptr_t)rc;
}

static int rig_listen(struct http_rig *r)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	static int serial;
	snprintf(r->path, sizeof(r->path), "/tmp/http_rig.%d.%d", getpid(), serial++);
	memcpy(a.sun_path, r->path, sizeof(r->path));
	(void)unlink(r->path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 64), 0);
	return fd;
}

void http_rig_start(struct http_rig *r, const struct http_limits *limits, const char *cert, const char *key)
{
	struct err e = { 0 };
	struct http_config cfg = { .on_request = on_request, .arg = r };
	pthread_t thread;
	memset(r, 0, sizeof(*r));
	if (limits)
		cfg.limits = *limits;
	if (cert) {
		cfg.tls = r->tls = tls_server_new(cert, key, &e);
		if (!r->tls)
			fail_msg("%s", e.msg);
	}
	r->loop = loop_new(&e);
	assert_non_null(r->loop);
	r->server = http_server_new(r->loop, &cfg, &e);
	assert_non_null(r->server);
	assert_int_equal(http_server_listen(r->server, rig_listen(r), &e), 0);
	assert_int_equal(pthread_create(&thread, NULL, run, r), 0);
	r->thread = thread;
}

void http_rig_stop(struct http_rig *r)
{
	void *rc;
	loop_post(r->loop, &r->stop, on_stop);
	assert_int_equal(pthread_join(r->thread, &rc), 0);
	assert_null(rc);
	loop_free(r->loop);
	tls_server_free(r->tls);
	(void)unlink(r->path);
	assert_int_equal(r->counts.live, 0);
}

void http_rig_wait(atomic_int *counter, int value)
{
	uint64_t until = clock_mono_ms() + 30000;
	while (atomic_load(counter) != value && clock_mono_ms() < until)
		poll(NULL, 0, 1);
	assert_int_equal(atomic_load(counter), value);
}

/* ---- clients ---- */

int http_rig_connect(const struct http_rig *r)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = 10 }; /* a test that hangs must fail */
	memcpy(a.sun_path, r->path, sizeof(r->path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)), 0);
	return fd;
}

void http_rig_send_bytes(int fd, const void *p, size_t n)
{
	for (const char *at = p; n;) {
		ssize_t r = send(fd, at, n, MSG_NOSIGNAL);
		assert_true(r > 0);
		at += r;
		n -= (size_t)r;
	}
}

void http_rig_send(int fd, const char *text)
{
	http_rig_send_bytes(fd, text, strlen(text));
}

/* At most n more bytes; 0 at the end, -1 for a reset. */
static ssize_t take_bytes(int fd, struct buf *out, size_t n)
{
	char *p = buf_reserve(out, n);
	assert_non_null(p);
	ssize_t r = recv(fd, p, n, 0);
	if (r < 0 && errno == EAGAIN)
		fail_msg("no answer in time");
	if (r > 0)
		buf_commit(out, (size_t)r);
	return r;
}

bool http_rig_read_all(int fd, struct buf *out)
{
	ssize_t r;
	while ((r = take_bytes(fd, out, 16384)) > 0)
		;
	return r == 0;
}

static void read_exactly(int fd, struct buf *out, size_t n)
{
	while (n) {
		ssize_t r = take_bytes(fd, out, n);
		if (r <= 0)
			fail_msg("the answer ended early");
		n -= (size_t)r;
	}
}

/* A byte at a time: what follows belongs to the next answer. */
static void read_until(int fd, struct buf *out, const char *end)
{
	size_t n = strlen(end);
	do
		read_exactly(fd, out, 1);
	while (buf_len(out) < n || memcmp(out->p + out->n - n, end, n) != 0);
}

static void read_chunks(int fd, struct buf *body)
{
	uint64_t n;
	do {
		struct buf line = BUF_INIT(64), crlf = BUF_INIT(4);
		read_until(fd, &line, "\r\n");
		assert_int_equal(num_hex(view_head(buf_view(&line), buf_len(&line) - 2), &n), 0);
		read_exactly(fd, body, n);
		read_exactly(fd, &crlf, 2);
		assert_memory_equal(crlf.p, "\r\n", 2);
		buf_done(&line);
		buf_done(&crlf);
	} while (n);
}

int http_rig_read_answer(int fd, struct buf *head, struct buf *body, bool is_head)
{
	buf_clear(head);
	buf_clear(body);
	read_until(fd, head, "\r\n\r\n");
	buf_putc(head, 0);
	const char *text = head->p, *length = strstr(text, "\r\ncontent-length: ");
	uint32_t status;
	assert_int_equal(num_u32((struct view){ text + 9, 3 }, &status), 0);
	if (!is_head && strstr(text, "\r\ntransfer-encoding: chunked\r\n")) {
		read_chunks(fd, body);
	} else if (!is_head && length) {
		struct view rest, v = view_split(view_of(length + 18), '\r', &rest);
		uint32_t n;
		assert_int_equal(num_u32(v, &n), 0);
		read_exactly(fd, body, n);
	}
	buf_putc(body, 0);
	body->n--;
	return (int)status;
}

int http_rig_ask(int fd, const char *request, struct buf *body)
{
	struct buf head = BUF_INIT(65536);
	http_rig_send(fd, request);
	int status = http_rig_read_answer(fd, &head, body, false);
	buf_done(&head);
	return status;
}
