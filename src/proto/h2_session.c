/*
 * Sessions of HTTP/2: see h2_session.h.
 */
#include "h2_session.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "poison.h"

/* ---- memory: what libnghttp2 copies may be a secret ---- */

static void wiped_free(void *p, void *arg)
{
	(void)arg;
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

static void *plain_malloc(size_t n, void *arg)
{
	(void)arg;
	return malloc(n);
}

static void *plain_calloc(size_t n, size_t size, void *arg)
{
	(void)arg;
	return calloc(n, size);
}

static void *wiped_realloc(void *p, size_t n, void *arg)
{
	size_t had = p ? malloc_usable_size(p) : 0;
	void *q = malloc(n);

	if (!q)
		return NULL;
	if (had)
		memcpy(q, p, MIN(had, n));
	wiped_free(p, arg);
	return q;
}

static nghttp2_mem wiped = { NULL, plain_malloc, wiped_free, plain_calloc, wiped_realloc };

/* ---- the beginning ---- */

static void set_calls(nghttp2_session_callbacks *cb, const struct h2_session_calls *c)
{
	nghttp2_session_callbacks_set_on_begin_frame_callback(cb, c->on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, c->on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, c->on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(cb, c->on_invalid_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, c->on_frame_recv);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, c->on_invalid_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, c->on_data);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, c->on_frame_send);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, c->on_stream_close);
}

static int make(const struct h2_session_setup *s, nghttp2_session **ret)
{
	nghttp2_session_callbacks *cb = NULL;
	nghttp2_option *opt = NULL;
	nghttp2_mem *memory = s->secret ? &wiped : NULL;
	int r = nghttp2_session_callbacks_new(&cb);

	if (r == 0)
		r = nghttp2_option_new(&opt);
	if (r == 0) {
		set_calls(cb, s->calls);
		nghttp2_option_set_no_auto_window_update(opt, 1);
		nghttp2_option_set_no_closed_streams(opt, 1);
		if (s->head_out)
			nghttp2_option_set_max_send_header_block_length(opt, s->head_out);
		r = s->client ? nghttp2_session_client_new3(ret, cb, s->arg, opt, memory)
			      : nghttp2_session_server_new3(ret, cb, s->arg, opt, memory);
	}
	nghttp2_option_del(opt);
	nghttp2_session_callbacks_del(cb);
	return r;
}

int h2_session_new(const struct h2_session_setup *s, nghttp2_session **ret)
{
	nghttp2_session *session = NULL;

	if (make(s, &session) != 0)
		return -1;
	if (nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, s->settings, s->n_settings) != 0 ||
	    nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, s->window) != 0) {
		nghttp2_session_del(session);
		return -1;
	}
	*ret = session;
	return 0;
}

/* ---- what costs us ---- */

bool h2_session_affords(struct h2_budget *b, const nghttp2_frame *f, uint64_t now_ms)
{
	bool ack = f->hd.flags & NGHTTP2_FLAG_ACK;

	switch (f->hd.type) {
	case NGHTTP2_RST_STREAM:
		return rate_spend(&b->resets, now_ms);
	case NGHTTP2_SETTINGS:
		return ack || rate_spend(&b->settings, now_ms);
	case NGHTTP2_PING:
		return ack || rate_spend(&b->chatter, now_ms);
	case NGHTTP2_PRIORITY:
		return rate_spend(&b->chatter, now_ms);
	case NGHTTP2_DATA:
		return f->hd.length || (f->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
		       rate_spend(&b->chatter, now_ms);
	default:
		return true;
	}
}

int h2_session_calm(nghttp2_session *session)
{
	return nghttp2_session_terminate_session(session, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* ---- bytes ---- */

int h2_session_take(nghttp2_session *session, struct buf *out, size_t most)
{
	while (buf_len(out) < most) {
		const uint8_t *p;
		ssize_t n = nghttp2_session_mem_send(session, &p);

		if (n == 0)
			break;
		if (n < 0)
			return -EPROTO;
		int r = buf_append(out, p, (size_t)n);
		/* The session's own buffer, which lives as long as it does and is only written to from here
		 * on. */
		if (out->secret)
			explicit_bzero((void *)(uintptr_t)p, (size_t)n);
		if (r < 0)
			return -EPROTO;
	}
	return 0;
}

bool h2_session_is_over(nghttp2_session *session)
{
	return !nghttp2_session_want_read(session) && !nghttp2_session_want_write(session);
}
