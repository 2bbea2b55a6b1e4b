/*
 * What paddock-api and paddock-gate want of libnghttp2 alike: a session that gives windows back
 * only when it is told to, a budget for what costs us and not the peer, and the bytes that are
 * due. Without I/O; a library of its own (proto_h2), since only these two link libnghttp2.
 */
#pragma once

#include <nghttp2/nghttp2.h>

#include "buf.h"
#include "rate.h"

#define H2_SESSION_AHEAD (64u * 1024) /* bytes that are taken from a session before they are sent */

struct h2_session_calls {
	nghttp2_on_begin_frame_callback on_begin_frame;
	nghttp2_on_begin_headers_callback on_begin_headers;
	nghttp2_on_header_callback on_header;
	nghttp2_on_invalid_header_callback on_invalid_header;
	nghttp2_on_frame_recv_callback on_frame_recv;
	nghttp2_on_invalid_frame_recv_callback on_invalid_frame;
	nghttp2_on_data_chunk_recv_callback on_data;
	nghttp2_on_frame_send_callback on_frame_send;
	nghttp2_on_stream_close_callback on_stream_close;
};

struct h2_session_setup {
	const struct h2_session_calls *calls;
	void *arg;       /* of theirs */
	bool client;     /* it speaks to a server */
	bool secret;     /* its memory is wiped when it is given back */
	size_t head_out; /* bytes of the largest head that is sent; 0: libnghttp2's 64 KiB */
	int32_t window;  /* of all streams together */
	const nghttp2_settings_entry *settings;
	size_t n_settings;
};

/* -1: there is no memory. Freed by nghttp2_session_del. */
int h2_session_new(const struct h2_session_setup *s, nghttp2_session **ret) _must_check_;

/* Resets, settings, and the rest: pings, priorities, empty frames. */
struct h2_budget {
	struct rate resets, settings, chatter;
};
#define H2_BUDGET(resets_n, resets_each_second)                                                              \
	((struct h2_budget){ RATE((resets_n), (resets_each_second)), RATE(20, 1), RATE(1000, 100) })

/* False: the peer asks for more than it may. */
bool h2_session_affords(struct h2_budget *b, const nghttp2_frame *f, uint64_t now_ms);
/* And is sent away. What a callback returns. */
int h2_session_calm(nghttp2_session *session);

/* What is due, until `out` has `most` bytes or a frame more; -EPROTO. Of a secret buffer no copy is left in
 * the session. */
int h2_session_take(nghttp2_session *session, struct buf *out, size_t most) _must_check_;
bool h2_session_is_over(nghttp2_session *session);
