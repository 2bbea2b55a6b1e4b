/*
 * HTTP/2 with prior knowledge over real sockets: many streams, bodies both ways,
 * flow control as back-pressure, trailers, and what a hostile peer sends.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "clock.h"
#include "fd.h"
#include "http_h2_client.h"
#include "http_rig.h"
#include "poison.h"

static struct http_rig rig;
static struct h2_client *client;

static int start(void **state)
{
	static const struct http_limits limits = { .head_bytes = 16 * 1024, .streams = 128 };
	http_rig_start(&rig, &limits, NULL, NULL);
	client = malloc(sizeof(*client));
	h2_client_open(client, http_rig_connect(&rig), NULL, false);
	return 0;
}

static int stop(void **state)
{
	h2_client_close(client);
	free(client);
	http_rig_stop(&rig);
	return 0;
}

static struct h2_client_stream *get(const char *path)
{
	return h2_client_request(client, "GET", path, VIEW_NONE, NULL, 0);
}

static void assert_body(struct h2_client_stream *s, int status, const char *text)
{
	assert_int_equal(s->status, status);
	assert_int_equal(s->error, 0);
	assert_int_equal(buf_len(&s->body), strlen(text));
	assert_memory_equal(buf_view(&s->body).p ? buf_view(&s->body).p : "", text, strlen(text));
}

static void test_streams(void **state)
{
	struct h2_client_stream *s[100];
	char path[32];
	for (int i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), i % 2 ? "/later?i=%d" : "/n?i=%d", i);
		s[i] = get(path);
	}
	for (int i = 0; i < 100; i++) {
		char want[16];
		h2_client_until(client, &s[i]->closed);
		snprintf(want, sizeof(want), "%d", i);
		assert_body(s[i], 200, want);
	}
	struct h2_client_stream *h = h2_client_request(client, "HEAD", "/health", VIEW_NONE, NULL, 0);
	struct h2_client_stream *none = get("/nobody");
	h2_client_until(client, &h->closed);
	assert_body(h, 200, "");
	h2_client_until(client, &none->closed);
	assert_int_equal(none->status, 500);
}

static void test_echo(void **state)
{
	size_t n = 1 << 20;
	char *blob = malloc(n);
	for (size_t i = 0; i < n; i++)
		blob[i] = (char)(i * 31 >> 8);
	struct h2_client_stream *s =
		h2_client_request(client, "POST", "/echo", (struct view){ blob, n }, NULL, 0);
	h2_client_until(client, &s->closed);
	assert_int_equal(s->status, 200);
	assert_int_equal(buf_len(&s->body), n);
	assert_memory_equal(buf_view(&s->body).p, blob, n);
	free(blob);
}

static void test_trailers(void **state)
{
	struct h2_client_stream *s = get("/trailers");
	h2_client_until(client, &s->closed);
	assert_body(s, 200, "data");
	assert_true(s->trailer);
}

static void test_expect(void **state)
{
	const struct http_header extra[] = { { VIEW("expect"), VIEW("100-continue") } };
	struct h2_client_stream *s = h2_client_request(client, "POST", "/later?i=x", VIEW("body"), extra, 1);
	h2_client_until(client, &s->closed);
	assert_true(s->continued);
	assert_body(s, 200, "x");
}

/* The client's window stays shut: the dialect is told to stop, and goes on when it opens. */
static void test_slow_reader(void **state)
{
	struct h2_client *slow = malloc(sizeof(*slow));
	h2_client_open(slow, http_rig_connect(&rig), NULL, true);
	struct h2_client_stream *s = h2_client_request(slow, "GET", "/big?n=1000000", VIEW_NONE, NULL, 0);
	h2_client_send(slow);
	http_rig_wait(&rig.counts.blocked, 1);
	h2_client_for(slow, 50);
	assert_true(rig.counts.written < 512 * 1024);
	assert_int_equal(buf_len(&s->body), 65535); /* HTTP/2's first window */
	size_t total = 0;
	while (!s->closed) {
		total += buf_len(&s->body);
		h2_client_consume(slow, s);
		buf_clear(&s->body);
		h2_client_for(slow, 2);
	}
	assert_int_equal(total + buf_len(&s->body), 1000000);
	h2_client_close(slow);
	free(slow);
}

