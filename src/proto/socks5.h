/*
 * SOCKS 5 (RFC 1928), the server's half, without I/O: CONNECT alone, no login.
 */
#pragma once

#include "view.h"

enum {
	SOCKS5_OK = 0,
	SOCKS5_FAILED = 1,
	SOCKS5_FORBIDDEN = 2,
	SOCKS5_UNREACHABLE = 4,
	SOCKS5_REFUSED = 5,
	SOCKS5_COMMAND = 7,
	SOCKS5_ADDRESS = 8
};

#define SOCKS5_REPLY 10

/* The greeting: its length, 0 when more is needed, or -EINVAL. *ret_method is what to answer: 0, or 0xff. */
int socks5_greeting(struct view in, uint8_t *ret_method) _must_check_;

struct socks5_request {
	uint8_t kind;     /* 1: four bytes of `host`, 4: sixteen, 3: a name */
	struct view host; /* in the caller's bytes; a name may hold anything */
	uint16_t port;
};
/* The request: its length, 0 when more is needed, -EINVAL, or -EOPNOTSUPP (another command). */
int socks5_parse(struct view in, struct socks5_request *ret) _must_check_;
void socks5_reply(uint8_t code, char dst[SOCKS5_REPLY]);
