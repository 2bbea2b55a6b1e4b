/*
 * gRPC and gRPC-Web without I/O: content types, deadlines, and how a call ends. The
 * envelope of a message is that of connect.h.
 *
 *   gRPC      HTTP/2; the end is in the trailers: grpc-status, grpc-message
 *   gRPC-Web  any HTTP; the end is the last envelope of the body (flag 0x80), in the
 *             form of trailers
 */
#pragma once

#include "connect.h"

enum grpc_form { GRPC_NONE, GRPC_PLAIN, GRPC_WEB };

struct grpc_type {
	enum grpc_form form; /* NONE: not a content type of this protocol */
	enum connect_codec codec;
};
/* The base64 of grpc-web-text is not known here. */
struct grpc_type grpc_type(struct view content_type);
const char *grpc_type_name(struct grpc_type t); /* "application/grpc+proto"; NULL for NONE */

#define GRPC_END     0x80u
#define GRPC_MESSAGE 640 /* an error's message in its coded form, with its NUL */

/* Grpc-Timeout: at most eight digits and H, M, S, m, u or n; less than a millisecond is one. -EINVAL */
int grpc_timeout(struct view header, uint64_t *ret_ms) _must_check_;
/* The value of grpc-message: printable ASCII, everything else (and '%') as %XX; cut where it is too long. */
void grpc_message(const char *text, char ret[GRPC_MESSAGE]);
/* The last envelope of gRPC-Web; e may be NULL. */
int grpc_put_end(struct buf *out, const struct err *e);