/* Reads so slowly that bytes are written while the queue is between its two marks. */
static void test_told_of_room(void **state)
{
	struct h2_client *slow = malloc(sizeof(*slow));
	h2_client_open(slow, http_rig_connect(&rig), NULL, true);
	struct h2_client_stream *s = h2_client_request(slow, "GET", "/trickle", VIEW_NONE, NULL, 0);
	uint64_t until = clock_mono_ms() + 30000;
	while (!s->closed && clock_mono_ms() < until) {
		h2_client_for(slow, 5);
		h2_client_consume(slow, s);
		buf_clear(&s->body);
	}
	assert_true(s->closed);
	h2_client_close(slow);
	free(slow);
}

/* A dialect that takes nothing of the body shuts its stream's window and no other. */
static void test_slow_taker(void **state)
{
	char *blob = calloc(1, 4 << 20);
	struct h2_client_stream *s =
		h2_client_request(client, "POST", "/full", (struct view){ blob, 4 << 20 }, NULL, 0);
	h2_client_for(client, 100);
	assert_true(s->upload.n > (4 << 20) - 300 * 1024);
	struct h2_client_stream *h = get("/health");
	h2_client_until(client, &h->closed);
	assert_body(h, 200, "ok");
	/* Given up, its bytes must not keep the connection's window. */
	for (int i = 0; i < 40; i++) {
		nghttp2_submit_rst_stream(client->session, NGHTTP2_FLAG_NONE, h2_client_id(client, s),
					  NGHTTP2_CANCEL);
		h2_client_until(client, &s->closed);
		s = h2_client_request(client, "POST", "/full", (struct view){ blob, 4 << 20 }, NULL, 0);
		h2_client_for(client, 2);
	}
	struct h2_client_stream *e =
		h2_client_request(client, "POST", "/echo", (struct view){ blob, 3 << 20 }, NULL, 0);
	h2_client_until(client, &e->closed);
	assert_int_equal(buf_len(&e->body), 3 << 20);
	free(blob);
}

/* An answer before the body is complete: a small rest is dropped, a large one refused. */
static void test_early_answer(void **state)
{
	char *blob = calloc(1, 1 << 20);
	struct h2_client_stream *s =
		h2_client_request(client, "POST", "/health", (struct view){ blob, 60000 }, NULL, 0);
	h2_client_until(client, &s->closed);
	assert_body(s, 200, "ok");
	s = h2_client_request(client, "POST", "/health", (struct view){ blob, 1 << 20 }, NULL, 0);
	h2_client_until(client, &s->closed);
	assert_body(s, 200, "ok"); /* closed with NO_ERROR */
	assert_true(s->upload.n > 0);
	free(blob);
}

static void test_abort(void **state)
{
	int before = rig.counts.aborts;
	struct h2_client_stream *s = h2_client_request(client, "POST", "/hold", VIEW("some"), NULL, 0);
	s->endless = true;
	h2_client_send(client);
	http_rig_wait(&rig.counts.live, 1);
	nghttp2_submit_rst_stream(client->session, NGHTTP2_FLAG_NONE, h2_client_id(client, s),
				  NGHTTP2_CANCEL);
	h2_client_send(client);
	http_rig_wait(&rig.counts.aborts, before + 1);
	/* And by the end of the connection, once for each. */
	struct h2_client *other = malloc(sizeof(*other));
	h2_client_open(other, http_rig_connect(&rig), NULL, false);
	for (int i = 0; i < 5; i++)
		h2_client_request(other, "GET", "/hold", VIEW_NONE, NULL, 0);
	h2_client_send(other);
	http_rig_wait(&rig.counts.live, 5);
	h2_client_close(other);
	free(other);
	http_rig_wait(&rig.counts.aborts, before + 6);
	http_rig_wait(&rig.counts.live, 0);
}

static void test_broken_answers(void **state)
{
	struct h2_client_stream *a = get("/break"), *b = get("/short");
	h2_client_until(client, &a->closed);
	h2_client_until(client, &b->closed);
	assert_int_equal(a->error, NGHTTP2_INTERNAL_ERROR);
	assert_int_equal(b->error, NGHTTP2_INTERNAL_ERROR);
}

