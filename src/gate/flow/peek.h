/*
 * Recognises the protocol of a connection by its first bytes.
 */
#pragma once

#include "view.h"

enum peek {
	PEEK_MORE,
	PEEK_TLS,
	PEEK_ECH, /* TLS with an encrypted ClientHello (or what only looks like one, GREASE): the name may be
		     a front */
	PEEK_HTTP,
	PEEK_HTTP2, /* in clear: nothing of it is judged */
	PEEK_OTHER,
	PEEK_BAD,
};
/* What was learned from fewer bytes of the same connection; zeroed at its beginning. Who sends byte by byte
 * would otherwise have all of them looked at with each. */
struct peek_memory {
	size_t need;  /* of a ClientHello: with fewer bytes it cannot be complete */
	size_t empty; /* bytes of empty lines at the start */
};
/* Of TLS the name is copied in lower case, "" when there is none. */
enum peek peek_look(struct peek_memory *m, struct view in, char name[256]);
/* Whether a connection to the proxy port begins with a request for the AI gateway: PEEK_HTTP, PEEK_OTHER or
 * PEEK_MORE. */
enum peek peek_caller(struct view in);
