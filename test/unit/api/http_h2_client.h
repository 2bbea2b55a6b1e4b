/*
 * A client of HTTP/2 for the tests, by libnghttp2, on a blocking socket or TLS.
 */
#pragma once

#include <nghttp2/nghttp2.h>

#include "buf.h"
#include "http_header.h"

#define H2_CLIENT_STREAMS 512

struct h2_client_stream {
	int status;
	bool closed;
	uint32_t error; /* of RST_STREAM */
	struct buf body;
	bool trailer;       /* grpc-status came after the body */
	int grpc;           /* its value, wherever it came; -1 */
	bool continued;     /* a 100 came */
	struct view upload; /* still to be sent */
	bool endless;       /* after the upload comes nothing, not the end */
};

struct h2_client {
	int fd;
	void *ssl; /* SSL *, or NULL */
	nghttp2_session *session;
	struct h2_client_stream streams[H2_CLIENT_STREAMS]; /* by (id - 1) / 2 */
	bool goaway;
	bool deaf, ended; /* the server does not listen; does not speak any more */
	uint32_t goaway_error;
	int pongs;
};

/* `hold`: flow-control windows open only by h2_client_consume. */
void h2_client_open(struct h2_client *c, int fd, void *ssl, bool hold);
void h2_client_close(struct h2_client *c);
/* Returns the stream; its request leaves with the next pump. Extra headers may be NULL. */
struct h2_client_stream *h2_client_request(struct h2_client *c, const char *method, const char *path,
					   struct view upload, const struct http_header *extra, size_t n);
int32_t h2_client_id(const struct h2_client *c, const struct h2_client_stream *s);
void h2_client_send(struct h2_client *c);
/* Sends and receives until the flag is set; fails the test when it takes too long. */
void h2_client_until(struct h2_client *c, const bool *flag);
/* Sends and receives for a while. */
void h2_client_for(struct h2_client *c, int ms);
void h2_client_consume(struct h2_client *c, struct h2_client_stream *s);
