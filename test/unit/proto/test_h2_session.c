/*
 * Sessions of HTTP/2 against each other, without a network: they greet, what costs has an
 * end, and a secret that was taken is in the session no more.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "h2_session.h"

#include "poison.h"

#define WINDOW (300 * 1024)
#define SECRET "the-secret-of-this-test"

static const uint8_t *sent; /* the session's own memory, after a take */

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *f, void *arg)
{
	unsigned *n = arg;
	(*n)++;
	return 0;
}

static nghttp2_session *make(bool client, bool secret, unsigned *frames)
{
	static const struct h2_session_calls calls = { .on_frame_send = on_frame_send };
	static const nghttp2_settings_entry ours[] = { { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 12345 } };
	nghttp2_session *s = NULL;
	const struct h2_session_setup setup = {
		.calls = &calls,
		.arg = frames,
		.client = client,
		.secret = secret,
		.window = WINDOW,
		.settings = ours,
		.n_settings = 1,
	};
	assert_int_equal(h2_session_new(&setup, &s), 0);
	return s;
}

static void greeting(void **state)
{
	unsigned n_client = 0, n_server = 0;
	nghttp2_session *client = make(true, false, &n_client), *server = make(false, true, &n_server);
	struct buf out = BUF_INIT(4096);

	assert_int_equal(h2_session_take(client, &out, 4096), 0);
	assert_true(view_starts(buf_view(&out), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
	assert_int_equal(n_client, 2); /* settings, and the window of the connection */
	assert_int_equal(nghttp2_session_mem_recv(server, (const uint8_t *)buf_view(&out).p, buf_len(&out)),
			 buf_len(&out));
	assert_int_equal(nghttp2_session_get_remote_settings(server, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE),
			 12345);
	assert_int_equal(nghttp2_session_get_remote_window_size(server), WINDOW);
	assert_false(h2_session_is_over(server));
	assert_int_equal(h2_session_calm(server), 0);
	buf_consume(&out, buf_len(&out));
	assert_int_equal(h2_session_take(server, &out, 4096), 0);
	assert_true(h2_session_is_over(server));
	buf_done(&out);
	nghttp2_session_del(client);
	nghttp2_session_del(server);
}

static void too_little_room(void **state)
{
	unsigned frames = 0;
	nghttp2_session *client = make(true, false, &frames);
	struct buf out = BUF_INIT(8);

	assert_true(h2_session_take(client, &out, 4096) < 0);
	buf_done(&out);
	nghttp2_session_del(client);
}

static unsigned affordable(nghttp2_frame f, unsigned most)
{
	struct h2_budget b = H2_BUDGET(7, 1);
	unsigned n = 0;

	while (n < most && h2_session_affords(&b, &f, 1000))
		n++;
	return n;
}

static void budgets(void **state)
{
	const struct {
		nghttp2_frame_hd hd;
		unsigned n;
	} cases[] = {
		{ { .type = NGHTTP2_RST_STREAM }, 7 },
		{ { .type = NGHTTP2_SETTINGS }, 20 },
		{ { .type = NGHTTP2_SETTINGS, .flags = NGHTTP2_FLAG_ACK }, 2000 },
		{ { .type = NGHTTP2_PING }, 1000 },
		{ { .type = NGHTTP2_PING, .flags = NGHTTP2_FLAG_ACK }, 2000 },
		{ { .type = NGHTTP2_PRIORITY }, 1000 },
		{ { .type = NGHTTP2_DATA }, 1000 },
		{ { .type = NGHTTP2_DATA, .length = 1 }, 2000 },
		{ { .type = NGHTTP2_DATA, .flags = NGHTTP2_FLAG_END_STREAM }, 2000 },
		{ { .type = NGHTTP2_HEADERS }, 2000 },
	};

	for (size_t i = 0; i < ELEMS(cases); i++)
		assert_int_equal(affordable((nghttp2_frame){ .hd = cases[i].hd }, 2000), cases[i].n);
}

static ssize_t give(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
		    nghttp2_data_source *src, void *arg)
{
	assert_true(n >= sizeof(SECRET));
	memcpy(p, SECRET, sizeof(SECRET));
	sent = p;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	return sizeof(SECRET);
}

#define FIELD(n, v)                                                                                          \
	{                                                                                                    \
		(uint8_t *)(n), (uint8_t *)(v), sizeof(n) - 1, sizeof(v) - 1, NGHTTP2_NV_FLAG_NONE           \
	}

/* Whether the session still has the body of a request after it was taken to a buffer that is secret, or is
 * not. */
static bool keeps(bool secret)
{
	unsigned frames = 0;
	nghttp2_session *client = make(true, true, &frames);
	struct buf out = { .max = 64 * 1024, .secret = secret };
	const nghttp2_nv head[] = { FIELD(":method", "POST"), FIELD(":scheme", "https"), FIELD(":path", "/"),
				    FIELD(":authority", "a") };

	assert_true(nghttp2_submit_request(client, NULL, head, ELEMS(head),
					   &(nghttp2_data_provider){ .read_callback = give }, NULL) > 0);
	sent = NULL;
	assert_int_equal(h2_session_take(client, &out, 64 * 1024), 0);
	assert_non_null(sent);
	assert_non_null(memmem(buf_view(&out).p, buf_len(&out), SECRET, sizeof(SECRET)));
	bool kept = memcmp(sent, SECRET, sizeof(SECRET)) == 0;
	buf_done(&out);
	nghttp2_session_del(client);
	return kept;
}

static void nothing_is_kept(void **state)
{
	assert_true(keeps(false)); /* or the next line says nothing */
	assert_false(keeps(true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greeting),
		cmocka_unit_test(too_little_room),
		cmocka_unit_test(budgets),
		cmocka_unit_test(nothing_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
