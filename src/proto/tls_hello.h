/*
 * The first flight of TLS, read and not answered: which name a client asks for. The
 * ClientHello may lie in any number of records and may be large; nothing behind it is
 * looked at. What is not exactly a ClientHello is refused.
 */
#pragma once

#include "view.h"

#define TLS_HELLO_MAX 16384 /* of the message; with the record headers a little more */

struct tls_hello {
	char name[256]; /* of server_name, as it came; "" when there is none */
	bool ech;       /* an encrypted ClientHello is in it: the name is a front */
	bool alpn_h2;   /* offers HTTP/2 */
	size_t need;    /* while more is needed: with fewer bytes than these in all it cannot be complete */
};

/* 1: complete; 0: more is needed; -EINVAL: no ClientHello. */
int tls_hello_parse(struct view in, struct tls_hello *ret) _must_check_;