static void test_bad_heads(void **state)
{
	static char large[17000];
	memset(large, 'x', sizeof(large));
	const struct http_header long_one[] = { { VIEW("x-long"), { large, sizeof(large) } } };
	const struct http_header host[] = { { VIEW("host"), VIEW("other") } };
	const struct http_header expect[] = { { VIEW("expect"), VIEW("x") } };
	static struct http_header many[120];
	for (size_t i = 0; i < ELEMS(many); i++)
		many[i] = (struct http_header){ VIEW("a"), VIEW("b") };
	const struct {
		const char *path;
		const struct http_header *extra;
		size_t n;
		int status;
	} cases[] = {
		{ "/health", long_one, 1, 431 }, { "/health", many, ELEMS(many), 431 },
		{ "/health", host, 1, 400 },     { "/health", expect, 1, 417 },
		{ "/bad%zz", NULL, 0, 400 },     { "/bad#x", NULL, 0, 400 },
		{ "/health", NULL, 0, 200 },
	};
	for (size_t i = 0; i < ELEMS(cases); i++) {
		struct h2_client_stream *s = h2_client_request(client, "GET", cases[i].path, VIEW_NONE,
							       cases[i].extra, cases[i].n);
		h2_client_until(client, &s->closed);
		assert_int_equal(s->status, cases[i].status);
	}
}

/* CVE-2023-44487: requests that are reset at once. */
static void test_rapid_reset(void **state)
{
	for (int i = 0; i < 400 && !client->deaf; i++) {
		struct h2_client_stream *s = get("/hold");
		h2_client_send(client);
		nghttp2_submit_rst_stream(client->session, NGHTTP2_FLAG_NONE, h2_client_id(client, s),
					  NGHTTP2_CANCEL);
		h2_client_send(client);
	}
	h2_client_for(client, 5000);
	assert_true(client->ended);
	assert_true(client->goaway);
	assert_int_equal(client->goaway_error, NGHTTP2_ENHANCE_YOUR_CALM);
	http_rig_wait(&rig.counts.live, 0);
	assert_true(rig.counts.aborts < 300);
}

static void test_floods(void **state)
{
	for (int kind = 0; kind < 2; kind++) {
		struct h2_client *c = malloc(sizeof(*c));
		h2_client_open(c, http_rig_connect(&rig), NULL, false);
		for (int i = 0; i < 3000 && !c->deaf; i++) {
			if (kind == 0)
				nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL);
			else
				nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, NULL, 0);
			h2_client_for(c, 0);
			h2_client_send(c);
			if (i % 100 == 0)
				h2_client_for(c, 1);
		}
		h2_client_for(c, 5000);
		assert_true(c->ended);
		assert_int_equal(c->goaway_error, NGHTTP2_ENHANCE_YOUR_CALM);
		h2_client_close(c);
		free(c);
	}
	struct h2_client_stream *s = get("/health"); /* the others do not notice */
	h2_client_until(client, &s->closed);
	assert_body(s, 200, "ok");
}

/* The preface in pieces, and one that is none. */
static void test_preface(void **state)
{
	struct buf answer = BUF_INIT(65536);
	int fd = http_rig_connect(&rig);
	const char *preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	for (const char *p = preface; *p; p++) {
		http_rig_send_bytes(fd, p, 1);
		poll(NULL, 0, 1);
	}
	http_rig_send_bytes(fd, "\0\0\0\4\0\0\0\0\0", 9);
	char got[9];
	assert_int_equal(fd_read_all(fd, got, sizeof(got)), 0);
	assert_int_equal(got[3], NGHTTP2_SETTINGS);
	fd_close(fd);
	fd = http_rig_connect(&rig);
	http_rig_send(fd, "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n");
	assert_true(http_rig_read_all(fd, &answer));
	assert_memory_equal(answer.p, "HTTP/1.1 505 ", 13);
	buf_done(&answer);
	fd_close(fd);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(test_streams),        TEST(test_echo),         TEST(test_trailers),
		TEST(test_expect),         TEST(test_slow_reader),  TEST(test_told_of_room),
		TEST(test_slow_taker),     TEST(test_early_answer), TEST(test_abort),
		TEST(test_broken_answers), TEST(test_bad_heads),    TEST(test_rapid_reset),
		TEST(test_floods),         TEST(test_preface),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
