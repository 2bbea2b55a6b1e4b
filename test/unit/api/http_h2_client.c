/*
 * A client of HTTP/2 for the tests: see http_h2_client.h.
 */
#include "http_h2_client.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#define ERR_STATE openssl_err_state
#include <openssl/ssl.h>
#undef ERR_STATE

#include "clock.h"
#include "fd.h"
#include "num.h"
#include "poison.h"

static struct h2_client_stream *stream(struct h2_client *c, int32_t id)
{
	size_t i = (size_t)(id - 1) / 2;
	return i < H2_CLIENT_STREAMS ? &c->streams[i] : NULL;
}

int32_t h2_client_id(const struct h2_client *c, const struct h2_client_stream *s)
{
	return (int32_t)(s - c->streams) * 2 + 1;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *f, const uint8_t *name, size_t name_n,
		     const uint8_t *value, size_t value_n, uint8_t flags, void *arg)
{
	struct h2_client_stream *s = stream(arg, f->hd.stream_id);
	struct view n = { (const char *)name, name_n }, v = { (const char *)value, value_n };
	uint32_t status;
	if (view_is(n, ":status") && num_u32(v, &status) == 0) {
		s->continued |= status == 100;
		s->status = (int)status;
	}
	if (view_is(n, "grpc-status") && f->headers.cat == NGHTTP2_HCAT_HEADERS)
		s->trailer = true;
	if (view_is(n, "grpc-status") && num_u32(v, &status) == 0)
		s->grpc = (int)status;
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *arg)
{
	buf_append(&stream(arg, id)->body, p, n);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
	stream(arg, id)->closed = true;
	stream(arg, id)->error = error;
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *f, void *arg)
{
	struct h2_client *c = arg;
	if (f->hd.type == NGHTTP2_GOAWAY) {
		c->goaway = true;
		c->goaway_error = f->goaway.error_code;
	}
	c->pongs += f->hd.type == NGHTTP2_PING && (f->hd.flags & NGHTTP2_FLAG_ACK);
	return 0;
}

static ssize_t read_upload(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
			   nghttp2_data_source *source, void *arg)
{
	struct h2_client_stream *s = source->ptr;
	n = MIN(n, s->upload.n);
	if (n == 0 && s->endless)
		return NGHTTP2_ERR_DEFERRED;
	memcpy(p, n ? s->upload.p : "", n);
	s->upload = view_skip(s->upload, n);
	if (s->upload.n == 0 && !s->endless)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

void h2_client_open(struct h2_client *c, int fd, void *ssl, bool hold)
{
	nghttp2_session_callbacks *cb;
	nghttp2_option *opt;
	*c = (struct h2_client){ .fd = fd, .ssl = ssl };
	for (size_t i = 0; i < H2_CLIENT_STREAMS; i++)
		buf_init(&c->streams[i].body, 16 << 20);
	assert_int_equal(nghttp2_session_callbacks_new(&cb), 0);
	assert_int_equal(nghttp2_option_new(&opt), 0);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	nghttp2_option_set_no_auto_window_update(opt, hold);
	/* So that the tests can send what a sane client would not. */
	nghttp2_option_set_no_http_messaging(opt, 1);
	assert_int_equal(nghttp2_session_client_new2(&c->session, cb, c, opt), 0);
	nghttp2_option_del(opt);
	nghttp2_session_callbacks_del(cb);
	assert_int_equal(nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, NULL, 0), 0);
}

void h2_client_close(struct h2_client *c)
{
	nghttp2_session_del(c->session);
	for (size_t i = 0; i < H2_CLIENT_STREAMS; i++)
		buf_done(&c->streams[i].body);
	SSL_free(c->ssl);
	fd_close(c->fd);
}

static nghttp2_nv nv(const char *name, struct view value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value.p, strlen(name), value.n,
			     0 };
}

struct h2_client_stream *h2_client_request(struct h2_client *c, const char *method, const char *path,
					   struct view upload, const struct http_header *extra, size_t n)
{
	nghttp2_nv *headers = calloc(n + 4, sizeof(*headers));
	assert_non_null(headers);
	headers[0] = nv(":method", view_of(method));
	headers[1] = nv(":path", view_of(path));
	headers[2] = nv(":scheme", VIEW("http"));
	headers[3] = nv(":authority", VIEW("test"));
	for (size_t i = 0; i < n; i++)
		headers[4 + i] = (nghttp2_nv){ (uint8_t *)(uintptr_t)extra[i].name.p,
					       (uint8_t *)(uintptr_t)extra[i].value.p, extra[i].name.n,
					       extra[i].value.n, 0 };
	int32_t next = (int32_t)nghttp2_session_get_next_stream_id(c->session);
	struct h2_client_stream *s = stream(c, next);
	assert_non_null(s);
	s->upload = upload;
	s->grpc = -1;
	nghttp2_data_provider body = { .source.ptr = s, .read_callback = read_upload };
	assert_int_equal(
		nghttp2_submit_request(c->session, NULL, headers, n + 4, upload.p ? &body : NULL, NULL),
		next);
	free(headers);
	return s;
}

static ssize_t write_some(struct h2_client *c, const uint8_t *p, size_t n)
{
	if (c->ssl)
		return SSL_write(c->ssl, p, (int)n);
	return send(c->fd, p, n, MSG_NOSIGNAL);
}

void h2_client_send(struct h2_client *c)
{
	const uint8_t *p;
	ssize_t n;
	while (!c->ended && !c->deaf && (n = nghttp2_session_mem_send(c->session, &p)) > 0)
		for (ssize_t done = 0; done < n;) {
			ssize_t w = write_some(c, p + done, (size_t)(n - done));
			if (w <= 0) {
				c->deaf = true; /* what it said before can still be read */
				return;
			}
			done += w;
		}
}

/* Receives once; false when nothing came in time. */
static bool receive(struct h2_client *c, int ms)
{
	uint8_t bytes[65536];
	bool ready = c->ssl && SSL_pending(c->ssl);
	if (!ready && poll(&(struct pollfd){ .fd = c->fd, .events = POLLIN }, 1, ms) <= 0)
		return false;
	ssize_t n = c->ssl ? SSL_read(c->ssl, bytes, sizeof(bytes)) : recv(c->fd, bytes, sizeof(bytes), 0);
	if (n <= 0) {
		c->ended = true;
		return true;
	}
	assert_int_equal(nghttp2_session_mem_recv(c->session, bytes, (size_t)n), n);
	return true;
}

void h2_client_until(struct h2_client *c, const bool *flag)
{
	while (!*flag) {
		h2_client_send(c);
		if (!*flag && c->ended)
			fail_msg("the connection ended");
		if (!*flag && !receive(c, 10000))
			fail_msg("no answer in time");
	}
}

void h2_client_for(struct h2_client *c, int ms)
{
	uint64_t until = clock_mono_ms() + (uint64_t)ms, now;
	while (!c->ended && (now = clock_mono_ms()) < until) {
		h2_client_send(c);
		receive(c, (int)(until - now));
	}
}

void h2_client_consume(struct h2_client *c, struct h2_client_stream *s)
{
	assert_int_equal(nghttp2_session_consume(c->session, h2_client_id(c, s), buf_len(&s->body)), 0);
}
