/*
 * The client's side of TLS on a non-blocking socket. A certificate must be of a known
 * authority and of the host that was asked for; there is no way to do without.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "err.h"
#include "view.h"

struct secure_ctx;
struct secure;

/* Reads the authorities: of the file, or those of the system where it is empty. Before
 * the program is confined. */
struct secure_ctx *secure_load(const char *ca_file, struct err *e) _must_check_;

/* The socket stays the caller's. NULL without memory. */
struct secure *secure_new(struct secure_ctx *ctx, int fd, struct view host) _must_check_;
void secure_free(struct secure *s);
/* Bytes; 0 at the end (recv); -EAGAIN when *ret_want (EPOLLIN, EPOLLOUT) must come first;
 * -EPROTO: secure_why says it; else -errno. The first call makes the handshake. */
/* The handshake alone: 1 when it is done and the certificate is right. */
ssize_t secure_connect(struct secure *s, uint32_t *ret_want) _must_check_;
ssize_t secure_send(struct secure *s, struct view v, uint32_t *ret_want) _must_check_;
ssize_t secure_recv(struct secure *s, char *p, size_t n, uint32_t *ret_want) _must_check_;
const char *secure_why(const struct secure *s);
